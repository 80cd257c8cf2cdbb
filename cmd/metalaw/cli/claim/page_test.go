// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/claims/solve"
)

func TestServersOfWhichTheSameIsToBeSaidAreCounted(t *testing.T) {
	verdict := func(name, code string) solve.Verdict {
		return solve.Verdict{Name: name, Reasons: []solve.Reason{{Code: code, Message: "it is " + code, Stage: solve.Contract}}}
	}
	a := &assessment{Servers: []solve.Verdict{{Name: "s0", Fits: true, Rank: 1}, verdict("s1", "dirty"),
		verdict("s2", "taint"), verdict("s3", "taint"), verdict("s4", "taint"), verdict("s5", "taint"), verdict("s6", "taint"), verdict("s7", "dirty")}}
	for name, c := range map[string]struct {
		all  bool
		want string
	}{
		"without --all": {false, `SERVER  FITS    WHY
s0      yes, 1
s1      dirty   it is dirty
s2      taint   it is taint
s3      taint   it is taint
s4      taint   it is taint
and 2 more  for which the same is to be said; --all shows them
s7      dirty   it is dirty
`},
		"with --all": {true, `SERVER  FITS    WHY
s0      yes, 1
s1      dirty   it is dirty
s2      taint   it is taint
s3      taint   it is taint
s4      taint   it is taint
s5      taint   it is taint
s6      taint   it is taint
s7      dirty   it is dirty
`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p := &page{Terminal: &terminal.Terminal{Out: &out}, all: c.all}
			p.servers(a)
			if diff := cmp.Diff(c.want, out.String()); diff != "" || p.Ended(nil) != nil {
				t.Errorf("%v\n%s", p.Ended(nil), diff)
			}
		})
	}
}

func TestHowACodePassesIsToldWhereItIsNotAsEver(t *testing.T) {
	var out bytes.Buffer
	p := &page{Terminal: &terminal.Terminal{Out: &out}}
	p.assessed(&assessment{Total: 3, Matching: 3, Codes: []codeCount{
		{Code: "not-available", Servers: 2, Passes: "1 by itself; 1 when an operator of the fleet acts", Meaning: "It is not Available.", Remedy: "Wait."},
		{Code: "unclaimable", Servers: 1, Passes: "when an operator of the fleet acts", Meaning: "It is cordoned.", Remedy: "Uncordon it."},
	}}, false)
	want := `Servers:     3 of 3 match, 0 could be had now

Why not the others:
  not-available        2  It is not Available.
                          Passes: 1 by itself; 1 when an operator of the fleet acts
                          Do: Wait.
  unclaimable          1  It is cordoned.
                          Do: Uncordon it.
`
	if diff := cmp.Diff(want, out.String()); diff != "" || p.Ended(nil) != nil {
		t.Errorf("%v\n%s", p.Ended(nil), diff)
	}
}
