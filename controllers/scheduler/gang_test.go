// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// placed gives a claim a placement.
func placed(text string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[v1alpha1.PlacementAnnotation] = text
	}
}

func inGang(size int) func(*v1alpha1.ServerClaim) {
	return placed(fmt.Sprintf("gang: {name: db, size: %d}", size))
}

// gangOfThree has so many servers for a gang of three.
func gangOfThree(t *testing.T, servers int) *world {
	w := newWorld(t)
	for i := range servers {
		w.addServer(aServer(fmt.Sprintf("s%d", i)))
	}
	for i := range 3 {
		w.addClaim(aClaim(fmt.Sprintf("db-%d", i), inGang(3)))
	}
	w.deliver(99)
	return w
}

// onServers are the servers that are written for anybody.
func (w *world) onServers() (names []string) {
	for _, s := range w.servers() {
		if s.Spec.ServerClaimRef != nil {
			names = append(names, s.Name)
		}
	}
	return names
}

var allThree = []string{"db-0", "db-1", "db-2"}

func TestAGangGetsServersTogetherOrNotAtAll(t *testing.T) {
	w := gangOfThree(t, 2)
	w.must(w.pass())
	if got := w.onServers(); got != nil || w.writes != 0 {
		t.Errorf("%v are written, in %d writes", got, w.writes)
	}
	for i, want := range []string{
		`gang "db": servers for 2 of its 3 members can be had now, 1 short; 2 of 2 servers match: gang 2`,
		`gang "db": servers for 2 of its 3 members can be had now, 1 short; 2 of 2 servers match: gang 2`} {
		if v, _ := w.s.Verdict(w.claims()[i].UID); v.Reason != v1alpha1.ReasonGangWaiting || v.Message != want {
			t.Errorf("%s is told %s %q", w.claims()[i].Name, v.Reason, v.Message)
		}
	}
	w.addServer(aServer("third"))
	w.deliver(9)
	w.must(w.pass())
	if diff := cmp.Diff(allThree, w.boundClaims()); diff != "" {
		t.Error(diff)
	}
}

