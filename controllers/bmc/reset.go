// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"sync"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/redfish"
)

// armed remembers which resets this process recorded. One that another process recorded may have been sent by it, so it
// is not sent again.
type armed struct {
	mu  sync.Mutex
	ids map[string]map[string]bool // by the UID of the BMC
}

func (a *armed) add(uid, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ids[uid] == nil {
		a.ids[uid] = map[string]bool{}
	}
	a.ids[uid][id] = true
}

func (a *armed) is(uid, id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ids[uid][id]
}

func (a *armed) forget(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.ids, uid)
}

func resetID(at time.Time) string { return "reset/" + at.UTC().Format(time.RFC3339) }

// restart asks the BMC to restart, once: first the request is recorded, in the next reconcile it is sent, and then the
// annotation goes. When the BMC answers again, Record says so.
func (v *visit) restart() loop.Progress {
	if v.targetErr != nil {
		return loop.Waiting(v.targetErr.Reason, v.targetErr.Message, 0)
	}
	if v.reading.At.IsZero() {
		return loop.Waiting("NotRead", "the BMC is restarted once it was read, to be sure that it is the one that is meant", 0)
	}
	if why := v.stranger(); why != "" {
		v.failedReset = strangerError(why)
		v.dropOperation()
		return loop.Holds()
	}
	reset := v.reset()
	if reset == nil || reset.Reason != v1alpha1.ReasonUserRequested {
		at := v.now.Truncate(time.Second)
		v.askedReset = &resetRequest{message: "a restart of the BMC was asked for by annotation", at: at}
		v.armed.add(string(v.bmc.UID), resetID(at))
		return loop.Waiting(v1alpha1.ReasonUserRequested, "the request is recorded before it is sent", time.Millisecond)
	}
	id := resetID(reset.LastTransitionTime.Time)
	if !v.armed.is(string(v.bmc.UID), id) {
		v.dropOperation() // it may have been sent by a manager that ended since; never twice
		return loop.Holds()
	}
	job := v.desk.Do(v.name, v.target, id, func(ctx context.Context, bmc redfish.BMC) error { return bmc.ResetManager(ctx, true) })
	switch {
	case job.ID != id || job.State == hardware.JobRunning:
		return loop.Waiting("Asking", "the BMC was asked to restart", 0)
	case job.State == hardware.JobFailed && !redfish.MayHaveHappened(job.Err):
		message, _ := access.Describe(job.Err)
		v.failedReset = resetError(message)
	}
	v.dropOperation()
	return loop.Holds()
}

// strangerError says why the BMC that answers may not be the one that is meant.
type strangerError string

func (e strangerError) Error() string { return string(e) }

// resetError is what the BMC answered instead of restarting.
type resetError string

func (e resetError) Error() string { return "the BMC was not restarted: " + string(e) }

// stranger says why the BMC that answers may not be the one that is meant; empty where it is.
func (v *visit) stranger() string {
	if why := v.mismatch(); why != "" {
		return why
	}
	if len(v.owned) == 0 {
		return ""
	}
	for i := range v.owned {
		for _, system := range v.reading.Value.Systems {
			if system.Err == "" && isSystem(v.owned[i].Spec.SystemUUID, system.Identity.UUID) {
				return ""
			}
		}
	}
	return "the BMC was not restarted, because none of its Servers is behind the BMC that answers at " + v.location.IP + "; check its address"
}

func (v *visit) dropOperation() {
	if v.bmc.Annotations != nil {
		delete(v.bmc.Annotations, v1alpha1.OperationAnnotation)
	}
}

// maxOperation keeps a hostile value from filling an event.
const maxOperation = 60

// refuseWords are the reason and the message of the event about an operation that is refused.
func refuseWords(operation string) (reason, message string) {
	if operation == v1alpha1.OperationRotateCredentials {
		return v1alpha1.ReasonOperationUnavailable, "rotate-credentials is not available in this version; " +
			"change the password at the BMC and in the BMCSecret; the annotation was removed"
	}
	return v1alpha1.ReasonUnknownOperation, "a BMC knows no operation \"" + loop.Shortened(operation, maxOperation) +
		"\" (it knows graceful-restart-bmc and ignore); the annotation was removed"
}
