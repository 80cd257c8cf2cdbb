// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/redfish"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// restarts is a server in entry 7 with an operation, in a state, of that entry.
func restarts(state v1alpha1.OperationState, change ...func(*ResetInput)) ResetInput {
	s := &v1alpha1.Server{}
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7}
	s.Status.Operation = &v1alpha1.OperationStatus{ID: "1", Name: v1alpha1.OperationHardRestartServer, State: state, Entry: 7,
		StartedAt: metav1.NewMicroTime(noon)}
	in := ResetInput{Server: s, Now: noon}
	for _, c := range change {
		c(&in)
	}
	return in
}

func TestAResetIsAskedAtMostOnce(t *testing.T) {
	const pending, begun = v1alpha1.OperationPending, v1alpha1.OperationInProgress
	job := func(j power.Job) func(*ResetInput) { return func(in *ResetInput) { j.Known = true; in.Job = j } }
	frozen := power.Job{Err: &redfish.NotAskedError{Err: &power.PostponedError{Cause: errors.New("frozen")}}, Words: "frozen"}
	named := func(name string) func(*ResetInput) {
		return func(in *ResetInput) { in.Server.Status.Operation.Name = name }
	}
	for name, c := range map[string]struct {
		in   ResetInput
		want string // the operation, and what is asked for
	}{
		"one that is recorded is asked for":             {restarts(pending), "Pending ForceRestart power cycle"},
		"a busy BMC is waited for":                      {restarts(pending, func(in *ResetInput) { in.Busy = true }), "Pending"},
		"one of a former entry is not begun":            {restarts(pending, func(in *ResetInput) { in.Server.Status.Lifecycle.Entry = 8 }), "Failed"},
		"what is no reset asks for nothing":             {restarts(pending, named("park")), "Failed"},
		"one that another manager began is not asked":   {restarts(begun), "Failed"},
		"one that is under way is waited for":           {restarts(begun, job(power.Job{Running: true})), "InProgress"},
		"one that the BMC accepted has ended":           {restarts(begun, job(power.Job{})), "Succeeded"},
		"one that the BMC refused has ended":            {restarts(begun, job(power.Job{Err: errors.New("no"), Words: "no"})), "Failed"},
		"one that was postponed is asked for again":     {restarts(begun, job(frozen)), "Pending ForceRestart power cycle"},
		"one that was postponed waits for a busy BMC":   {restarts(begun, job(frozen), func(in *ResetInput) { in.Busy = true }), "Pending"},
		"one that was postponed till the server left":   {restarts(begun, job(frozen), func(in *ResetInput) { in.Server.Status.Lifecycle.Entry = 8 }), "Failed"},
		"a power change counts as what it does (cut)":   {restarts(pending, named("force-off-server")), "Pending ForceOff forced power-off"},
		"a power change counts as what it does (on)":    {restarts(pending, named("force-on-server")), "Pending On power-on"},
		"a restart of the system is a power cycle also": {restarts(pending, named("graceful-restart-server")), "Pending GracefulRestart power cycle"},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.in.Server.DeepCopy()
			out := Reset(c.in)
			got := string(out.Server.Status.Operation.State)
			if out.Ask != "" {
				got += fmt.Sprintf(" %s %s", out.Ask, out.Action)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if !reflect.DeepEqual(before, c.in.Server) {
				t.Error("the input was changed")
			}
		})
	}
}
