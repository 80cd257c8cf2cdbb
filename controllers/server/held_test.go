// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

func TestAServerThatIsLeftAloneIsNotSwitchedOnAndKeepsItsAnnotation(t *testing.T) {
	for name, annotation := range map[string][2]string{
		"by a word of this release":       {v1alpha1.OperationAnnotation, "ignore"},
		"by a word of a release to come":  {v1alpha1.OperationAnnotation, "ignore-for-audit"},
		"by what another release left":    {v1alpha1.OperationAnnotation, "ignore-reconciliation-propagated"},
		"because its BMC asks for that":   {v1alpha1.HeldByBMCAnnotation, "b1"},
		"by a word that is for BMCs only": {v1alpha1.OperationAnnotation, "ignore-child"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				w := inWorld(t, m, reserved(v1alpha1.PowerOn, func(s *v1alpha1.Server) { s.Annotations[annotation[0]] = annotation[1] })...)
				w.manager.run(10 * time.Minute)
				m.wants(t, "while the server is left alone")
				if got := w.server().Annotations[annotation[0]]; got != annotation[1] {
					t.Errorf("the annotation is %q", got)
				}
				serverBecomes(func(s *v1alpha1.Server) { delete(s.Annotations, annotation[0]) })(w)
				w.manager.run(10 * time.Minute)
				if got := strings.Join(m.asked(), ","); !strings.Contains(got, "On") {
					t.Errorf("afterwards the BMC was asked for %q", got)
				}
			})
		})
	}
}

func TestABootConfigurationThatIsLeftAloneDoesNotFollowItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := inWorld(t, m, reserved(v1alpha1.PowerOff)...)
		boot := &v1alpha1.ServerBootConfiguration{}
		edit(w, "web", boot, func(b *v1alpha1.ServerBootConfiguration) {
			metav1.SetMetaDataAnnotation(&b.ObjectMeta, v1alpha1.OperationAnnotation, "ignore-for-audit")
		})
		edit(w, "web", &v1alpha1.ServerClaim{}, func(c *v1alpha1.ServerClaim) { c.Spec.Power, c.Spec.Image = v1alpha1.PowerOn, "os2" })
		w.manager.run(10 * time.Minute)
		m.wants(t, "while what boots is not what the claim asks for")
		if err := w.api.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, boot); err != nil {
			t.Fatal(err)
		}
		if boot.Spec.Image != "os" || boot.Annotations[v1alpha1.OperationAnnotation] != "ignore-for-audit" {
			t.Errorf("the boot configuration has image %q, annotations %v", boot.Spec.Image, boot.Annotations)
		}
		const says = "the annotation metal.ironcore.dev/operation=ignore-for-audit to be removed from the boot configuration shop/web, " +
			"which differs from what the claim asks for and is left alone"
		if c := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Status != "False" ||
			!strings.Contains(c.Message, says) {
			t.Errorf("Ready is %+v", c)
		}
		edit(w, "web", boot, func(b *v1alpha1.ServerBootConfiguration) { b.Annotations = nil })
		w.manager.run(time.Minute)
		if err := w.api.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, boot); err != nil {
			t.Fatal(err)
		}
		if boot.Spec.Image != "os2" {
			t.Errorf("afterwards it has image %q", boot.Spec.Image)
		}
	})
}
