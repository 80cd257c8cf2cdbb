// SPDX-License-Identifier: Apache-2.0

package selection

import "errors"

// CandidateError is what kept a policy from being evaluated for one server, and says nothing of any other.
type CandidateError struct {
	// Server is its name.
	Server string
	// Err says what it is, and names no server.
	Err error
}

// Error names the server.
func (e CandidateError) Error() string { return "selection: server " + e.Server + ": " + e.Err.Error() }

// Reason is what the error is to a claim that cannot have the server because of it, for those who may read the server.
func (e CandidateError) Reason() Reason {
	return Reason{CodePolicyError, "the policy cannot be evaluated: " + e.Err.Error()}
}

// Anonymous is an error for those who may not know which servers there are: the place and the rule, without what the rule failed on,
// which may be a server's name or label.
func Anonymous(err error) string {
	var failed *EvalError
	if errors.As(err, &failed) {
		if place := failed.Place(); place != "" {
			return "the policy cannot be evaluated: " + place
		}
	}
	var one CandidateError
	if errors.As(err, &one) {
		err = one.Err
	}
	return "the policy cannot be evaluated: " + err.Error()
}

// Unwrap makes the cause visible.
func (e CandidateError) Unwrap() error { return e.Err }