func TestAGangWaitsForItsMembers(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.addServer(aServer(fmt.Sprintf("s%d", i)))
	}
	w.addClaim(aClaim("db-0", inGang(3)))
	w.addClaim(aClaim("db-1", inGang(3)))
	w.deliver(9)
	w.must(w.pass())
	if v, _ := w.s.Verdict("uid-db-0"); w.writes != 0 || v.Reason != v1alpha1.ReasonGangWaiting ||
		v.Message != `gang "db": 2 of its 3 members exist; none of them gets a server until all do` {
		t.Errorf("%d writes; it is told %s %q", w.writes, v.Reason, v.Message)
	}
	w.addClaim(aClaim("db-2", inGang(4)))
	w.deliver(9)
	w.must(w.pass())
	if v, _ := w.s.Verdict("uid-db-0"); w.writes != 0 || v.Reason != v1alpha1.ReasonInvalidPlacement {
		t.Errorf("%d writes; it is told %s %q", w.writes, v.Reason, v.Message)
	}
	c := w.claims()[2]
	inGang(3)(c)
	w.must(w.api.Update(context.Background(), c))
	w.shown(c)
	w.deliver(9)
	w.must(w.pass())
	if diff := cmp.Diff(allThree, w.boundClaims()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatComesBetweenTheWritesOfAGang(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "servers"}, "s1", errors.New("no rule allows it"))
	ofServer := func(name string, err error) func(client.Object) error {
		return func(o client.Object) error {
			if s, ok := o.(*v1alpha1.Server); ok && s.Name == name {
				return err
			}
			return nil
		}
	}
	nameless := func(name string) func(client.Object) error {
		return func(o client.Object) error {
			if _, ok := o.(*v1alpha1.ServerClaim); ok && o.GetName() == name {
				return apierrors.NewServiceUnavailable("injected")
			}
			return nil
		}
	}
	end := func(name string) func(w *world) {
		return func(w *world) {
			for _, c := range w.claims() {
				if c.Name == name {
					w.endClaim(c)
				}
			}
		}
	}
	for _, tc := range []struct {
		name          string
		servers       int
		before, after func(client.Object) error
		then          func(w *world)
		bound         []string
		written       []string
	}{
		{"a lost race takes another server", 4, ofServer("s1", apierrors.NewConflict(schema.GroupResource{}, "s1", nil)), nil, nil, allThree, []string{"s0", "s2", "s3"}},
		{"a denied write takes another server", 4, ofServer("s1", denied), nil, nil, allThree, []string{"s0", "s2", "s3"}},
		{"where there is none, what was written is taken back", 3, ofServer("s1", denied), nil, nil, nil, nil},
		{"a lost answer is looked up, and the rest completed", 3, nil, ofServer("s1", errors.New("injected: lost")), nil, allThree, []string{"s0", "s1", "s2"}},
		{"and so it is by the next manager", 3, nil, ofServer("s1", errors.New("injected: lost")), (*world).restart, allThree, []string{"s0", "s1", "s2"}},
		{"a claim that could not be named is named by the next pass", 3, nameless("db-2"), nil, func(w *world) { w.before = nil }, allThree, []string{"s0", "s1", "s2"}},
		{"a member that goes meanwhile has the others' taken back", 3, nil, ofServer("s1", errors.New("injected: lost")), end("db-2"), nil, nil},
		{"and so does one whose server was written", 3, nil, ofServer("s1", errors.New("injected: lost")), end("db-0"), nil, nil},
		{"another size has them taken back", 3, nil, ofServer("s1", errors.New("injected: lost")), func(w *world) {
			c := w.claims()[2]
			inGang(4)(c)
			w.must(w.api.Update(context.Background(), c))
			w.shown(c)
		}, nil, nil},
		{"one that cannot be read has them taken back", 3, nil, ofServer("s1", errors.New("injected: lost")), func(w *world) {
			c := w.claims()[0]
			placed("gang: {")(c)
			w.must(w.api.Update(context.Background(), c))
			w.shown(c)
		}, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := gangOfThree(t, tc.servers)
			w.before, w.after = tc.before, tc.after
			_ = w.pass()
			w.check()
			w.after = nil
			if tc.then != nil {
				tc.then(w)
			}
			for range 5 {
				w.deliver(len(w.events))
				_ = w.pass()
				w.check()
			}
			if diff := cmp.Diff(tc.bound, w.boundClaims()); diff != "" {
				t.Errorf("bound: %s", diff)
			}
			if diff := cmp.Diff(tc.written, w.onServers()); diff != "" {
				t.Errorf("written: %s", diff)
			}
		})
	}
}

func TestAMemberThatIsMadeAnewJoinsTheOthers(t *testing.T) {
	w := gangOfThree(t, 4)
	w.must(w.pass())
	w.endClaim(w.claims()[2])
	w.addClaim(aClaim("db-3", inGang(3)))
	w.deliver(len(w.events))
	w.must(w.pass())
	if diff := cmp.Diff([]string{"db-0", "db-1", "db-3"}, w.boundClaims()); diff != "" {
		t.Error(diff)
	}
}

func TestAMemberCannotNameItsServer(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("a"))
	w.addClaim(aClaim("db-0", inGang(2), naming("a")))
	w.addClaim(aClaim("db-1", inGang(2)))
	w.deliver(9)
	w.must(w.pass())
	v, _ := w.s.Verdict("uid-db-0")
	other, _ := w.s.Verdict("uid-db-1")
	if w.writes != 0 || v.Reason != v1alpha1.ReasonInvalidPlacement || other.Reason != v1alpha1.ReasonGangWaiting {
		t.Errorf("%d writes; they are told %s and %s", w.writes, v.Reason, other.Reason)
	}
}

func TestTheMemberThatIsHardToPleaseChoosesFirst(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("a"))
	w.addServer(aServer("b"))
	w.addClaim(aClaim("db-0", placed("gang: {name: db, size: 2}")))
	w.addClaim(aClaim("db-1", placed("where: server.name == \"a\"\ngang: {name: db, size: 2}")))
	w.deliver(9)
	w.must(w.pass())
	if diff := cmp.Diff([]string{"db-0", "db-1"}, w.boundClaims()); diff != "" {
		t.Error(diff)
	}
}
