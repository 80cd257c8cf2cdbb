// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"

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

// tenants is the namespace in which specs claim.
const tenants = "default"

func getServer(ctx context.Context, name string) *v1alpha1.Server {
	GinkgoHelper()
	s := &v1alpha1.Server{}
	Expect(admin.Get(ctx, types.NamespacedName{Name: name}, s)).To(Succeed())
	return s
}

// state returns "state/power" of a server, or what keeps it from being read.
func state(ctx context.Context, name string) func() string {
	return func() string {
		s := &v1alpha1.Server{}
		if err := admin.Get(ctx, types.NamespacedName{Name: name}, s); err != nil {
			return string(apierrors.ReasonForError(err))
		}
		return fmt.Sprintf("%s/%s", s.Status.State, s.Status.PowerState)
	}
}

// changeServer changes a server as its administrator would, again and again until nobody else writes in between.
func changeServer(ctx context.Context, name string, change func(*v1alpha1.Server)) {
	GinkgoHelper()
	Eventually(func() error {
		s := &v1alpha1.Server{}
		if err := admin.Get(ctx, types.NamespacedName{Name: name}, s); err != nil {
			return err
		}
		change(s)
		return admin.Update(ctx, s)
	}).Should(Succeed())
}

// operate asks for an operation by annotation.
func operate(ctx context.Context, server, operation string) {
	GinkgoHelper()
	changeServer(ctx, server, func(s *v1alpha1.Server) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, operation)
	})
}

// serverCondition returns "status/reason" of a condition of a server, or none.
func serverCondition(ctx context.Context, name, kind string) func() string {
	return func() string {
		s := &v1alpha1.Server{}
		if err := admin.Get(ctx, types.NamespacedName{Name: name}, s); err != nil {
			return string(apierrors.ReasonForError(err))
		}
		return conditionText(s.Status.Conditions, kind)
	}
}

func conditionText(all []metav1.Condition, kind string) string {
	c := meta.FindStatusCondition(all, kind)
	if c == nil {
		return "none"
	}
	return string(c.Status) + "/" + c.Reason
}

// newClaim is a claim that the machine alone can serve, by its label.
func newClaim(name string, m *emulator.Machine, change ...func(*v1alpha1.ServerClaim)) *v1alpha1.ServerClaim {
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name}}
	c.Spec.Power = v1alpha1.PowerOn
	c.Spec.Image = "os:1"
	c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"machine": m.Name()}}
	for _, f := range change {
		f(c)
	}
	return c
}

func create[T client.Object](ctx context.Context, object T) T {
	GinkgoHelper()
	Expect(admin.Create(ctx, object)).To(Succeed())
	return object
}

func getClaim(ctx context.Context, name string) *v1alpha1.ServerClaim {
	GinkgoHelper()
	c := &v1alpha1.ServerClaim{}
	Expect(admin.Get(ctx, types.NamespacedName{Namespace: tenants, Name: name}, c)).To(Succeed())
	return c
}

func changeClaim(ctx context.Context, name string, change func(*v1alpha1.ServerClaim)) {
	GinkgoHelper()
	Eventually(func() error {
		c := &v1alpha1.ServerClaim{}
		if err := admin.Get(ctx, types.NamespacedName{Namespace: tenants, Name: name}, c); err != nil {
			return err
		}
		change(c)
		return admin.Update(ctx, c)
	}).Should(Succeed())
}

func claimCondition(ctx context.Context, name, kind string) func() string {
	return func() string {
		c := &v1alpha1.ServerClaim{}
		if err := admin.Get(ctx, types.NamespacedName{Namespace: tenants, Name: name}, c); err != nil {
			return string(apierrors.ReasonForError(err))
		}
		return conditionText(c.Status.Conditions, kind)
	}
}

// deleteClaim deletes a claim and waits until it is gone.
func deleteClaim(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(admin.Delete(ctx, getClaim(ctx, name))).To(Succeed())
	Eventually(claimCondition(ctx, name, "Bound")).Should(Equal("NotFound"))
}

func getBoot(ctx context.Context, namespace, name string) *v1alpha1.ServerBootConfiguration {
	GinkgoHelper()
	b := &v1alpha1.ServerBootConfiguration{}
	Expect(admin.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, b)).To(Succeed())
	return b
}

// running returns what a machine booted last: "Pxe", "Hdd" or nothing while it is off.
func running(m *emulator.Machine) func() string {
	return func() string {
		boot, on := m.Running()
		if !on {
			return "off"
		}
		return boot.Target
	}
}

// eventReasons lists the reasons of the events about an object.
func eventReasons(ctx context.Context, name string) func() []string {
	return func() []string {
		var list corev1.EventList
		if err := admin.List(ctx, &list); err != nil {
			return []string{err.Error()}
		}
		var reasons []string
		for i := range list.Items {
			if list.Items[i].InvolvedObject.Name == name {
				reasons = append(reasons, list.Items[i].Reason)
			}
		}
		return reasons
	}
}
