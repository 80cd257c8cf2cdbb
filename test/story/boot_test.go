// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// foreign is a condition that neither the manager nor the boot provider knows.
const foreign = "example.com/Seen"

// said writes what a boot operator says of a boot configuration.
func said(ctx context.Context, namespace, name string, state v1alpha1.ServerBootConfigurationState) {
	GinkgoHelper()
	Eventually(func() error {
		b := &v1alpha1.ServerBootConfiguration{}
		if err := admin.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, b); err != nil {
			return err
		}
		b.Status.State = state
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: foreign, Status: metav1.ConditionTrue, Reason: "Foreign"})
		return admin.Status().Update(ctx, b)
	}).Should(Succeed())
}

func bootState(ctx context.Context, name string) func() string {
	return func() string {
		b := &v1alpha1.ServerBootConfiguration{}
		if err := admin.Get(ctx, types.NamespacedName{Namespace: tenants, Name: name}, b); err != nil {
			return string(apierrors.ReasonForError(err))
		}
		return string(b.Status.State)
	}
}

func ignition(name string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) { c.Spec.IgnitionSecretRef = &corev1.LocalObjectReference{Name: name} }
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name},
		StringData: map[string]string{"ignition": `{"ignition":{"version":"3.4.0"}}`}}
}

var _ = Describe("Contract 1: the boot configuration's state is the boot operator's", func() {
	It("powers on only at Ready, and takes Error for something that may still be mended", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		before := theWorld.fleet.LastWrite()
		create(ctx, newClaim("not-ready", m, ignition("comes-late"))) // the boot operator says Error: there is no such secret
		Eventually(bootState(ctx, "not-ready")).Should(Equal("Error"))
		Eventually(claimCondition(ctx, "not-ready", "Bound")).Should(Equal("True/Bound"))
		Consistently(touched(m, before)).Should(BeEmpty())
		Expect(bootState(ctx, "not-ready")()).To(Equal("Error"), "nobody overwrites what the boot operator said")

		By("the boot operator mending it")
		create(ctx, secret("comes-late"))
		said(ctx, tenants, "not-ready", v1alpha1.ServerBootConfigurationStateReady)
		Eventually(claimCondition(ctx, "not-ready", "Ready")).Should(Equal("True/Running"))
	})

	It("neither overwrites a flapping state nor power-cycles the machine for it", func(ctx SpecContext) {
		create(ctx, secret("comes-and-goes"))
		m := claimed(ctx, "flapping", ignition("comes-and-goes"))
		before := theWorld.fleet.LastWrite()
		for range 3 {
			Expect(admin.Delete(ctx, secret("comes-and-goes"))).To(Succeed())
			Eventually(func(g Gomega) { // the boot operator may not have seen yet that the secret is gone
				said(ctx, tenants, "flapping", v1alpha1.ServerBootConfigurationStateError)
				g.Consistently(bootState(ctx, "flapping"), 300*time.Millisecond).Should(Equal("Error"))
			}).Should(Succeed())
			create(ctx, secret("comes-and-goes"))
			Eventually(bootState(ctx, "flapping")).Should(Equal("Ready"))
		}
		Consistently(bootState(ctx, "flapping")).Should(Equal("Ready"))
		Expect(touched(m, before)()).To(BeEmpty())
		Expect(state(ctx, serverOf(m))()).To(Equal("Reserved/On"))
	})

	It("never boots a changed spec on the Ready that spoke of the former one", func(ctx SpecContext) {
		m := claimed(ctx, "stale-ready")
		changeClaim(ctx, "stale-ready", func(c *v1alpha1.ServerClaim) { c.Spec.Power = v1alpha1.PowerOff })
		Eventually(state(ctx, serverOf(m))).Should(Equal("Reserved/Off"))
		boots := m.Boots()
		changeClaim(ctx, "stale-ready", func(c *v1alpha1.ServerClaim) {
			c.Spec.Power = v1alpha1.PowerOn
			c.Spec.IgnitionSecretRef = &corev1.LocalObjectReference{Name: "not-there-yet"}
		})
		Eventually(bootState(ctx, "stale-ready")).Should(Equal("Error"), "the boot operator judges what waits, and nothing else")
		Consistently(m.Boots).Should(Equal(boots))

		By("the boot operator preparing it")
		create(ctx, secret("not-there-yet"))
		said(ctx, tenants, "stale-ready", v1alpha1.ServerBootConfigurationStateReady)
		Eventually(state(ctx, serverOf(m))).Should(Equal("Reserved/On"))
		Eventually(m.Boots).Should(Equal(boots + 1))
	})

	It("takes Ready back after its own change of the spec, and keeps foreign conditions", func(ctx SpecContext) {
		m := claimed(ctx, "handed-over")
		said(ctx, tenants, "handed-over", v1alpha1.ServerBootConfigurationStateReady)
		uid := getBoot(ctx, tenants, "handed-over").UID
		changeClaim(ctx, "handed-over", func(c *v1alpha1.ServerClaim) { c.Spec.Image, c.Spec.Power = "os:2", v1alpha1.PowerOff })
		Eventually(state(ctx, serverOf(m))).Should(Equal("Reserved/Off"))
		Eventually(bootState(ctx, "handed-over")).Should(Equal("Ready"))
		b := getBoot(ctx, tenants, "handed-over")
		Expect(b.UID).To(Equal(uid))
		Expect(b.Spec.Image).To(Equal("os:2"))
		handedOver := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionSpecHandedOver)
		Expect(handedOver).NotTo(BeNil())
		Expect(handedOver.ObservedGeneration).To(Equal(b.Generation))
		kept := meta.FindStatusCondition(b.Status.Conditions, foreign)
		Expect(kept).NotTo(BeNil())
		Expect(kept.Reason).To(Equal("Foreign"))
	})
})

