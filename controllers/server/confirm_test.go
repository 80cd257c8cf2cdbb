// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/redfish"
)

// serverBecomes changes the stored server.
func serverBecomes(change func(*v1alpha1.Server)) func(*world) {
	return func(w *world) { edit(w, "a", &v1alpha1.Server{}, change) }
}

// statusBecomes changes the stored server's status.
func statusBecomes(change func(*v1alpha1.Server)) func(*world) {
	return func(w *world) {
		s := w.server()
		change(s)
		if err := w.api.Status().Update(w.t.Context(), s); err != nil {
			w.t.Fatal(err)
		}
	}
}

func consented(s *v1alpha1.Server) {
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver)
}

// claimBecomes changes the stored claim.
func claimBecomes(change func(*v1alpha1.ServerClaim)) func(*world) {
	return func(w *world) { edit(w, "web", &v1alpha1.ServerClaim{}, change) }
}

func claimGoes(w *world) {
	if err := w.api.Delete(w.t.Context(), &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}); err != nil {
		w.t.Fatal(err)
	}
}

// claimIsReplaced is a claim of the same name that somebody wrote in place of the one that was deleted.
func claimIsReplaced(w *world) {
	claim := &v1alpha1.ServerClaim{}
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, claim); err != nil {
		w.t.Fatal(err)
	}
	claimGoes(w)
	claim.UID, claim.ResourceVersion = "uid-new", ""
	if err := w.api.Create(w.t.Context(), claim); err != nil {
		w.t.Fatal(err)
	}
}

// claimIsBack is the claim as it was, which only a cache that lags had not shown.
func claimIsBack(w *world) {
	if err := w.api.Create(w.t.Context(), reserved(v1alpha1.PowerOff)[1]); err != nil {
		w.t.Fatal(err)
	}
}

// wipeBegins is the first word of an agent that erases the disks.
func wipeBegins(w *world) {
	edit(w, machineUUID, &policyv1alpha1.ServerInventory{}, func(i *policyv1alpha1.ServerInventory) {
		now := metav1.NewMicroTime(time.Now())
		i.Wipe = &policyv1alpha1.WipeReport{Entry: 7, State: policyv1alpha1.WipeRunning, StartedAt: now, UpdatedAt: now}
	})
}

// wipeEnds is the last word of that agent.
func wipeEnds(w *world) {
	edit(w, machineUUID, &policyv1alpha1.ServerInventory{}, func(i *policyv1alpha1.ServerInventory) { i.Wipe.State = policyv1alpha1.WipeVerified })
}

func serverGoes(w *world) {
	serverBecomes(func(s *v1alpha1.Server) { s.Finalizers = nil })(w)
	serverIsDeleted(w)
}

func serverIsDeleted(w *world) {
	if err := w.api.Delete(w.t.Context(), w.server()); err != nil {
		w.t.Fatal(err)
	}
}

// hasBMC gives the server a BMC object.
func hasBMC(w *world) {
	bmc := &v1alpha1.BMC{}
	bmc.Name, bmc.Spec.Access = "rack7", &v1alpha1.InlineEndpoint{IP: "10.0.0.7"}
	if err := w.api.Create(w.t.Context(), bmc); err != nil {
		w.t.Fatal(err)
	}
	serverBecomes(func(s *v1alpha1.Server) { s.Spec.BMCRef = &corev1.LocalObjectReference{Name: "rack7"} })(w)
}

