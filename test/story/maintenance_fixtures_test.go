// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"slices"
	"strings"

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
	"github.com/metalaw/metalaw/test/guest"
)

// What a maintenance is answered, as "state Granted/reason".
const (
	inMaintenance    = "InMaintenance True/" + v1alpha1.ReasonMaintenanceGranted
	waitsForApproval = "Pending False/" + v1alpha1.ReasonWaitsForApproval
	serverHeld       = "Pending False/" + v1alpha1.ReasonServerHeld
)

// tools is an image for maintenance, which leaves the disks as they are.
const tools = guest.Live + "tools:1"

// repair is a maintenance of a machine that the administrator made. Admission, which writes that on the object, has specs of its own.
func repair(name string, m *emulator.Machine, change ...func(*v1alpha1.ServerMaintenance)) *v1alpha1.ServerMaintenance {
	sm := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name, Annotations: map[string]string{
		v1alpha1.MakerAnnotation: `{"username":"admin","groups":["system:masters","system:authenticated"]}`}}}
	sm.Spec.ServerRef.Name = serverOf(m)
	for _, f := range change {
		f(sm)
	}
	return sm
}

func enforced(m *v1alpha1.ServerMaintenance) {
	m.Spec.Policy = v1alpha1.ServerMaintenancePolicyEnforced
}

func priority(n int32) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) { m.Spec.Priority = n }
}

func power(p v1alpha1.Power) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) { m.Spec.ServerPower = p }
}

// booting has a boot template, and the machine on.
func booting(image, secret string) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) {
		t := &v1alpha1.ServerBootConfigurationTemplate{Name: "template"}
		t.Spec.ServerRef.Name, t.Spec.Image = m.Spec.ServerRef.Name, image
		if secret != "" {
			t.Spec.IgnitionSecretRef = &corev1.LocalObjectReference{Name: secret}
		}
		m.Spec.ServerBootConfigurationTemplate, m.Spec.ServerPower = t, v1alpha1.PowerOn
	}
}

// changeMaintenance changes one as its maker does.
func changeMaintenance(ctx context.Context, m *v1alpha1.ServerMaintenance, change func(*v1alpha1.ServerMaintenance)) {
	GinkgoHelper()
	Eventually(func() error {
		now := &v1alpha1.ServerMaintenance{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(m), now); err != nil {
			return err
		}
		change(now)
		return admin.Update(ctx, now)
	}).Should(Succeed())
}

// finish ends a maintenance, which is that its maker deletes it, and waits until it is gone.
func finish(ctx context.Context, all ...*v1alpha1.ServerMaintenance) {
	GinkgoHelper()
	for _, m := range all {
		Expect(admin.Delete(ctx, m)).To(Succeed())
	}
	for _, m := range all {
		Eventually(answered(ctx, m)).Should(Equal("gone"))
	}
}

// holder is the maintenance that a server names; empty where it names none.
func holder(ctx context.Context, server string) func() string {
	return func() string {
		if ref := getServer(ctx, server).Spec.ServerMaintenanceRef; ref != nil {
			return ref.Name
		}
		return ""
	}
}

// approvals are the keys by which the holder of a claim has approved.
var approvals = []string{v1alpha1.MaintenanceApprovedLabel, v1alpha1.MaintenanceApprovalLabel}

// asked lists what a claim bears of the talk about maintenance: "needed" and "approved" as labels, the same in brackets as annotations.
func asked(ctx context.Context, claim string) func() []string {
	return func() []string {
		c := getClaim(ctx, claim)
		var all []string
		for i, bears := range []map[string]string{c.Labels, c.Annotations} {
			for _, key := range append([]string{v1alpha1.MaintenanceNeededLabel}, approvals...) {
				if _, there := bears[key]; there {
					all = append(all, []string{"", "("}[i]+strings.TrimPrefix(key, "metal.ironcore.dev/maintenance-")+[]string{"", ")"}[i])
				}
			}
		}
		slices.Sort(all)
		return all
	}
}

// approve has the holder of a claim agree, which it says by the presence of a label.
func approve(ctx context.Context, claim string) {
	GinkgoHelper()
	changeClaim(ctx, claim, func(c *v1alpha1.ServerClaim) {
		metav1.SetMetaDataLabel(&c.ObjectMeta, v1alpha1.MaintenanceApprovedLabel, "by-its-holder")
	})
}

// withdraw takes the approval back.
func withdraw(ctx context.Context, claim string) {
	GinkgoHelper()
	changeClaim(ctx, claim, func(c *v1alpha1.ServerClaim) { delete(c.Labels, v1alpha1.MaintenanceApprovedLabel) })
}

// traces lists what is left of maintenances at a server, the boot configuration of that name, and, where there is one, a claim.
func traces(ctx context.Context, server, sm, claim string) func() []string {
	return func() []string {
		s := getServer(ctx, server)
		var left []string
		for key := range s.Annotations {
			if key == v1alpha1.MaintenanceUIDAnnotation || key == v1alpha1.MaintenanceClaimAnnotation {
				left = append(left, key)
			}
		}
		if s.Spec.ServerMaintenanceRef != nil || s.Spec.MaintenanceBootConfigurationRef != nil {
			left = append(left, "a reference of the server")
		}
		key := types.NamespacedName{Namespace: tenants, Name: sm}
		for _, o := range []client.Object{&v1alpha1.ServerMaintenance{}, &v1alpha1.ServerBootConfiguration{}} {
			if err := admin.Get(ctx, key, o); !apierrors.IsNotFound(err) {
				left = append(left, key.String())
			}
		}
		if claim != "" {
			left = append(left, asked(ctx, claim)()...)
		}
		return left
	}
}

// entries counts how often a server came into Maintenance.
func entries(ctx context.Context, server string) int {
	n := 0
	for _, move := range getServer(ctx, server).Status.Lifecycle.History {
		if move.To == v1alpha1.StateMaintenance {
			n++
		}
	}
	return n
}

// answered is the state of a maintenance and its condition Granted, or that it is gone.
func answered(ctx context.Context, m *v1alpha1.ServerMaintenance) func() string {
	return func() string {
		now := &v1alpha1.ServerMaintenance{}
		err := admin.Get(ctx, client.ObjectKeyFromObject(m), now)
		if apierrors.IsNotFound(err) {
			return "gone"
		}
		Expect(err).NotTo(HaveOccurred())
		granted := "none"
		if c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionGranted); c != nil {
			granted = string(c.Status) + "/" + c.Reason
		}
		return string(now.Status.State) + " " + granted
	}
}
