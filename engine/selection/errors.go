// SPDX-License-Identifier: Apache-2.0

package selection

// CandidateError is what kept a policy from being evaluated for one server.
type CandidateError struct {
	// Server is its name.
	Server string
	// Err says what it is, and names no server.
	Err error
}

// Error names the server.
func (e CandidateError) Error() string { return "selection: server " + e.Server + ": " + e.Err.Error() }

// Anonymous is Error for those who may not know which servers there are.
func (e CandidateError) Anonymous() string { return "selection: a server: " + e.Err.Error() }

// Reason is what the error is to a claim that cannot have the server because of it. It names no server.
func (e CandidateError) Reason() Reason {
	return Reason{CodePolicyError, "the policy cannot be evaluated: " + e.Err.Error()}
}

// Unwrap makes the cause visible.
func (e CandidateError) Unwrap() error { return e.Err }
