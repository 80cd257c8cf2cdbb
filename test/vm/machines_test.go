// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/redfish/emulator/vm"
	"github.com/metalaw/metalaw/test/vm/images"
)

// tenants is the namespace in which specs claim.
const tenants = "default"

// machine is a virtual machine with its BMC and its Server.
type machine struct {
	*vm.VM
	bmc  *emulator.Machine
	name string
}

// server is the name of the machine's Server.
func (m machine) server() string { return m.name + "-system-0" }

// machine adds a virtual machine, and the objects by which the operator finds it.
func (w *world) machine(ctx context.Context, disks []vm.Disk, change ...func(*vm.Description)) machine {
	GinkgoHelper()
	n := len(w.vms) + 1
	d := vm.Description{
		Name: fmt.Sprintf("vm%d", n), UUID: fmt.Sprintf("4c4c4544-0042-4a10-8051-%012d", n), SerialNumber: fmt.Sprintf("VM%05d", n),
		Manufacturer: "Metalaw", Model: "Virtual R1", MemoryMiB: 512, Disks: disks,
		DIMM: emulator.DIMM{Locator: "DIMM_A", Manufacturer: "Testron", SerialNumber: fmt.Sprintf("D%05d", n), PartNumber: "TR-512"},
		NICs: []vm.NIC{{MACAddress: fmt.Sprintf("52:54:00:00:00:%02x", n)}},
	}
	for _, f := range change {
		f(&d)
	}
	spec, guest := w.backend.Machine(d)
	spec.Username, spec.Password = "admin", "password"
	m := machine{VM: guest, bmc: w.fleet.Add(spec), name: d.Name}
	Expect(m.bmc.Err()).NotTo(HaveOccurred())
	w.vms = append(w.vms, guest)
	w.announce(ctx, m)
	return m
}

func (w *world) announce(ctx context.Context, m machine) {
	GinkgoHelper()
	secret := &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: m.name},
		Data: map[string][]byte{"username": []byte("admin"), "password": []byte("password")}}
	Expect(admin.Create(ctx, secret)).To(Succeed())
	b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: map[string]string{"machine": m.name}}}
	b.Spec.Access = &v1alpha1.InlineEndpoint{IP: m.bmc.Address()}
	b.Spec.BMCSecretRef.Name = m.name
	b.Spec.Protocol = v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish, Port: int32(w.bmcPort), Scheme: v1alpha1.ProtocolSchemeHTTP}
	Expect(admin.Create(ctx, b)).To(Succeed())
}

// retire switches a machine off for good, so that it takes no processor from the next spec: its BMC stays known.
func (w *world) retire(m machine) { m.bmc.PowerBehindBack(false) }

func getServer(ctx context.Context, name string) *v1alpha1.Server {
	GinkgoHelper()
	s := &v1alpha1.Server{}
	Expect(admin.Get(ctx, types.NamespacedName{Name: name}, s)).To(Succeed())
	return s
}

// state returns "state/power" of a machine's server, or what keeps it from being read.
func state(ctx context.Context, m machine) func() string {
	return func() string {
		s := &v1alpha1.Server{}
		if err := admin.Get(ctx, types.NamespacedName{Name: m.server()}, s); err != nil {
			return string(apierrors.ReasonForError(err))
		}
		return fmt.Sprintf("%s/%s", s.Status.State, s.Status.PowerState)
	}
}

// inventory is what the machine last reported; an empty one where it has not.
func inventory(ctx context.Context, m machine) *policyv1alpha1.ServerInventory {
	i := &policyv1alpha1.ServerInventory{}
	_ = admin.Get(ctx, types.NamespacedName{Name: m.Description().UUID}, i)
	return i
}

// wipeOf is the machine's last wipe: its state, and by the serial of each disk the state of that.
func wipeOf(ctx context.Context, m machine) (policyv1alpha1.WipeState, map[string]policyv1alpha1.DiskWipe) {
	i := inventory(ctx, m)
	if i.Wipe == nil {
		return "", nil
	}
	disks := map[string]policyv1alpha1.DiskWipe{}
	for _, disk := range i.Wipe.Disks {
		disks[disk.Serial] = disk
	}
	return i.Wipe.State, disks
}

// recordsOf are the records of the machine's wipes, the oldest first.
func recordsOf(ctx context.Context, m machine) []policyv1alpha1.SanitizationRecordSpec {
	GinkgoHelper()
	var list policyv1alpha1.SanitizationRecordList
	Expect(admin.List(ctx, &list)).To(Succeed())
	var records []policyv1alpha1.SanitizationRecordSpec
	for i := range list.Items {
		if list.Items[i].Spec.Machine.SystemUUID == m.Description().UUID {
			records = append(records, list.Items[i].Spec)
		}
	}
	slices.SortFunc(records, func(a, b policyv1alpha1.SanitizationRecordSpec) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return records
}

// claim binds the machine to a claim whose workload marks its disks.
func claim(ctx context.Context, name string, m machine) {
	GinkgoHelper()
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name}}
	c.Spec.Power = v1alpha1.PowerOn
	c.Spec.Image = images.Workload + ":1"
	c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"machine": m.name}}
	Expect(admin.Create(ctx, c)).To(Succeed())
	Eventually(claimCondition(ctx, name, "Ready")).Should(Equal("True/Running"))
	Eventually(m.Console).Should(ContainSubstring("workload: done"))
}

// release deletes a claim.
func release(ctx context.Context, name string) {
	GinkgoHelper()
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name}}
	Expect(admin.Delete(ctx, c)).To(Succeed())
	Eventually(claimCondition(ctx, name, "Bound")).Should(Equal("NotFound"))
}

func claimCondition(ctx context.Context, name, kind string) func() string {
	return func() string {
		c := &v1alpha1.ServerClaim{}
		if err := admin.Get(ctx, types.NamespacedName{Namespace: tenants, Name: name}, c); err != nil {
			return string(apierrors.ReasonForError(err))
		}
		if found := meta.FindStatusCondition(c.Status.Conditions, kind); found != nil {
			return string(found.Status) + "/" + found.Reason
		}
		return "none"
	}
}

// operate asks for an operation by annotation.
func operate(ctx context.Context, m machine, operation string) {
	GinkgoHelper()
	Eventually(func() error {
		s := getServer(ctx, m.server())
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, operation)
		return admin.Update(ctx, s)
	}).Should(Succeed())
}

// scan reads every byte of an image.
func scan(path string) (marked bool, firstUsed int64) {
	GinkgoHelper()
	marked, firstUsed, err := images.Scan(path)
	Expect(err).NotTo(HaveOccurred())
	return marked, firstUsed
}

// expectBlank finds that every byte of the images is zero.
func expectBlank(disks ...vm.Disk) {
	GinkgoHelper()
	for _, disk := range disks {
		marked, used := scan(disk.Path)
		Expect(marked).To(BeFalse(), "a tenant's marker is on disk %s", disk.Serial)
		Expect(used).To(BeEquivalentTo(-1), "disk %s holds something at that byte", disk.Serial)
	}
}

// expectMarked finds the workload's markers on each disk.
func expectMarked(disks ...vm.Disk) {
	GinkgoHelper()
	for _, disk := range disks {
		marked, _ := scan(disk.Path)
		Expect(marked).To(BeTrue(), "no marker is on disk %s", disk.Serial)
	}
}
