// SPDX-License-Identifier: Apache-2.0

package running

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func lease(name, holder string, seconds int32, ago time.Duration) coordinationv1.Lease {
	l := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
	l.Spec.HolderIdentity, l.Spec.RenewTime = &holder, &metav1.MicroTime{Time: noon.Add(-ago)}
	if seconds > 0 {
		l.Spec.LeaseDurationSeconds = ptr.To(seconds)
	}
	return l
}

func replica(name string, ago time.Duration, flags string) coordinationv1.Lease {
	l := lease("metalaw-replica-"+name, name, 90, ago)
	l.Labels = map[string]string{policyv1alpha1.ReplicaLabel: "true"}
	if flags != "" {
		l.Annotations = map[string]string{policyv1alpha1.FlagsAnnotation: flags}
	}
	return l
}

func TestWhichManagerLeadsAndHow(t *testing.T) {
	observes := Flags{ObserveOnly: true, Maintenance: "off", Candidate: "a_1"}
	acts := Flags{Maintenance: "on", RegistryURL: "https://r:10000", Candidate: "b_2"}
	alone := Flags{Maintenance: "plan"}
	beat := lease(HeartbeatLease, "x", 0, 5*time.Second)
	for name, c := range map[string]struct {
		leases  []coordinationv1.Lease
		leading bool
		leader  string
		flags   *Flags
		running int
	}{
		"no Lease at all": {},
		"the elected one of two": {[]coordinationv1.Lease{beat, lease(LeaderLease, "b_2", 15, time.Second),
			replica("a", time.Second, observes.Text()), replica("b", time.Second, acts.Text())}, true, "b", &acts, 2},
		"the only one, without an election": {[]coordinationv1.Lease{beat, replica("a", time.Minute, alone.Text())}, true, "a", &alone, 1},
		"one that was killed does not count": {[]coordinationv1.Lease{beat, lease(LeaderLease, "b_2", 15, time.Second),
			replica("a", 2*time.Minute, observes.Text()), replica("b", time.Second, acts.Text())}, true, "b", &acts, 1},
		"no heartbeat for long": {[]coordinationv1.Lease{lease(HeartbeatLease, "x", 0, time.Minute),
			lease(LeaderLease, "a_1", 15, time.Second), replica("a", time.Second, observes.Text())}, false, "", nil, 1},
		"the leader gave its Lease back":       {[]coordinationv1.Lease{lease(HeartbeatLease, "", 0, time.Second)}, false, "", nil, 0},
		"a build that does not tell its flags": {[]coordinationv1.Lease{beat, replica("a", time.Second, "")}, true, "a", nil, 1},
		"of two builds it is not known which leads": {[]coordinationv1.Lease{beat, lease(LeaderLease, "z_9", 15, time.Second),
			replica("a", time.Second, observes.Text()), replica("b", time.Second, "")}, true, "", nil, 2},
		"flags that cannot be read are not known": {[]coordinationv1.Lease{beat, replica("a", time.Second, "{")}, true, "a", nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of(c.leases, noon)
			if got.Leading != c.leading || got.Leader() != c.leader || len(got.Managers) != c.running {
				t.Errorf("got %+v", got)
			}
			if diff := cmp.Diff(c.flags, got.Flags()); diff != "" {
				t.Errorf("flags: - want, + got:\n%s", diff)
			}
		})
	}
}

func FuzzFlags(f *testing.F) {
	f.Add(Flags{ObserveOnly: true, Candidate: "a"}.Text())
	f.Add("{")
	f.Fuzz(func(_ *testing.T, text string) { Of([]coordinationv1.Lease{replica("a", 0, text)}, noon).Flags() })
}
