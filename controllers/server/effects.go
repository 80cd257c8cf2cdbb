// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// Apply implements loop.Visit.
func (v *visit) Apply(ctx context.Context, effect engine.Effect) loop.Progress {
	if v.held {
		return loop.Waiting(waitsForReading, "a fresh reading of the BMC", 0)
	}
	return v.carryOut(ctx, effect)
}

// carryOut has one line for each effect of the vocabulary.
func (v *visit) carryOut(ctx context.Context, effect engine.Effect) loop.Progress {
	switch effect.Name {
	case engine.MarkEffect:
		return v.storeMark(ctx, effect.Param("mark").Text())
	case policies.EffectPowerOff:
		return v.powerOff(ctx, effect)
	case policies.EffectPowerOn:
		return v.powerOn(ctx)
	case policies.EffectPowerAsClaimed:
		return v.powerAsClaimed(ctx)
	case policies.EffectBootProbe:
		return v.bootAgent(ctx, v.probeBoot())
	case policies.EffectBootWipe:
		return v.bootAgent(ctx, v.wipeBoot())
	case policies.EffectBootAsClaimed:
		return v.bootAsClaimed(ctx)
	case policies.EffectClearBoot:
		return v.clearBoot(ctx)
	case policies.EffectReleaseClaim:
		return v.releaseClaim(ctx)
	case policies.EffectForgetHolder:
		return v.forgetHolder(ctx)
	case policies.EffectResetAsAsked:
		return v.resetAsAsked(ctx)
	case policies.EffectLocate:
		return v.locate(ctx, effect)
	case policies.EffectApplyBootOrder:
		return v.applyBootOrder(ctx)
	case policies.EffectMaintain:
		return loop.Holds() // a maintenance is granted by its own controller, which brings what it asks for
	}
	return loop.Failing("UnknownEffect", "this version cannot carry out "+effect.Name, 0)
}

// confirm reads the server past the cache, once in a reconcile, before anything is done that cannot be undone, and
// compares everything that such an action relies on.
func (v *visit) confirm(ctx context.Context) (loop.Progress, bool) {
	if v.confirmed {
		return loop.Progress{}, true
	}
	now := &v1alpha1.Server{}
	if err := v.Reader.Get(ctx, types.NamespacedName{Name: v.server.Name}, now); err != nil {
		if apierrors.IsNotFound(err) {
			return loop.Waiting("StaleRead", "the server is gone", 0), false
		}
		return loop.Broken(err), false
	}
	if stale := v.differs(now); stale != "" {
		return loop.Waiting("StaleRead", "the cache to show that "+stale+" changed", 100*time.Millisecond), false
	}
	if stale, err := v.surroundingsDiffer(ctx); err != nil {
		return loop.Broken(err), false
	} else if stale != "" {
		return loop.Waiting("StaleRead", "the cache to show that "+stale+" changed", 100*time.Millisecond), false
	}
	v.confirmed = true
	return loop.Progress{}, true
}

// surroundingsDiffer reads past the cache what other replicas and users write: whether an erase is under way, and what
// the claim asks for.
func (v *visit) surroundingsDiffer(ctx context.Context) (string, error) {
	if v.inventory != nil {
		now := &policyv1alpha1.ServerInventory{}
		err := v.Reader.Get(ctx, client.ObjectKeyFromObject(v.inventory), now)
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
		seen := policies.Observation{Server: v.server, Now: v.now, Settings: v.settings(), Inventory: now}
		if seen.Facts().Wipe.Running != v.facts.Wipe.Running {
			return "the wipe", nil
		}
	}
	if v.claim == nil {
		return "", nil
	}
	now := &v1alpha1.ServerClaim{}
	if err := v.Reader.Get(ctx, client.ObjectKeyFromObject(v.claim), now); err != nil {
		if apierrors.IsNotFound(err) {
			return "the claim", nil
		}
		return "", err
	}
	if now.UID != v.claim.UID || now.Spec.Power != v.claim.Spec.Power || now.DeletionTimestamp.IsZero() != v.claim.DeletionTimestamp.IsZero() {
		return "the claim", nil
	}
	return "", nil
}

