// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
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
	"github.com/metalaw/metalaw/test/pages"
)

// leaveOnly takes the objects of other specs out of a file of a backup: their machines stay in the world.
func leaveOnly(file string, mine func(*unstructured.Unstructured) bool) {
	GinkgoHelper()
	text, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	list := &unstructured.UnstructuredList{}
	Expect(json.Unmarshal(text, list)).To(Succeed())
	list.Items = slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool { return !mine(&o) })
	text, err = json.Marshal(list)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
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
		create(ctx, newClaim("rehomed", held))
		create(ctx, newClaim("rehomed-kept", keeping))
		Eventually(claimCondition(ctx, "rehomed", "Ready")).Should(Equal("True/Running"))
		Eventually(claimCondition(ctx, "rehomed-kept", "Ready")).Should(Equal("True/Running"))
		changeServer(ctx, serverOf(keeping), func(s *v1alpha1.Server) { s.Spec.ReclaimPolicy = v1alpha1.ReclaimPolicyRetain })
		deleteClaim(ctx, "rehomed-kept")
		Eventually(state(ctx, serverOf(keeping))).Should(Equal("Released/Off"))
		machines := []*emulator.Machine{held, free, keeping}
		names := map[string]bool{"fleet": true, "rehomed": true}
		for _, m := range machines {
			names[m.Name()], names[serverOf(m)], names[m.Identity().UUID] = true, true, true
		}
		mine := func(o *unstructured.Unstructured) bool {
			machine, _, _ := unstructured.NestedString(o.Object, "spec", "machine", "systemUUID") // of a SanitizationRecord
			return names[o.GetName()] || names[machine]
		}
		kept := keeping.Drives()[0].Contents()

		By("holding the fleet, and ending the manager")
		control(ctx, frozen(policyv1alpha1.FreezeAll, machines...))
		theWorld.stopManager()
		before, boots := theWorld.fleet.LastWrite(), held.Boots()

		By("backing up both groups")
		former, here := controlPlane, admin
		const creates = "for f in 1-hold 2-policy 3-memory 4-fleet 5-servers 6-claims 7-rules; do kubectl create -f $f.json; done"
		fails := map[string]string{creates: "1 says that a kind has no object"}
		root, blocks := blocksOf("docs/from-metal-operator.md", "Moving to another cluster")
		Expect(blocks).To(HaveLen(3), "the managers, the backup, the restore")
		Expect(pages.Missing(blocks, fails)).To(BeEmpty(), "the page changed: change the spec with it")
		backup := newShell(ctx, root)
		output, err := backup.run(ctx, blocks[1].Script(nil, nil, nil))
		Expect(err).NotTo(HaveOccurred(), output)
		files, err := filepath.Glob(filepath.Join(backup.dir, "*.json"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(7))
		for _, file := range files {
			leaveOnly(file, mine)
		}
		lost(ctx, getClaim(ctx, "rehomed"))
		for _, m := range machines {
			ends(ctx, m)
		}

		By("restoring them in a cluster that has the CRDs alone")
		second, err := env.Start(context.WithoutCancel(ctx), env.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(second.Stop()).To(Succeed()) })
		Expect(os.Remove(filepath.Join(backup.dir, "variables"))).To(Succeed()) // they name the former cluster
		output, err = shell{dir: backup.dir, kubeconfig: second.Kubeconfig}.run(ctx, blocks[2].Script(nil, fails, nil))
		Expect(err).NotTo(HaveOccurred(), output)
		AddReportEntry("restored", output, ReportEntryVisibilityFailureOrVerbose)

		By("installing metalaw there")
		Expect(second.ApplyKustomize(ctx, "config/default")).To(Succeed())
		Expect(second.RemoveWebhooks(ctx)).To(Succeed()) // admission has specs of its own
		there, err := client.New(second.Config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
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
		Eventually(func() string { return getServer(ctx, serverOf(held)).Annotations[v1alpha1.ClaimUIDAnnotation] }).
			Should(Equal(string(getClaim(ctx, "rehomed").UID)))
		Eventually(claimCondition(ctx, "rehomed", "Bound")).Should(HavePrefix("True/"))
		Eventually(state(ctx, serverOf(held))).Should(Equal("Reserved/On"))
		Eventually(state(ctx, serverOf(keeping))).Should(Equal("Released/Off"))
		Eventually(state(ctx, serverOf(free))).Should(Equal("Available/Off"))
		for _, m := range machines {
			Consistently(touched(m, before)).Should(BeEmpty())
		}

		Expect(command(ctx, "migrate", "check", "--before", filepath.Join(backup.dir, "5-servers.json"))).
			To(ContainSubstring("3 servers checked"))

		By("releasing the hold")
		guests.now.Store(&next.guests)
		recontrol(ctx, thawed)
		Eventually(claimCondition(ctx, "rehomed", "Ready")).Should(Equal("True/Running"))
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
		deleteClaim(ctx, "rehomed")
		Eventually(state(ctx, serverOf(held))).Should(Equal("Available/Off"))
		Expect(held.Drives()[0].Erased()).To(BeTrue())
	})
})
