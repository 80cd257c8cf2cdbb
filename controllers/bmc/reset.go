// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/redfish"
)

// A reset goes through these steps, so that the BMC hears it once:
//
//  1. it is recorded in the condition Reset, while the annotation stays;
//  2. once that is stored the BMC is asked, by the process that recorded it and by no other;
//  3. the annotation goes when the outcome is known, or when another process recorded the reset;
//  4. the condition ends when the BMC answers: with ResetComplete where this process asked, else with Interrupted.

// resets remembers what became of the resets that this process recorded. One that it does not know was recorded by
// another process, which may have sent it.
type resets struct {
	mu sync.Mutex
	of map[string]sentReset // by the UID of the BMC
}

type sentReset struct {
	id    string
	ended bool
	err   error
}

func newResets() *resets { return &resets{of: map[string]sentReset{}} }

func (r *resets) begin(uid, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[uid] = sentReset{id: id}
}

func (r *resets) end(uid, id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[uid].id == id {
		r.of[uid] = sentReset{id: id, ended: true, err: err}
	}
}

func (r *resets) get(uid, id string) (sent sentReset, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent, known = r.of[uid]
	return sent, known && sent.id == id
}

func (r *resets) forget(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, uid)
}

func resetID(at time.Time) string { return "reset/" + at.UTC().Format(time.RFC3339) }

// sent is what this process knows of the reset under way.
func (v *scope) sent() (sentReset, bool) {
	reset := v.reset()
	if reset == nil {
		return sentReset{}, false
	}
	return v.resets.get(string(v.bmc.UID), resetID(reset.LastTransitionTime.Time))
}

// restart asks the BMC to restart, once for each annotation.
func (v *scope) restart(ctx context.Context) loop.Progress {
	if reset := v.reset(); reset != nil && reset.Reason == v1alpha1.ReasonUserRequested {
		return v.awaitReset()
	}
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
	if p, ok := v.permitted(ctx); !ok {
		return p
	}
	v.askedReset = &resetRequest{message: "a restart of the BMC was asked for by annotation", at: v.resetTime()}
	return loop.Waiting(v1alpha1.ReasonUserRequested, "the request is recorded before it is sent", 0).Then(v.askForReset())
}

// permitted asks the gate whether the BMC may be restarted at present.
func (v *scope) permitted(ctx context.Context) (loop.Progress, bool) {
	if v.Gate == nil {
		return loop.Progress{}, true
	}
	verdict, err := v.Gate.PermitBMC(ctx, v.bmc.Labels, fleet.BMCRestart)
	if err != nil {
		return loop.Broken(err), false
	}
	if !verdict.Allowed {
		return loop.Waiting(verdict.Reason, "the restart of the BMC is held back: "+verdict.Message, max(verdict.Again, heldRetry)), false
	}
	return loop.Progress{}, true
}

// heldRetry is the time between two looks at whether a restart is still held back.
const heldRetry = 30 * time.Second

// awaitReset takes the annotation away once nothing more comes of it.
func (v *scope) awaitReset() loop.Progress {
	sent, known := v.sent()
	var held *heldError
	switch {
	case known && !sent.ended:
		return loop.Waiting("Asking", "the BMC was asked to restart", 0)
	case known && errors.As(sent.err, &held) && !redfish.MayHaveHappened(sent.err):
		v.failedReset = held // the annotation stays, and is heard again once nothing holds it back
		return loop.Waiting(held.reason, held.Error(), time.Second)
	case known && sent.err != nil && !redfish.MayHaveHappened(sent.err):
		message, _ := access.Describe(sent.err)
		v.failedReset = resetError(message)
	}
	v.dropOperation()
	return loop.Holds()
}

// resetTime names a new reset: no two of a BMC have the same second.
func (v *scope) resetTime() time.Time {
	at := v.now.Truncate(time.Second)
	if last := meta.FindStatusCondition(v.bmc.Status.Conditions, v1alpha1.ConditionReset); last != nil && !at.After(last.LastTransitionTime.Time) {
		at = last.LastTransitionTime.Add(time.Second)
	}
	return at
}

