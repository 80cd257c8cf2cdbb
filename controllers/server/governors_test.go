// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/policies"
)

// rules are bundles that govern, are in the shadow, or are held.
type rules struct {
	target *bundle.Bundle
	pinned map[string]*bundle.Bundle
	held   map[string]string
	shadow []*bundle.Bundle
}

func (r *rules) Active() *bundle.Bundle                      { return r.target }
func (r *rules) Governing(*v1alpha1.Server) *bundle.Bundle   { return r.target }
func (r *rules) Shadows() []*bundle.Bundle                   { return r.shadow }
func (r *rules) Changed(func())                              {}
func (r *rules) Lost(name string) bool                       { return r.pinned[name] == nil && r.held[name] == "" }
func (r *rules) Held(name string) (why string, held bool)    { return r.held[name], r.held[name] != "" }
func (r *rules) Revision(name string) (*bundle.Bundle, bool) { b := r.pinned[name]; return b, b != nil }

// variant is the default bundle with another lifecycle, under another version: each pair of texts is replaced.
func variant(t testing.TB, version string, replace ...string) *bundle.Bundle {
	t.Helper()
	return changed(t, version, func(text string) string {
		for i := 0; i < len(replace); i += 2 {
			if strings.Count(text, replace[i]) != 1 {
				t.Fatalf("%q is in the lifecycle %d times", replace[i], strings.Count(text, replace[i]))
			}
			text = strings.Replace(text, replace[i], replace[i+1], 1)
		}
		return text
	})
}

func changed(t testing.TB, version string, change func(lifecycle string) string) *bundle.Bundle {
	t.Helper()
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	files["lifecycle.yaml"] = []byte(change(string(files["lifecycle.yaml"])))
	testkit.Rename(files, "", version)
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return b
}

const wipes = "    - ReleaseClaim\n"

// halting never gets on in Cleanup: it wants what is only for the holder of a claim, and has no way out of it.
func halting(t testing.TB) *bundle.Bundle {
	return variant(t, "2.0.0", wipes, "    - PowerAsClaimed\n"+wipes,
		"running && !wipeBoot && !wiping}", "running && !wipeBoot && !wiping && wipeFailed}")
}

// pinnedTo makes a server pinned to a revision, and says so of the bundles.
func pinnedTo(b *bundle.Bundle) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Status.Lifecycle.Revision = b.Revision.Name }
}

// toWipe is a server in Cleanup whose last holder was released.
func toWipe(s *v1alpha1.Server) {
	s.Annotations[v1alpha1.ClaimUIDAnnotation] = "uid-web"
	released(s)
	s.Status.State = v1alpha1.StateCleanup
	s.Status.Lifecycle.EnteredAt = metav1.NewMicroTime(time.Now().Add(-time.Minute))
	s.Status.Lifecycle.Marks = []string{"Dirty", "Managed"}
}

func ago(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(time.Now().Add(-d)) }

func wiping(state policyv1alpha1.WipeState, entry int64) *policyv1alpha1.ServerInventory {
	i := dirtyInventory(&policyv1alpha1.Holder{Namespace: "shop", Name: "web", UID: "uid-web"})
	i.Wipe = &policyv1alpha1.WipeReport{Entry: entry, State: state, StartedAt: ago(time.Minute), UpdatedAt: ago(0)}
	return i
}

// lifecycleText is where a server is: "Cleanup 7 default-2.0.0", or "Cleanup 7 default" under the shipped version.
func lifecycleText(s *v1alpha1.Server) string {
	l := s.Status.Lifecycle
	revision := l.Revision[:strings.LastIndex(l.Revision, "-")]
	return strings.TrimSuffix(fmt.Sprintf("%s %d %s", s.Status.State, l.Entry, revision), "-"+testkit.Version)
}

// haltedText is the reason and the end of the message of PolicyHalted.
func haltedText(s *v1alpha1.Server) string {
	c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionPolicyHalted)
	if c == nil {
		return ""
	}
	_, end, _ := strings.Cut(c.Message, "; policy revision ")
	_, end, _ = strings.Cut(end, " ")
	return strings.TrimSpace(c.Reason + " " + end)
}

// What stands in for a revision may be answered just before that is mended, and whether it is held just after.
func TestWhatStandsInForARevisionDecidesNothing(t *testing.T) {
	good, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	inIts := *good
	inIts.Revision.Name, inIts.StandsIn = "fleet-1.0.0-0123456789", true
	former := variant(t, "0.9.0")
	for name, c := range map[string]struct {
		revision string
		decides  string
	}{
		"about a server of that revision":         {inIts.Revision.Name, ""},
		"about a server that it would come under": {former.Revision.Name, former.Revision.Name},
		"about a server that is new":              {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := newScope(t, "Available", func(v *scope) {
				v.Bundles = &rules{target: &inIts, pinned: map[string]*bundle.Bundle{former.Revision.Name: former, good.Revision.Name: good}}
				v.server.Status.Lifecycle.Revision = c.revision
			})
			g, decides := rollout.Governs(v.question()), ""
			if g.Bundle != nil {
				decides = g.Bundle.Revision.Name
			}
			if decides != c.decides || (g.Unloaded == nil) != (c.decides != "") || g.Successor != nil {
				t.Errorf("%s decides: %+v", decides, g)
			}
		})
	}
}
