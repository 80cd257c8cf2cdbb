// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/scheduler"
	"github.com/metalaw/metalaw/engine/bundle"
)

func TestWhatNeedNotBeWrittenYet(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	fresh := func(f *facts, age time.Duration) {
		f.claim.Status, f.claim.CreationTimestamp, f.claim.Spec.ServerRef = v1alpha1.ServerClaimStatus{}, ago(age), nil
	}
	told := func(f *facts, kind, status, reason, message string, age time.Duration) {
		f.claim.Status.Conditions = append(f.claim.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status),
			Reason: reason, Message: message, LastTransitionTime: ago(age), ObservedGeneration: 2})
	}
	booting := func(f *facts, readyAge, boundAge time.Duration) {
		told(f, "Bound", "True", "Bound", "bound to server s", boundAge)
		told(f, "Ready", "False", "Booting", "the boot operator has not prepared ServerBootConfiguration ns/c, which is Pending", readyAge)
		f.server.Status.PowerState = v1alpha1.PowerStateOff
	}
	reserving := func(f *facts, at string) {
		unbound(f)
		f.boot = nil
		f.server.Annotations[v1alpha1.BindingAnnotation] = `{"revision":"r","at":"` + at + `"}`
	}
	refused := func(f *facts) { f.verdict = &scheduler.Verdict{Reason: "NoServers", Message: "0 of 3 servers match"} }
	for _, tc := range []struct {
		name   string
		change func(*facts)
		want   time.Duration
	}{
		{"a new claim waits for its turn", func(f *facts) { fresh(f, time.Second) }, 9 * time.Second},
		{"a claim has waited long for its turn", func(f *facts) { fresh(f, 10*time.Second) }, 0},
		{"a claim that has waited long is being bound", func(f *facts) { fresh(f, 10*time.Second); f.binding = true }, time.Second},
		{"a new claim is refused", func(f *facts) { fresh(f, time.Second); refused(f) }, 500 * time.Millisecond},
		{"a claim is refused", func(f *facts) { fresh(f, 2*time.Second); refused(f) }, 0},
		{"a new claim asks for what has no meaning", func(f *facts) { fresh(f, 0); f.verdict = &scheduler.Verdict{Reason: "InvalidSelector"} }, 0},
		{"a claim that said so is refused for another reason", func(f *facts) {
			fresh(f, time.Second)
			refused(f)
			told(f, "Ready", "False", "NoneClaimable", "", time.Minute)
		}, 0},
		{"a claim of tomorrow waits for its turn", func(f *facts) { fresh(f, -time.Hour) }, 0},
		{"a server is being reserved", func(f *facts) { reserving(f, "2026-05-04T03:01:58Z") }, 27 * time.Second},
		{"a server is being reserved for a claim that says that there was none", func(f *facts) {
			reserving(f, "2026-05-04T03:01:58Z")
			told(f, "Ready", "False", "NoneClaimable", "", time.Minute)
		}, 7 * time.Second},
		{"a server is being reserved whose BMC does not answer", func(f *facts) {
			reserving(f, "2026-05-04T03:01:58Z")
			afflicted(f.server, "BMCReachable", "False")
		}, 0},
		{"a server is being reserved whose BMC has just missed an answer", func(f *facts) {
			reserving(f, "2026-05-04T03:01:58Z")
			afflicted(f.server, "BMCReachable", "False")
			f.server.Status.Conditions[0].LastTransitionTime = ago(2 * time.Second)
		}, 8 * time.Second},
		{"the boot waits for a BMC that has not answered for a while", func(f *facts) {
			booting(f, 3*time.Second, 3*time.Second)
			afflicted(f.server, "BMCReachable", "False")
			f.server.Status.Conditions[0].LastTransitionTime = ago(11 * time.Second)
		}, 0},
		{"a server is being reserved, and a budget holds that back", func(f *facts) {
			reserving(f, "2026-05-04T03:01:58Z")
			f.server.Status.Conditions = append(f.server.Status.Conditions, metav1.Condition{Type: "Withheld", Status: "True", Reason: "BudgetExhausted"})
		}, 7 * time.Second},
		{"a server is being reserved, and a freeze holds that back", func(f *facts) {
			reserving(f, "2026-05-04T03:02:00Z")
			f.server.Status.Conditions = append(f.server.Status.Conditions, metav1.Condition{Type: "Withheld", Status: "True", Reason: "Frozen"})
		}, 500 * time.Millisecond},
		{"a server is being reserved, and a freeze has held that back for a while", func(f *facts) {
			reserving(f, "2026-05-04T03:01:58Z")
			f.server.Status.Conditions = append(f.server.Status.Conditions, metav1.Condition{Type: "Withheld", Status: "True", Reason: "Frozen"})
		}, 0},
		{"a server has long been being reserved", func(f *facts) { reserving(f, "2026-05-04T03:01:00Z") }, 0},
		{"a server is being reserved, since nobody knows when", func(f *facts) { reserving(f, "") }, 0},
		{"a claim becomes bound", unbound, 0},
		{"a claim becomes bound, and its machine boots", func(f *facts) { unbound(f); booting(f, time.Second, time.Second) }, 0},
		{"the boot is further than it says", func(f *facts) { booting(f, 3*time.Second, 3*time.Second) }, 27 * time.Second},
		{"the boot is further than it says, and held back", func(f *facts) {
			booting(f, 3*time.Second, 3*time.Second)
			afflicted(f.server, "Withheld", "True")
		}, 7 * time.Second},
		{"the boot is further, and it was bound after a long wait", func(f *facts) { booting(f, time.Hour, 3*time.Second) }, 27 * time.Second},
		{"the boot has been further for long", func(f *facts) { booting(f, 30*time.Second, time.Hour) }, 0},
		{"the boot is as far as it says", func(f *facts) {
			booting(f, time.Second, time.Second)
			f.claim.Status.Conditions[1].Message = "the server is not On yet"
		}, 0},
		{"the power is not known for a moment", func(f *facts) {
			booting(f, time.Second, time.Second)
			f.server.Status.PowerState = ""
		}, 9 * time.Second},
		{"the claim was changed while its machine boots", func(f *facts) { booting(f, time.Second, time.Second); f.claim.Generation = 3 }, 0},
		{"the boot failed", func(f *facts) {
			booting(f, time.Second, time.Second)
			f.boot.Status.State = v1alpha1.ServerBootConfigurationStateError
		}, 0},
		{"the server is halted", func(f *facts) { booting(f, time.Second, time.Second); afflicted(f.server, "PolicyHalted", "True") }, 0},
		{"the machine runs", func(f *facts) {
			booting(f, time.Second, time.Second)
			f.server.Status.PowerState = v1alpha1.PowerStateOn
		}, 0},
		{"a machine that ran boots again", func(f *facts) {
			told(f, "Ready", "True", "Running", "", time.Second)
			f.server.Status.PowerState = v1alpha1.PowerStatePoweringOn
		}, 0},
		{"the server was given to somebody else", func(f *facts) { f.server.Annotations[v1alpha1.ClaimUIDAnnotation] = "uid-x" }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := bound()
			tc.change(&f)
			if got := f.quiet(judge(f), now); got != tc.want {
				t.Errorf("quiet for %s, want %s", got, tc.want)
			}
		})
	}
}