func bmcAsks(operation string) func(*world) {
	return func(w *world) {
		bmc := &v1alpha1.BMC{}
		if err := w.api.Get(w.t.Context(), types.NamespacedName{Name: "rack7"}, bmc); err != nil {
			w.t.Fatal(err)
		}
		metav1.SetMetaDataAnnotation(&bmc.ObjectMeta, v1alpha1.OperationAnnotation, operation)
		if err := w.api.Update(w.t.Context(), bmc); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestWhatTheCacheDidNotShowYetIsSeenBeforeAnythingIsDone(t *testing.T) {
	nothing := func(*world) {}
	for name, c := range map[string]struct {
		before, changes func(*world)
		stale           string
	}{
		"nothing":                            {nothing, nothing, ""},
		"a label":                            {nothing, serverBecomes(func(s *v1alpha1.Server) { s.Labels = map[string]string{"rack": "7"} }), ""},
		"the claim's image":                  {nothing, claimBecomes(func(c *v1alpha1.ServerClaim) { c.Spec.Image = "other" }), ""},
		"a wipe that goes on":                {wipeBegins, nothing, ""},
		"a wipe that began":                  {nothing, wipeBegins, "the wipe"},
		"a wipe that ended":                  {wipeBegins, wipeEnds, "the wipe"},
		"a claim that asks for other power":  {nothing, claimBecomes(func(c *v1alpha1.ServerClaim) { c.Spec.Power = v1alpha1.PowerOn }), "the claim"},
		"a claim that is gone":               {nothing, claimGoes, "the claim"},
		"a claim that was replaced":          {nothing, claimIsReplaced, "the claim"},
		"a claim that the cache lacked":      {claimGoes, claimIsBack, "the claim"},
		"a claim that is still not there":    {claimGoes, nothing, ""},
		"a reference to another claim":       {nothing, serverBecomes(func(s *v1alpha1.Server) { s.Spec.ServerClaimRef.Name = "db" }), "the claim reference"},
		"a claim that lets go of the server": {nothing, claimBecomes(func(c *v1alpha1.ServerClaim) { c.Spec.ServerRef = nil }), "the claim"},
		"a released claim that is gone":      {serverBecomes(released), claimGoes, ""},
		"a released claim that was replaced": {serverBecomes(released), claimIsReplaced, "the claim"},
		"a release":                          {nothing, serverBecomes(released), "the release record"},
		"another holder":                     {nothing, serverBecomes(func(s *v1alpha1.Server) { s.Annotations[v1alpha1.ClaimUIDAnnotation] = "uid-other" }), "the holder"},
		"a cleared reference":                {nothing, serverBecomes(func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil }), "the claim reference"},
		"a retained server":                  {nothing, serverBecomes(func(s *v1alpha1.Server) { s.Spec.ReclaimPolicy = v1alpha1.ReclaimPolicyRetain }), "the reclaim policy"},
		"another machine":                    {nothing, serverBecomes(func(s *v1alpha1.Server) { s.Spec.SystemUUID = "1a2b3c4d-0000-0000-0000-000000000002" }), "the system UUID"},
		"another system of its BMC":          {nothing, serverBecomes(func(s *v1alpha1.Server) { s.Spec.SystemURI = "/redfish/v1/Systems/2" }), "its BMC"},
		"another BMC":                        {nothing, serverBecomes(func(s *v1alpha1.Server) { s.Spec.BMC.Address = "10.0.0.2" }), "its BMC"},
		"a consent":                          {statusBecomes(marked("Dirty")), serverBecomes(consented), "the consent"},
		"a consent that is taken back": {func(w *world) {
			statusBecomes(marked("Dirty"))(w)
			serverBecomes(consented)(w)
		}, serverBecomes(func(s *v1alpha1.Server) { delete(s.Annotations, v1alpha1.ConsentAnnotation) }), "the consent"},
		"a consent to what is ours already": {nothing, serverBecomes(consented), ""},
		"a consent that was used up": {serverBecomes(consented), serverBecomes(func(s *v1alpha1.Server) {
			delete(s.Annotations, v1alpha1.ConsentAnnotation)
		}), ""},
		"a maintenance": {nothing, serverBecomes(inService), "the maintenance reference"},
		"another maintenance": {serverBecomes(inService), serverBecomes(func(s *v1alpha1.Server) {
			s.Spec.ServerMaintenanceRef.Name = "fans"
		}), "the maintenance reference"},
		"a maintenance that is over": {serverBecomes(inService), serverBecomes(func(s *v1alpha1.Server) {
			s.Spec.ServerMaintenanceRef = nil
		}), "the maintenance reference"},
		"hands off": {nothing, serverBecomes(operates(v1alpha1.OperationIgnore)), "the ignore annotation"},
		"hands off, in a word of a release to come": {nothing, serverBecomes(operates("ignore-for-audit")), "the ignore annotation"},
		"hands off, as its BMC asks": {nothing, serverBecomes(func(s *v1alpha1.Server) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.HeldByBMCAnnotation, "rack7")
		}), "the ignore annotation"},
		"hands off, as its BMC has just begun to ask": {hasBMC, bmcAsks("ignore-child"), "the ignore annotation of its BMC"},
		"hands off its BMC alone":                     {hasBMC, bmcAsks("ignore"), ""},
		"another state":                               {nothing, statusBecomes(func(s *v1alpha1.Server) { s.Status.State = v1alpha1.StateParked }), "the state"},
		"another entry":                               {nothing, statusBecomes(func(s *v1alpha1.Server) { s.Status.Lifecycle.Entry++ }), "the state"},
		"a lost lifecycle":                            {nothing, statusBecomes(func(s *v1alpha1.Server) { s.Status.Lifecycle = nil }), "the state"},
		"a deletion":                                  {nothing, serverIsDeleted, "its deletion"},
		"a server that went":                          {nothing, serverGoes, "the server's existence"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inventory := &policyv1alpha1.ServerInventory{}
				inventory.Name, inventory.Spec.SystemUUID = machineUUID, machineUUID
				w := inWorld(t, newMachine(redfish.PowerOn), append(reserved(v1alpha1.PowerOff), inventory)...)
				c.before(w)
				v := w.manager.observe(t)
				before := v.x.decided()
				c.changes(w)
				if stale, err := before.stale(t.Context()); err != nil || stale != c.stale {
					t.Errorf("before a write to the BMC %q is stale (%v), want %q", stale, err, c.stale)
				}
				p := v.x.confirm(t.Context(), fleet.Record)
				ok := p.Phase == loop.Done
				if ok != (c.stale == "") || (!ok && p.Reason != "StaleRead") {
					t.Errorf("before a write to the API: confirmed: %+v", p)
				}
			})
		})
	}
}

