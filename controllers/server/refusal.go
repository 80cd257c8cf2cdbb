// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/redfish"
)

// maxRefusal is what the API accepts as the words of a refusal.
const maxRefusal = 1024

// storedRefusalError is a refusal that an earlier process heard.
type storedRefusalError struct{ words string }

func (r *storedRefusalError) Error() string { return r.words }

// recordRefusal keeps what the BMC said when it refused the power change, and counts how often in a row it said the same. The
// policy decides on that count, and a restart of the manager loses neither.
func (v *scope) recordRefusal() {
	l := v.server.Status.Lifecycle
	if l == nil || l.Request == nil || l.Request.RefusedAt != nil {
		return
	}
	job, known := v.Cache.Known(v.server.Name, requestID(l.Request))
	switch {
	case l.Request.ShownAt != nil, known && job.State == hardware.JobSucceeded:
		l.Request.Refusal, l.Request.Refusals = "", 0
	case known && job.State == hardware.JobFailed && redfish.Refused(job.Err):
		refuse(l.Request, loop.Shortened(words(job.Err), maxRefusal), metav1.NewMicroTime(v.now))
	}
}

// refuse adds one refusal to a request.
func refuse(request *v1alpha1.PowerRequest, said string, at metav1.MicroTime) {
	if sameRefusal(request.Refusal, said) {
		request.Refusals++
	} else {
		request.Refusals = 1
	}
	request.Refusal, request.RefusedAt = said, &at
}

var digits = regexp.MustCompile(`\d+`)

// sameRefusal compares two refusals without their numbers: some BMCs number their messages.
func sameRefusal(a, b string) bool {
	return digits.ReplaceAllString(a, "0") == digits.ReplaceAllString(b, "0")
}

// refusedPause is how long to wait after so many equal refusals: 90 s, 3 min, then 6 min at the default PowerGrace. Four of
// them so take more than ten minutes, which lets a new BMC firmware or a self test pass before a policy counts four as final.
func (v *scope) refusedPause(refusals int32) time.Duration {
	return v.PowerGrace * 3 / 2 << min(max(refusals-1, 0), 2)
}

// carryRefusals takes the count over to a request that repeats one of the same entry.
func (v *scope) carryRefusals(former, request *v1alpha1.PowerRequest) {
	if former != nil && former.Action == request.Action && former.ShownAt == nil && !v.ofFormerEntry(former) {
		request.Refusal, request.Refusals = former.Refusal, former.Refusals
	}
}

// tellRefusal reports the first of a row of refusals. An ignored boot override has an event of its own.
func (s *subject) tellRefusal(before, after *v1alpha1.Server) {
	l := after.Status.Lifecycle
	if l == nil || l.Request == nil || l.Request.RefusedAt == nil || l.Request.Refusals != 1 {
		return
	}
	if was := before.Status.Lifecycle; was != nil && was.Request != nil && was.Request.RefusedAt != nil &&
		was.Request.AskedAt.Equal(&l.Request.AskedAt) {
		return
	}
	if ready := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == overrideIgnored {
		return
	}
	s.Recorder.Eventf(after, nil, corev1.EventTypeWarning, v1alpha1.ReasonPowerRefused, "Power", "%s", loop.Shortened(fmt.Sprintf(
		"The BMC refuses %s, which is asked for again: %s", askedWords[l.Request.Action], l.Request.Refusal), loop.MaxNote))
}
