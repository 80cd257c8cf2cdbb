// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/env"
)

// prepareFrozen makes two managers. The first leads, and nobody calls it: the API server and the agents call the second, since a
// process that is stopped still takes connections.
func (w *world) prepareFrozen(ctx context.Context) {
	GinkgoHelper()
	first, second := freeAddresses(ctx), freeAddresses(ctx)
	w.killer = newKiller(func() bool { return false })
	w.manager = w.newManager(ctx, "manager-a", first, second, "--leader-elect", "--webhooks=false")
	w.standby = w.newManager(ctx, "manager-b", second, second, "--leader-elect")
	w.mountCertificates(ctx, second.webhook)
}

// freezer stops the leader once it has stored its first power-on since it was armed, before it asks the BMC.
type freezer struct {
	once   sync.Once
	frozen chan struct{}
	thaw   func()
}

func (w *world) freezes(m *env.Operator) *freezer {
	f := &freezer{frozen: make(chan struct{})}
	w.killer.arm(1<<30, func(p point) bool {
		if p.when == afterwards && strings.Contains(p.kind, "status.lifecycle.request.action=On") {
			f.once.Do(func() {
				f.thaw, _ = m.Freeze()
				close(f.frozen)
			})
		}
		return false
	})
	return f
}

// powerOns is how often a BMC was asked to switch its machine on.
func powerOns(m *emulator.Machine) int {
	n := 0
	for _, r := range m.Resets() {
		if r == emulator.ResetOn {
			n++
		}
	}
	return n
}

var _ = Describe("A leader that is stopped and goes on", func() {
	const servers = 6

	It("asks no BMC for anything once another one leads", func(ctx SpecContext) {
		w := newWorldFor(ctx, env.Options{}, (*world).prepareFrozen)
		Expect(w.manager.Start()).To(Succeed())
		Eventually(w.leader.Load).WithContext(ctx).WithTimeout(2 * time.Minute).Should(BeIdenticalTo(w.manager))
		Expect(w.standby.Start()).To(Succeed())
		Expect(w.standby.AwaitReady(ctx)).To(Succeed())
		var all []*story
		for range servers {
			s := &story{world: w, m: w.machine()}
			s.name = s.m.Name()
			all = append(all, s)
		}
		for _, s := range all {
			s.onboard(ctx)
		}
		before := map[*story]int{}
		for _, s := range all {
			before[s] = powerOns(s.m)
		}
		f := w.freezes(w.manager)
		for _, s := range all {
			name := "a-" + s.name
			s.ledger.change(s.m, func(p *permit) { p.claims[name] = true })
			claim := s.claim(name)
			claim.Spec = v1alpha1.ServerClaimSpec{Power: v1alpha1.PowerOn, Image: image(name, 1)}
			claim.Spec.ServerRef = &corev1.LocalObjectReference{Name: s.server}
			s.do(ctx, func() error { return s.admin.Create(ctx, claim.DeepCopy()) })
		}
		Eventually(f.frozen).WithContext(ctx).WithTimeout(time.Minute).Should(BeClosed())
		DeferCleanup(f.thaw)
		Eventually(w.leader.Load).WithContext(ctx).WithTimeout(2 * time.Minute).Should(BeIdenticalTo(w.standby))
		for _, s := range all {
			s.runs(ctx, "a-"+s.name, 1)
		}
		starts := w.manager.Starts()
		f.thaw()
		Eventually(w.manager.Starts).WithContext(ctx).WithTimeout(time.Minute).Should(BeNumerically(">", starts), "the former leader ends by itself")
		Expect(w.manager.AwaitReady(ctx)).To(Succeed())
		for _, s := range all {
			Expect(powerOns(s.m)-before[s]).To(Equal(1), func() string { return fmt.Sprintf("power-ons of %s: %s", s.name, s.describe()) })
		}
		Expect(w.ledger.report()).To(BeEmpty())
	}, SpecTimeout(8*time.Minute))
})
