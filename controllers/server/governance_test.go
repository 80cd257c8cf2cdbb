// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

func TestAServerThatItsRevisionHaltsComesUnderAnotherAsANewEntry(t *testing.T) {
	good, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	bad := halting(t)
	nothing := func(*v1alpha1.Server) {}
	asked := func(d time.Duration) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			s.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, AskedAt: ago(d), Entry: 7, Attempts: 1}
		}
	}
	for name, c := range map[string]struct {
		power     redfish.PowerState
		uuid      string
		pinned    *bundle.Bundle
		target    *bundle.Bundle
		held      []*bundle.Bundle
		change    func(*v1alpha1.Server)
		inventory *policyv1alpha1.ServerInventory
		after     time.Duration
		want      string
		halted    string
		moves     []string
	}{
		"in the state that it had": {redfish.PowerOff, "", bad, good, nil, nothing, nil, 20 * time.Second,
			"Cleanup 8 default", "", []string{"Adopted Cleanup"}},
		"a wipe that was proven for the former entry does not count": {redfish.PowerOff, "", bad, good, nil, nothing,
			wiping(policyv1alpha1.WipeVerified, 7), 20 * time.Second, "Cleanup 8 default", "", []string{"Adopted Cleanup"}},
		"not while a wipe runs": {redfish.PowerOn, "", bad, good, nil, nothing, wiping(policyv1alpha1.WipeRunning, 7), time.Minute,
			"Cleanup 7 default-2.0.0", "SafetyRule takes over once the wipe that runs has ended", nil},
		"not while a power change may still come true": {redfish.PowerOff, "", bad, good, nil, asked(10 * time.Second), nil, 20 * time.Second,
			"Cleanup 7 default-2.0.0", "SafetyRule takes over once the power change that was asked for has shown or lapsed", nil},
		"from when that has lapsed": {redfish.PowerOff, "", bad, good, nil, asked(10 * time.Second), nil, 80 * time.Second,
			"Cleanup 8 default", "", []string{"Adopted Cleanup"}},
		"from the initial state, off first, where it runs what was booted before": {redfish.PowerOn, "", bad, good, nil, nothing, nil, 3 * time.Minute,
			"Cleanup 10 default", "", []string{"Adopted Initial", "DataRunning Released", "RetentionEnded Cleanup"}},
		"not where another machine answers": {redfish.PowerOff, "1a2b3c4d-0000-0000-0000-000000000002", bad, good, nil, nothing, nil, time.Minute,
			"Cleanup 7 default-2.0.0", "SafetyRule", nil},
		"not where the other does not know its state": {redfish.PowerOff, "", bad, without(t, "3.0.0", ""), nil, nothing, nil, time.Minute,
			"Cleanup 7 default-2.0.0", "SafetyRule", nil},
		"out of a state that the other drops": {redfish.PowerOff, "", bad, without(t, "3.0.0", "migrate: {Cleanup: Error}"), nil, nothing, nil, 20 * time.Second,
			"Error 8 default-3.0.0", "", []string{"Migrated Error"}},
		"not where the other is held": {redfish.PowerOff, "", bad, good, []*bundle.Bundle{good}, nothing, nil, time.Minute,
			"Cleanup 7 default-2.0.0", "SafetyRule", nil},
		"where its own is held": {redfish.PowerOff, "", variant(t, "2.1.0"), good, []*bundle.Bundle{variant(t, "2.1.0")}, nothing, nil, time.Minute,
			"Cleanup 8 default", "", []string{"Adopted Cleanup"}},
		"not where nothing halts it": {redfish.PowerOff, "", variant(t, "2.1.0"), good, nil, nothing, nil, time.Minute,
			"Cleanup 7 default-2.1.0", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.power)
				if c.uuid != "" {
					m.shows.Identity.UUID = c.uuid
				}
				s := serverIn(v1alpha1.StateCleanup, toWipe, pinnedTo(c.pinned), c.change)
				inventory := c.inventory
				if inventory == nil {
					inventory = dirtyInventory(&policyv1alpha1.Holder{Namespace: "shop", Name: "web", UID: "uid-web"})
				} else {
					inventory = inventory.DeepCopy()
					inventory.Wipe.StartedAt, inventory.Wipe.UpdatedAt = ago(time.Minute), ago(0)
				}
				w := inWorld(t, m, s, inventory)
				r := &rules{target: c.target, pinned: map[string]*bundle.Bundle{c.pinned.Revision.Name: c.pinned, c.target.Revision.Name: c.target}, held: map[string]string{}}
				for _, b := range c.held {
					r.held[b.Revision.Name] = "its test fails"
				}
				w.manager.Bundles = r
				w.manager.run(c.after)
				got := w.server()
				var moves []string
				for _, move := range got.Status.Lifecycle.History {
					moves = append(moves, move.Rule+" "+string(move.To))
					if move.Rule != v1alpha1.RuleAdopted && move.Rule != "Migrated" {
						continue
					}
					if want := "policy revision " + c.pinned.Revision.Name + " halted it: "; !strings.HasPrefix(move.Reason, want) {
						t.Errorf("the history says %q", move.Reason)
					}
				}
				if diff := cmp.Diff([]string{c.want, c.halted}, []string{lifecycleText(got), haltedText(got)}); diff != "" {
					t.Errorf("(-want +got)\n%s%+v", diff, got.Status.Conditions)
				}
				if diff := cmp.Diff(c.moves, moves); diff != "" {
					t.Errorf("moves (-want +got)\n%s", diff)
				}
				if halts := got.Status.Lifecycle.Halts; moves != nil && (len(halts) != 1 || halts[0].Revision != c.pinned.Revision.Name) {
					t.Errorf("of the halt that is over is kept %+v", halts)
				}
			})
		})
	}
}

