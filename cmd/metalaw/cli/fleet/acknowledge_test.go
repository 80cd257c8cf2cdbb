// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// lagging holds a FleetControl whose status comes to speak of generation 7 after a time.
type lagging struct {
	client.Reader
	uid   types.UID
	after time.Time
}

func (l lagging) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	c := o.(*policyv1alpha1.FleetControl)
	c.UID, c.Generation, c.Status.ObservedGeneration = l.uid, 7, 6
	if !time.Now().Before(l.after) {
		c.Status.ObservedGeneration = 7
	}
	return nil
}

func TestAFreezeIsAwaitedUntilTheManagerAcknowledgesIt(t *testing.T) {
	for name, c := range map[string]struct {
		uid          types.UID
		lag, timeout time.Duration
		acknowledged bool
		took         time.Duration
		err          string
	}{
		"at once":                                {"a", 0, 30 * time.Second, true, 0, ""},
		"after a while":                          {"a", time.Second, 30 * time.Second, true, time.Second, ""},
		"not for longer than asked":              {"a", time.Minute, 30 * time.Second, false, 30 * time.Second, "the freeze is stored, but no manager has acknowledged it yet"},
		"not at all where no wait is asked for":  {"a", time.Minute, 0, false, 0, ""},
		"not of another FleetControl than it is": {"b", 0, 30 * time.Second, false, 0, "FleetControl fleet was removed meanwhile"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stored := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: "fleet", UID: "a", Generation: 7}}
				began := time.Now()
				got, err := awaitAcknowledgement(t.Context(), lagging{uid: c.uid, after: began.Add(c.lag)}, stored, c.timeout)
				if got != c.acknowledged || (err == nil) != (c.err == "") || (err != nil && !strings.HasPrefix(err.Error(), c.err)) {
					t.Errorf("acknowledged %t, error %v", got, err)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
			})
		})
	}
}

func TestWhatIsInFlightOnTheServersOfAFreeze(t *testing.T) {
	const uuid = "1a2b3c4d-0000-0000-0000-000000000001"
	ago := func(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(noon.Add(-d)) }
	at, begun := ago(time.Minute), ago(2*time.Minute)
	request := func(change func(*v1alpha1.PowerRequest)) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Request: &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionForceOff, AskedAt: at}}
			change(s.Status.Lifecycle.Request)
		}
	}
	operation := func(state v1alpha1.OperationState) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			s.Status.Operation = &v1alpha1.OperationStatus{Name: "power-cycle-server", State: state, BegunAt: &begun}
		}
	}
	wipe := func(state policyv1alpha1.WipeState, told time.Duration) *policyv1alpha1.WipeReport {
		return &policyv1alpha1.WipeReport{State: state, StartedAt: ago(time.Hour), UpdatedAt: ago(told)}
	}
	for name, c := range map[string]struct {
		server func(*v1alpha1.Server)
		wipe   *policyv1alpha1.WipeReport
		want   []flight
	}{
		"nothing":                       {func(*v1alpha1.Server) {}, nil, []flight{}},
		"a power request":               {request(func(*v1alpha1.PowerRequest) {}), nil, []flight{{"a", "power request ForceOff", at.UTC()}}},
		"none that the BMC has shown":   {request(func(r *v1alpha1.PowerRequest) { r.ShownAt = &at }), nil, []flight{}},
		"none that the BMC refused":     {request(func(r *v1alpha1.PowerRequest) { r.RefusedAt = &at }), nil, []flight{}},
		"an operation":                  {operation(v1alpha1.OperationInProgress), nil, []flight{{"a", "operation power-cycle-server", begun.UTC()}}},
		"none that is done":             {operation(v1alpha1.OperationSucceeded), nil, []flight{}},
		"an erase":                      {func(*v1alpha1.Server) {}, wipe(policyv1alpha1.WipeRunning, time.Second), []flight{{"a", "erase of the disks that are begun", noon.Add(-time.Hour)}}},
		"none that is done with":        {func(*v1alpha1.Server) {}, wipe(policyv1alpha1.WipeVerified, time.Second), []flight{}},
		"none whose agent is silent":    {func(*v1alpha1.Server) {}, wipe(policyv1alpha1.WipeRunning, policyv1alpha1.WipeSilence), []flight{}},
		"nothing of a server elsewhere": {func(s *v1alpha1.Server) { operation(v1alpha1.OperationInProgress)(s); s.Labels = nil }, nil, []flight{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"rack": "r1"}}}
			s.Spec.SystemUUID = uuid
			c.server(&s)
			inventory := policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: uuid}, Wipe: c.wipe}
			got := inFlight(&policyv1alpha1.Freeze{Selector: rack("r1")}, []v1alpha1.Server{s}, []policyv1alpha1.ServerInventory{inventory}, noon)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}

func TestTheStatusTellsThatTheManagerLagsBehind(t *testing.T) {
	for name, c := range map[string]struct {
		observed int64
		want     bool
	}{
		"behind": {6, true}, "in step": {7, false},
	} {
		t.Run(name, func(t *testing.T) {
			fc := control()
			fc.Generation, fc.Status.ObservedGeneration = 7, c.observed
			var out bytes.Buffer
			s := statusOf(fc, nil, nil, noon)
			(&page{&terminal.Terminal{Out: &out, Now: noon}}).show(&s)
			if got := strings.HasPrefix(out.String(), "Not acknowledged: "); got != c.want {
				t.Errorf("it prints\n%s", out.String())
			}
		})
	}
}
