// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"crypto/sha256"
	"math/rand/v2"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator/vm"
	"github.com/metalaw/metalaw/test/vm/images"
)

var _ = Describe("A disk of another machine", func() {
	It("stays as it is, byte for byte, and makes the wipe fail", func(ctx SpecContext) {
		theWorld.restartWith(ctx, images.Probe, images.ProbeRemote)
		local := theWorld.disk("FOREIGN-LOCAL", vm.NVMe, 16*mebibyte)
		// The wipe's boot shows it to itself over NVMe/TCP, and keeps anybody from opening it directly.
		backing := theWorld.disk("FOREIGN-BACKING", vm.Virtio, 16*mebibyte)
		m := theWorld.machine(ctx, []vm.Disk{local, backing})
		Eventually(state(ctx, m)).Should(Equal("Available/Off"))
		fill(backing)
		claim(ctx, "foreign", m)
		expectMarked(local, backing)
		before := sum(backing)
		release(ctx, "foreign")
		Eventually(func() policyv1alpha1.WipeState { done, _ := wipeOf(ctx, m); return done }).WithTimeout(wiped).
			Should(Equal(policyv1alpha1.WipeFailed))
		Eventually(state(ctx, m)).WithTimeout(soon).Should(Equal("Error/Off"))
		Expect(m.Console()).To(ContainSubstring("a remote disk is connected"))

		_, each := wipeOf(ctx, m)
		Expect(each["FOREIGN-LOCAL"].State).To(Equal(policyv1alpha1.DiskVerified))
		expectBlank(local)
		Expect(each["REMOTE"]).To(And(HaveField("State", policyv1alpha1.DiskFailed), HaveField("Transport", "nvme/tcp")))
		Expect(sum(backing)).To(Equal(before))
		theWorld.retire(m)
	}, NodeTimeout(2*wiped))
})

// fill writes something to a disk of a machine that is off.
func fill(disk vm.Disk) {
	GinkgoHelper()
	content := make([]byte, disk.SizeBytes)
	_, err := rand.NewChaCha8([32]byte{}).Read(content)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(disk.Path, content, 0o600)).To(Succeed())
}

func sum(disk vm.Disk) [32]byte {
	GinkgoHelper()
	content, err := os.ReadFile(disk.Path)
	Expect(err).NotTo(HaveOccurred())
	return sha256.Sum256(content)
}