// without is the default lifecycle without Cleanup.
func without(t testing.TB, version, migrate string) *bundle.Bundle {
	t.Helper()
	return changed(t, version, func(text string) string {
		text = text[:strings.Index(text, "  Cleanup:\n")] + text[strings.Index(text, "  Parked:\n"):]
		text = strings.NewReplacer("to: Cleanup,", "to: Error,", "Initial, Cleanup]", "Initial]", "Released, Cleanup, Maint", "Released, Maint").Replace(text)
		text = regexp.MustCompile("  (Wipe[A-Za-z]+|OnlyExcused): .*\n").ReplaceAllString(text, "")
		return text + migrate + "\n"
	})
}

func TestAServerThatRestsComesUnderAnotherRevisionInOneWrite(t *testing.T) {
	good, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	former := variant(t, "0.9.0")
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateAvailable, pinnedTo(former)))
		r := &rules{target: former, pinned: map[string]*bundle.Bundle{former.Revision.Name: former, good.Revision.Name: good}}
		w.manager.Bundles = r
		w.manager.run(10 * time.Minute)
		before, events := w.server(), len(w.events)
		r.target = good
		w.manager.run(10 * time.Minute)
		after := w.server()
		if got := lifecycleText(after); got != "Available 7 default" {
			t.Errorf("it is %s", got)
		}
		if n := writes(t, before, after); n != 1 || len(w.events) != events {
			t.Errorf("%d writes and events %v", n, w.events[events:])
		}
	})
}

func TestABootOfOursThatTheOtherRevisionDoesNotAskForCountsForNothingUnderIt(t *testing.T) {
	good, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	former := variant(t, "0.9.0", `when: "!dirty && !held"}
    - {do: ClearBoot, when: "!held"}
`, `when: "!dirty && !held"}
    - {do: BootProbe, when: "!held"}
`)
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateAvailable, pinnedTo(former)))
		r := &rules{target: former, pinned: map[string]*bundle.Bundle{former.Revision.Name: former, good.Revision.Name: good}}
		w.manager.Bundles = r
		w.manager.run(10 * time.Minute)
		if w.server().Spec.BootConfigurationRef == nil {
			t.Fatal("no boot is prepared under the former revision")
		}
		r.target = good
		w.manager.run(10 * time.Minute)
		if got := lifecycleText(w.server()); got != "Available 8 default" || w.server().Spec.BootConfigurationRef != nil {
			t.Errorf("it is %s, and names the boot %v", got, w.server().Spec.BootConfigurationRef)
		}
	})
}

