// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/canary"
)

// cluster is what is stored between two looks. Revisions are named by their versions; default is built in.
type cluster struct {
	t         *testing.T
	now       time.Time
	embedded  string
	heads     []Head
	revisions []Revision
	replicas  []Replica
}

// newCluster has one running manager, which has compiled everything.
func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, now: epoch, embedded: "default"}
	c.manager("m1")
	c.store("default")
	return c
}

func (c *cluster) manager(name string, refuses ...string) {
	r := Replica{Name: name, EngineVersion: "1.0.0", RenewedAt: c.now, Lasts: 90 * time.Second, Compiled: map[string]bool{}, Refused: map[string]string{}}
	for _, version := range []string{"default", "default-2", "fleet", "1.0.0", "1.1.0", "1.10.0", "2.0.0"} {
		if slices.Contains(refuses, version) {
			r.Refused[version] = "lifecycle.yaml:3:1: error: unknown effect\nand more"
		} else {
			r.Compiled[version] = true
		}
	}
	c.replicas = slices.DeleteFunc(c.replicas, func(o Replica) bool { return o.Name == name })
	c.replicas = append(c.replicas, r)
}

func (c *cluster) store(version string) {
	if c.revision(version) == nil {
		c.revisions = append(c.revisions, Revision{Name: version, Version: version, Digest: version, Generation: 1, Test: &Test{Compiled: true}})
	}
}

func (c *cluster) revision(name string) *Revision {
	for i := range c.revisions {
		if c.revisions[i].Name == name {
			return &c.revisions[i]
		}
	}
	return nil
}

// label sets the ConfigMaps that there are: "1.0.0=Active 1.1.0=Shadow". "!" says that one is broken, and "@name" gives it
// another name than its version; "~record" is its record of who activated it, with "_" for a blank, and "+" at the end says that it was
// restored.
func (c *cluster) label(heads string) {
	c.heads = nil
	for _, text := range strings.Fields(heads) {
		version, stage, _ := strings.Cut(text, "=")
		h := Head{Stage: policyv1alpha1.LabelledStage(stage), Canary: canary.Scope{Selector: "rack=r1"}}
		text, h.ActivatedBy, _ = strings.Cut(string(h.Stage), "~")
		h.ActivatedBy = strings.Replace(h.ActivatedBy, "+", policyv1alpha1.ActivationRestored, 1)
		h.ActivatedBy = strings.ReplaceAll(h.ActivatedBy, "_", " ")
		h.Stage = policyv1alpha1.LabelledStage(text)
		version, h.Name, _ = strings.Cut(version, "@")
		if broken, ok := strings.CutSuffix(version, "!"); ok {
			version, h.Problem = broken, "lifecycle.yaml is half-written"
		} else {
			h.Revision = version
			c.store(version)
		}
		if h.Name == "" {
			h.Name = "cm-" + version
		}
		c.heads = append(c.heads, h)
	}
}

func (c *cluster) decide() Outcome {
	return Decide(Look{Now: c.now, Embedded: c.embedded, Missing: c.missing(), Heads: c.heads, Revisions: c.revisions, Replicas: c.replicas})
}

// missing is what PromotionMissing finds among the revisions.
func (c *cluster) missing() string {
	found := &Revision{}
	for i := range c.revisions {
		r := &c.revisions[i]
		if r.Promotion > 1 {
			return ""
		}
		if r.Name != "default" && r.Elsewhere > found.Elsewhere {
			found = r
		}
	}
	return found.Name
}

// look decides and stores; a second look has nothing to add.
func (c *cluster) look() Outcome {
	c.t.Helper()
	o := c.decide()
	c.apply(o)
	if again := c.decide(); len(again.Writes) > 0 || again.InForce != o.InForce {
		c.t.Errorf("a second look writes again: %+v", again)
	}
	return o
}

func (c *cluster) apply(o Outcome) {
	for _, w := range o.Writes {
		r := c.revision(w.Revision)
		r.Status = w.Status
		if w.Promotion > 0 {
			r.Promotion, r.Elsewhere = w.Promotion, 0
		}
	}
}

// restore is what a restore from a backup does to the revisions: other objects, without status.
func (c *cluster) restore() {
	for i := range c.revisions {
		r := &c.revisions[i]
		r.Status, r.Promotion, r.Elsewhere = policyv1alpha1.PolicyRevisionStatus{}, 0, max(r.Promotion, r.Elsewhere)
	}
}

// shows is every revision: "1.0.0 Active InForce".
func (c *cluster) shows() string {
	var all []string
	for _, r := range c.revisions {
		all = append(all, fmt.Sprintf("%s %s %s", r.Name, r.Status.Stage, reasonOf(&r.Status)))
	}
	return strings.Join(all, ", ")
}