// seen is one version of an object that matters here, as a watch shows it.
type seen struct {
	version uint64
	server  *v1alpha1.Server
	boot    *v1alpha1.ServerBootConfiguration
	claim   *v1alpha1.ServerClaim
}

// record watches servers, boot configurations and claims from now on.
func record(ctx context.Context) func() []seen {
	GinkgoHelper()
	watcher, err := client.NewWithWatch(controlPlane.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	var mu sync.Mutex
	var all []seen
	for _, list := range []client.ObjectList{&v1alpha1.ServerList{}, &v1alpha1.ServerBootConfigurationList{}, &v1alpha1.ServerClaimList{}} {
		w, err := watcher.Watch(ctx, list)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		go func() {
			for event := range w.ResultChan() {
				o, ok := event.Object.(client.Object)
				if !ok {
					continue
				}
				version, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
				s := seen{version: version}
				switch o := o.(type) {
				case *v1alpha1.Server:
					s.server = o
				case *v1alpha1.ServerBootConfiguration:
					s.boot = o
				case *v1alpha1.ServerClaim:
					s.claim = o
				}
				mu.Lock()
				all = append(all, s)
				mu.Unlock()
			}
		}()
	}
	return func() []seen {
		mu.Lock()
		defer mu.Unlock()
		return append([]seen(nil), all...)
	}
}

// first is the version at which something was seen first; 0 where it was not.
func first(all []seen, matches func(seen) bool) uint64 {
	var earliest uint64
	for _, s := range all {
		if matches(s) && (earliest == 0 || s.version < earliest) {
			earliest = s.version
		}
	}
	return earliest
}

var _ = Describe("Contract 2 to 5: the order in which clients see things", func() {
	It("names the boot configuration in force, fills the interfaces before one exists, and binds in order", func(ctx SpecContext) {
		history := record(ctx)
		m := theWorld.available(ctx)
		name := serverOf(m)
		create(ctx, newClaim("in-order", m))
		Eventually(claimCondition(ctx, "in-order", "Ready")).Should(Equal("True/Running"))
		deleteClaim(ctx, "in-order")
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		all := history()
		mine := func(s seen) bool { return s.server != nil && s.server.Name == name }

		By("contract 3: interfaces are known before any boot configuration is written")
		interfaces := first(all, func(s seen) bool { return mine(s) && len(s.server.Status.NetworkInterfaces) > 0 })
		discovery := first(all, func(s seen) bool { return s.boot != nil && s.boot.Name == name })
		Expect(interfaces).To(And(BeNumerically(">", 0), BeNumerically("<", discovery)))

		By("contract 5: the order of a binding")
		held := first(all, func(s seen) bool { return mine(s) && s.server.Spec.ServerClaimRef != nil })
		named := first(all, func(s seen) bool {
			return s.claim != nil && s.claim.Name == "in-order" && s.claim.Spec.ServerRef != nil
		})
		reserved := first(all, func(s seen) bool { return mine(s) && s.server.Status.State == v1alpha1.StateReserved })
		boot := first(all, func(s seen) bool { return s.boot != nil && s.boot.Name == "in-order" })
		ref := first(all, func(s seen) bool {
			return mine(s) && s.server.Spec.BootConfigurationRef != nil && s.server.Spec.BootConfigurationRef.Name == "in-order"
		})
		bound := first(all, func(s seen) bool {
			return s.claim != nil && s.claim.Name == "in-order" && s.claim.Status.Phase == v1alpha1.PhaseBound
		})
		Expect([]uint64{held, named, reserved, boot, ref, bound}).To(HaveEach(BeNumerically(">", 0)))
		Expect(held).To(BeNumerically("<", named))
		Expect(named).To(BeNumerically("<", reserved))
		Expect(reserved).To(BeNumerically("<", boot))
		Expect(boot).To(BeNumerically("<", ref))
		Expect(ref).To(BeNumerically("<", bound))

		By("contract 2: while the server is Reserved and bound its reference never names another")
		for _, s := range all {
			if mine(s) && s.version >= ref && s.server.Status.State == v1alpha1.StateReserved && s.server.Spec.BootConfigurationRef != nil {
				Expect(s.server.Spec.BootConfigurationRef).To(HaveField("Name", "in-order"), "version %d", s.version)
			}
		}
	})

	It("keeps naming the claim's boot configuration while a second one for the server exists", func(ctx SpecContext) {
		m := claimed(ctx, "two-boots")
		other := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: "stray"}}
		other.Spec.ServerRef.Name, other.Spec.Image = serverOf(m), "stray:1"
		create(ctx, other)
		Consistently(func() string { return getServer(ctx, serverOf(m)).Spec.BootConfigurationRef.Name }).Should(Equal("two-boots"))
	})

	It("contract 3: writes a claim's boot configuration only once the interfaces are known", func(ctx SpecContext) {
		history := record(ctx)
		m := theWorld.fleet.Add(emulator.MachineSpec{Name: "late-bmc", Username: "admin", Password: "password"})
		Expect(m.Err()).NotTo(HaveOccurred())
		Expect(m.SetReachability(emulator.Refusing)).To(Succeed())
		name := held(ctx, m, "late-bmc")
		theWorld.announce(ctx, m, nil)
		Eventually(state(ctx, name)).Should(Equal("Reserved/"), "nobody knows its power")
		Consistently(bootState(ctx, "late-bmc")).Should(Equal("NotFound"))

		By("the BMC naming them")
		Expect(m.SetReachability(emulator.Reachable)).To(Succeed())
		Eventually(claimCondition(ctx, "late-bmc", "Ready"), time.Minute).Should(Equal("True/Running"))
		all := history()
		interfaces := first(all, func(s seen) bool {
			return s.server != nil && s.server.Name == name && len(s.server.Status.NetworkInterfaces) > 0
		})
		boot := first(all, func(s seen) bool { return s.boot != nil && s.boot.Name == "late-bmc" })
		Expect(interfaces).To(And(BeNumerically(">", 0), BeNumerically("<", boot)))
	})

	It("contract 4: gives every discovery boot configuration an ignition and its annotations", func(ctx SpecContext) {
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Delays = emulator.Delays{Boot: 3 * time.Second} })
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(HavePrefix("Discovery/"))
		b := &v1alpha1.ServerBootConfiguration{}
		Eventually(func() error {
			return admin.Get(ctx, types.NamespacedName{Namespace: managerNamespace, Name: name}, b)
		}).Should(Succeed())
		Expect(b.Annotations).To(And(HaveKeyWithValue(v1alpha1.TypeAnnotation, v1alpha1.TypeInternal),
			HaveKeyWithValue(v1alpha1.IsDefaultOSImageAnnotation, "true")))
		Expect(b.Spec.IgnitionSecretRef).To(HaveField("Name", name))
		ignition := &corev1.Secret{}
		Expect(admin.Get(ctx, types.NamespacedName{Namespace: managerNamespace, Name: name}, ignition)).To(Succeed())
		Expect(ignition.Data).To(And(HaveKey("ignition"), Not(HaveKey("format"))))

		By("clearing both once the server is offered")
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(ignition), ignition) }).Should(Satisfy(apierrors.IsNotFound))
		Expect(getServer(ctx, name).Spec.BootConfigurationRef).To(BeNil())
	})
})

