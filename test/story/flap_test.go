// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// resets counts the resets that a BMC was asked for since a mark.
func resets(m *emulator.Machine, since int) int {
	count := 0
	for _, w := range touched(m, since)() {
		if strings.Contains(w, "ComputerSystem.Reset") {
			count++
		}
	}
	return count
}

// say gives a boot configuration a state, as a boot operator would.
func say(ctx context.Context, namespace, name string, state v1alpha1.ServerBootConfigurationState) {
	GinkgoHelper()
	Eventually(func() error {
		b := &v1alpha1.ServerBootConfiguration{}
		if err := admin.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, b); err != nil {
			return err
		}
		before := b.DeepCopy()
		b.Status.State = state
		return admin.Status().Patch(ctx, b, client.MergeFrom(before))
	}).Should(Succeed())
}

var _ = Describe("What flaps", func() {
	It("a boot configuration that is Ready and Error by turns resets nothing", func(ctx SpecContext) {
		m := claimed(ctx, "flapping-boot")
		before := theWorld.fleet.LastWrite()
		for range 10 {
			say(ctx, tenants, "flapping-boot", v1alpha1.ServerBootConfigurationStateError)
			say(ctx, tenants, "flapping-boot", v1alpha1.ServerBootConfigurationStateReady)
		}
		Consistently(touched(m, before)).Should(BeEmpty())
		Expect(state(ctx, serverOf(m))()).To(Equal("Reserved/On"))
	})

	It("a BMC whose power state lies for ten seconds is asked once for each time that a request may take, and no state is lost", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		lie := emulator.StalePower()
		lie.Machine = m.Name()
		lying := theWorld.fleet.Inject(lie)
		defer lying.Remove()
		before := theWorld.fleet.LastWrite()
		create(ctx, newClaim("lied-to", m))
		Eventually(claimCondition(ctx, "lied-to", "Ready")).Should(Equal("True/Running"))
		// Ten seconds hold three times the three seconds that a request may take here.
		Expect(resets(m, before)).To(BeNumerically("<=", 4))
		Expect(m.Boots()).To(Equal(2), "once for the probe and once for the claim, however often it was asked")
		Expect(getServer(ctx, serverOf(m)).Status.State).To(Equal(v1alpha1.StateReserved))
	})

	It("a BMC that answers every second request slows things down, and each change is still asked for once", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		// Each refused change doubles the wait for the next one. Eight of these and one reset refuse three power-ons in a row
		// at most, which wait for 15, 30 and 60 s.
		unsteady := theWorld.fleet.Inject(emulator.Fault{Name: "every-second", Machine: m.Name(), Path: "/redfish/v1/Systems/*",
			Probability: 0.5, Count: 8, Action: emulator.Action{Status: 503}})
		defer unsteady.Remove()
		refusals := theWorld.fleet.Inject(emulator.Fault{Name: "first-reset", Machine: m.Name(), Path: "/redfish/v1/Systems/*/Actions/**",
			Count: 1, Action: emulator.Action{Status: 503}})
		defer refusals.Remove()
		before := theWorld.fleet.LastWrite()
		create(ctx, newClaim("unsteady", m))
		Eventually(claimCondition(ctx, "unsteady", "Ready")).WithTimeout(4 * time.Minute).Should(Equal("True/Running"))
		executed := 0
		for _, w := range theWorld.fleet.Writes(emulator.Filter{Machine: m.Name(), Since: before}) {
			if strings.Contains(w.Path, "ComputerSystem.Reset") && w.Status < 300 {
				executed++
			}
		}
		Expect(executed).To(Equal(1))
		unsteady.Remove()
		refusals.Remove()
		busy := theWorld.fleet.Inject(emulator.Fault{Name: "busy-for-the-shutdown", Machine: m.Name(), Path: "/redfish/v1/Systems/*/Actions/**",
			Count: 1, Action: emulator.Action{Status: 503}})
		defer busy.Remove()
		deleteClaim(ctx, "unsteady")
		Eventually(state(ctx, serverOf(m))).WithTimeout(time.Minute).Should(Equal("Available/Off"))
	}, NodeTimeout(6*time.Minute))
})
