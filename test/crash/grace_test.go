// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/test/env"
)

// graceVariable has the spec of the grace run, which takes nine minutes. `make test-e2e` sets it.
const graceVariable = "GRACE"

// The shipped bundle waits five minutes between the end of a claim and the wipe. Each manager lives for a minute here.
var _ = Describe("A manager that is killed every 60 s", func() {
	if os.Getenv(graceVariable) == "" {
		return
	}

	It("begins the wipe of a released server between 5 and 7 minutes after its release", func(ctx SpecContext) {
		const lives, earliest, latest = time.Minute, 5 * time.Minute, 7 * time.Minute
		w := newWorldFor(ctx, env.Options{}, func(w *world, ctx context.Context) {
			at := freeAddresses(ctx)
			w.killer = newKiller(func() bool { return false })
			w.manager = w.newManager(ctx, "manager", at, at, "--leader-elect", "--no-release-grace=false")
			w.mountCertificates(ctx, at.webhook)
		})
		Expect(w.manager.Start()).To(Succeed())
		Expect(w.manager.AwaitReady(ctx)).To(Succeed())
		s := &story{world: w, m: w.machine()}
		s.name = s.m.Name()
		s.onboard(ctx)
		claim := s.claim("kept")
		claim.Spec = v1alpha1.ServerClaimSpec{Power: v1alpha1.PowerOn, Image: image("kept", 1), ServerRef: &corev1.LocalObjectReference{Name: s.server}}
		s.ledger.change(s.m, func(p *permit) { p.claims["kept"] = true })
		s.do(ctx, func() error { return s.admin.Create(ctx, claim.DeepCopy()) })
		s.runs(ctx, "kept", 1)

		s.ledger.change(s.m, func(p *permit) { p.wipe = true })
		s.do(ctx, func() error { return s.admin.Delete(ctx, s.claim("kept")) })
		s.reach(ctx, "the claim's end", func() error { return s.missing(ctx, s.claim("kept")) })
		released, killed := time.Now(), time.Now()
		Eventually(func() v1alpha1.ServerState {
			if time.Since(killed) >= lives && w.manager.Kill() {
				killed = time.Now()
			}
			server := &v1alpha1.Server{}
			Expect(w.admin.Get(ctx, types.NamespacedName{Name: s.server}, server)).To(Succeed())
			return server.Status.State
		}).WithContext(ctx).WithTimeout(latest + time.Minute).WithPolling(time.Second).Should(Equal(v1alpha1.StateCleanup))
		took := time.Since(released)
		say("the wipe began %s after the release, with %d starts of the manager", took.Round(time.Second), w.manager.Starts())
		Expect(took).To(And(BeNumerically(">=", earliest), BeNumerically("<=", latest)))
		Expect(w.manager.Starts()).To(BeNumerically(">", 5), "kills that happened")
	}, SpecTimeout(15*time.Minute))
})