var _ = Describe("Contract 4: an ignition says its format, and JSON has none", func() {
	fetched := func(ctx context.Context, name string) func() bool {
		return func() bool {
			return meta.IsStatusConditionTrue(getBoot(ctx, tenants, name).Status.Conditions, v1alpha1.ConditionIgnitionDataFetched)
		}
	}

	It("a claim's Butane reaches its machine", func(ctx SpecContext) {
		butane := secret("in-butane")
		butane.StringData = map[string]string{"format": "fcos", "ignition": "variant: fcos\nversion: 1.5.0\n"}
		create(ctx, butane)
		claimed(ctx, "in-butane", ignition("in-butane"))
		Eventually(fetched(ctx, "in-butane")).Should(BeTrue())
	})

	It("JSON that is called Butane is Ready and reaches no machine before it is mended", func(ctx SpecContext) {
		wrong := secret("called-butane")
		wrong.StringData["format"] = "fcos"
		create(ctx, wrong)
		claimed(ctx, "called-butane", ignition("called-butane"))
		Expect(bootState(ctx, "called-butane")()).To(Equal("Ready"))
		Consistently(fetched(ctx, "called-butane")).Should(BeFalse())

		By("its owner taking the format away")
		Expect(admin.Patch(ctx, wrong, client.RawPatch(types.MergePatchType, []byte(`{"data":{"format":null}}`)))).To(Succeed())
		Eventually(fetched(ctx, "called-butane")).Should(BeTrue())
	})
})