// askForReset returns what is done once the request is stored.
func (v *scope) askForReset() func() {
	uid, want := string(v.bmc.UID), v.expected()
	return func() {
		reset := v.reset()
		if reset == nil {
			return
		}
		id, at := resetID(reset.LastTransitionTime.Time), reset.LastTransitionTime
		v.resets.begin(uid, id)
		job := v.cache.Do(v.name, v.target, id, func(ctx context.Context, bmc redfish.BMC) error {
			err := bmc.ResetManager(redfish.WithGuard(ctx, v.stillAsked(at)), want, true)
			v.resets.end(uid, id, err)
			return err
		})
		if job.ID != id {
			v.resets.end(uid, id, errors.New("another request to the BMC was under way; ask again"))
		}
	}
}

// stillAsked looks past the cache, right before the request goes out, whether it is still wanted.
func (v *scope) stillAsked(at metav1.Time) func(context.Context) error {
	name, uid, generation := v.bmc.Name, v.bmc.UID, v.bmc.Generation
	return func(ctx context.Context) error {
		now := &v1alpha1.BMC{}
		if err := v.Reader.Get(ctx, types.NamespacedName{Name: name}, now); err != nil {
			return notTold(fmt.Errorf("the BMC object could not be read: %w", err))
		}
		reset := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReset)
		if now.UID != uid || now.Generation != generation || !now.DeletionTimestamp.IsZero() || v1alpha1.Ignored(now) ||
			reset == nil || reset.Status != metav1.ConditionTrue || !reset.LastTransitionTime.Equal(&at) {
			return errors.New("the BMC object has changed meanwhile")
		}
		return v.heldBack(ctx, now.Labels)
	}
}

// heldBack says why the BMC may not be restarted any more, though it was permitted.
func (v *scope) heldBack(ctx context.Context, labels map[string]string) error {
	if v.Gate == nil {
		return nil
	}
	verdict, err := v.Gate.PermitBMC(ctx, labels, fleet.BMCRestart)
	if err != nil {
		return notTold(fmt.Errorf("it cannot be told what is frozen: %w", err))
	}
	if !verdict.Allowed {
		return &heldError{reason: verdict.Reason, message: verdict.Message}
	}
	return nil
}

// heldError is what came to hold a restart back while it waited for its turn.
type heldError struct{ reason, message string }

// notTold holds a restart back for as long as the API server does not tell whether it is still wanted.
func notTold(err error) error { return &heldError{reason: "NotRead", message: err.Error()} }

func (e *heldError) Error() string {
	return "the BMC was not restarted, and is once nothing holds that back: " + e.message
}

// expected is the BMC that is meant, as it was read and by the systems that are known behind it.
func (v *scope) expected() redfish.ManagerIdentity {
	manager := v.reading.Value.Manager
	want := redfish.ManagerIdentity{UUID: cmp.Or(manager.UUID, v.bmc.Spec.BMCUUID), SerialNumber: manager.SerialNumber}
	for i := range v.owned {
		s := &v.owned[i]
		want.Systems = append(want.Systems, redfish.SystemAt{URI: s.Spec.SystemURI, Identity: v.identityOf(s)})
	}
	return want
}

// identityOf is who must answer for a Server.
func (v *scope) identityOf(s *v1alpha1.Server) redfish.Identity {
	want := redfish.Identity{UUID: s.Spec.SystemUUID}
	for _, system := range v.reading.Value.Systems {
		if a := system.Assignment; a.UUID != "" && isSystem(a.UUID, s.Spec.SystemUUID) && sameURI(system.URI, s.Spec.SystemURI) {
			want.Assigned, want.SerialNumber, want.MAC = true, a.SerialNumber, a.MAC
		}
	}
	return want
}

// strangerError says why the BMC that answers may not be the one that is meant.
type strangerError string

func (e strangerError) Error() string { return string(e) }

// resetError is what kept the BMC from restarting.
type resetError string

func (e resetError) Error() string { return "the BMC was not restarted: " + string(e) }

// stranger says why the BMC that answers may not be the one that is meant; empty where it is.
func (v *scope) stranger() string {
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

func (v *scope) dropOperation() {
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
	if operation == "" {
		return v1alpha1.ReasonUnknownOperation, "the operation annotation names no operation (a BMC knows graceful-restart-bmc, retry and ignore); " +
			"it was removed"
	}
	return v1alpha1.ReasonUnknownOperation, "a BMC knows no operation \"" + loop.Shortened(operation, maxOperation) +
		"\" (it knows graceful-restart-bmc, retry and ignore); the annotation was removed"
}
