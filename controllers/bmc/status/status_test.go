// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/bmc/reset"
	"github.com/metalaw/metalaw/redfish"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func former(kind string, status metav1.ConditionStatus, reason string) v1alpha1.BMCStatus {
	return v1alpha1.BMCStatus{Conditions: []metav1.Condition{{Type: kind, Status: status, Reason: reason, Message: "as before",
		LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}}
}

func TestDecide(t *testing.T) {
	refused := &redfish.CertificateError{Shown: "AB"}
	usable := Answer{Settled: true, Usable: true, SilenceKnown: true}
	failing := Answer{Settled: true, Trouble: Trouble{Reason: "ConnectionFailed", Message: "no route"}}
	for name, c := range map[string]struct {
		in   Input
		want map[string]string // "True Reason" by condition
	}{
		"a BMC that was not asked keeps its status": {
			in:   Input{Former: former(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonConnected)},
			want: map[string]string{"Ready": "True Connected"}},
		"a usable BMC is ready": {
			in:   Input{Answer: usable, Systems: Systems{Accepted: true, Reason: v1alpha1.ReasonSystemsKnown}},
			want: map[string]string{"Ready": "True Connected", "SystemsAccepted": "True SystemsKnown"}},
		"a BMC that answers is not unreachable any more": {
			in:   Input{Answer: usable, Former: former(v1alpha1.ConditionUnreachable, metav1.ConditionTrue, "x"), Systems: Systems{Reason: "y"}},
			want: map[string]string{"Ready": "True Connected", "SystemsAccepted": "False y"}},
		"a silent BMC is unreachable": {
			in:   Input{Answer: Answer{Settled: true, Silent: true, SilenceKnown: true, Trouble: failing.Trouble}},
			want: map[string]string{"Ready": "False ConnectionFailed", "Unreachable": "True ConnectionFailed"}},
		"silence that is unknown changes nothing": {
			in:   Input{Answer: failing, Former: former(v1alpha1.ConditionUnreachable, metav1.ConditionTrue, "x")},
			want: map[string]string{"Ready": "False ConnectionFailed", "Unreachable": "True x"}},
		"the first certificate of a BMC is no change": {
			in:   Input{Answer: Answer{Settled: true, Refused: refused, Trouble: failing.Trouble}},
			want: map[string]string{"Ready": "False ConnectionFailed"}},
		"another certificate of a BMC with Servers is a change": {
			in:   Input{Answer: Answer{Settled: true, Refused: refused, PinnedOrOwned: true, Trouble: failing.Trouble}},
			want: map[string]string{"Ready": "False ConnectionFailed", "CertificateChanged": "True OtherCertificate"}},
		"a requested reset is under way": {
			in:   Input{Reset: Reset{RequestedAt: noon, Current: reset.Current{Wanted: true}}},
			want: map[string]string{"Reset": "True UserRequested"}},
		"a failed reset has ended": {
			in:   Input{Reset: Reset{Failed: "no"}},
			want: map[string]string{"Reset": "False ResetFailed"}},
		"a reset ends with an answer": {
			in: Input{Former: former(v1alpha1.ConditionReset, metav1.ConditionTrue, v1alpha1.ReasonUserRequested),
				Reset: Reset{Current: reset.Current{Reachable: true, ReadAt: noon, Known: true}}},
			want: map[string]string{"Reset": "False ResetComplete"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Now = noon
			before := *c.in.Former.DeepCopy()
			got := map[string]string{}
			for _, condition := range Decide(c.in).Conditions {
				got[condition.Type] = string(condition.Status) + " " + condition.Reason
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, c.in.Former); diff != "" {
				t.Error("the input changed:", diff)
			}
		})
	}
}

func TestAFailureWithoutNewsKeepsTheFormerMessage(t *testing.T) {
	in := Input{Now: noon, Former: former(v1alpha1.ConditionReady, metav1.ConditionFalse, "ConnectionFailed"),
		Answer: Answer{Settled: true, Trouble: Trouble{Reason: "ConnectionFailed", Message: "not asked again yet"}}}
	for news, want := range map[bool]string{false: "as before", true: "not asked again yet"} {
		in.Answer.Trouble.News = news
		c := meta.FindStatusCondition(Decide(in).Conditions, v1alpha1.ConditionReady)
		if c.Message != want || !c.LastTransitionTime.Time.Equal(noon.Add(-time.Hour)) {
			t.Errorf("news %t: %q since %s", news, c.Message, c.LastTransitionTime)
		}
	}
}
