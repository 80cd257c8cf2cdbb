// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// theirs stores a server as metal-operator v0.7 leaves it.
func theirs(ctx context.Context, name string, state v1alpha1.ServerState, power v1alpha1.PowerState, claim string) *v1alpha1.Server {
	GinkgoHelper()
	s := newServer(ctx, name, map[string]string{"rack": "r1"}, "")
	DeferCleanup(func(ctx SpecContext) {
		s := getServer(ctx, name)
		s.Finalizers = nil
		Expect(admin.Update(ctx, s)).To(Succeed())
		Expect(client.IgnoreNotFound(admin.Delete(ctx, s))).To(Succeed())
	})
	s.Finalizers = []string{v1alpha1.FinalizerServer}
	if claim != "" {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "default", Name: claim}
	}
	Expect(admin.Update(ctx, s)).To(Succeed())
	s.Status.State, s.Status.PowerState = state, power
	Expect(admin.Status().Update(ctx, s)).To(Succeed())
	return s
}

func theirClaim(ctx context.Context, name, server string) {
	GinkgoHelper()
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	c.Spec.Power, c.Spec.Image, c.Spec.ServerRef = v1alpha1.PowerOn, "os:1", &corev1.LocalObjectReference{Name: server}
	Expect(admin.Create(ctx, c)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, c)).To(Succeed()) })
	c.Status.Phase = v1alpha1.PhaseBound
	Expect(admin.Status().Update(ctx, c)).To(Succeed())
}

// takenOver stores what a manager makes of a server, as far as the commands read it.
func takenOver(ctx context.Context, s *v1alpha1.Server, state v1alpha1.ServerState, marks ...string) {
	GinkgoHelper()
	s.Status.State = state
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 1, EnteredAt: metav1.NowMicro(), Rule: v1alpha1.RuleAdopted, Marks: marks}
	Expect(admin.Status().Update(ctx, s)).To(Succeed())
}