// observe is a scope of the server as it is stored now.
func (p *process) observe(t *testing.T) *scope {
	t.Helper()
	v, err := p.subject.Observe(t.Context(), p.world.server())
	if err != nil {
		t.Fatal(err)
	}
	return v.(*scope)
}

func TestAnInventoryThatWasWrittenSinceIsSeenBeforeAnythingIsDone(t *testing.T) {
	running := policyv1alpha1.WipeRunning
	for name, c := range map[string]struct {
		named string
		wipe  policyv1alpha1.WipeState
		stale string
	}{
		"one whose disks are being erased":    {machineUUID, running, "the wipe"},
		"one named by the UUID's other order": {uuids.Swap(machineUUID), running, "the wipe"},
		"one whose disks were erased":         {machineUUID, policyv1alpha1.WipeVerified, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOn), reserved(v1alpha1.PowerOff)...)
				before := w.manager.observe(t).x.decided()
				now := metav1.NewMicroTime(time.Now())
				inventory := &policyv1alpha1.ServerInventory{Wipe: &policyv1alpha1.WipeReport{Entry: 7, State: c.wipe, StartedAt: now, UpdatedAt: now}}
				inventory.Name, inventory.Spec.SystemUUID = c.named, machineUUID
				if err := w.api.Create(t.Context(), inventory); err != nil {
					t.Fatal(err)
				}
				if stale, err := before.stale(t.Context()); err != nil || stale != c.stale {
					t.Errorf("%q is stale (%v), want %q", stale, err, c.stale)
				}
			})
		})
	}
}

func TestAnAPIServerThatDoesNotAnswerConfirmsNothing(t *testing.T) {
	for name, kind := range map[string]client.Object{
		"about the server": &v1alpha1.Server{}, "about the claim": &v1alpha1.ServerClaim{}, "about the wipe": &policyv1alpha1.ServerInventory{},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inventory := &policyv1alpha1.ServerInventory{}
				inventory.Name, inventory.Spec.SystemUUID = machineUUID, machineUUID
				w := inWorld(t, newMachine(redfish.PowerOn), append(reserved(v1alpha1.PowerOff), inventory)...)
				w.manager.Reader = interceptor.NewClient(w.api, interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
						if reflect.TypeOf(o) == reflect.TypeOf(kind) {
							return errDown
						}
						return c.Get(ctx, key, o, opts...)
					},
				})
				v := w.manager.observe(t)
				if _, err := v.x.decided().stale(t.Context()); !errors.Is(err, errDown) {
					t.Errorf("before a write to the BMC: %v", err)
				}
				if p := v.x.confirm(t.Context(), fleet.Record); p.Phase == loop.Done || !errors.Is(p.Err, errDown) {
					t.Errorf("before a write to the API: confirmed: %+v", p)
				}
			})
		})
	}
}

