// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/selection"
)

// drawMembers are claims of one gang that ask for different racks, sizes and names.
func drawMembers(r *rapid.T) []Member {
	members := make([]Member, rapid.IntRange(2, 4).Draw(r, "members"))
	for i := range members {
		text := fmt.Sprintf("gang: {name: g, size: %d}\n", len(members)) +
			rapid.SampledFrom([]string{"", `where: server.rack == "r1"`, `where: server.rack != "r1"`, `where: server.rack == "r4" || server.name == "s05"`,
				`where: server.labels["size"] == "m"`}).Draw(r, "placement")
		members[i].Claim = &v1alpha1.ServerClaim{}
		members[i].Claim.Namespace, members[i].Claim.Name = "team", fmt.Sprint("m", i)
		members[i].Claim.Annotations = map[string]string{v1alpha1.PlacementAnnotation: text}
	}
	return members
}

// allowed are the servers that each member could have if it were alone, by what each single rule says.
func allowed(t *testing.T, policy *selection.Policy, m Member, servers []v1alpha1.Server) []string {
	t.Helper()
	ranked, _ := bruteForce(t, policy, m.Claim, servers, nil)
	var names []string
	for _, one := range ranked {
		names = append(names, one.Name)
	}
	return names
}

// waysFor tries every way to give each member a server of its own.
func waysFor(could [][]string, taken []string) bool {
	if len(could) == 0 {
		return true
	}
	for _, name := range could[0] {
		if !slices.Contains(taken, name) && waysFor(could[1:], append(slices.Clone(taken), name)) {
			return true
		}
	}
	return false
}

func TestAGangIsServedWhereBruteForceFindsAWay(t *testing.T) {
	policy := compiled(t, rules)
	runs, whole, late, short := 0, 0, 0, 0
	rapid.Check(t, func(r *rapid.T) {
		runs++
		servers, members := drawServers(r), drawMembers(r)
		before := FleetOf(servers, nil, nil, time.Unix(1, 0))
		got, err := Serve(context.Background(), policy, bundle.Quota{}, members, before)
		if err != nil {
			r.Fatal(err)
		}
		var could [][]string
		for _, m := range members {
			could = append(could, allowed(t, policy, m, servers))
		}
		want := waysFor(could, nil)
		switch {
		case want:
			whole++
		default:
			short++
		}
		if got.Complete != want {
			r.Errorf("complete is %t, and by brute force it is %t: %q", got.Complete, want, could)
		}
		var taken []string
		for i, a := range got.Answers {
			one, ok := a.Taken()
			if ok && (!slices.Contains(could[i], one.Name) || got.Complete && slices.Contains(taken, one.Name)) {
				r.Errorf("member %d takes %s; it could have %q, and %q are taken", i, one.Name, could[i], taken)
			}
			if ok && one.Name != could[i][0] {
				late++
			}
			taken = append(taken, one.Name)
		}
		if !got.Complete && got.After != before || got.Complete && got.After.counts.Claimed != before.counts.Claimed+int64(len(members)) {
			r.Errorf("%d are claimed then, and %d before", got.After.counts.Claimed, before.counts.Claimed)
		}
	})
	if least := runs / 20; whole < least || short < least || late < least {
		t.Errorf("of %d gangs %d are served and %d not, and %d members take a server that is not their best: too few of interest", runs, whole, short, late)
	}
}
