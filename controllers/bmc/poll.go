// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/bmc/reset"
)

// A BMC is read seldom while the reads of its Servers show that it answers: they come often, each proves as much, and
// together they are to be all that an idle BMC is asked. As soon as one of them shows trouble, the BMC is read itself.

// mostShares bounds by how much more often a BMC with several Servers is read: there a system may be added at any time,
// and each Server bears a share of the requests.
const mostShares = 3

// pollInterval is how old the reading of the BMC may be.
func (v *scope) pollInterval() time.Duration {
	age := v.SteadyPoll
	if n := vouching(v.owned); n > 0 {
		age = max(age, v.MetadataPoll/time.Duration(min(n, mostShares)))
	}
	if anyNameless(assign(v.cache.Reading(v.name).Value.Systems, v.bmc.Annotations[v1alpha1.SystemUUIDsAnnotation])) {
		age = min(age, v.SteadyPoll) // a BMC that has just started may show no UUID for some seconds
	}
	if reset.UnderWay(v.bmc.Status.Conditions) != nil {
		age = min(age, v.TransitionPoll)
	}
	return age
}

// anyNameless says that a system was read which bears no UUID.
func anyNameless(systems []System) bool {
	return slices.ContainsFunc(systems, func(s System) bool { return s.Err == "" && s.Identity.UUID == "" })
}

// vouching counts the Servers whose reads show that their BMC answers; 0 where one of them says otherwise. One that
// the manager does not read says nothing.
func vouching(servers []v1alpha1.Server) int {
	count := 0
	for i := range servers {
		s := &servers[i]
		if v1alpha1.Ignored(s) || !s.DeletionTimestamp.IsZero() {
			continue
		}
		if !meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionBMCReachable) || !troubleSince(s).IsZero() {
			return 0
		}
		count++
	}
	return count
}

// troubleSince is when reads of a Server began to fail, or to show another machine; the zero time where all is well.
func troubleSince(s *v1alpha1.Server) time.Time {
	var since time.Time
	for kind, bad := range map[string]metav1.ConditionStatus{
		v1alpha1.ConditionBMCReachable: metav1.ConditionFalse, v1alpha1.ConditionIdentityMismatch: metav1.ConditionTrue,
	} {
		c := meta.FindStatusCondition(s.Status.Conditions, kind)
		if c != nil && c.Status == bad && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since
}

// due is the moment after which the BMC has to be read once, because of trouble with a Server; the zero time where there
// is none. Conditions have whole seconds, so it is the end of the second.
func due(servers []v1alpha1.Server) time.Time {
	var last time.Time
	for i := range servers {
		if since := troubleSince(&servers[i]); since.After(last) {
			last = since
		}
	}
	if last.IsZero() {
		return last
	}
	return last.Truncate(time.Second).Add(time.Second)
}
