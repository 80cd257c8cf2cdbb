// SPDX-License-Identifier: Apache-2.0

package restored

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/restored"
	"github.com/metalaw/metalaw/redfish/emulator"
)

const tenants = "default"

func serverOf(m *emulator.Machine) string { return m.Name() + "-system-0" }

func getServer(ctx context.Context, m *emulator.Machine) *v1alpha1.Server {
	GinkgoHelper()
	s := &v1alpha1.Server{}
	Expect(admin.Get(ctx, types.NamespacedName{Name: serverOf(m)}, s)).To(Succeed())
	return s
}

// state returns "state/power" of a machine's server.
func state(ctx context.Context, m *emulator.Machine) func() string {
	return func() string {
		s := &v1alpha1.Server{}
		if err := admin.Get(ctx, types.NamespacedName{Name: serverOf(m)}, s); err != nil {
			return string(apierrors.ReasonForError(err))
		}
		return fmt.Sprintf("%s/%s", s.Status.State, s.Status.PowerState)
	}
}

// doubt is the reason of the condition RestoredDoubt of a machine's server; none where it has none.
func doubt(ctx context.Context, m *emulator.Machine) func() string {
	return func() string {
		s := &v1alpha1.Server{}
		if err := admin.Get(ctx, types.NamespacedName{Name: serverOf(m)}, s); err != nil {
			return string(apierrors.ReasonForError(err))
		}
		if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionRestoredDoubt); c != nil {
			return c.Reason
		}
		return "none"
	}
}

func create[T client.Object](ctx context.Context, object T) T {
	GinkgoHelper()
	Expect(admin.Create(ctx, object)).To(Succeed())
	return object
}

// claim claims a machine.
func claim(ctx context.Context, name string, m *emulator.Machine) {
	GinkgoHelper()
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name}}
	c.Spec.Power, c.Spec.Image = v1alpha1.PowerOn, "os:1"
	c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"machine": m.Name()}}
	create(ctx, c)
}

// tenant claims a machine, and returns what its workload wrote on the disk.
func tenant(ctx context.Context, name string, m *emulator.Machine) string {
	GinkgoHelper()
	claim(ctx, name, m)
	Eventually(claimed(ctx, name)).Should(Equal("True/Running"))
	Eventually(m.Drives()[0].Contents).ShouldNot(BeEmpty())
	data := fmt.Sprintf("the data of %s", name)
	m.Drives()[0].Write(data)
	return m.Drives()[0].Contents()
}

// claimed returns "status/reason" of a claim's condition Ready.
func claimed(ctx context.Context, name string) func() string {
	return func() string {
		c := &v1alpha1.ServerClaim{}
		if err := admin.Get(ctx, types.NamespacedName{Namespace: tenants, Name: name}, c); err != nil {
			return string(apierrors.ReasonForError(err))
		}
		ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil {
			return "none"
		}
		return string(ready.Status) + "/" + ready.Reason
	}
}

func deleteClaim(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(admin.Delete(ctx, &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name}})).To(Succeed())
}

// freezes sets the freezes of the fleet: one of each level.
func freezes(ctx context.Context, levels ...policyv1alpha1.FreezeLevel) {
	GinkgoHelper()
	Eventually(func() error {
		control := &policyv1alpha1.FleetControl{}
		err := admin.Get(ctx, types.NamespacedName{Name: policyv1alpha1.FleetControlName}, control)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		control.Name, control.Spec.Freezes = policyv1alpha1.FleetControlName, nil
		for _, level := range levels {
			control.Spec.Freezes = append(control.Spec.Freezes, policyv1alpha1.Freeze{Name: fmt.Sprintf("spec-%d", len(control.Spec.Freezes)),
				Level: level, Reason: "a spec"})
		}
		if err != nil {
			return admin.Create(ctx, control)
		}
		return admin.Update(ctx, control)
	}).Should(Succeed())
}

// mark writes the annotation as metalaw restored does.
func mark(ctx context.Context, value string, machines ...*emulator.Machine) {
	GinkgoHelper()
	for _, m := range machines {
		s := getServer(ctx, m)
		before := s.DeepCopy()
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.RestoredDoubtAnnotation, value)
		Expect(admin.Patch(ctx, s, client.MergeFrom(before))).To(Succeed())
	}
}

// restore walks the procedure: it stops the manager, restores etcd, freezes, starts the manager, puts the servers in doubt, and
// lifts the freeze, by which alone no doubt ends.
func restore(ctx context.Context, snapshot string, machines ...*emulator.Machine) {
	GinkgoHelper()
	theWorld.stopManager()
	theWorld.stopBoots()
	Expect(controlPlane.RestoreEtcd(ctx, snapshot)).To(Succeed())
	freezes(ctx, policyv1alpha1.FreezeAll)
	theWorld.startBootProvider(ctx)
	theWorld.startManager(ctx)
	mark(ctx, restored.Doubted, machines...)
	for _, m := range machines {
		Eventually(doubt(ctx, m)).Should(Equal(v1alpha1.ReasonNotCompared))
		Eventually(func() *policyv1alpha1.RestoredDoubt {
			inventory := &policyv1alpha1.ServerInventory{}
			if admin.Get(ctx, types.NamespacedName{Name: getServer(ctx, m).Spec.SystemUUID}, inventory) != nil {
				return nil
			}
			return restored.On(inventory)
		}).ShouldNot(BeNil())
	}
	freezes(ctx)
}
