// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// touched lists what a BMC was asked to change since a mark, sessions left out.
func touched(m *emulator.Machine, since int) func() []string {
	return func() []string {
		var all []string
		for _, w := range theWorld.fleet.Writes(emulator.Filter{Machine: m.Name(), Since: since}) {
			if !strings.Contains(w.Path, "/Sessions") {
				all = append(all, w.Method+" "+w.Path+" "+w.Body)
			}
		}
		return all
	}
}

// claimed is a machine that a claim runs on.
func claimed(ctx context.Context, claim string, change ...func(*v1alpha1.ServerClaim)) *emulator.Machine {
	GinkgoHelper()
	m := theWorld.available(ctx)
	create(ctx, newClaim(claim, m, change...))
	Eventually(claimCondition(ctx, claim, "Ready")).Should(Equal("True/Running"))
	return m
}

// vanish takes a claim away without the release that its finalizer would have recorded.
func vanish(ctx context.Context, name string) {
	GinkgoHelper()
	theWorld.stopManager() // a running manager would record the release, which is its duty
	changeClaim(ctx, name, func(c *v1alpha1.ServerClaim) { c.Finalizers = nil })
	Expect(admin.Delete(ctx, getClaim(ctx, name))).To(Succeed())
	theWorld.startManager(ctx)
}

func wipeState(ctx context.Context, server string) policyv1alpha1.WipeState {
	GinkgoHelper()
	inventory := &policyv1alpha1.ServerInventory{}
	Expect(admin.Get(ctx, types.NamespacedName{Name: getServer(ctx, server).Spec.SystemUUID}, inventory)).To(Succeed())
	if inventory.Wipe == nil {
		return ""
	}
	return inventory.Wipe.State
}