// differs names the first thing in which the stored server is not as the decision took it to be.
func (v *visit) differs(now *v1alpha1.Server) string {
	was := v.server
	switch {
	case now.UID != was.UID:
		return "the object"
	case now.DeletionTimestamp != nil:
		return "it"
	case now.Status.State != was.Status.State || now.Status.Lifecycle == nil || now.Status.Lifecycle.Entry != was.Status.Lifecycle.Entry:
		return "the state"
	case policies.Ignored(now):
		return "the ignore annotation"
	case (now.Spec.ServerClaimRef == nil) != (was.Spec.ServerClaimRef == nil):
		return "the claim reference"
	case now.Annotations[v1alpha1.ClaimUIDAnnotation] != was.Annotations[v1alpha1.ClaimUIDAnnotation]:
		return "the holder"
	case now.Annotations[v1alpha1.ReleasedClaimAnnotation] != was.Annotations[v1alpha1.ReleasedClaimAnnotation]:
		return "the release record"
	case now.Spec.ReclaimPolicy != was.Spec.ReclaimPolicy:
		return "the reclaim policy"
	case now.Spec.SystemUUID != was.Spec.SystemUUID:
		return "the system UUID"
	}
	return ""
}

// ledRetry is the time between two attempts to set a light that cannot be set.
const ledRetry = 10 * time.Minute

// locate shows what spec.indicatorLED asks, or what the state asks where that is silent. A light that cannot be set
// holds nothing back.
func (v *visit) locate(ctx context.Context, effect engine.Effect) loop.Progress {
	wanted := redfish.IndicatorLED(v.server.Spec.IndicatorLED)
	if wanted == "" || wanted == redfish.LEDUnknown {
		wanted = redfish.IndicatorLED(effect.Param("unlessAsked").Text())
	}
	shown := v.reading.Value.LED
	if wanted == "" || !v.reading.Reachable() || shown == wanted || shown == redfish.LEDUnknown || shown == "" {
		return loop.Holds()
	}
	id := v.jobID("led-" + string(wanted))
	if job, known := v.Desk.Known(v.server.Name, id); known {
		if job.State == hardware.JobFailed && v.now.Sub(job.EndedAt) > ledRetry {
			v.note(true, "LocatorFailed", "the locator light could not be set: "+words(job.Err))
			v.Desk.Repeat(v.server.Name, id)
		}
		return loop.Holds()
	}
	if p, ok := v.confirm(ctx); !ok {
		return p
	}
	uri, want := v.server.Spec.SystemURI, v.want()
	v.Desk.Do(v.server.Name, v.target, id, func(ctx context.Context, bmc redfish.BMC) error { return bmc.SetLED(ctx, uri, want, wanted) })
	return loop.Holds()
}

// applyBootOrder asserts spec.bootOrder, lowest priority first.
func (v *visit) applyBootOrder(ctx context.Context) loop.Progress {
	order := slices.Clone(v.server.Spec.BootOrder)
	if len(order) == 0 || !v.reading.Reachable() {
		return loop.Holds()
	}
	slices.SortStableFunc(order, func(a, b v1alpha1.BootOrder) int { return int(a.Priority - b.Priority) })
	var devices []string
	for _, o := range order {
		devices = append(devices, o.Device)
	}
	shown := v.reading.Value.BootOrder
	if len(shown) >= len(devices) && slices.Equal(shown[:len(devices)], devices) {
		return loop.Holds()
	}
	uri, want := v.server.Spec.SystemURI, v.want()
	id := v.jobID("boot-order-" + strings.Join(devices, ","))
	if job, known := v.Desk.Known(v.server.Name, id); known && job.State == hardware.JobSucceeded {
		return loop.Holds() // the BMC accepted it; some show it only after the next boot
	}
	p := v.once(ctx, id, "boot order", func(ctx context.Context, bmc redfish.BMC) error { return bmc.SetBootOrder(ctx, uri, want, devices) })
	if p.Phase == loop.Failed && p.Err == nil {
		v.note(true, "BootOrderFailed", p.Message)
		v.wakeIn(p.Again)
		return loop.Holds() // the machine boots all the same
	}
	return p
}
