// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
)

// Acceptance is what acceptance in this vocabulary needs besides the files. What a bundle leaves out is taken from fill;
// what it has in common with fill was proven there, so that a bundle that is accepted with itself as fill is held to its
// own scenarios and tests, and not asked for more of them.
func Acceptance(fill bundle.Files) bundle.Options {
	in := bundle.Options{Vocabulary: Vocabulary(), Fill: fill, Assume: AxiomsOf, Named: namedStates(),
		Shipped: map[string]bundle.Files{}}
	for _, name := range ShippedNames() {
		if files, err := Shipped(name); err == nil { // it is compiled in
			in.Shipped[name] = files
		}
	}
	in.BuiltIn = in.Shipped[DefaultBundle]
	return in
}

// namedStates are those without which a lifecycle compiles and does not what its author will expect of it.
func namedStates() []bundle.NamedState {
	return []bundle.NamedState{
		{State: engine.State(v1alpha1.StateAvailable), Code: bundle.CodeStateNameExpected, Consequence: "no server is ever offered to a claim",
			Hint: "name the state Available in which servers wait for claims"},
		{State: engine.State(v1alpha1.StateReserved), Code: bundle.CodeStateNameExpected, Consequence: "no claim is ever Bound",
			Hint: "name the state Reserved in which servers boot and run what their claims ask for"},
		{State: engine.State(v1alpha1.StateError), Code: bundle.CodeCanaryErrorsUnbounded,
			Consequence: "canary.maxErrors bounds nothing: a canary is paused by halts alone",
			Hint:        "name the state Error to which servers go that an operator has to look at"},
	}
}

// Accept holds a bundle to all that it must pass before it may govern servers: bundle.Accept in this vocabulary, with what
// the bundle leaves out taken from the shipped default. Admission, the controller, the command line and the tests all end
// here, so that none of them knows better than another. The same files give the same report at every call.
func Accept(ctx context.Context, files bundle.Files) (*bundle.Bundle, bundle.Report, error) {
	fill, err := Shipped(DefaultBundle)
	if err != nil {
		return nil, bundle.Report{}, err
	}
	return bundle.Accept(ctx, files, Acceptance(fill))
}
