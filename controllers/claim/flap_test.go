// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestHowLongReadyStaysAsItIs(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 21, int(600*time.Millisecond), time.UTC)
	told := func(f *facts, status metav1.ConditionStatus, reason string, age time.Duration) {
		f.claim.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: status, Reason: reason, ObservedGeneration: 2,
			LastTransitionTime: metav1.NewTime(now.Add(-age).Truncate(time.Second))}}
	}
	pending := func(f *facts) { f.boot.Status.State = v1alpha1.ServerBootConfigurationStatePending }
	fell := func(f *facts, age time.Duration) {
		told(f, "False", "Booting", age)
		f.turned = turn{at: now.Add(-age), unprepared: true, generation: 2}
	}
	for _, c := range []struct {
		name   string
		change func(*facts)
		want   time.Duration
	}{
		{"the boot operator takes back what it said 3 s ago", func(f *facts) {
			told(f, "True", "Running", 3*time.Second)
			f.turned = turn{at: now.Add(-3 * time.Second), generation: 2}
			pending(f)
		}, 7 * time.Second},
		{"of a change that another process stored only the second is known", func(f *facts) {
			told(f, "True", "Running", 3*time.Second)
			pending(f)
		}, 6400 * time.Millisecond},
		{"the boot operator reports an error 3 s after Ready", func(f *facts) {
			told(f, "True", "Running", 3*time.Second)
			f.turned = turn{at: now.Add(-3 * time.Second), generation: 2}
			f.boot.Status.State = v1alpha1.ServerBootConfigurationStateError
		}, 7 * time.Second},
		{"a Ready that is 10 s old ends at once", func(f *facts) {
			told(f, "True", "Running", 10*time.Second)
			f.turned = turn{at: now.Add(-10 * time.Second), generation: 2}
			pending(f)
		}, 0},
		{"a Ready of tomorrow ends at once", func(f *facts) { told(f, "True", "Running", -time.Hour); pending(f) }, 0},
		{"a Ready that speaks of a former spec ends at once", func(f *facts) {
			told(f, "True", "Running", time.Second)
			f.claim.Generation = 3
			pending(f)
		}, 0},
		{"a machine that goes off ends it at once", func(f *facts) {
			told(f, "True", "Running", time.Second)
			f.server.Status.PowerState = v1alpha1.PowerStateOff
		}, 0},
		{"a halt ends it at once, whatever the boot operator says", func(f *facts) {
			told(f, "True", "Running", time.Second)
			pending(f)
			afflicted(f.server, "PolicyHalted", "True")
		}, 0},
		{"the first Ready does not wait", func(f *facts) { told(f, "False", "Booting", time.Second) }, 0},
		{"the first Ready of a claim without conditions does not wait", func(*facts) {}, 0},
		{"Ready comes back 4 s after the boot operator took it", func(f *facts) { fell(f, 4*time.Second) }, 6 * time.Second},
		{"Ready comes back 10 s after the boot operator took it", func(f *facts) { fell(f, 10*time.Second) }, 0},
		{"the first Ready of a new spec does not wait", func(f *facts) {
			fell(f, time.Second)
			f.claim.Generation, f.claim.Status.Conditions[0].ObservedGeneration = 3, 3
		}, 0},
		{"Ready comes back at once after a machine that went off", func(f *facts) {
			told(f, "False", "Booting", time.Second)
			f.turned = turn{at: now.Add(-time.Second), generation: 2}
		}, 0},
		{"becoming bound waits for nothing", func(f *facts) { fell(f, time.Second); unbound(f) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := bound()
			c.change(&f)
			if got := f.quiet(judge(f), now); got != c.want {
				t.Errorf("quiet for %s, want %s", got, c.want)
			}
		})
	}
}

// The boot operator changes its mind every second for a minute.
func TestReadyOfAFlappingBootOperatorChangesAtMostOnceInTenSeconds(t *testing.T) {
	f := bound()
	f.claim.Status, f.claim.Finalizers = v1alpha1.ServerClaimStatus{}, []string{v1alpha1.FinalizerServerClaim}
	f.boot.Status.State = v1alpha1.ServerBootConfigurationStatePending
	began := time.Date(2026, 5, 4, 3, 2, 1, int(700*time.Millisecond), time.UTC)
	now := began
	look, api, _ := looking(t, f, &now)
	var changes []string
	last := "unknown"
	see := func() {
		look()
		c := &v1alpha1.ServerClaim{}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(f.claim), c); err != nil {
			t.Fatal(err)
		}
		is := "none"
		if ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			is = string(ready.Status)
		}
		if is != last {
			changes, last = append(changes, now.Sub(began).String()+" "+is), is
		}
	}
	see()
	for second := range 40 {
		var b v1alpha1.ServerBootConfiguration
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(f.boot), &b); err != nil {
			t.Fatal(err)
		}
		b.Status.State = v1alpha1.ServerBootConfigurationStateReady
		if second%2 == 1 {
			b.Status.State = v1alpha1.ServerBootConfigurationStatePending
		}
		if err := api.Status().Update(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			now = now.Add(100 * time.Millisecond)
			see()
		}
	}
	want := []string{"0s False", "100ms True", "11.1s False", "22.1s True", "33.1s False"}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