// looking runs the loop of claims over one claim and its server, and counts the writes of the claim's status.
func looking(t *testing.T, f facts, now *time.Time) (look func() time.Duration, api client.Client, writes *int) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	writes = new(int)
	base := fake.NewClientBuilder().WithScheme(scheme).WithObjects(f.claim, f.server, f.boot).WithStatusSubresource(f.claim, f.server, f.boot).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if _, ok := o.(*v1alpha1.ServerClaim); ok {
					*writes++
				}
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	r := newReconciler(&Subject{Client: base, Live: base, Recorder: events.NewFakeRecorder(9), Now: func() time.Time { return *now },
		Scheduler: scheduler.New(base, base, scheduler.Options{Bundles: noBundles{}})})
	return func() time.Duration {
		t.Helper()
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f.claim)})
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}, base, writes
}

type noBundles struct{}

func (noBundles) Active() *bundle.Bundle { return nil }

func TestAClaimThatGoesOnAsItShouldWritesItsStatusTwice(t *testing.T) {
	f := bound()
	f.claim.Status, f.claim.Finalizers = v1alpha1.ServerClaimStatus{}, []string{v1alpha1.FinalizerServerClaim}
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	f.claim.CreationTimestamp = metav1.NewTime(now)
	f.server.Annotations[v1alpha1.BindingAnnotation] = `{"at":"2026-05-04T03:02:01Z"}`
	f.server.Status = v1alpha1.ServerStatus{State: v1alpha1.StateAvailable, PowerState: v1alpha1.PowerStateOff}
	f.boot.Status.State = v1alpha1.ServerBootConfigurationStatePending
	look, api, writes := looking(t, f, &now)
	step := func(what string, want int, change func(*v1alpha1.Server, *v1alpha1.ServerBootConfiguration)) {
		t.Helper()
		now = now.Add(100 * time.Millisecond)
		var s v1alpha1.Server
		var b v1alpha1.ServerBootConfiguration
		if err := errors.Join(api.Get(t.Context(), client.ObjectKeyFromObject(f.server), &s), api.Get(t.Context(), client.ObjectKeyFromObject(f.boot), &b)); err != nil {
			t.Fatal(err)
		}
		change(&s, &b)
		if err := errors.Join(api.Status().Update(t.Context(), &s), api.Status().Update(t.Context(), &b)); err != nil {
			t.Fatal(err)
		}
		look()
		if *writes != want {
			t.Errorf("%s: %d writes, want %d", what, *writes, want)
		}
	}
	power := func(p v1alpha1.PowerState) func(*v1alpha1.Server, *v1alpha1.ServerBootConfiguration) {
		return func(s *v1alpha1.Server, _ *v1alpha1.ServerBootConfiguration) { s.Status.PowerState = p }
	}
	step("a server was found", 0, func(*v1alpha1.Server, *v1alpha1.ServerBootConfiguration) {})
	step("it is reserved", 1, func(s *v1alpha1.Server, _ *v1alpha1.ServerBootConfiguration) { s.Status.State = v1alpha1.StateReserved })
	step("the boot is ready", 1, func(_ *v1alpha1.Server, b *v1alpha1.ServerBootConfiguration) {
		b.Status.State = v1alpha1.ServerBootConfigurationStateReady
	})
	step("it powers on", 1, power(v1alpha1.PowerStatePoweringOn))
	step("nobody knows for a moment", 1, power(v1alpha1.PowerStateUnknown))
	step("it runs", 2, power(v1alpha1.PowerStateOn))
}

func TestAClaimThatDoesNotGoOnSaysWhyAfterAWhile(t *testing.T) {
	f := bound()
	f.claim.Status, f.claim.Finalizers = v1alpha1.ServerClaimStatus{}, []string{v1alpha1.FinalizerServerClaim}
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	f.claim.CreationTimestamp = metav1.NewTime(now)
	f.server.Annotations[v1alpha1.BindingAnnotation] = `{"at":"2026-05-04T03:02:01Z"}`
	f.server.Status.State = v1alpha1.StateAvailable
	look, api, writes := looking(t, f, &now)
	again := look()
	if *writes != 0 || again < progressQuiet {
		t.Errorf("%d writes, looks again in %s", *writes, again)
	}
	now = now.Add(again)
	if look(); *writes != 1 {
		t.Errorf("%d writes", *writes)
	}
	var c v1alpha1.ServerClaim
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(f.claim), &c); err != nil {
		t.Fatal(err)
	}
	if got := meta.FindStatusCondition(c.Status.Conditions, "Bound"); got == nil || got.Reason != "Reserving" {
		t.Errorf("Bound is %+v", got)
	}
}