func TestAWipesBootCountsForNothingWhereTheOtherRevisionBootsTheProbe(t *testing.T) {
	booting := func(version, effect string) *bundle.Bundle {
		return variant(t, version, `    - {do: PowerOff, when: released && mayStop && !wiping}
    - Locate
    exits:
    - {rule: ParkedReleased, to: Parked, when: parkAsked && (released || held) && poweredOff && !wiping}
    - {rule: RetentionEnded, to: Cleanup, when: released && !retained && poweredOff && !claimed}
`, `    - {do: `+effect+`, when: "!held"}
    exits:
    - {rule: RetentionEnded, to: Cleanup, when: parkAsked}
`)
	}
	former, next := booting("0.8.0", "BootWipe"), booting("0.9.0", "BootProbe")
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateReleased, toWipe, pinnedTo(former),
			func(s *v1alpha1.Server) { s.Status.State = v1alpha1.StateReleased }))
		r := &rules{target: former, pinned: map[string]*bundle.Bundle{former.Revision.Name: former, next.Revision.Name: next}}
		w.manager.Bundles = r
		w.manager.run(10 * time.Minute)
		if w.server().Spec.BootConfigurationRef == nil {
			t.Fatal("no boot is prepared under the former revision")
		}
		r.target = next
		w.manager.run(10 * time.Minute)
		if got := lifecycleText(w.server()); got != "Released 8 default-0.9.0" {
			t.Errorf("it is %s", got)
		}
	})
}

// writes is how often a server was written between two reads.
func writes(t *testing.T, a, b *v1alpha1.Server) int {
	t.Helper()
	from, err := strconv.Atoi(a.ResourceVersion)
	to, err2 := strconv.Atoi(b.ResourceVersion)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return to - from
}

func TestRestThatEndsCountsAgainstNoDeadline(t *testing.T) {
	former := variant(t, "0.9.0")
	strict := variant(t, "2.0.0", `means: Inspected, clean and free to claim.
    stable: true`, `means: Inspected, clean and free to claim.`,
		"{rule: ParkedAvailable, to: Parked,   when: parkAsked && poweredOff}",
		"{rule: ParkedAvailable, to: Parked,   when: parkAsked && poweredOff}\n    - {rule: Stale, to: Initial, after: 30m}")
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateAvailable, pinnedTo(former)))
		w.manager.Bundles = &rules{target: strict, pinned: map[string]*bundle.Bundle{former.Revision.Name: former, strict.Revision.Name: strict}}
		w.manager.run(5 * time.Minute)
		s := w.server()
		adopted := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAdopted)
		if got := lifecycleText(s); got != "Available 8 default-2.0.0" || adopted == nil || adopted.Reason != v1alpha1.ReasonRestEnded {
			t.Errorf("it is %s, %+v", got, adopted)
		}
	})
}

func TestUnderAHeldRevisionNothingMovesAndNothingIsDone(t *testing.T) {
	good, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		state  v1alpha1.ServerState
		change func(*v1alpha1.Server)
		loads  bool
	}{
		"in a state on the way":                {v1alpha1.StateCleanup, toWipe, true},
		"at rest":                              {v1alpha1.StateAvailable, func(*v1alpha1.Server) {}, true},
		"where it does not even compile":       {v1alpha1.StateCleanup, toWipe, false},
		"before it has a state":                {"", func(s *v1alpha1.Server) { s.Status.Lifecycle, s.Status.State = nil, "" }, true},
		"where somebody asks for an operation": {v1alpha1.StateReserved, func(s *v1alpha1.Server) { s.Annotations[v1alpha1.OperationAnnotation] = "release" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				s := serverIn(c.state, c.change)
				if s.Status.Lifecycle != nil {
					s.Status.Lifecycle.Revision = good.Revision.Name
				}
				w := inWorld(t, m, s, dirtyInventory(nil))
				r := &rules{target: good, held: map[string]string{good.Revision.Name: "scenarios.yaml: a scenario fails"}}
				if c.loads {
					r.pinned = map[string]*bundle.Bundle{good.Revision.Name: good}
				}
				w.manager.Bundles = r
				w.manager.run(6 * time.Hour)
				got := w.server()
				if got.Status.State != c.state || haltedText(got) != "RevisionHeld" {
					t.Errorf("it is %q, %+v", got.Status.State, got.Status.Conditions)
				}
				if got.Status.PowerState != v1alpha1.PowerState(redfish.PowerOn) {
					t.Errorf("its power is shown as %q", got.Status.PowerState)
				}
				if c.state == v1alpha1.StateCleanup && !got.Status.Lifecycle.Clock.Held {
					t.Errorf("its deadline runs: %+v", got.Status.Lifecycle.Clock)
				}
				m.wants(t, "meanwhile")
			})
		})
	}
}

