// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// left is a server as metal-operator v0.7 leaves it: with a state, its finalizer and no lifecycle, and what becomes of it.
type left struct {
	state   v1alpha1.ServerState
	power   emulator.PowerState
	claim   bool // the server names a claim
	exists  bool // the claim is there, and names the server
	becomes string
	marks   []string
	says    string // condition=status/reason that tells what was found
}

// adopted is the condition that explains an adoption. What moves on at once, because it runs and nobody knows for whom, is
// explained by the state it moved to.
func (l left) adopted() string {
	if l.becomes[:strings.Index(l.becomes, "/")] != string(l.state) {
		return "none"
	}
	return "True/FoundInState"
}

// leave makes the objects of a server that another operator of this API ran.
func (l left) leave(ctx context.Context, name string) *emulator.Machine {
	GinkgoHelper()
	m := theWorld.fleet.Add(emulator.MachineSpec{Name: name, Username: "admin", Password: "password", Power: l.power})
	Expect(m.Err()).NotTo(HaveOccurred())
	m.Drives()[0].Write("the tenant's data")
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: serverOf(m), Finalizers: []string{v1alpha1.FinalizerServer}}}
	s.Spec.SystemUUID, s.Spec.SystemURI = m.Identity().UUID, m.SystemURI()
	s.Spec.BMCRef = &corev1.LocalObjectReference{Name: m.Name()}
	if l.claim {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: tenants, Name: name}
	}
	create(ctx, s)
	s.Status.State, s.Status.PowerState = l.state, v1alpha1.PowerState(l.power)
	Expect(admin.Status().Update(ctx, s)).To(Succeed())
	if l.exists {
		c := create(ctx, newClaim(name, m, func(c *v1alpha1.ServerClaim) {
			c.Finalizers = []string{v1alpha1.FinalizerServerClaim}
			c.Spec.ServerSelector, c.Spec.ServerRef = nil, &corev1.LocalObjectReference{Name: s.Name}
		}))
		c.Status.Phase = v1alpha1.PhaseBound
		Expect(admin.Status().Update(ctx, c)).To(Succeed())
	}
	theWorld.announce(ctx, m, nil)
	return m
}

var _ = Describe("A fleet that metal-operator ran", func() {
	It("is adopted: no machine is powered, booted or wiped, and every server says what was made of it", func(ctx SpecContext) {
		dirty := []string{"Dirty", "Managed"}
		stranger := []string{"Stranger"}
		fleet := map[string]left{
			"left-available":         {state: "Available", power: "Off", becomes: "Available/Off", says: "Ready=True/Stable"},
			"left-available-running": {state: "Available", power: "On", becomes: "Observing/On", marks: stranger},
			"left-reserved":          {state: "Reserved", power: "On", claim: true, exists: true, becomes: "Reserved/On", marks: dirty, says: "Ready=True/Stable"},
			"left-reserved-gone":     {state: "Reserved", power: "On", claim: true, becomes: "Reserved/On", marks: dirty, says: "ClaimMissing=True/ClaimNotFound"},
			"left-released":          {state: "Released", power: "Off", claim: true, becomes: "Released/Off", marks: dirty, says: "ClaimMissing=True/ClaimNotFound"},
			"left-parked":            {state: "Parked", power: "On", becomes: "Parked/On", marks: stranger},
			"left-parked-claimed":    {state: "Parked", power: "On", claim: true, exists: true, becomes: "Parked/On", marks: []string{"Dirty"}},
			"left-error":             {state: "Error", power: "On", becomes: "Error/On", marks: stranger, says: "Stalled=True/Adopted"},
		}
		before := theWorld.fleet.LastWrite()
		theWorld.stopManager()
		machines, boots := map[string]*emulator.Machine{}, map[string]int{}
		for name, l := range fleet {
			machines[name] = l.leave(ctx, name)
			boots[name] = machines[name].Boots()
		}
		history := record(ctx)
		theWorld.startManager(ctx)
		for name, l := range fleet {
			server := serverOf(machines[name])
			By("adopting " + name)
			Eventually(func() *v1alpha1.LifecycleStatus { return getServer(ctx, server).Status.Lifecycle }).ShouldNot(BeNil(), name)
			lifecycle := getServer(ctx, server).Status.Lifecycle
			Expect(lifecycle.History[0].Rule).To(Equal("Adopted"), name)
			Expect(slices.Contains(lifecycle.Marks, policies.MarkDirty)).To(Equal(slices.Contains(l.marks, policies.MarkDirty)), name)
			Eventually(func() []string { // whether it runs is known by the first reading only; Error may shine already
				return slices.DeleteFunc(getServer(ctx, server).Status.Lifecycle.Marks, func(m string) bool { return m == policies.MarkLocated })
			}).Should(HaveExactElements(l.marks), name)
			Eventually(serverCondition(ctx, server, v1alpha1.ConditionAdopted)).Should(Equal(l.adopted()), name)
			Eventually(state(ctx, server)).Should(Equal(l.becomes), name)
			if l.says != "" {
				kind, says, _ := strings.Cut(l.says, "=")
				Eventually(serverCondition(ctx, server, kind)).Should(Equal(says), name)
			}
			if l.exists {
				Eventually(func() string { return getServer(ctx, server).Annotations[v1alpha1.ClaimUIDAnnotation] }).
					Should(Equal(string(getClaim(ctx, name).UID)), name)
				Eventually(claimCondition(ctx, name, "Bound")).Should(HavePrefix("True/"), name)
				unbound := first(history(), func(s seen) bool {
					return s.claim != nil && s.claim.Name == name && s.claim.Status.Phase == v1alpha1.PhaseUnbound
				})
				Expect(unbound).To(BeZero(), "its clients never see it Unbound")
			}
		}
		Consistently(func() (all []string) {
			for _, m := range machines {
				all = append(all, touched(m, before)()...)
			}
			return slices.DeleteFunc(all, func(write string) bool { return strings.Contains(write, "IndicatorLED") }) // it shows Error
		}).Should(BeEmpty())
		for name, m := range machines {
			Expect(m.Drives()[0].Contents()).To(Equal("the tenant's data"), name)
			Expect(m.Boots()).To(Equal(boots[name]), name)
		}
	})
})
