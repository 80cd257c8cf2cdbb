// SPDX-License-Identifier: Apache-2.0

package restored

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/restored/doubt"
	"github.com/metalaw/metalaw/internal/mergepatch"
)

const (
	// interval is the time between two looks at the store.
	interval = 30 * time.Second
	// FreezeName is the name of the freeze that a manager sets which notices a restore.
	FreezeName = "store-restored"
)

// ReasonStoreRestored says that the cluster's store went back, so that a manager froze the fleet.
const ReasonStoreRestored = "StoreRestored"

// watch looks whether the store of the API server went back.
type watch struct {
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	interval time.Duration
	frozen   prometheus.Gauge
	store    doubt.Store
}

func newWatch(c client.Client, live client.Reader, recorder events.EventRecorder, every time.Duration) *watch {
	return &watch{client: c, live: live, recorder: recorder, interval: every, frozen: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "metalaw_store_restored", Help: "1 while the freeze stands that a manager sets which noticed a restore of the cluster's store."})}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: each replica remembers what it heard.
func (w *watch) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (w *watch) Start(ctx context.Context) error {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			logf.FromContext(ctx).WithName("restored").Error(err, "whether the cluster's store was restored cannot be told now")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look asks for one consistent list, and freezes the fleet where the store went back. A freeze that cannot be stored is tried again.
func (w *watch) look(ctx context.Context) error {
	var list policyv1alpha1.FleetControlList
	if err := w.live.List(ctx, &list, client.Limit(1)); err != nil {
		return err
	}
	w.frozen.Set(0)
	if slices.ContainsFunc(list.Items, func(c policyv1alpha1.FleetControl) bool {
		return slices.ContainsFunc(c.Spec.Freezes, func(f policyv1alpha1.Freeze) bool { return f.Name == FreezeName })
	}) {
		w.frozen.Set(1)
	}
	w.store = w.store.Hear(list.ResourceVersion)
	if !w.store.Restored() {
		return nil
	}
	control, added, err := w.freeze(ctx)
	if err != nil {
		return fmt.Errorf("the store went back from %d to %d, and the fleet could not be frozen: %w", w.store.Highest, w.store.Heard, err)
	}
	logf.FromContext(ctx).WithName("restored").Info("the cluster's store was restored, so the fleet is frozen",
		"from", w.store.Highest, "to", w.store.Heard, "freeze", FreezeName, "added", added)
	w.frozen.Set(1)
	if w.recorder != nil && added {
		w.recorder.Eventf(control, nil, corev1.EventTypeWarning, ReasonStoreRestored, "Freeze", "%s", w.words())
	}
	w.store = w.store.Known()
	return nil
}

func (w *watch) words() string {
	return fmt.Sprintf("The cluster's store went back from resource version %d to %d: it was restored. What is stored may be older than "+
		"the machines. Run metalaw restored, compare, confirm, and then lift this freeze", w.store.Highest, w.store.Heard)
}

// freeze adds the freeze to the FleetControl, and makes that where there is none. It says whether it added one.
func (w *watch) freeze(ctx context.Context) (*policyv1alpha1.FleetControl, bool, error) {
	control := &policyv1alpha1.FleetControl{}
	err := w.live.Get(ctx, types.NamespacedName{Name: policyv1alpha1.FleetControlName}, control)
	if client.IgnoreNotFound(err) != nil {
		return nil, false, err
	}
	wanted := policyv1alpha1.Freeze{Name: FreezeName, Level: policyv1alpha1.FreezeAll, By: v1alpha1.FieldManager, Reason: w.words()}
	if apierrors.IsNotFound(err) {
		control = &policyv1alpha1.FleetControl{}
		control.Name = policyv1alpha1.FleetControlName
		control.Spec.Freezes = []policyv1alpha1.Freeze{wanted}
		return control, true, w.client.Create(ctx, control)
	}
	before := control.DeepCopy()
	at := slices.IndexFunc(control.Spec.Freezes, func(f policyv1alpha1.Freeze) bool { return f.Name == FreezeName })
	switch {
	case at < 0:
		control.Spec.Freezes = append(control.Spec.Freezes, wanted)
	case control.Spec.Freezes[at].Level == wanted.Level && control.Spec.Freezes[at].Selector == nil && control.Spec.Freezes[at].Until == nil:
		return control, false, nil // another replica was first
	default:
		control.Spec.Freezes[at] = wanted
	}
	return control, true, w.client.Patch(ctx, control, mergepatch.Locked(before))
}