// Servers are looked at every three minutes, and one after the other when another revision comes into force.
func TestServersComeUnderAnotherRevisionAtAPace(t *testing.T) {
	const perSecond, steady = 10, 180
	good, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	former := variant(t, "0.9.0")
	begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct{ servers, seconds int }{"a fleet": {10000, 1100}, "a rack": {40, 5}} {
		t.Run(name, func(t *testing.T) {
			s := newSubject(Options{AdoptionRate: perSecond, Now: time.Now, Cache: newCache(nil, func(string) {}),
				Bundles: &rules{target: good, pinned: map[string]*bundle.Bundle{former.Revision.Name: former, good.Revision.Name: good}}})
			defer s.Cache.Close()
			looks, most, seconds, left := 0, 0, 0, c.servers
			at := map[int][]*v1alpha1.Server{}
			for i := range c.servers {
				server := serverIn(v1alpha1.StateAvailable, pinnedTo(former))
				server.Name = fmt.Sprintf("s%05d", i)
				at[i%steady] = append(at[i%steady], server)
				at[i/perSecond] = append(at[i/perSecond], server)
			}
			for ; left > 0; seconds++ {
				adopted := 0
				for _, server := range at[seconds] {
					if server.Status.Lifecycle.Revision == good.Revision.Name {
						continue
					}
					v := s.scope(server)
					v.seen.Now, v.seen.Facts = begin.Add(time.Duration(seconds)*time.Second), &policies.Facts{}
					looks++
					v.get(rollout.Governs(v.question()).Asks)
					if rollout.Governs(v.question()).Bundle == good {
						server.Status.Lifecycle.Revision = good.Revision.Name
						adopted++
						continue
					}
					again := int(v.x.wake / time.Second)
					if again < 1 || again > 60 {
						t.Fatalf("it is looked at again after %s", v.x.wake)
					}
					at[seconds+again] = append(at[seconds+again], server)
				}
				delete(at, seconds)
				left -= adopted
				most = max(most, adopted)
				if seconds > 2*c.seconds {
					t.Fatalf("%d servers are left", left)
				}
			}
			t.Logf("%d servers in %d s, at most %d in a second, %d looks", c.servers, seconds, most, looks)
			if most > perSecond || seconds > c.seconds {
				t.Errorf("%d s, at most %d in a second", seconds, most)
			}
		})
	}
}

func TestAnOperationDoesNotOutliveTheEntryThatAnotherRevisionEnded(t *testing.T) {
	good, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	bad := halting(t)
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateCleanup, toWipe, pinnedTo(bad), func(s *v1alpha1.Server) {
			s.Status.Operation = &v1alpha1.OperationStatus{ID: "1", Name: "retry", State: v1alpha1.OperationPending, Entry: 7, StartedAt: ago(time.Second)}
		}), dirtyInventory(nil))
		w.manager.Bundles = &rules{target: good, pinned: map[string]*bundle.Bundle{bad.Revision.Name: bad}}
		w.manager.run(time.Minute)
		want := "Cleanup 8 default; Failed: policy revision " + good.Revision.Name + " took the server over before that; see where it is now, and ask again"
		if s := w.server(); want != fmt.Sprintf("%s; %s: %s", lifecycleText(s), s.Status.Operation.State, s.Status.Operation.Message) {
			t.Errorf("%s, %+v", lifecycleText(s), s.Status.Operation)
		}
	})
}

func TestAHaltForAnotherMachineIsNoReasonToTakeOver(t *testing.T) {
	good, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	former := variant(t, "2.1.0")
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		m.shows.Identity.UUID = "1a2b3c4d-0000-0000-0000-000000000002"
		w := inWorld(t, m, serverIn(v1alpha1.StateInitial, pinnedTo(former), func(s *v1alpha1.Server) { s.Status.Lifecycle.EnteredAt = ago(time.Second) }))
		w.manager.Bundles = &rules{target: good, pinned: map[string]*bundle.Bundle{former.Revision.Name: former, good.Revision.Name: good}}
		w.manager.run(5 * time.Minute)
		if got := lifecycleText(w.server()) + " " + haltedText(w.server()); got != "Initial 7 default-2.1.0 SafetyRule" {
			t.Errorf("it is %s", got)
		}
		m.wants(t, "meanwhile")
	})
}