var _ = Describe("The way from metal-operator", func() {
	BeforeEach(func(ctx SpecContext) { Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed()) })

	It("is rehearsed: plan says what becomes of each server, check what is not as it should be, back what stands in the way", func(ctx SpecContext) {
		held := theirs(ctx, "r1-01-system-0", v1alpha1.StateReserved, "On", "web")
		free := theirs(ctx, "r1-02-system-0", v1alpha1.StateAvailable, "Off", "")
		runs := theirs(ctx, "r1-03-system-0", v1alpha1.StateAvailable, "On", "")
		dirty := theirs(ctx, "r1-04-system-0", v1alpha1.StateAvailable, "Off", "")
		theirClaim(ctx, "web", held.Name)
		inventory := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: dirty.Spec.SystemUUID},
			Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: dirty.Spec.SystemUUID}, Custody: &policyv1alpha1.Custody{Marks: []string{"Dirty"}}}
		Expect(admin.Create(ctx, inventory)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, inventory)).To(Succeed()) })
		mine := []string{held.Name, free.Name, runs.Name, dirty.Name}
		before := filepath.Join(GinkgoT().TempDir(), "before.yaml")
		backup, err := viewer.command(ctx, controlPlane.Kubectl(), append([]string{"get", "servers", "-o", "yaml"}, mine...)...).Output()
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(before, backup, 0o600)).To(Succeed())
		versions := func() (all []string) {
			for _, name := range mine {
				all = append(all, getServer(ctx, name).ResourceVersion)
			}
			return all
		}
		stored := versions()

		By("planning")
		got := viewer.says(ctx, "migrate", "plan")
		GinkgoWriter.Println(got.out)
		Expect(got.code).To(BeZero(), got.err)
		Expect(got.out).To(And(
			MatchRegexp(`(?m)^r1-01-system-0 +Reserved +On +Reserved +Dirty,Managed +stays, BootAsClaimed, PowerAsClaimed +Dirty: it names a claim`),
			MatchRegexp(`(?m)^r1-02-system-0 +Available +Off +Available +- +stays +Inspected, clean and free to claim`),
			MatchRegexp(`(?m)^r1-03-system-0 +Available +On +Initial +Stranger +FoundRunning to Observing +Found running and not ours`),
			MatchRegexp(`(?m)^r1-04-system-0 +Available +Off +Initial +Dirty +DataUnreleased to Error +Dirty: its inventory says so`),
			HaveSuffix("nothing was written\n")))
		Expect(viewer.says(ctx, "migrate", "plan", "--bundle", "compat-v0.7").out).To(MatchRegexp(`(?m)^r1-03-system-0 +Available +On +Available +- +stays, PowerOff `),
			"it powers off what it finds running")
		Expect(viewer.says(ctx, "migrate", "plan", "--bundle", "none").code).To(Equal(1))
		Expect(nobody.says(ctx, "migrate", "plan").err).To(ContainSubstring("ClusterRole metalaw-fleet-viewer has it"))

		By("checking a fleet that no manager has taken over")
		var found struct {
			Findings []struct{ Name, Message string }
		}
		got = viewer.says(ctx, "migrate", "check", "--before", before, "-o", "json")
		Expect(got.code).To(Equal(1))
		Expect(json.Unmarshal([]byte(got.out), &found)).To(Succeed())
		for _, name := range mine {
			Expect(found.Findings).To(ContainElement(And(HaveField("Name", name), HaveField("Message", HavePrefix("no manager has taken it over yet")))))
		}
		Expect(viewer.says(ctx, "migrate", "back", "--to", "v0.7").code).To(Equal(1))
		got = viewer.says(ctx, "migrate", "back")
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(ContainSubstring("--to is required"))
		Expect(viewer.says(ctx, "migrate", "back", "--to", "v0.8").code).To(Equal(2))

		By("checking what a manager has taken over")
		Expect(versions()).To(Equal(stored), "nothing was written")
		takenOver(ctx, held, v1alpha1.StateReserved, "Dirty", "Managed")
		takenOver(ctx, free, v1alpha1.StateAvailable)
		takenOver(ctx, runs, v1alpha1.StateObserving, "Stranger")
		takenOver(ctx, dirty, v1alpha1.StateError, "Dirty")
		got = viewer.says(ctx, "migrate", "check", "--before", before)
		GinkgoWriter.Println(got.out)
		for _, name := range mine {
			Expect(got.out).NotTo(ContainSubstring(name))
		}

		By("going back")
		got = viewer.says(ctx, "migrate", "back", "--to", "v0.7.0")
		GinkgoWriter.Println(got.out)
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(And(MatchRegexp(`(?m)^server +r1-04-system-0 +it is Dirty and in Error, and metal-operator may offer it; have it wiped`),
			ContainSubstring("note: server r1-03-system-0 is in Observing"), Not(ContainSubstring("r1-01-system-0")), Not(ContainSubstring("r1-02-system-0"))))
		Expect(getServer(ctx, dirty.Name).Annotations).NotTo(HaveKey(v1alpha1.OperationAnnotation), "nothing is written without --write")

		By("holding the words against the version")
		word := func(name string) string { return getServer(ctx, name).Annotations[v1alpha1.OperationAnnotation] }
		long := getServer(ctx, dirty.Name)
		metav1.SetMetaDataAnnotation(&long.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationIgnoreReconciliation)
		Expect(admin.Update(ctx, long)).To(Succeed())
		Expect(viewer.says(ctx, "migrate", "back", "--to", "v0.6.2").out).NotTo(ContainSubstring("r1-04-system-0"))
		Expect(viewer.says(ctx, "migrate", "back", "--to", "v0.7.0").out).To(MatchRegexp(
			`(?m)^server +r1-04-system-0 +it is left alone by .*=ignore-reconciliation, which metal-operator v0\.7\.0 does not honour: it removes the word`))
		Expect(viewer.says(ctx, "migrate", "back", "--to", "v0.7.0", "--write").out).To(
			MatchRegexp(`(?m)^server +r1-04-system-0 +no word was written on it: .*it takes the verb "patch" on servers`), "a viewer may not")
		Expect(word(dirty.Name)).To(Equal("ignore-reconciliation"))
		got = operator.says(ctx, "migrate", "back", "--to", "v0.7.0", "--write")
		GinkgoWriter.Println(got.out, got.err)
		Expect(got.out).To(And(ContainSubstring("note: wrote metal.ironcore.dev/operation=ignore on server r1-04-system-0"),
			Not(MatchRegexp(`(?m)^server +r1-04-system-0`))))
		Expect(word(dirty.Name)).To(Equal("ignore"))
		Expect(word(free.Name)).To(BeEmpty(), "a clean server needs no word")
	})

	It("is ended for a fleet that came back: servers are declared clean by a selector, but none that a claim holds", func(ctx SpecContext) {
		held := theirs(ctx, "r2-01-system-0", v1alpha1.StateError, "Off", "web-2")
		lost := theirs(ctx, "r2-02-system-0", v1alpha1.StateError, "Off", "")
		takenOver(ctx, held, v1alpha1.StateError, "Dirty")
		takenOver(ctx, lost, v1alpha1.StateError, "Dirty")
		got := operator.says(ctx, "server", "declare-clean", "-l", "rack=r1", "--reason", "CHG-31", "--yes")
		GinkgoWriter.Println(got.out, got.err)
		Expect(got.code).To(Equal(1))
		Expect(getServer(ctx, held.Name).Annotations).NotTo(HaveKey(v1alpha1.OperationAnnotation))
		Expect(getServer(ctx, lost.Name).Annotations).To(And(HaveKeyWithValue(v1alpha1.OperationAnnotation, v1alpha1.OperationDeclareClean),
			HaveKeyWithValue(v1alpha1.OperationReasonAnnotation, "CHG-31")))
	})
})
