// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/bmc/reset"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/redfish"
)

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

// get is what this process knows of a reset.
func (r *resets) get(uid, id string) reset.Sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent, known := r.of[uid]
	if !known || sent.id != id {
		return reset.Sent{}
	}
	message := ""
	if sent.err != nil {
		message, _ = access.Describe(sent.err)
	}
	return reset.Sent{Known: true, Ended: sent.ended, Err: sent.err, Message: message}
}

func (r *resets) forget(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, uid)
}

// What follows carries out what reset.Decide decides. It keeps these orders of safety: it asks the BMC only once the reset
// is stored (order 1), the guard reads uncached right before the BMC is asked (order 4), and the budget is counted when
// permission is given (order 5).

// restarted is what status says of a restart: when one is requested, or why it failed.
type restarted struct {
	at     time.Time
	failed string
}

// restart asks the BMC to restart, once for each annotation.
func (v *scope) restart(ctx context.Context) (loop.Progress, restarted) {
	d := reset.Decide(v.resetInput())
	done := restarted{failed: d.Failed}
	switch d.Next {
	case reset.Hold:
		return loop.Waiting(d.Wait.Reason, d.Wait.Message, d.Wait.Again), done
	case reset.Drop:
		dropOperation(v.bmc)
		return loop.Holds(), done
	case reset.Ask: // once the gate permits it
	}
	if p, ok := v.permitted(ctx); !ok {
		return p, done
	}
	done.at = reset.Time(v.bmc.Status.Conditions, v.now)
	return loop.Waiting(v1alpha1.ReasonUserRequested, "the request is recorded before it is sent", 0).Then(v.askForReset()), done
}

// permitted asks the gate whether the BMC may be restarted at present. The gate counts the budget here (order 5).
func (v *scope) permitted(ctx context.Context) (loop.Progress, bool) {
	if v.Gate == nil {
		return loop.Progress{}, true
	}
	verdict, err := v.Gate.Permit(ctx, machineWith(v.bmc.Labels), fleet.BMCRestart)
	if err != nil {
		return loop.Broken(err), false
	}
	if !verdict.Allowed {
		return loop.Waiting(verdict.Reason, "the restart of the BMC is held back: "+verdict.Message, max(verdict.Again, postponedRetry)), false
	}
	return loop.Progress{}, true
}

// postponedRetry is the time between two looks at whether a restart is still postponed.
const postponedRetry = 30 * time.Second

// askForReset returns what is done once the request is stored (order 1).
func (v *scope) askForReset() func() {
	uid, want := string(v.bmc.UID), v.expected()
	return func() {
		underWay := reset.UnderWay(v.bmc.Status.Conditions)
		if underWay == nil {
			return
		}
		id, at := reset.ID(underWay.LastTransitionTime.Time), underWay.LastTransitionTime
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

// stillAsked returns the guard that reads past the cache, right before the request goes out (order 4), whether it is still
// wanted. It waits for what the gate says first, so that the read of the BMC is the last one.
func (v *scope) stillAsked(at metav1.Time) func(context.Context) error {
	name, uid, generation, labels := v.bmc.Name, v.bmc.UID, v.bmc.Generation, maps.Clone(v.bmc.Labels)
	return func(ctx context.Context) error {
		if err := v.postponed(ctx, (*fleet.Gate).Recheck, labels); err != nil {
			return err
		}
		now := &v1alpha1.BMC{}
		if err := v.Reader.Get(ctx, types.NamespacedName{Name: name}, now); err != nil {
			return unread(fmt.Errorf("the BMC object could not be read: %w", err))
		}
		stored := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReset)
		if now.UID != uid || now.Generation != generation || !now.DeletionTimestamp.IsZero() || v1alpha1.Ignored(now) ||
			stored == nil || stored.Status != metav1.ConditionTrue || !stored.LastTransitionTime.Equal(&at) {
			return errors.New("the BMC object has changed meanwhile")
		}
		return v.postponed(ctx, (*fleet.Gate).Look, now.Labels) // another freeze may cover it now
	}
}

// postponed says why the BMC may not be restarted any more, though it was permitted.
func (v *scope) postponed(ctx context.Context, ask func(*fleet.Gate, context.Context, *v1alpha1.Server, ...fleet.Action) (fleet.Verdict, error),
	labels map[string]string) error {
	if v.Gate == nil {
		return nil
	}
	verdict, err := ask(v.Gate, ctx, machineWith(labels), fleet.BMCRestart)
	if err != nil {
		return unread(fmt.Errorf("what is frozen is not known: %w", err))
	}
	if !verdict.Allowed {
		return &reset.PostponedError{Reason: verdict.Reason, Message: verdict.Message}
	}
	return nil
}

// machineWith is what the gate is asked about: the labels of a BMC are those of its servers.
func machineWith(labels map[string]string) *v1alpha1.Server {
	return &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
}

// unread postpones a restart for as long as the API server does not say whether it is still wanted.
func unread(err error) error { return &reset.PostponedError{Reason: "NotRead", Message: err.Error()} }

// dropOperation takes the operation annotation away.
func dropOperation(b *v1alpha1.BMC) {
	if b.Annotations != nil {
		delete(b.Annotations, v1alpha1.OperationAnnotation)
	}
}
