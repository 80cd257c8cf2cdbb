// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

var _ = Describe("Another policy", func() {
	It("that halts servers in Cleanup is rolled back: they go on to Available, and no wipe counts that it proved", func(ctx SpecContext) {
		bad := variant("when: erased && reported, clears: [Dirty]}", "when: erased && reported}")
		m := claimed(ctx, "rolled-back")
		name := serverOf(m)
		govern(ctx, bad)
		Eventually(revisionOf(ctx, name)).Should(Equal(bad.Revision.Name))
		deleteClaim(ctx, "rolled-back")
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionPolicyHalted)).Should(Equal("True/SafetyRule"))
		halted := getServer(ctx, name)
		Expect(haltMessage(halted)).To(ContainSubstring("NeverOfferDirty"))
		Expect(string(wipeState(ctx, name))).To(Equal("Verified"))
		m.Drives()[0].Write("what came after the wipe")
		boots := m.Boots()
		Consistently(state(ctx, name)).Should(Equal("Cleanup/On"))

		rollOut(ctx, shipped(), policyv1alpha1.LabelActive)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		s := getServer(ctx, name)
		Expect(s.Status.Lifecycle.Revision).To(Equal(shipped().Revision.Name))
		Expect(s.Status.Lifecycle.Marks).NotTo(ContainElement("Dirty"))
		Expect(m.Drives()[0].Contents()).To(BeEmpty(), "it was wiped once more, in an entry of its own")
		Expect(m.Boots()).To(Equal(boots + 1))
		adopted := slices.IndexFunc(s.Status.Lifecycle.History, func(m v1alpha1.LifecycleMove) bool { return m.Rule == v1alpha1.RuleAdopted })
		Expect(adopted).To(BeNumerically(">", 0))
		Expect(moves(s)[adopted:]).To(Equal([]string{"Adopted Initial", "DataRunning Released", "RetentionEnded Cleanup", "Wiped Available"}))
		move := s.Status.Lifecycle.History[adopted]
		Expect(move.Entry).To(Equal(halted.Status.Lifecycle.Entry + 1))
		Expect(move.Reason).To(HavePrefix("policy revision " + bad.Revision.Name + " halted it: Wiped: "))
		Eventually(eventReasons(ctx, name)).Should(ContainElement("Adopted"))
	})

	It("that halts servers before anything was booted lets them go on in the state that they have", func(ctx SpecContext) {
		bad := variant("    - ReleaseClaim\n", "    - PowerAsClaimed\n    - ReleaseClaim\n")
		m := claimed(ctx, "not-begun")
		name := serverOf(m)
		govern(ctx, bad)
		Eventually(revisionOf(ctx, name)).Should(Equal(bad.Revision.Name))
		deleteClaim(ctx, "not-begun")
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionPolicyHalted)).Should(Equal("True/SafetyRule"))
		halted := getServer(ctx, name).Status.Lifecycle.Entry
		rollOut(ctx, shipped(), policyv1alpha1.LabelActive)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		s := getServer(ctx, name)
		Expect(moves(s)[len(moves(s))-2:]).To(Equal([]string{"Adopted Cleanup", "Wiped Available"}))
		Expect(s.Status.Lifecycle.Entry).To(Equal(halted + 2))
		Expect(serverCondition(ctx, name, v1alpha1.ConditionPolicyHalted)()).To(Equal("none"))
	})

	It("governs a server that is on its way only once it rests", func(ctx SpecContext) {
		g := gate{Guest: theWorld.guests, open: make(chan struct{})}
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Guest = g })
		name := serverOf(m)
		Eventually(running(m)).Should(Equal("Pxe"))
		former := shipped().Revision.Name
		other := variant()
		govern(ctx, other)
		Consistently(func() string { return state(ctx, name)() + " " + revisionOf(ctx, name)() }).
			WithTimeout(4 * time.Second).Should(HaveSuffix(" " + former))
		Expect(getServer(ctx, name).Status.State).To(Equal(v1alpha1.StateDiscovery))
		close(g.open)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Eventually(revisionOf(ctx, name)).Should(Equal(other.Revision.Name))
		s := getServer(ctx, name)
		last := s.Status.Lifecycle.History[len(s.Status.Lifecycle.History)-1]
		Expect(last.Rule+" under "+last.Revision).To(Equal("ProbeReported under "+former), "a server that rests makes no move for it")
		Expect(s.Status.Lifecycle.Entry).To(Equal(last.Entry))
	})

	It("that drops a state has its servers move as it says", func(ctx SpecContext) {
		const ways = "{rule: ParkedAvailable, to: Parked,   when: parkAsked && poweredOff}"
		m := theWorld.available(ctx)
		name := serverOf(m)
		depot := variant(ways, "{rule: Stored, to: Depot, when: parkAsked && poweredOff}", "  Parked:\n", `  Depot:
    means: Off, and stored away.
    stable: true
    operations: [unpark]
    exits:
    - {rule: Fetched, to: Initial, when: unparkAsked}

  Parked:
`)
		dropped := variant("\ninvariants:", "\nmigrate: {Depot: Initial}\n\ninvariants:")
		govern(ctx, depot)
		Eventually(revisionOf(ctx, name)).Should(Equal(depot.Revision.Name))
		operate(ctx, name, v1alpha1.OperationPark)
		Eventually(state(ctx, name)).Should(Equal("Depot/Off"))

		By("keeping it under the former one where the other does not say what becomes of it")
		rollOut(ctx, shipped(), policyv1alpha1.LabelActive)
		Consistently(revisionOf(ctx, name)).WithTimeout(4 * time.Second).Should(Equal(depot.Revision.Name))

		rollOut(ctx, dropped, policyv1alpha1.LabelActive)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Expect(moves(getServer(ctx, name))).To(ContainElements("Stored Depot", "Migrated Initial", "ProbeReported Available"))
	})

	It("that another version of the manager refuses halts its servers, which are observed, until one takes over that it accepts", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		held := variant("{rule: ParkedAvailable, to: Parked,   when: parkAsked && poweredOff}", "{rule: Idle, to: Error, when: running && mayStop}")
		govern(ctx, held)
		Eventually(revisionOf(ctx, name)).Should(Equal(held.Revision.Name))
		theWorld.stopManager()
		refused.Store(held.Version)
		DeferCleanup(func() { refused.Store("") })
		before := theWorld.fleet.LastWrite()
		theWorld.startManager(ctx)
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionPolicyHalted)).Should(Equal("True/RevisionHeld"))
		Expect(haltMessage(getServer(ctx, name))).To(ContainSubstring("not for this engine"))

		By("observing what somebody does to the machine, and leaving it alone")
		m.PowerBehindBack(true)
		Eventually(state(ctx, name)).Should(Equal("Available/On"))
		Consistently(touched(m, before)).Should(BeEmpty())

		rollOut(ctx, shipped(), policyv1alpha1.LabelActive)
		Eventually(revisionOf(ctx, name)).Should(Equal(shipped().Revision.Name))
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionPolicyHalted)).Should(Equal("none"))
	})

	It("in the shadow is compared, and does nothing", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		Eventually(serverCondition(ctx, name, "Ready")).Should(Equal("True/Stable"))
		before := theWorld.fleet.LastWrite()
		shadow := variant("{rule: ParkedAvailable, to: Parked,   when: parkAsked && poweredOff}", "{rule: Idle, to: Parked, when: poweredOff}")
		rollOut(ctx, shadow, policyv1alpha1.LabelShadow)
		Eventually(func() []string {
			var all []string
			if shown := getRevision(ctx, shadow).Status.Shadow; shown != nil {
				for _, d := range shown.Differences {
					all = append(all, d.State+" "+d.ShadowRule+": "+d.Got)
				}
			}
			return all
		}).WithTimeout(waitForShadows).Should(ContainElement("Available Idle: moves to Parked by Idle"))
		Consistently(state(ctx, name)).Should(Equal("Available/Off"))
		Expect(touched(m, before)()).To(BeEmpty())
		Expect(revisionOf(ctx, name)()).To(Equal(shipped().Revision.Name))
	})

	It("is taken over by servers at rest at a pace, in one write each", func(ctx SpecContext) {
		const fleet = 40
		theWorld.stopManager()
		var names []string
		for i := range fleet {
			names = append(names, serverOf(left{state: v1alpha1.StateParked, power: emulator.PowerOff}.leave(ctx, fmt.Sprintf("pace-%02d", i))))
		}
		theWorld.startManager(ctx)
		for _, name := range names {
			Eventually(serverCondition(ctx, name, "Ready")).Should(Equal("True/Stable"), name)
			labels := func() map[string]string { return getServer(ctx, name).Labels }
			Eventually(labels).Should(HaveKey("inventory.metalaw.dev/model"), name) // comes last when a server is adopted
		}
		history, began := record(ctx), time.Now()
		other := variant()
		govern(ctx, other)
		for _, name := range names {
			Eventually(revisionOf(ctx, name)).Should(Equal(other.Revision.Name), name)
		}
		took := time.Since(began)
		Consistently(func() map[string]int {
			writes := map[string]map[string]bool{}
			for _, s := range history() {
				if s.server != nil && slices.Contains(names, s.server.Name) && s.server.Status.Lifecycle.Revision == other.Revision.Name {
					if writes[s.server.Name] == nil {
						writes[s.server.Name] = map[string]bool{}
					}
					writes[s.server.Name][s.server.ResourceVersion] = true
				}
			}
			more := map[string]int{}
			for name, all := range writes {
				if len(all) != 1 {
					more[name] = len(all)
				}
			}
			return more
		}).Should(BeEmpty(), "writes of servers that were written more than once")
		Expect(took).To(BeNumerically(">=", 2500*time.Millisecond), "%d servers at 10 a second, after the first 10", fleet)
	})
})
