// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// wipedInventory tells of a wipe that was verified in entry 7 and recorded.
func wipedInventory() *policyv1alpha1.ServerInventory {
	i := wiping(policyv1alpha1.WipeVerified, 7)
	i.Report = &policyv1alpha1.ProbeReport{Entry: 7, ReceivedAt: ago(time.Minute), Purpose: policyv1alpha1.PurposeWipe}
	i.LastRecord = &policyv1alpha1.RecordReference{Name: machineUUID + "-000001", Sequence: 1, Hash: "a"}
	return i
}

// wipeRecord is the record of that wipe.
func wipeRecord() *policyv1alpha1.SanitizationRecord {
	r := &policyv1alpha1.SanitizationRecord{}
	r.Name, r.Spec.Hash, r.Spec.Entry, r.Spec.State = machineUUID+"-000001", "a", 7, policyv1alpha1.WipeVerified
	return r
}

// inCleanup is a server whose disks are erased in entry 7.
func inCleanup() *v1alpha1.Server {
	return serverIn(v1alpha1.StateCleanup, func(s *v1alpha1.Server) {
		s.Annotations[v1alpha1.ClaimUIDAnnotation] = "uid-web"
		released(s)
		s.Status.Lifecycle.Marks = []string{"Dirty", "Managed"}
	})
}

// cacheShows has the cache show an inventory, whatever is stored.
func (w *world) cacheShows(shown *policyv1alpha1.ServerInventory) {
	w.manager.Client = interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if i, is := o.(*policyv1alpha1.ServerInventory); is && shown != nil {
				shown.DeepCopyInto(i)
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
}

func TestAServerIsCalledCleanOnlyByAWipeThatTheStoreHas(t *testing.T) {
	for name, c := range map[string]struct {
		stored  func(*policyv1alpha1.ServerInventory) []client.Object
		offered bool
	}{
		"the wipe and its record": {func(i *policyv1alpha1.ServerInventory) []client.Object { return []client.Object{i, wipeRecord()} }, true},
		"a wipe that runs, as a restore of etcd leaves it": {func(i *policyv1alpha1.ServerInventory) []client.Object {
			i.Wipe.State, i.LastRecord = policyv1alpha1.WipeRunning, nil
			return []client.Object{i}
		}, false},
		"a wipe of another entry": {func(i *policyv1alpha1.ServerInventory) []client.Object {
			i.Wipe.Entry = 6
			return []client.Object{i, wipeRecord()}
		}, false},
		"no record of the wipe": {func(i *policyv1alpha1.ServerInventory) []client.Object { return []client.Object{i} }, false},
		"a record of a failure": {func(i *policyv1alpha1.ServerInventory) []client.Object {
			r := wipeRecord()
			r.Spec.State = policyv1alpha1.WipeFailed
			return []client.Object{i, r}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), append(c.stored(wipedInventory()), inCleanup())...)
				w.cacheShows(wipedInventory())
				w.manager.run(30 * time.Second)
				s, custody := w.server(), w.custodyOfA()
				if got := s.Status.State == v1alpha1.StateAvailable; got != c.offered {
					t.Errorf("offered: %t, want %t", got, c.offered)
				}
				if dirty := slices.Contains(s.Status.Lifecycle.Marks, "Dirty"); dirty == c.offered {
					t.Errorf("marks %v", s.Status.Lifecycle.Marks)
				}
				if kept := slices.Contains(custody.Marks, "Dirty"); kept == c.offered || (custody.Clean != nil) != c.offered {
					t.Errorf("custody: marks %v, clean %+v", custody.Marks, custody.Clean)
				}
				ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
				if said := ready != nil && ready.Reason == v1alpha1.ReasonWipeUnproven; said == c.offered {
					t.Errorf("Ready: %+v", ready)
				}
			})
		})
	}
}

func TestAServerIsOfferedOnceTheStoreProvesItsWipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), wipedInventory(), inCleanup())
		w.manager.run(30 * time.Second)
		if s := w.server().Status.State; s != v1alpha1.StateCleanup {
			t.Fatalf("without a record it came to %s", s)
		}
		if err := w.api.Create(t.Context(), wipeRecord()); err != nil {
			t.Fatal(err)
		}
		w.manager.run(30 * time.Second)
		if s := w.server().Status.State; s != v1alpha1.StateAvailable {
			t.Errorf("with its record it is in %s", s)
		}
	})
}

func TestTheCleanRecordRestsOnAWipeThatTheStoreHas(t *testing.T) {
	for name, c := range map[string]struct {
		stored func(*policyv1alpha1.ServerInventory)
		record bool
		clean  bool
	}{
		"the wipe and its record": {func(*policyv1alpha1.ServerInventory) {}, true, true},
		"a wipe that runs":        {func(i *policyv1alpha1.ServerInventory) { i.Wipe.State = policyv1alpha1.WipeRunning }, true, false},
		"no record of the wipe":   {func(*policyv1alpha1.ServerInventory) {}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stored := wipedInventory()
				c.stored(stored)
				objects := []client.Object{stored, serverIn(v1alpha1.StateAvailable, func(s *v1alpha1.Server) { s.Status.Lifecycle.Entry = 8 })}
				if c.record {
					objects = append(objects, wipeRecord())
				}
				w := inWorld(t, newMachine(redfish.PowerOff), objects...)
				w.cacheShows(wipedInventory())
				v := w.manager.observe(t)
				v.x.carryOut(t.Context(), plan.Effect(*v.seen, engine.Effect{Name: policies.EffectForgetHolder}))
				if custody := w.custodyOfA(); (custody.Clean != nil) != c.clean || (custody.LastHolder == nil) != c.clean {
					t.Errorf("clean %+v, holder %+v", custody.Clean, custody.LastHolder)
				}
			})
		})
	}
}