func TestAFreezeThatCameWhileARequestWaitedHoldsItBack(t *testing.T) {
	frozen := func(level policyv1alpha1.FreezeLevel, rack string) policyv1alpha1.FleetControlSpec {
		return policyv1alpha1.FleetControlSpec{Freezes: []policyv1alpha1.Freeze{{Name: "incident", Level: level,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"rack": rack}}}}}
	}
	spent := int32(0)
	for name, c := range map[string]struct {
		spec policyv1alpha1.FleetControlSpec
		held []fleet.Action
	}{
		"at level Destructive":        {frozen(policyv1alpha1.FreezeDestructive, "r1"), []fleet.Action{fleet.Shutdown, fleet.ForcedOff, fleet.PowerCycle, fleet.Wipe}},
		"at level All":                {frozen(policyv1alpha1.FreezeAll, "r1"), []fleet.Action{fleet.Setting, fleet.PowerOn, fleet.Shutdown, fleet.ForcedOff, fleet.PowerCycle, fleet.Wipe}},
		"but not of other servers":    {frozen(policyv1alpha1.FreezeAll, "r2"), nil},
		"but no budget, which it has": {policyv1alpha1.FleetControlSpec{Budgets: []policyv1alpha1.Budget{{Name: "b", Action: policyv1alpha1.ActionForcedOff, Max: &spent}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOn), reserved(v1alpha1.PowerOff, func(s *v1alpha1.Server) {
					s.Labels = map[string]string{"rack": "r1"}
				})...)
				v := w.manager.observe(t)
				if p := v.x.permitted(t.Context(), fleet.ForcedOff); p.Phase != loop.Done {
					t.Fatalf("not permitted: %+v", p)
				}
				decided := v.x.decided()
				control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}, Spec: c.spec}
				if err := w.api.Create(t.Context(), control); err != nil {
					t.Fatal(err)
				}
				var held []fleet.Action
				for _, action := range []fleet.Action{fleet.Setting, fleet.PowerOn, fleet.Shutdown, fleet.ForcedOff, fleet.PowerCycle, fleet.Wipe} {
					if decided.heldBack(t.Context(), []fleet.Action{action}) != nil {
						held = append(held, action)
					}
				}
				if !slices.Equal(held, c.held) {
					t.Errorf("held back: %v, want %v", held, c.held)
				}
			})
		})
	}
}

func TestNothingIsAskedWhileItCannotBeToldWhatIsFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOn), reserved(v1alpha1.PowerOff)...)
		decided := w.manager.observe(t).x.decided()
		down := interceptor.NewClient(w.api, interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return errDown
			},
		})
		decided.Gate.Reader = down
		if err := decided.heldBack(t.Context(), []fleet.Action{fleet.ForcedOff}); !errors.Is(err, errDown) {
			t.Errorf("%v", err)
		}
	})
}

func TestTheServerIsReadAfterTheWaitForTheGateAndTheCacheIsTheLastLook(t *testing.T) {
	night := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
	night.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "night", Level: policyv1alpha1.FreezeAll}}
	for name, c := range map[string]struct {
		action  fleet.Action
		freezes bool // while the server is read
		reads   []string
		ok      bool
	}{
		"a record reads nothing twice": {fleet.Record, false, nil, true},
		"a wipe":                       {fleet.Wipe, false, []string{"FleetControl", "Server", "ServerClaim"}, true},
		"a wipe that is frozen while the server is read": {fleet.Wipe, true, []string{"FleetControl", "Server", "ServerClaim"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOn), reserved(v1alpha1.PowerOff)...)
				var reads []string
				freezes := false
				live := interceptor.NewClient(w.api, interceptor.Funcs{
					Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
						kind := reflect.TypeOf(o).Elem().Name()
						if kind != "ServerInventory" { // asked for in both spellings of its name
							reads = append(reads, kind)
						}
						if freezes && kind == "Server" {
							if err := api.Create(ctx, night.DeepCopy()); err != nil {
								t.Error(err)
							}
						}
						return api.Get(ctx, key, o, opts...)
					},
				})
				w.manager.Reader, w.manager.Gate.Reader = live, live
				v := w.manager.observe(t)
				if p := v.x.confirm(t.Context(), fleet.Record); p.Phase != loop.Done {
					t.Fatalf("not confirmed: %+v", p)
				}
				reads, freezes = nil, c.freezes
				p := v.x.confirm(t.Context(), c.action)
				ok := p.Phase == loop.Done
				if ok != c.ok || (!ok && p.Reason != v1alpha1.ReasonFrozen) {
					t.Errorf("confirmed %t, %+v", ok, p)
				}
				if !slices.Equal(reads, c.reads) {
					t.Errorf("reads past the cache: %v, want %v", reads, c.reads)
				}
			})
		})
	}
}

// stale names the first thing that is stored otherwise than the decision took it to be; empty where there is none.
func (d decided) stale(ctx context.Context) (string, error) {
	_, stale, err := d.look(ctx)
	return stale, err
}
