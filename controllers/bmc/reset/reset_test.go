// SPDX-License-Identifier: Apache-2.0

package reset

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func underWay(reason string) *metav1.Condition {
	return &metav1.Condition{Type: v1alpha1.ConditionReset, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(noon)}
}

func TestDecide(t *testing.T) {
	asked := underWay(v1alpha1.ReasonUserRequested)
	notAsked := func(err error) error { return &redfish.NotAskedError{What: "the restart", Err: err} }
	for name, c := range map[string]struct {
		in     Input
		next   Next
		reason string
		failed string
	}{
		"a BMC that was read is asked":                    {in: Input{Read: true}, next: Ask},
		"a BMC that was not read waits":                   {in: Input{}, next: Hold, reason: "NotRead"},
		"a BMC that cannot be asked waits":                {in: Input{Read: true, Unresolved: Wait{Reason: "NoSecret"}}, next: Hold, reason: "NoSecret"},
		"a stranger is not asked":                         {in: Input{Read: true, Stranger: "another"}, next: Drop, failed: "another"},
		"a reset that runs is not asked for again":        {in: Input{UnderWay: asked, Read: true, Sent: Sent{Known: true}}, next: Hold, reason: "Asking"},
		"a reset of another process is not sent again":    {in: Input{UnderWay: asked, Read: true}, next: Drop},
		"a reset that was sent takes the annotation away": {in: Input{UnderWay: asked, Sent: Sent{Known: true, Ended: true}}, next: Drop},
		"a reset that was refused has failed": {
			in:   Input{UnderWay: asked, Sent: Sent{Known: true, Ended: true, Err: notAsked(errors.New("x")), Message: "no"}},
			next: Drop, failed: "the BMC was not restarted: no"},
		"a reset that may have happened has not failed": {
			in:   Input{UnderWay: asked, Sent: Sent{Known: true, Ended: true, Err: &redfish.UnreachableError{Sent: true, Err: errors.New("x")}}},
			next: Drop},
		"a reset that was postponed is asked for again": {
			in:   Input{UnderWay: asked, Sent: Sent{Known: true, Ended: true, Err: notAsked(&PostponedError{Reason: "Frozen", Message: "night"})}},
			next: Hold, reason: "Frozen", failed: "the BMC was not restarted, and is once nothing holds that back: night"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(c.in)
			if got.Next != c.next || got.Wait.Reason != c.reason || got.Failed != c.failed {
				t.Errorf("Decide = %+v", got)
			}
		})
	}
}

func TestEnd(t *testing.T) {
	done := Current{Since: noon, Reachable: true, ReadAt: noon.Add(11 * time.Second), Settle: 10 * time.Second, Known: true}
	for name, c := range map[string]struct {
		change func(*Current)
		want   string
	}{
		"an answer after the reset ends it":               {func(*Current) {}, v1alpha1.ReasonResetComplete},
		"a reset of another process is interrupted":       {func(c *Current) { c.Known = false }, v1alpha1.ReasonInterrupted},
		"an annotation that stands keeps it":              {func(c *Current) { c.Wanted = true }, ""},
		"a BMC that does not answer keeps it":             {func(c *Current) { c.Reachable = false }, ""},
		"an answer before the BMC settled does not count": {func(c *Current) { c.ReadAt = noon.Add(10 * time.Second) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			current := done
			c.change(&current)
			if got, _ := End(current); got != c.want {
				t.Errorf("End = %q, want %q", got, c.want)
			}
		})
	}
}

func TestNoTwoResetsHaveTheSameTime(t *testing.T) {
	former := []metav1.Condition{*underWay(v1alpha1.ReasonUserRequested)}
	if got := Time(former, noon.Add(time.Millisecond)); !got.Equal(noon.Add(time.Second)) {
		t.Errorf("a second reset in one second is at %s", got)
	}
	if got := Time(nil, noon.Add(time.Millisecond)); !got.Equal(noon) {
		t.Errorf("a first reset is at %s", got)
	}
}
