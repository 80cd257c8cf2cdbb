// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/emulated"
	"github.com/metalaw/metalaw/test/env"
	"github.com/metalaw/metalaw/test/guest"
)

// kubectl runs a command of the page "Coming from metal-operator" as the administrator of a cluster.
func kubectl(ctx context.Context, cluster *env.Env, args ...string) []byte {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, cluster.Kubectl(), append([]string{"--kubeconfig", cluster.Kubeconfig}, args...)...)
	cmd.Stderr = GinkgoWriter
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred(), "kubectl %v: %s", args, out)
	return out
}

// backup is what `kubectl get -A -o json` wrote of some kinds, without what belongs to the cluster: the page does that with jq. The
// world holds the machines of other specs too, which stay where they are.
func backup(ctx context.Context, cluster *env.Env, kinds string, mine func(*unstructured.Unstructured) bool) string {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	Expect(json.Unmarshal(kubectl(ctx, cluster, "get", kinds, "-A", "-o", "json"), list)).To(Succeed())
	kept := map[string]any{"apiVersion": "v1", "kind": "List"}
	items := []any{}
	for i := range list.Items {
		o := &list.Items[i]
		if !mine(o) {
			continue
		}
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "ownerReferences"} {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
		items = append(items, o.Object)
	}
	kept["items"] = items
	text, err := json.Marshal(kept)
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(GinkgoT().TempDir(), "backup.json")
	Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
	return file
}

// rehomed are guests that boot from whichever boot provider serves their cluster.
type rehomed struct {
	now atomic.Pointer[emulator.Guest]
}

// PoweredOn implements emulator.Guest.
func (r *rehomed) PoweredOn(ctx context.Context, m *emulator.Machine, boot emulator.BootSelection) {
	(*r.now.Load()).PoweredOn(ctx, m, boot)
}

// PoweredOff implements emulator.Guest.
func (r *rehomed) PoweredOff(m *emulator.Machine) { (*r.now.Load()).PoweredOff(m) }

// ends takes what a cluster holds of a machine away, as the end of the cluster does.
func ends(ctx context.Context, m *emulator.Machine) {
	GinkgoHelper()
	lostInventory(ctx, m.Identity().UUID)
	lost(ctx, getServer(ctx, serverOf(m)))
	b := &v1alpha1.BMC{}
	Expect(admin.Get(ctx, types.NamespacedName{Name: m.Name()}, b)).To(Succeed())
	lost(ctx, b)
}

