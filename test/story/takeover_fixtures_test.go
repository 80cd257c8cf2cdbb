// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// variant is the default bundle with another lifecycle, under another version: each pair of texts is replaced.
func variant(version string, replace ...string) *bundle.Bundle {
	GinkgoHelper()
	files, err := policies.Shipped(policies.DefaultBundle)
	Expect(err).NotTo(HaveOccurred())
	text := string(files["lifecycle.yaml"])
	for i := 0; i < len(replace); i += 2 {
		Expect(strings.Count(text, replace[i])).To(Equal(1), replace[i])
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	files["lifecycle.yaml"] = []byte(text)
	files["bundle.yaml"] = []byte(strings.Replace(string(files["bundle.yaml"]), "version: 1.0.0", "version: "+version, 1))
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	Expect(err).NotTo(HaveOccurred())
	Expect(found.Err()).NotTo(HaveOccurred())
	return b
}

// govern puts a bundle in force for one spec, with others in its shadow; afterwards the default one is in force again.
func (w *world) govern(b *bundle.Bundle, shadows ...*bundle.Bundle) {
	w.store.Govern(b, shadows...)
	DeferCleanup(func() { w.store.Govern(w.shipped()) })
}

// shipped is the default bundle.
func (w *world) shipped() *bundle.Bundle {
	GinkgoHelper()
	b, err := policies.Default()
	Expect(err).NotTo(HaveOccurred())
	return b
}

// governed returns the revision that governs a server.
func governed(ctx context.Context, name string) func() string {
	return func() string {
		if l := getServer(ctx, name).Status.Lifecycle; l != nil {
			return l.Revision
		}
		return ""
	}
}

// moves are the last moves of a server: "Rule State".
func moves(s *v1alpha1.Server) []string {
	var all []string
	for _, m := range s.Status.Lifecycle.History {
		all = append(all, m.Rule+" "+string(m.To))
	}
	return all
}

// haltMessage is what the condition PolicyHalted of a server says.
func haltMessage(s *v1alpha1.Server) string {
	if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionPolicyHalted); c != nil {
		return c.Message
	}
	return ""
}

// gate keeps what is booted on a machine from beginning until it is opened.
type gate struct {
	emulator.Guest
	open chan struct{}
}

// PoweredOn implements emulator.Guest.
func (g gate) PoweredOn(ctx context.Context, m *emulator.Machine, boot emulator.BootSelection) {
	select {
	case <-g.open:
		g.Guest.PoweredOn(ctx, m, boot)
	case <-ctx.Done():
	}
}

// shadowDecisions are what shadows would have decided otherwise: "server: stays in Available; moves to Parked by Idle".
type shadowDecisions struct {
	mu  sync.Mutex
	all map[string]int
}

// Observe implements server.Shadows.
func (s *shadowDecisions) Observe(shadow, server string, want, got *engine.Decision, _ time.Time) {
	if want.To == got.To {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]int{}
	}
	s.all[fmt.Sprintf("%s, %s: %s rather than %s by %s", shadow, server, want.To, got.To, got.Rule)]++
}

// Forget implements server.Shadows.
func (*shadowDecisions) Forget(string) {}

func (s *shadowDecisions) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for text := range s.all {
		all = append(all, text)
	}
	return all
}
