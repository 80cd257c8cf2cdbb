// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestReleaseRecords(t *testing.T) {
	for name, c := range map[string]struct {
		holder, record string
		erases, ends   bool
	}{
		"a record that names the holder":    {"u", "u", true, true},
		"no record":                         {"u", "", false, false},
		"a record of another holder":        {"u", "v", false, false},
		"a record where nobody is recorded": {"", "u", false, true},
		"neither":                           {"", "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				v1alpha1.ClaimUIDAnnotation: c.holder, v1alpha1.ReleasedClaimAnnotation: c.record}}}
			if got := v1alpha1.ReleaseRecorded(s); got != c.erases {
				t.Errorf("ReleaseRecorded: got %v", got)
			}
			if got := v1alpha1.BindingEnded(s); got != c.ends {
				t.Errorf("BindingEnded: got %v", got)
			}
		})
	}
	if v1alpha1.ReleaseRecorded(&v1alpha1.Server{}) {
		t.Error("a server without annotations has a record")
	}
}
