// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"fmt"
	"strings"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
)

// canonical maps the old spelling of an operation to the present one.
func canonical(operation string) string {
	switch operation {
	case v1alpha1.OperationRetryFailedStateResource:
		return v1alpha1.OperationRetry
	case v1alpha1.OperationIgnoreReconciliation:
		return v1alpha1.OperationIgnore
	}
	return operation
}

// Asked is the operation that the annotation asks for; empty where it asks for none.
func Asked(s *v1alpha1.Server) string { return canonical(s.Annotations[v1alpha1.OperationAnnotation]) }

// pastRules says that an operation goes past the rules of the policy: the manager asks about its state itself.
func pastRules(operation string) bool {
	return operation == v1alpha1.OperationForce || operation == v1alpha1.OperationDeclareClean
}

// ByHand says that what is asked for is recorded past the rules: a forced move or a release.
func ByHand(s *v1alpha1.Server) bool {
	op := s.Status.Operation
	return Asked(s) == v1alpha1.OperationRelease || pastRules(Asked(s)) || (op.Active() && pastRules(op.Name))
}

// DeclaresClean says that the server is declared clean, asked for or recorded.
func DeclaresClean(s *v1alpha1.Server) bool {
	op := s.Status.Operation
	return Asked(s) == v1alpha1.OperationDeclareClean || (op.Active() && op.Name == v1alpha1.OperationDeclareClean)
}

// knownOperations are the words that the wire contract knows, so that a word which cannot be used here is told from a
// word that is misspelt.
var knownOperations = map[string]bool{
	v1alpha1.OperationPark: true, v1alpha1.OperationUnpark: true, v1alpha1.OperationRetry: true, v1alpha1.OperationRelease: true,
	v1alpha1.OperationGracefulRestartServer: true, v1alpha1.OperationHardRestartServer: true,
	v1alpha1.OperationPowerCycleServer: true, v1alpha1.OperationForceOffServer: true, v1alpha1.OperationForceOnServer: true,
}

// otherKinds are the words of the wire contract that mean nothing on a Server, each with where it belongs.
var otherKinds = map[string]string{
	v1alpha1.OperationGracefulRestartBMC: "set it on the BMC that spec.bmcRef names",
	v1alpha1.OperationRotateCredentials: "it belongs on a BMC, and is not available in this version; " +
		"change the password at the BMC and in its BMCSecret",
	v1alpha1.OperationAllowInProgressDelete: inProgress,
	v1alpha1.OperationAllowInProgressUpdate: inProgress,
}

const inProgress = "it belongs on an object that applies firmware or settings to a machine, and this version does nothing about those"

// Instead says where a release can be recorded, and how a server that cannot be released where it is gets there.
func Instead(b *bundle.Bundle, server *v1alpha1.Server, asked string) string {
	if asked != v1alpha1.OperationRelease {
		return ""
	}
	var states []engine.State
	for _, s := range b.Lifecycle.States() {
		if b.Lifecycle.Accepts(s, asked) {
			states = append(states, s)
		}
	}
	words := "; it can in " + joined(states)
	if server.Status.State == v1alpha1.StateObserving {
		words += fmt.Sprintf("; a machine that was found running is taken over first, by annotation %s=%s, which may switch it off",
			v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver)
	}
	return words
}

func joined(states []engine.State) string {
	words := make([]string, len(states))
	for i, s := range states {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

// said adds to what was done who asked for it and why.
func said(what, by, reason string) string {
	if by != "" {
		what += " by " + by
	}
	if reason != "" {
		what += ": " + reason
	}
	return what
}
