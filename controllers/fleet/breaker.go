// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// defaultMinServers is how many servers it takes to trip a breaker that does not say.
const defaultMinServers = 5

var defaultStates = []string{string(v1alpha1.StateError), string(v1alpha1.StateCleanup)}

// trips returns the trip that the breaker makes now; nil where it makes none.
func trips(b *policyv1alpha1.Breaker, machines map[string]machine, now time.Time) *policyv1alpha1.BreakerTrip {
	if b == nil {
		return nil
	}
	states := b.States
	if len(states) == 0 {
		states = defaultStates
	}
	from := now.Add(-window(b.WindowSeconds))
	if at := b.AcknowledgedAt; at != nil && at.After(from) {
		from = at.Time
	}
	var entered int32
	for _, m := range machines {
		if slices.ContainsFunc(states, func(state string) bool { return m.entered[state].After(from) }) {
			entered++
		}
	}
	least := int32(defaultMinServers)
	if b.MinServers != nil {
		least = *b.MinServers
	}
	of := int32(len(machines))
	if entered < least || int64(entered)*100 <= int64(b.MaxPercent)*int64(of) {
		return nil
	}
	return &policyv1alpha1.BreakerTrip{At: metav1.NewMicroTime(now.Truncate(time.Microsecond)), Servers: entered, Of: of}
}
