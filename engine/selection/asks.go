// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/internal/regonative"
	"github.com/metalaw/metalaw/engine/internal/regosandbox"
)

// reads are the parts of the input that the rules of a policy can read.
type reads struct {
	fields regonative.Fields
	// whole holds the scopes that are read as a whole.
	whole map[string]bool
}

// Asks is the same for claims that the policy cannot tell apart: for these Select returns the same, given the same
// candidates and the same fleet. Claims that differ only in what no rule reads, as their names mostly do, are alike. It is a
// key and no text for people.
func (p *Policy) Asks(claim Claim) string {
	if !p.reads.whole[ofClaim] {
		return string(p.asks.AppendKey(nil, &subject{claim: &claim}))
	}
	all, err := json.Marshal(claim) // which sorts the keys of maps
	if err != nil {
		panic(err) // strings, numbers and maps of them can be written
	}
	return string(all)
}

// ofNamespace says that a part of the fleet's counts is that of the claim's namespace: claims of two namespaces see two fleets.
func ofNamespace(f *field) bool {
	return f.Keys[0] == ofFleet && strings.HasPrefix(f.Keys[1], "namespace")
}

// asking are the fields of a claim that tell two of them apart.
func (r reads) asking() regonative.Fields {
	asks := r.of(ofClaim)
	if r.whole[ofFleet] || len(r.fields.Of(ofNamespace)) > 0 {
		asks = asks.With(fields[ofClaim+".namespace"])
	}
	return asks
}

// FollowsFleet says whether counts or time can change what Select returns for the same claim and the same candidates.
func (p *Policy) FollowsFleet() bool {
	return p.reads.whole[ofFleet] || len(p.reads.of(ofFleet)) > 0
}

// passing are facts of a server that change by themselves, or by its use.
var passing = []string{"health", "availableSince", "availableDay", "timesClaimed"}

// judgePassing says whether rules that read all this can say something else though neither claim nor server changes.
func (r reads) judgePassing() bool {
	return r.whole[ofFleet] || r.whole[ofCandidate] || len(r.fields.Of(passes)) > 0
}

// passes says that a part of the input changes by itself.
func passes(f *field) bool {
	return f.Keys[0] == ofFleet || f.Keys[0] == ofCandidate && len(f.Keys) > 1 && slices.Contains(passing, f.Keys[1])
}

// of are the fields of one scope.
func (r reads) of(scope string) regonative.Fields {
	return r.fields.Of(func(f *field) bool { return f.Keys[0] == scope })
}

// readsOf are those of a policy that is interpreted.
func readsOf(module *regosandbox.Module) reads {
	r := reads{whole: map[string]bool{}}
	for _, path := range module.Reads() {
		switch f := source(path); {
		case f != nil:
			r.fields = r.fields.With(f)
		case len(path) > 0:
			r.whole[path[0]] = true
		default:
			r.whole[ofClaim], r.whole[ofCandidate], r.whole[ofFleet] = true, true, true
		}
	}
	return r
}

// reads are those of all rules, and of the messages.
func (n *native) reads() reads {
	all := n.judging().fields
	if n.score != nil {
		all = all.With(n.score.Reads...)
	}
	for _, r := range n.rejects {
		all = all.With(r.Words...)
	}
	return reads{fields: all}
}

// judging are those of the rules that decide whether a candidate is allowed.
func (n *native) judging() reads {
	all := n.allow.Reads
	for _, r := range n.rejects {
		all = all.With(r.Reads...)
	}
	return reads{fields: all}
}
