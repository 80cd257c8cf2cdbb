// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
)

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
	if ready := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == power.OverrideIgnored {
		return
	}
	s.Recorder.Eventf(after, nil, corev1.EventTypeWarning, v1alpha1.ReasonPowerRefused, "Power", "%s", loop.Shortened(fmt.Sprintf(
		"The BMC refuses %s, which is asked for again: %s", power.Words(l.Request.Action), l.Request.Refusal), loop.MaxNote))
}
