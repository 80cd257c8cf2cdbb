// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// slow is a guest that does not come up while it is held.
type slow struct {
	emulator.Guest
	held *atomic.Bool
}

// PoweredOn implements emulator.Guest.
func (s slow) PoweredOn(ctx context.Context, m *emulator.Machine, boot emulator.BootSelection) {
	for s.held.Load() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	s.Guest.PoweredOn(ctx, m, boot)
}

// unmanaged adds a machine that shows the UUID of another one, and of which the operator is not told.
func unmanaged(of *emulator.Machine, change func(*emulator.MachineSpec)) *emulator.Machine {
	GinkgoHelper()
	spec := emulator.MachineSpec{Name: fmt.Sprintf("m%03d-twin", theWorld.machines.Add(1)), Username: "admin", Password: "password",
		Identity: emulator.Identity{UUID: of.Identity().UUID}, Drives: []emulator.DriveSpec{{Name: "sda", Contents: "of somebody else"}}}
	if change != nil {
		change(&spec)
	}
	twin := theWorld.fleet.Add(spec)
	Expect(twin.Err()).NotTo(HaveOccurred())
	return twin
}

var _ = Describe("Two machines of one UUID", func() {
	for what, equalSerial := range map[string]bool{"and another serial number": false, "and an equal serial number": true} {
		It("of which an unmanaged one boots during the wipe of the other, "+what+": it keeps its data", func(ctx SpecContext) {
			held := &atomic.Bool{}
			m := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Guest = slow{theWorld.guests, held} })
			name := serverOf(m)
			Eventually(state(ctx, name)).Should(Equal("Available/Off"))
			claim := fmt.Sprintf("beside-unmanaged-%t", equalSerial)
			create(ctx, newClaim(claim, m))
			Eventually(claimCondition(ctx, claim, "Ready")).Should(Equal("True/Running"))
			twin := unmanaged(m, func(s *emulator.MachineSpec) {
				if equalSerial {
					s.Identity.SerialNumber = m.Identity().SerialNumber
				}
			})
			held.Store(true)
			deleteClaim(ctx, claim)
			Eventually(state(ctx, name)).Should(Equal("Cleanup/On"))
			twin.SetOverride("Once", "Pxe")
			twin.PowerBehindBack(true)
			Eventually(running(twin)).Should(Equal("Pxe"))
			if !equalSerial {
				Eventually(serverCondition(ctx, name, v1alpha1.ConditionIdentityUnproven)).Should(Equal("True/MachineContradicts"))
			}
			Consistently(theWorld.begunToErase(twin, "sda")).WithTimeout(3 * time.Second).Should(BeFalse())
			twin.PowerBehindBack(false)
			held.Store(false)
			if !equalSerial {
				Eventually(state(ctx, name)).Should(Equal("Available/Off"))
				Expect(serverCondition(ctx, name, v1alpha1.ConditionIdentityUnproven)()).To(Equal("none"))
				Expect(m.Drives()[0].Erased()).To(BeTrue())
			}
			Expect(twin.Drives()[0].Contents()).To(Equal("of somebody else"))
		})
	}

	It("behind two BMCs: a machine that its own BMC proves goes on", func(ctx SpecContext) {
		m := claimed(ctx, "beside-a-liar")
		liar := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Identity = m.Identity() })
		Eventually(bmcCondition(ctx, liar.Name(), v1alpha1.ConditionSystemsAccepted)).Should(Equal("False/SystemConflict"))
		deleteClaim(ctx, "beside-a-liar")
		Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
		Expect(liar.Boots()).To(BeZero())
	})

	It("behind two BMCs: no agent is booted for one that nothing proves, also after retry, until a person answers for it", func(ctx SpecContext) {
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Profile = emulator.ProfileGB200 })
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		twin := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Identity.UUID = m.Identity().UUID })
		Eventually(bmcCondition(ctx, twin.Name(), v1alpha1.ConditionSystemsAccepted)).Should(Equal("False/SystemConflict"))
		create(ctx, newClaim("beside-a-rival", m))
		Eventually(claimCondition(ctx, "beside-a-rival", "Ready")).Should(Equal("True/Running"))
		boots := m.Boots()
		deleteClaim(ctx, "beside-a-rival")
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionIdentityUnproven)).Should(Equal("True/RivalBMC"))
		Eventually(state(ctx, name)).Should(Equal("Cleanup/Off"))
		operate(ctx, name, v1alpha1.OperationRetry)
		Consistently(m.Boots).WithTimeout(3 * time.Second).Should(Equal(boots))
		operateFor(ctx, name, v1alpha1.OperationProve, "rack label", v1alpha1.OperationByAnnotation, "admin")
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Expect(m.Drives()[0].Erased()).To(BeTrue())
		Expect(twin.Boots()).To(BeZero())
	})
})
