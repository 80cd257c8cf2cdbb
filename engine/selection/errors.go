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

// Unwrap makes the cause visible.
func (e CandidateError) Unwrap() error { return e.Err }
