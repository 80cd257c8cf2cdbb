// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestABootErrorQuotesItsCause(t *testing.T) {
	condition := func(kind, status, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Message: message}
	}
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"nothing is said": {nil, "the boot service reports an error; see the conditions of the ServerBootConfiguration of the same name"},
		"what failed is quoted, and what is well is not": {
			[]metav1.Condition{condition("ImageValidation", "True", "found"), condition("IgnitionDataFetched", "False", "Secret \"ign\" not found")},
			"the boot service reports an error in the ServerBootConfiguration of the same name: IgnitionDataFetched: Secret \"ign\" not found"},
		"what the machine says of its own boot is another matter": {[]metav1.Condition{condition("BootStateReceived", "False", "no")},
			"the boot service reports an error; see the conditions of the ServerBootConfiguration of the same name"},
	} {
		t.Run(name, func(t *testing.T) {
			f := bound()
			f.boot.Status.State, f.boot.Status.Conditions = v1alpha1.ServerBootConfigurationStateError, c.conditions
			if s := judge(f); s.reason != v1alpha1.ReasonBootError || s.message != c.want {
				t.Errorf("%s: %s\nwant %s", s.reason, s.message, c.want)
			}
		})
	}
}

func TestWhatIsHeldBackSaysByWhatAndUntilWhen(t *testing.T) {
	for reason, want := range map[string]string{
		"Frozen":          "that is held back by a freeze, until those who run the fleet lift it or it runs out (Frozen)",
		"BudgetExhausted": "that is held back by a budget, until another machine is done (BudgetExhausted)",
		"Else":            "that is held back at present (Else)",
	} {
		s := &v1alpha1.Server{}
		s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWithheld, Status: metav1.ConditionTrue, Reason: reason}}
		if got := hindrance(s); got != want {
			t.Errorf("%s: %s", reason, got)
		}
	}
}
