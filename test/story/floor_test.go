// SPDX-License-Identifier: Apache-2.0

package story

import (
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/lifecycle"
	"github.com/metalaw/metalaw/policies"
)

// rewritten is the shipped lifecycle after somebody took guards out of it: pairs of what it says and what is put there.
func rewritten(pairs ...string) *lifecycle.Lifecycle {
	GinkgoHelper()
	files, err := policies.Shipped(policies.DefaultBundle)
	Expect(err).NotTo(HaveOccurred())
	text := string(files["lifecycle.yaml"])
	for i := 0; i < len(pairs); i += 2 {
		Expect(strings.Count(text, pairs[i])).To(Equal(1), "the shipped lifecycle says %q once", pairs[i])
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	text = sayings.ReplaceAllString(text, "") // a rule that is taken out cannot be spoken of
	l, found, err := lifecycle.Compile("lifecycle.yaml", []byte(text), policies.Vocabulary())
	Expect(err).NotTo(HaveOccurred())
	Expect(found.Err()).NotTo(HaveOccurred())
	return l
}

var sayings = regexp.MustCompile(`(?m)^says:.*\n(  .*\n)*`)

// at is a server in a state, off, with nothing said about it; change says what is.
func at(state engine.State, change func(*policies.Facts)) *policies.Facts {
	f := &policies.Facts{
		Server:    policies.ServerFacts{ReclaimPolicy: "Recycle"},
		Lifecycle: policies.LifecycleFacts{State: string(state), Entry: 7, Marks: []string{policies.MarkManaged}},
		BMC:       policies.BMCFacts{Reachable: true, Power: "Off", Health: "OK", Identity: policies.IdentitySame},
		Boot:      policies.BootFacts{Purpose: "None", State: "None"},
		Claim:     policies.ClaimFacts{Power: "None"},
		Probe:     policies.ProbeFacts{Entry: 7, Complete: true},
		Wipe:      policies.WipeFacts{Entry: 7, Budget: time.Hour},
		Operation: policies.OperationFacts{Name: "None", Entry: -1},
		Policy:    policies.PolicyFacts{Sanitization: "required"},
	}
	change(f)
	return f
}

const (
	invariants = "- {rule: ProbeNeverOnAClaim, must: \"!held || !ensuring('BootProbe')\"}\n" +
		"- {rule: StrangersUntouched, must: \"mayStop || state != 'Observing' || !acting()\"}"
	observing  = "    - {do: ClearBoot, when: \"!held\"}   # what we prepared never hijacks a reboot of its own\n"
	revoked    = "    - {rule: WipeRevoked,    to: Error,     when: claimed || retained || !released}\n"
	wipeFailed = "    - {rule: WipeFailed,     to: Error,     when: wipeFailed}\n"
	wipes      = "    - ReleaseClaim\n    - {do: PowerOff, when: unheard && mayStop && !wiping}   # at once: it may be what the last holder booted\n" +
		"    - {do: BootWipe, when: \"!unheard && (wipeBoot || poweredOff || !wiping)\"}   # never beside an erase that runs\n"
	onlyWipes   = "    - BootWipe\n"
	heldByClaim = "    - {do: BootAsClaimed,  when: claimed && !released && (!parkAsked || !mayStop)}"
	bootLost    = "    - {rule: WipeBootLost,   to: Initial,   when: running && !wipeBoot && !wiping}   # an erase that runs is let finish\n"
	appeared    = "    - {rule: StrangerAppeared, to: Observing, when: running && !mayStop}"
)

var _ = Describe("Safety that no bundle can switch off", func() {
	DescribeTable("halts the decision of a bundle whose guard was taken out",
		func(rule string, facts *policies.Facts, pairs ...string) {
			d := rewritten(pairs...).Decide(facts)
			Expect(d.Halt).NotTo(BeNil(), "%+v", d)
			Expect(d.Halt.Cause).To(Equal(engine.HaltSafety))
			Expect(d.Halt.Message).To(ContainSubstring("would break " + rule + ":"))
			Expect(d.Effects).To(BeEmpty())
			Expect(d.Moves()).To(BeFalse())
		},
		Entry("rule 1: a wipe without a release record", "AbsenceIsNotEvidence", at("Cleanup", func(f *policies.Facts) {
			f.Claim.Missing = true
		}), revoked, "", wipes, onlyWipes),
		Entry("rule 1: letting go of a reference without a release record", "AbsenceIsNotEvidence", at("Cleanup", func(f *policies.Facts) {
			f.Claim.Missing, f.Server.ClaimRefSet = true, true
		}), revoked, ""),
		Entry("rule 1: calling a server clean that nobody released", "ClearOnlyReleased", at("Cleanup", func(f *policies.Facts) {
			f.Wipe.Verified, f.Lifecycle.Marks = true, []string{policies.MarkManaged, policies.MarkDirty}
		}), revoked, ""),
		Entry("rule 2: a wipe of a server that a claim holds", "NeverWipeClaimed", at("Cleanup", func(f *policies.Facts) {
			f.Claim.Released, f.Claim.Bound, f.Server.ClaimRefSet = true, true, true
		}), revoked, "", wipes, onlyWipes),
		Entry("rule 2: a wipe of retained data", "NeverWipeRetained", at("Cleanup", func(f *policies.Facts) {
			f.Claim.Released, f.Server.ClaimRefSet, f.Server.ReclaimPolicy = true, true, "Retain"
		}), revoked, "", wipes, onlyWipes),
		Entry("rule 2: cutting power in the middle of an erase", "NeverCutAnErase", at("Error", func(f *policies.Facts) {
			f.Claim.Released, f.Wipe.Running, f.BMC.Power = true, true, "On"
		}), "- {do: PowerOff,     when: released && mayStop && !wiping}", "- {do: PowerOff,     when: released && mayStop}"),
		Entry("rule 2: a reset in the middle of an erase", "NeverCutAnErase", at("Error", func(f *policies.Facts) {
			f.Operation.Name, f.Operation.Reset, f.Wipe.Running, f.BMC.Power = "force-off-server", true, true, "On"
		}), "resetAsked && mayStop && !wiping", "resetAsked && mayStop"),
		Entry("rule 3: offering a server that is Dirty", "NeverOfferDirty", at("Cleanup", func(f *policies.Facts) {
			f.Claim.Released, f.Wipe.Verified, f.Lifecycle.Marks = true, true, []string{policies.MarkDirty}
		}), ", clears: [Dirty]", ""),
		Entry("rule 3: taking a failed wipe for a proof", "ClearOnlyOnProof", at("Cleanup", func(f *policies.Facts) {
			f.Claim.Released, f.Wipe.Failed, f.Lifecycle.Marks = true, true, []string{policies.MarkDirty}
		}), wipeFailed, "", "== lifecycle.entry && wipe.verified && !", "== lifecycle.entry && (wipe.verified || wipe.failed) && !"),
		Entry("rule 3: taking another entry's wipe for a proof", "ClearOnlyOnProof", at("Cleanup", func(f *policies.Facts) {
			f.Claim.Released, f.Wipe.Verified, f.Wipe.Entry, f.Lifecycle.Marks = true, true, 6, []string{policies.MarkDirty}
		}), "wipe.entry == lifecycle.entry && wipe.verified && !", "wipe.verified && !"),
		Entry("rule 3: forgetting the holder of a server that is Dirty", "ForgetOnlyWhenClean", at("Available", func(f *policies.Facts) {
			f.Lifecycle.Marks = []string{policies.MarkDirty}
		}), "    - {rule: DataFound,       to: Initial,  when: dirty}\n", "", "- {do: ForgetHolder, when: \"!dirty && !held\"}", "- ForgetHolder"),
		Entry("rule 4: a probe in the place of a claim's boot", "NeverOnAClaim", at("Discovery", func(f *policies.Facts) {
			f.Server.ClaimRefSet, f.Probe.Entry = true, 6
		}), "    - {rule: ClaimAppeared,    to: Initial,   when: held || dirty}\n", "", "invariants:", "", invariants, ""),
		Entry("rule 4: a boot for a claim that does not hold the server", "OnlyForTheHolder", at("Reserved", func(f *policies.Facts) {
			f.Server.ClaimRefSet, f.Claim.Missing = true, true
		}), heldByClaim, "    - {do: BootAsClaimed,  when: held}"),
		Entry("rule 4: a probe under a running machine that is not ours", "ProbeBeginsFromOff", at("Discovery", func(f *policies.Facts) {
			f.Lifecycle.Marks, f.BMC.Power, f.Probe.Entry = nil, "On", 6
		}), appeared, "    - {rule: StrangerAppeared, to: Observing, when: spent}"),
		Entry("rule 4: a wipe under a running machine", "WipeBeginsFromOff", at("Cleanup", func(f *policies.Facts) {
			f.Claim.Released, f.BMC.Power, f.Lifecycle.Marks = true, "On", []string{policies.MarkManaged, policies.MarkDirty}
		}), bootLost, ""),
		Entry("rule 5: ending the observation of a machine that went off by itself", "ObservedUntilConsent", at("Observing", func(f *policies.Facts) {
			f.Lifecycle.Marks = nil
		}), "when: claimed}   # a reference that no claim agrees with says nothing", "when: poweredOff}"),
		Entry("rule 5: stopping a machine found running", "NotAStranger", at("Observing", func(f *policies.Facts) {
			f.Lifecycle.Marks, f.BMC.Power = nil, "On"
		}), observing, "    - PowerOff\n", "invariants:", "", invariants, ""),
		Entry("rule 5: taking a machine found running for ours", "EarnedByBoot", at("Discovery", func(f *policies.Facts) {
			f.Lifecycle.Marks, f.BMC.Power, f.Probe.Entry = nil, "On", 6
			f.Boot = policies.BootFacts{Purpose: "Probe", State: "Ready", Ready: true}
		}), appeared, "    - {rule: StrangerAppeared, to: Observing, when: spent}", "{do: PowerOn, when: \"!unheard && (poweredOff || mayStop)\"}", "{do: PowerOn, when: running}"),
		Entry("rule 5: stopping a machine that a claim uses", "NotInUse", at("Reserved", func(f *policies.Facts) {
			f.Server.ClaimRefSet, f.Claim.Bound, f.Claim.Power, f.BMC.Power = true, true, "On", "On"
		}), "when: (released || parkAsked) && mayStop && !wiping}", "when: claimed}"),
		Entry("rule 6: ending the parking of a server that nobody handed back", "ParkedUntilAsked", at("Parked", func(*policies.Facts) {}),
			"{rule: Unparked,      to: Initial,   when: unparkAsked}", "{rule: Unparked,      to: Initial,   when: poweredOff}"),
		Entry("rule 6: handing out a machine that runs", "ParkedOnlyOff", at("Reserved", func(f *policies.Facts) {
			f.Server.ClaimRefSet, f.Claim.Bound, f.Claim.Power, f.BMC.Power, f.Operation.Name = true, true, "On", "On", "park"
		}), "when: parkAsked && poweredOff && !released}", "when: parkAsked && !released}"),
		Entry("rule 7: a write to another machine", "IdentityFirst", at("Available", func(f *policies.Facts) {
			f.BMC.Identity = policies.IdentityOther
		})),
	)

	It("rule 3: stores Dirty before the first boot for a claim, whatever the bundle says", func() {
		d := rewritten().Decide(at("Reserved", func(f *policies.Facts) {
			f.Server.ClaimRefSet, f.Claim.Bound, f.Claim.Power = true, true, "On"
		}))
		Expect(d.Effects).NotTo(BeEmpty())
		last := d.Effects[len(d.Effects)-1]
		Expect(last.Name).To(Equal(engine.MarkEffect), "what needs the mark follows once it is stored")
		Expect(last.Param("mark").Text()).To(Equal(policies.MarkDirty))
	})
})
