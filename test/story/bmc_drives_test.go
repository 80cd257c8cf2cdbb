// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// inventoryOf is the inventory of a machine; an empty one where there is none.
func inventoryOf(ctx context.Context, m *emulator.Machine) *policyv1alpha1.ServerInventory {
	inventory := &policyv1alpha1.ServerInventory{}
	_ = admin.Get(ctx, types.NamespacedName{Name: m.InBandUUID()}, inventory)
	return inventory
}

// bmcStorage is what is stored of the drives that a machine's BMC lists; an empty value where nothing is.
func bmcStorage(ctx context.Context, m *emulator.Machine) func() policyv1alpha1.BMCStorage {
	return func() policyv1alpha1.BMCStorage {
		if s := inventoryOf(ctx, m).BMCStorage; s != nil {
			return *s
		}
		return policyv1alpha1.BMCStorage{}
	}
}

// withHidden adds a machine whose BMC lists a drive that the agent never sees, and lists drives only once the machine has booted.
func withHidden(ctx context.Context, before ...func(*emulator.Machine)) *emulator.Machine {
	GinkgoHelper()
	return theWorld.machine(ctx, func(s *emulator.MachineSpec) {
		s.LateDrives = true
		s.Drives = []emulator.DriveSpec{{Name: "nvme0n1", Serial: s.Name + "SEEN1", SizeBytes: 1e9}}
		s.Unseen = []emulator.DriveSpec{{Name: "Bay 7", Serial: s.Name + "HIDDEN", SizeBytes: 2e9, Transport: emulator.TransportSAS}}
	}, before...)
}

func takenOut(m *emulator.Machine) {
	for _, d := range m.Unseen() {
		d.TakeOut()
	}
}

var _ = Describe("The drives that a BMC lists", func() {
	It("are read after the agent's first word, because the BMC lists none before the first boot", func(ctx SpecContext) {
		m := withHidden(ctx)
		Eventually(bmcStorage(ctx, m)).Should(And(
			HaveField("State", policyv1alpha1.BMCStorageListed), HaveField("ListedBefore", true), HaveField("Problem", ""),
			HaveField("Drives", ConsistOf(
				And(HaveField("Serial", m.Name()+"SEEN1"), HaveField("Protocol", "NVMe"), HaveField("CapacityBytes", int64(1e9))),
				And(HaveField("Serial", m.Name()+"HIDDEN"), HaveField("Protocol", "SAS"), HaveField("Name", "Bay 7"))))))
		Expect(bmcStorage(ctx, m)().Entry).To(BeNumerically(">", 0))
	})

	It("are read anew for a wipe, and whenever the registry wants it", func(ctx SpecContext) {
		m := withHidden(ctx, takenOut)
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Eventually(bmcStorage(ctx, m)).Should(And(HaveField("State", policyv1alpha1.BMCStorageListed), HaveField("Drives", HaveLen(1))))
		probed := bmcStorage(ctx, m)()
		create(ctx, newClaim("listed-again", m))
		Eventually(claimCondition(ctx, "listed-again", "Ready")).Should(Equal("True/Running"))
		deleteClaim(ctx, "listed-again")
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Eventually(bmcStorage(ctx, m)).Should(HaveField("Entry", BeNumerically(">", probed.Entry)))
	})

	It("are not known where the BMC has no list, and that stops nothing", func(ctx SpecContext) {
		m := theWorld.machine(ctx, nil, func(m *emulator.Machine) { m.Inject(emulator.StorageMissing()) })
		Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
		Eventually(bmcStorage(ctx, m)).Should(And(HaveField("State", policyv1alpha1.BMCStorageNotOffered), HaveField("Drives", BeEmpty()),
			HaveField("ListedBefore", false)))
	})

	It("are unread where one of them cannot be read, and the last list is kept", func(ctx SpecContext) {
		m := withHidden(ctx, takenOut)
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Eventually(bmcStorage(ctx, m)).Should(HaveField("State", policyv1alpha1.BMCStorageListed))
		m.Inject(emulator.DriveBroken())
		create(ctx, newClaim("unread-drives", m))
		Eventually(claimCondition(ctx, "unread-drives", "Ready")).Should(Equal("True/Running"))
		deleteClaim(ctx, "unread-drives")
		Eventually(bmcStorage(ctx, m)).Should(And(HaveField("State", policyv1alpha1.BMCStorageUnread), HaveField("ListedBefore", true),
			HaveField("Problem", ContainSubstring("500")), HaveField("Drives", HaveLen(1))))
	})

	It("keep a machine from being offered while the agent does not see one of them", func(ctx SpecContext) {
		m := withHidden(ctx)
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(HavePrefix("Error/"))
		Consistently(state(ctx, name), 3*time.Second).ShouldNot(HavePrefix("Available"))
		takenOut(m)
		operateFor(ctx, name, v1alpha1.OperationSanitize, "the drive is out", v1alpha1.OperationByAnnotation, "admin") // a retry alone answers for no data
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
	})

	It("fail a wipe that does not see one of them", func(ctx SpecContext) {
		m := withHidden(ctx)
		hidden := m.Unseen()
		takenOut(m)
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		create(ctx, newClaim("hidden-drive", m))
		Eventually(claimCondition(ctx, "hidden-drive", "Ready")).Should(Equal("True/Running"))
		for _, d := range hidden {
			d.PutIn()
		}
		deleteClaim(ctx, "hidden-drive")
		Eventually(state(ctx, name)).Should(Equal("Error/Off"))
		inventory := inventoryOf(ctx, m)
		Expect(inventory.Wipe).NotTo(HaveField("State", policyv1alpha1.WipeVerified))
		Expect(inventory.Wipe.Hidden).To(ContainElement(And(HaveField("Serial", m.Name()+"HIDDEN"), HaveField("Source", policyv1alpha1.HiddenByBMC))))
		Expect(inventory.Custody.Marks).To(ContainElement("Dirty"))
		Expect(metav1.HasAnnotation(getServer(ctx, name).ObjectMeta, v1alpha1.ClaimUIDAnnotation)).To(BeTrue(), "its last holder is not forgotten")
	})
})