var _ = Describe("Contract 6: a bound claim can change", func() {
	It("carries ignition, image and power to the server without binding anew", func(ctx SpecContext) {
		create(ctx, secret("second-ignition"))
		m := claimed(ctx, "changing")
		name := serverOf(m)
		entry := getServer(ctx, name).Status.Lifecycle.Entry
		changeClaim(ctx, "changing", func(c *v1alpha1.ServerClaim) { c.Spec.Power = v1alpha1.PowerOff })
		Eventually(state(ctx, name)).Should(Equal("Reserved/Off"))
		Eventually(claimCondition(ctx, "changing", "Ready")).Should(Equal("True/PoweredOff"))
		changeClaim(ctx, "changing", func(c *v1alpha1.ServerClaim) {
			c.Spec.Power, c.Spec.Image = v1alpha1.PowerOn, "os:3"
			c.Spec.IgnitionSecretRef = &corev1.LocalObjectReference{Name: "second-ignition"}
		})
		Eventually(state(ctx, name)).Should(Equal("Reserved/On"))
		Eventually(claimCondition(ctx, "changing", "Ready")).Should(Equal("True/Running"))
		b := getBoot(ctx, tenants, "changing")
		Expect(b.Spec).To(And(HaveField("Image", "os:3"), HaveField("IgnitionSecretRef.Name", "second-ignition")))
		Expect(getServer(ctx, name).Status.Lifecycle.Entry).To(Equal(entry))
	})
})

var _ = Describe("Contract 8: a claim's end", func() {
	It("lets the claim go at once, and keeps the server Reserved until the BMC confirms Off", func(ctx SpecContext) {
		create(ctx, secret("deleted-first"))
		m := claimed(ctx, "prompt", ignition("deleted-first"))
		name := serverOf(m)
		Expect(admin.Delete(ctx, secret("deleted-first"))).To(Succeed())
		Expect(m.SetReachability(emulator.Refusing)).To(Succeed())
		deleteClaim(ctx, "prompt")
		Eventually(bootState(ctx, "prompt")).Should(Equal("NotFound"))
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionBMCReachable)).Should(Equal("False/ConnectionFailed"))
		Consistently(state(ctx, name)).Should(HavePrefix("Reserved/"))

		By("the BMC coming back")
		Expect(m.SetReachability(emulator.Reachable)).To(Succeed())
		Eventually(state(ctx, name), time.Minute).Should(Equal("Available/Off"))
		Expect(m.Drives()[0].Erased()).To(BeTrue())
	})
})

// held makes a claim and the Server that it holds, as another cluster or a backup leaves them: without a status. It
// returns the Server's name.
func held(ctx context.Context, m *emulator.Machine, claim string) string {
	GinkgoHelper()
	c := create(ctx, newClaim(claim, m, func(c *v1alpha1.ServerClaim) {
		c.Spec.ServerSelector = nil
		c.Spec.ServerRef = &corev1.LocalObjectReference{Name: serverOf(m)}
	}))
	return heldServer(ctx, m, claim, c.UID)
}

// heldServer makes the Server alone. It returns the Server's name.
func heldServer(ctx context.Context, m *emulator.Machine, claim string, holder types.UID) string {
	GinkgoHelper()
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: serverOf(m), Annotations: map[string]string{v1alpha1.ClaimUIDAnnotation: string(holder)}}}
	s.Spec.SystemUUID, s.Spec.SystemURI = m.Identity().UUID, m.SystemURI()
	s.Spec.BMCRef = &corev1.LocalObjectReference{Name: m.Name()}
	s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: tenants, Name: claim}
	create(ctx, s)
	return s.Name
}

var _ = Describe("Contract 10: a server with a claim's reference and no state", func() {
	It("starts in Reserved and never in discovery", func(ctx SpecContext) {
		history := record(ctx)
		n := theWorld.fleet.Add(emulator.MachineSpec{Name: "moved", Username: "admin", Password: "password", Power: emulator.PowerOn})
		Expect(n.Err()).NotTo(HaveOccurred())
		name := held(ctx, n, "moved")
		before := theWorld.fleet.LastWrite()
		theWorld.announce(ctx, n, nil)
		Eventually(state(ctx, name)).Should(Equal("Reserved/On"))
		Consistently(state(ctx, name)).Should(Equal("Reserved/On"))
		Expect(touched(n, before)()).To(BeEmpty(), "the machine runs already, as its claim asks")
		for _, seen := range history() {
			if seen.server != nil && seen.server.Name == name {
				Expect(seen.server.Status.State).To(Or(BeEmpty(), Equal(v1alpha1.StateReserved)))
			}
		}
	})
})
