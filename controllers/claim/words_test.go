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

func TestWhatKeepsAServerFromBeingReservedIsSaid(t *testing.T) {
	condition := func(kind, status, reason string) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason})
		}
	}
	power := func(p v1alpha1.PowerState) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) { s.Status.PowerState = p }
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.Server)
		want   string
	}{
		"nothing":                     {func(*v1alpha1.Server) {}, ""},
		"a policy that is halted":     {condition("PolicyHalted", "True", "GuardError"), "nothing is done for it while its condition is PolicyHalted (GuardError)"},
		"a BMC that refuses its user": {condition("BMCReachable", "False", "AuthenticationFailed"), "its BMC cannot be used (AuthenticationFailed)"},
		"a BMC of which nobody knows": {condition("BMCReachable", "Unknown", "NotTried"), ""},
		"a power that nobody knows":   {power(""), "its BMC does not say whether it is on"},
		"a machine that is on":        {power("On"), "its BMC says On, and it has to be Off first"},
		"a refused boot":              {func(s *v1alpha1.Server) { s.Status.State = "Reserved"; isRefused(s) }, "The API server refuses it. Its words: exceeded quota"},
		"a server that moved on":      {func(s *v1alpha1.Server) { s.Status.State, s.Status.PowerState = "Reserved", "On" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{Status: v1alpha1.ServerStatus{State: v1alpha1.StateAvailable, PowerState: v1alpha1.PowerStateOff}}
			c.change(s)
			if got := Obstacle(s); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