var _ = Describe("A fleet that moves to another cluster", Serial, func() {
	It("goes on there as it was: held machines run on, kept data is kept, and free machines are offered", func(ctx SpecContext) {
		guests := &rehomed{}
		guests.now.Store(&theWorld.guests)
		machine := func() *emulator.Machine {
			m := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Guest = guests })
			Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
			return m
		}
		held, free, keeping := machine(), machine(), machine()
		create(ctx, newClaim("moved", held))
		create(ctx, newClaim("moved-kept", keeping))
		Eventually(claimCondition(ctx, "moved", "Ready")).Should(Equal("True/Running"))
		Eventually(claimCondition(ctx, "moved-kept", "Ready")).Should(Equal("True/Running"))
		changeServer(ctx, serverOf(keeping), func(s *v1alpha1.Server) { s.Spec.ReclaimPolicy = v1alpha1.ReclaimPolicyRetain })
		deleteClaim(ctx, "moved-kept")
		Eventually(state(ctx, serverOf(keeping))).Should(Equal("Released/Off"))
		machines := []*emulator.Machine{held, free, keeping}
		names := map[string]bool{"fleet": true, "moved": true}
		for _, m := range machines {
			names[m.Name()], names[serverOf(m)], names[m.Identity().UUID] = true, true, true
		}
		mine := func(o *unstructured.Unstructured) bool { return names[o.GetName()] }
		kept := keeping.Drives()[0].Contents()

		By("holding the fleet, and ending the manager")
		control(ctx, frozen(policyv1alpha1.FreezeAll, machines...))
		theWorld.stopManager()
		before, boots := theWorld.fleet.LastWrite(), held.Boots()

		By("backing up both groups")
		former := controlPlane
		hold := backup(ctx, former, "fleetcontrols.policy.metalaw.dev", mine)
		memory := backup(ctx, former, "serverinventories.policy.metalaw.dev,sanitizationrecords.policy.metalaw.dev", func(o *unstructured.Unstructured) bool {
			machine, _, _ := unstructured.NestedString(o.Object, "spec", "systemUUID")
			return names[machine]
		})
		fleet := backup(ctx, former, "bmcsecrets.metal.ironcore.dev,endpoints.metal.ironcore.dev,bmcs.metal.ironcore.dev", mine)
		servers := backup(ctx, former, "servers.metal.ironcore.dev", mine)
		claims := backup(ctx, former, "serverclaims.metal.ironcore.dev", mine)
		lost(ctx, getClaim(ctx, "moved"))
		for _, m := range machines {
			ends(ctx, m)
		}

		By("restoring them in a cluster that has the CRDs alone")
		second, err := env.Start(context.WithoutCancel(ctx), env.Options{Kustomize: []string{"config/crd"}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(second.Stop()).To(Succeed()) })
		for _, file := range []string{hold, memory, fleet, servers, claims} {
			kubectl(ctx, second, "create", "-f", file)
		}
		for _, file := range []string{servers, claims} {
			kubectl(ctx, second, "replace", "--subresource=status", "-f", file)
		}

		By("installing metalaw there")
		Expect(second.ApplyKustomize(ctx, "config/default")).To(Succeed())
		Expect(second.RemoveWebhooks(ctx)).To(Succeed()) // admission has specs of its own
		there, err := client.New(second.Config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		here := admin
		controlPlane, admin = second, there
		defer func() { controlPlane, admin = former, here }() // before the next spec's manager starts
		next := &world{fleet: theWorld.fleet, bmcPort: theWorld.bmcPort}
		next.startBootProvider(ctx)
		defer next.stopBoots()
		next.guests, err = emulated.NewGuest(guest.Options{ProviderURL: next.providerURL, Interval: time.Second})
		Expect(err).NotTo(HaveOccurred())
		next.startManager(ctx)
		defer next.stopManager()

		By("looking at it while it is held")
		Eventually(claimCondition(ctx, "moved", "Bound")).Should(HavePrefix("True/"))
		Eventually(state(ctx, serverOf(held))).Should(Equal("Reserved/On"))
		Eventually(state(ctx, serverOf(keeping))).Should(Equal("Released/Off"))
		Eventually(state(ctx, serverOf(free))).Should(Equal("Available/Off"))
		Expect(getServer(ctx, serverOf(held)).Annotations[v1alpha1.ClaimUIDAnnotation]).To(Equal(string(getClaim(ctx, "moved").UID)))
		for _, m := range machines {
			Consistently(touched(m, before)).Should(BeEmpty())
		}

		By("releasing the hold")
		guests.now.Store(&next.guests)
		recontrol(ctx, thawed)
		Eventually(claimCondition(ctx, "moved", "Ready")).Should(Equal("True/Running"))
		Consistently(state(ctx, serverOf(held))).Should(Equal("Reserved/On"))
		Expect(held.Boots()).To(Equal(boots))
		Expect(keeping.Drives()[0].Contents()).To(Equal(kept))
		Expect(getServer(ctx, serverOf(keeping)).Status.Lifecycle.Marks).To(ContainElement("Dirty"))
		inventory := &policyv1alpha1.ServerInventory{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: held.Identity().UUID}, inventory)).To(Succeed())
		Expect(inventory.Custody.Marks).To(ContainElement("Dirty"))

		By("serving the next claim, and ending the one that moved")
		create(ctx, newClaim("moved-next", free))
		Eventually(claimCondition(ctx, "moved-next", "Bound")).Should(HavePrefix("True/"))
		deleteClaim(ctx, "moved")
		Eventually(state(ctx, serverOf(held))).Should(Equal("Available/Off"))
		Expect(held.Drives()[0].Erased()).To(BeTrue())
	})
})
