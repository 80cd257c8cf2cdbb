// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestTheRecordOfTheSwitchOverIsTheManagers(t *testing.T) {
	record := func(name string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: name}, Data: map[string]string{"maintenance": "2001-01-01T00:00:00Z"}}
	}
	kept := record("metalaw-consent")
	for name, c := range map[string]struct {
		who           string
		op            admissionv1.Operation
		before, after client.Object
		group         string
		refused       bool
	}{
		"a user creates it":                {who: user, op: admissionv1.Create, after: kept, refused: true},
		"a user changes it":                {who: user, op: admissionv1.Update, before: kept, after: kept, refused: true},
		"a user deletes it":                {who: user, op: admissionv1.Delete, before: kept, refused: true},
		"the manager writes it":            {who: manager, op: admissionv1.Create, after: kept},
		"a user who may restore brings it": {who: user, op: admissionv1.Create, after: kept, group: "restorers"},
		"a user writes another ConfigMap":  {who: user, op: admissionv1.Create, after: record("other")},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := newWorld(t, defaults(t)).ask(PathValidateConsent, c.who, c.op, c.before, c.after, of(c.group))
			if refused := strings.Contains(got, `user "jane" lacks the verb restore on fleetcontrols.policy.metalaw.dev`); refused != c.refused || !refused && got != "" {
				t.Error(got)
			}
		})
	}
}
