// SPDX-License-Identifier: Apache-2.0

package media

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator/vm"
)

// The real firmware boots the real image from the ISO that the boot service composes, and the agent finds its configuration on it.
func TestAVirtualMachineBootsFromItsISO(t *testing.T) {
	images := os.Getenv("METALAW_VM_IMAGES")
	if images == "" {
		t.Skip("METALAW_VM_IMAGES names no folder of boot images; make test-vm sets it")
	}
	uki, err := os.ReadFile(filepath.Join(images, "amd64", "probe.efi"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, uki, func(w *world) { w.registryHost, w.anySource = vm.GuestHost, true })
	g, ctx := NewWithT(t), t.Context()
	dir, err := os.MkdirTemp("", "metalaw-media-") //nolint:usetesting // sockets need a short path
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	backend, err := vm.New(vm.Options{ProviderURL: "http://127.0.0.1:1", // no machine asks it
		Directory: dir, Accelerator: os.Getenv("VM_ACCELERATOR"), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	g.Expect(err).NotTo(HaveOccurred())
	disk := vm.Disk{Bus: vm.NVMe, Serial: "ISO-NVME", SizeBytes: 16 << 20, Path: filepath.Join(dir, "nvme.img")}
	g.Expect(vm.CreateDisk(disk.Path, disk.SizeBytes)).To(Succeed())
	spec, guest := backend.Machine(vm.Description{
		Name: "iso", UUID: "4c4c4544-0042-4a10-8051-00000000150a", SerialNumber: "ISO0001", Manufacturer: "Metalaw", Model: "Virtual R1",
		MemoryMiB: 512, Disks: []vm.Disk{disk}, NICs: []vm.NIC{{MACAddress: "52:54:00:00:15:0a"}},
	})
	spec.Username, spec.Password = "admin", "password"
	m := w.fleet.Add(spec)
	g.Expect(m.Err()).NotTo(HaveOccurred())
	w.announce(t, g, m)
	const limit = 4 * time.Minute // ten times what an idle machine takes
	g.Eventually(w.server(ctx, "iso-system-0"), limit, "200ms").Should(Equal("Available/Off"), guest.Console)
	g.Expect(guest.Console()).To(ContainSubstring("medium"), "the agent says where its configuration comes from")
	g.Eventually(m.Media, time.Minute).Should(BeEmpty(), "the image is ejected")
	inventory := &policyv1alpha1.ServerInventory{}
	g.Expect(w.admin.Get(ctx, types.NamespacedName{Name: "4c4c4544-0042-4a10-8051-00000000150a"}, inventory)).To(Succeed())
	g.Expect(inventory.Report.Data.Storage).To(ContainElement(
		And(HaveField("Serial", "ISO-NVME"), HaveField("Content", policyv1alpha1.ContentBlank))))
}
