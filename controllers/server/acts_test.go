// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/call"
	"github.com/metalaw/metalaw/controllers/server/identity"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/metalprobe"
	"github.com/metalaw/metalaw/redfish"
)

// errForbidden is what the API server answers if the manager lacks a right.
var errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "a", errors.New("no"))

// answers has each write to the API server fail.
func answers(err error) func(*world, *executor) {
	return func(w *world, x *executor) {
		x.Client = interceptor.NewClient(w.api, interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return err },
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return err
			},
			Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return err },
			Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return err },
		})
	}
}

// unread has each read past the cache fail.
func unread(w *world, x *executor) {
	x.Reader = interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errDown
		},
	})
	x.Gate.Client, x.Gate.Reader = x.Reader, x.Reader
}

func observeOnly(_ *world, x *executor) { x.Gate.ObserveOnly = true }

// freezes stores a freeze of everything.
func freezes(w *world, _ *executor) {
	c := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
	c.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "night", Level: policyv1alpha1.FreezeAll}}
	if err := w.api.Create(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}

// moves has the stored server change meanwhile.
func moves(w *world, _ *executor) {
	edit(w, "a", &v1alpha1.Server{}, func(s *v1alpha1.Server) { s.Spec.ReclaimPolicy = v1alpha1.ReclaimPolicyRetain })
}

// credited has the server bear the credential that its ignition was written with.
func credited(_ *world, x *executor) {
	x.server.Status.Lifecycle.Credential = &v1alpha1.ProbeCredential{Purpose: v1alpha1.ProbePurposeProbe, Entry: 7}
}

// othersWrote makes objects that others wrote.
func othersWrote(objects ...client.Object) func(*world, *executor) {
	return func(w *world, _ *executor) {
		for _, o := range objects {
			if err := w.api.Create(w.t.Context(), o); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// both does one thing after another.
func both(all ...func(*world, *executor)) func(*world, *executor) {
	return func(w *world, x *executor) {
		for _, each := range all {
			each(w, x)
		}
	}
}

func nothingElse(*world, *executor) {}

// exists says that the API server has an object.
func exists(w *world, o client.Object, namespace, name string) bool {
	err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err == nil
}

// came is a progress in words.
func came(p loop.Progress) string {
	switch {
	case p.Err != nil:
		return "broken"
	case p.Phase == loop.Done:
		return "done"
	case p.Phase == loop.Failed:
		return "refused " + p.Reason
	}
	return "waits " + p.Reason
}

// mine is an object that the server a controls.
func mine() metav1.ObjectMeta {
	owner := metav1.NewControllerRef(serverIn(v1alpha1.StateDiscovery), v1alpha1.GroupVersion.WithKind("Server"))
	return metav1.ObjectMeta{Namespace: "metalaw-system", Name: "a", UID: "uid-made", OwnerReferences: []metav1.OwnerReference{*owner}}
}

func foreign() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "metalaw-system", Name: "a", UID: "uid-other"}
}

// bound are the server a and the claim shop/web that holds it.
func bound() []client.Object { return reserved(v1alpha1.PowerOn)[:2] }

func TestEachActIsDoneOrSaysWhyItIsNot(t *testing.T) {
	probe := boots.Probe(serverIn(v1alpha1.StateDiscovery), "metalaw-system", "probe")
	keep := plan.Keep{To: plan.InCustody(func(c *policyv1alpha1.Custody) { c.ServerName = "a" })}
	ignition := plan.Ignition{Agent: probe, Config: metalprobe.Config{RegistryURL: "https://registry", ServerUUID: machineUUID,
		Purpose: metalprobe.PurposeProbe, Entry: 7}}
	attest := plan.Attest{Answer: operations.Answer{AttestedDisk: policyv1alpha1.AttestedDisk{CustodyDisk: policyv1alpha1.CustodyDisk{Serial: "S"}}}}
	prove := plan.Prove{Settled: policyv1alpha1.SettledIdentity{By: "jane", Reason: "saw it"}}
	owned := func(w *world) plan.Act {
		claim := &v1alpha1.ServerClaim{}
		exists(w, claim, "shop", "web")
		return plan.OwnedBoot{In: boots.OwnedInput{Server: w.server(), Owner: boots.OfClaim(w.server(), claim, ""), Now: time.Now()}}
	}
	act := func(a plan.Act) func(*world) plan.Act { return func(*world) plan.Act { return a } }
	inventory := func(w *world, _ *executor) bool { return exists(w, &policyv1alpha1.ServerInventory{}, "", machineUUID) }
	none := func(of func(*world, *executor) bool) func(*world, *executor) bool {
		return func(w *world, x *executor) bool { return !of(w, x) }
	}
	boot := func(w *world, _ *executor) bool {
		return exists(w, &v1alpha1.ServerBootConfiguration{}, "metalaw-system", "a")
	}
	secret := func(w *world, _ *executor) bool { return exists(w, &corev1.Secret{}, "metalaw-system", "a") }
	told := func(_ *world, x *executor) bool { return x.answers.Verdict != nil && !x.answers.LetThrough }
	let := func(_ *world, x *executor) bool { return x.answers.Verdict == nil && x.answers.LetThrough }
	for name, c := range map[string]struct {
		before func(*world, *executor)
		act    func(*world) plan.Act
		came   string
		// holds is what is so afterwards.
		holds func(*world, *executor) bool
	}{
		"Set": {nothingElse, act(plan.Set{To: func(s *v1alpha1.Server) { s.Spec.BootOrder = nil; s.Labels = map[string]string{"x": "y"} }}), "done",
			func(_ *world, x *executor) bool {
				return x.server.Labels["x"] == "y" && x.seen.Server == x.server && !x.answers.Unbooted
			}},
		"Set of the reference to a boot": {func(_ *world, x *executor) { x.server.Spec.BootConfigurationRef = &v1alpha1.ObjectReference{} },
			act(plan.Set{To: func(s *v1alpha1.Server) { s.Spec.BootConfigurationRef = nil }}), "done",
			func(_ *world, x *executor) bool { return x.answers.Unbooted }},
		"Remember": {nothingElse, act(plan.Remember{To: func(m *plan.Memory) { m.Asked = time.Unix(1, 0) }}), "done",
			func(_ *world, x *executor) bool { return x.seen.Memory.Asked.Equal(time.Unix(1, 0)) }},
		"Tell": {nothingElse, act(plan.Tell{Note: operations.Note{Reason: "LocatorFailed"}}), "done",
			func(_ *world, x *executor) bool { return len(x.notes) == 1 && x.notes[0].Reason == "LocatorFailed" }},
		"Wake": {func(_ *world, x *executor) { x.wake = time.Minute }, act(plan.Wake{In: time.Second}), "done",
			func(_ *world, x *executor) bool { return x.wake == time.Second && !x.answers.AwaitsBMC }},
		"Wake later than another": {func(_ *world, x *executor) { x.wake = time.Second }, act(plan.Wake{In: time.Minute, ForBMC: true}), "done",
			func(_ *world, x *executor) bool { return x.wake == time.Second && x.answers.AwaitsBMC }},
		"Refresh": {nothingElse, act(plan.Refresh{}), "done", func(_ *world, x *executor) bool { return x.seen.Memory.Waits.Equal(x.seen.Now) }},
		"Try holds nothing back": {observeOnly, act(plan.Try{Steps: plan.Steps{Acts: []plan.Act{plan.Permit{Actions: []fleet.Action{fleet.Setting}}, keep},
			Then: loop.Waiting("WaitsForEject", "m", 0)}}), "done", none(inventory)},

		"Permit":                {nothingElse, act(plan.Permit{Actions: []fleet.Action{fleet.PowerOn, fleet.Wipe}}), "done", let},
		"Permit, frozen":        {freezes, act(plan.Permit{Actions: []fleet.Action{fleet.Record, fleet.Wipe}}), "waits Frozen", told},
		"Permit, only observed": {observeOnly, act(plan.Permit{Actions: []fleet.Action{fleet.Record}}), "waits ObserveOnly", told},
		"Permit, unread":        {unread, act(plan.Permit{Actions: []fleet.Action{fleet.Wipe}}), "broken", none(let)},
		"Recheck":               {nothingElse, act(plan.Recheck{Actions: []fleet.Action{fleet.PowerOn}}), "done", none(told)},
		"Recheck, frozen":       {freezes, act(plan.Recheck{Actions: []fleet.Action{fleet.PowerOn}}), "waits Frozen", told},
		"Recheck, unread":       {unread, act(plan.Recheck{Actions: []fleet.Action{fleet.PowerOn}}), "broken", none(let)},
		"Confirm":               {nothingElse, act(plan.Confirm{Action: fleet.Wipe}), "done", func(_ *world, x *executor) bool { return x.confirmed }},
		"Confirm, frozen":       {freezes, act(plan.Confirm{Action: fleet.Wipe}), "waits Frozen", func(_ *world, x *executor) bool { return !x.confirmed }},
		"Confirm, stale":        {moves, act(plan.Confirm{Action: fleet.Record}), "waits StaleRead", func(_ *world, x *executor) bool { return !x.confirmed }},
		"Confirm, unread":       {unread, act(plan.Confirm{Action: fleet.Record}), "broken", func(_ *world, x *executor) bool { return !x.confirmed }},
		"ConfirmClaim":          {nothingElse, act(plan.ConfirmClaim{}), "done", let},
		"ConfirmClaim, stale": {func(w *world, _ *executor) { w.claims(v1alpha1.PowerOff) }, act(plan.ConfirmClaim{}), "waits StaleRead",
			func(_ *world, x *executor) bool { return !x.confirmed }},
		"ConfirmClaim, only observed": {observeOnly, act(plan.ConfirmClaim{}), "waits ObserveOnly", told},
		"ConfirmClaim, unread":        {unread, act(plan.ConfirmClaim{}), "broken", none(told)},
		"ProveRest, of no wipe":       {nothingElse, act(plan.ProveRest{Entry: 6}), "done", none(told)},
		"ProveRest, of a wipe that the store lacks": {func(_ *world, x *executor) {
			x.seen.Inventory = &policyv1alpha1.ServerInventory{Wipe: &policyv1alpha1.WipeReport{Entry: 6, State: policyv1alpha1.WipeVerified}}
		}, act(plan.ProveRest{Entry: 6}), "refused WipeUnproven", none(told)},

		"Keep":                {nothingElse, act(keep), "done", inventory},
		"Keep, what stands":   {both(othersWrote(&policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: machineUUID}, Custody: &policyv1alpha1.Custody{ServerName: "a"}}), answers(errDown)), act(keep), "done", inventory},
		"Keep, in conflict":   {both(othersWrote(&policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: machineUUID}}), answers(errConflict)), act(keep), "waits LostRace", inventory},
		"Keep, refused":       {answers(errForbidden), act(keep), "refused WriteRefused", none(inventory)},
		"Keep, unanswered":    {answers(errDown), act(keep), "broken", none(inventory)},
		"Keep, unread":        {unread, act(keep), "broken", none(inventory)},
		"Attest":              {nothingElse, act(attest), "done", func(_ *world, x *executor) bool { return x.answers.Attested != nil }},
		"Attest, in conflict": {answers(errConflict), act(attest), "waits LostRace", func(_ *world, x *executor) bool { return x.answers.Attested == nil }},
		"Attest, refused":     {answers(errForbidden), act(attest), "refused WriteRefused", func(_ *world, x *executor) bool { return x.answers.Attested == nil }},
		"Prove":               {nothingElse, act(prove), "done", func(_ *world, x *executor) bool { return x.answers.Proved != nil }},
		"Prove, in conflict":  {answers(errConflict), act(prove), "waits LostRace", func(_ *world, x *executor) bool { return x.answers.Proved == nil }},
		"Prove, unanswered":   {answers(errDown), act(prove), "broken", func(_ *world, x *executor) bool { return x.answers.Proved == nil }},
		"Ignition": {nothingElse, act(ignition), "done", func(w *world, x *executor) bool {
			return secret(w, x) && x.server.Status.Lifecycle.Credential.Entry == 7
		}},
		"Ignition, of another": {othersWrote(&corev1.Secret{ObjectMeta: foreign()}), act(ignition), "refused BootConfigurationTaken", func(_ *world, x *executor) bool { return x.server.Status.Lifecycle.Credential == nil }},
		"Ignition, refused":    {answers(errForbidden), act(ignition), "refused BootConfigurationRefused", func(w *world, x *executor) bool { return !secret(w, x) && x.server.Status.Lifecycle.Credential == nil }},
		"Ignition, unanswered": {answers(errDown), act(ignition), "broken", func(_ *world, x *executor) bool { return x.server.Status.Lifecycle.Credential == nil }},

		"AgentBoot": {credited, act(plan.AgentBoot{Agent: probe}), "done", func(w *world, x *executor) bool {
			return boot(w, x) && x.seen.Memory.Credential(x.server, v1alpha1.ProbePurposeProbe) != nil
		}},
		"AgentBoot, in place of a former one": {both(credited, othersWrote(&v1alpha1.ServerBootConfiguration{ObjectMeta: mine()})), act(plan.AgentBoot{Agent: probe}), "done",
			func(w *world, _ *executor) bool {
				b := &v1alpha1.ServerBootConfiguration{}
				return exists(w, b, "metalaw-system", "a") && b.UID != "uid-made" && b.Annotations[v1alpha1.BootEntryAnnotation] == "7"
			}},
		"AgentBoot, of another": {both(credited, othersWrote(&v1alpha1.ServerBootConfiguration{ObjectMeta: foreign()})), act(plan.AgentBoot{Agent: probe}), "refused BootConfigurationTaken",
			func(_ *world, x *executor) bool { return x.seen.Memory.Minted == nil }},
		"AgentBoot, refused":    {both(credited, answers(errForbidden)), act(plan.AgentBoot{Agent: probe}), "refused BootConfigurationRefused", none(boot)},
		"AgentBoot, unanswered": {both(credited, answers(errDown)), act(plan.AgentBoot{Agent: probe}), "broken", none(boot)},
		"MendIgnition": {both(credited, othersWrote(&corev1.Secret{ObjectMeta: mine(), Data: map[string][]byte{boots.FormatKey: []byte("ignition"), boots.IgnitionKey: []byte("{}")}})),
			act(plan.MendIgnition{Agent: probe}), "done", func(w *world, x *executor) bool {
				s := &corev1.Secret{}
				there := exists(w, s, "metalaw-system", "a")
				_, named := s.Data[boots.FormatKey]
				return there && !named && x.seen.Memory.Minted != nil
			}},
		"MendIgnition, unread": {both(credited, unread), act(plan.MendIgnition{Agent: probe}), "broken", func(_ *world, x *executor) bool { return x.seen.Memory.Minted == nil }},
		"DropAgentBoot": {othersWrote(&v1alpha1.ServerBootConfiguration{ObjectMeta: mine()}, &corev1.Secret{ObjectMeta: mine()}), act(plan.DropAgentBoot{Agent: probe}), "done",
			func(w *world, x *executor) bool { return !boot(w, x) && !secret(w, x) }},
		"DropAgentBoot, whose configuration went": {othersWrote(&corev1.Secret{ObjectMeta: mine()}), act(plan.DropAgentBoot{Agent: probe, Named: true}), "done", none(secret)},
		"DropAgentBoot, of another": {othersWrote(&v1alpha1.ServerBootConfiguration{ObjectMeta: foreign()}, &corev1.Secret{ObjectMeta: foreign()}), act(plan.DropAgentBoot{Agent: probe, Named: true}), "done",
			func(w *world, x *executor) bool { return boot(w, x) && secret(w, x) }},
		"DropAgentBoot, unanswered": {both(othersWrote(&v1alpha1.ServerBootConfiguration{ObjectMeta: mine()}), answers(errDown)), act(plan.DropAgentBoot{Agent: probe}), "broken", boot},
		"OwnedBoot":                 {nothingElse, owned, "done", func(w *world, _ *executor) bool { return exists(w, &v1alpha1.ServerBootConfiguration{}, "shop", "web") }},
		"OwnedBoot, of another": {othersWrote(&v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", OwnerReferences: mine().OwnerReferences}}), owned,
			"refused BootConfigurationTaken", none(told)},
		"OwnedBoot, refused":    {answers(errForbidden), owned, "refused BootConfigurationRefused", none(told)},
		"OwnedBoot, unanswered": {answers(errDown), owned, "broken", none(told)},

		"Ask": {nothingElse, act(plan.Ask{ID: "7/led", Call: call.Light{LED: redfish.LEDLit}, Actions: []fleet.Action{fleet.Setting}}), "done",
			func(_ *world, x *executor) bool {
				_, known := x.Cache.Known("a", "7/led")
				return known && len(x.requests) == 0
			}},
		"Ask, once it is stored": {nothingElse, act(plan.Ask{ID: "on", Call: call.Reset{Action: redfish.ActionOn}, Actions: []fleet.Action{fleet.PowerOn}, Stored: true}), "done",
			func(_ *world, x *executor) bool {
				_, early := x.Cache.Known("a", "on")
				if len(x.requests) != 1 || early {
					return false
				}
				x.requests[0]()
				_, known := x.Cache.Known("a", "on")
				return known
			}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), bound()...)
				x := w.manager.observe(t).x
				a := c.act(w)
				c.before(w, x)
				if got := came(x.do(t.Context(), a)); got != c.came {
					t.Errorf("it is %q, want %q", got, c.came)
				}
				if !c.holds(w, x) {
					t.Errorf("afterwards: answers %+v, the server %+v, what is remembered %+v", x.answers, x.server.Status.Lifecycle, x.seen.Memory)
				}
			})
		})
	}
}

func TestForgetHasACallMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), bound()...)
		x := w.manager.observe(t).x
		done := make(chan struct{})
		x.Cache.Do("a", x.target, "7/led", func(context.Context, redfish.BMC) error { close(done); return nil })
		<-done
		synctest.Wait()
		if x.do(t.Context(), plan.Forget{ID: "7/led"}); len(x.Cache.Jobs("a")) > 0 {
			t.Error("the call is still known")
		}
	})
}

func TestAnIdentityIsReadWhenItIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, read := newMachine(redfish.PowerOff), make(chan struct{}, 1)
		w := inWorld(t, m, bound()...)
		w.manager.Identities = identity.NewCache(clientsOf{m}, func(string) { read <- struct{}{} })
		defer w.manager.Identities.Close()
		x := w.manager.observe(t).x
		if x.Identities.Reading("a").Tried {
			t.Fatal("it was read before")
		}
		x.do(t.Context(), plan.RefreshIdentity{})
		<-read
		if !x.Identities.Reading("a").Tried {
			t.Error("it was not read")
		}
	})
}

// What comes after the first act that is not done is neither done nor recorded (orders 8 and 9).
func TestWhatFollowsAnActThatIsNotDoneIsNeitherDoneNorRecorded(t *testing.T) {
	probe := boots.Probe(serverIn(v1alpha1.StateDiscovery), "metalaw-system", "probe")
	keep := plan.Keep{To: plan.InCustody(func(c *policyv1alpha1.Custody) { c.ServerName = "a" })}
	later := []plan.Act{
		plan.Set{To: func(s *v1alpha1.Server) {
			s.Status.Lifecycle.Marks = append(s.Status.Lifecycle.Marks, "Late")
			s.Status.Lifecycle.Request = &v1alpha1.PowerRequest{}
		}},
		plan.Remember{To: func(m *plan.Memory) { m.Asked = time.Unix(1, 0) }},
		plan.Tell{}, plan.Wake{In: time.Nanosecond},
		plan.AgentBoot{Agent: probe}, keep,
		plan.Ask{ID: "now", Call: call.Light{}}, plan.Ask{ID: "then", Call: call.Light{}, Stored: true},
	}
	for name, c := range map[string]struct {
		before func(*world, *executor)
		first  plan.Act
		came   string
	}{
		"a permission":      {freezes, plan.Permit{Actions: []fleet.Action{fleet.PowerOn}}, "waits Frozen"},
		"a recheck":         {freezes, plan.Recheck{Actions: []fleet.Action{fleet.PowerOn}}, "waits Frozen"},
		"a confirmation":    {moves, plan.Confirm{Action: fleet.Record}, "waits StaleRead"},
		"a look at a claim": {func(w *world, _ *executor) { w.claims(v1alpha1.PowerOff) }, plan.ConfirmClaim{}, "waits StaleRead"},
		"custody, in conflict": {both(othersWrote(&policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: machineUUID}}), answers(errConflict)), keep,
			"waits LostRace"},
		"custody, refused":  {answers(errForbidden), keep, "refused WriteRefused"},
		"custody, unread":   {unread, keep, "broken"},
		"an ignition":       {answers(errForbidden), plan.Ignition{Agent: probe, Config: metalprobe.Config{RegistryURL: "https://registry", ServerUUID: machineUUID, Purpose: metalprobe.PurposeProbe, Entry: 7}}, "refused BootConfigurationRefused"},
		"a boot":            {both(credited, answers(errDown)), plan.AgentBoot{Agent: probe}, "broken"},
		"a boot that stays": {both(othersWrote(&v1alpha1.ServerBootConfiguration{ObjectMeta: mine()}), answers(errDown)), plan.DropAgentBoot{Agent: probe}, "broken"},
		"a wipe that is not proven": {func(_ *world, x *executor) {
			x.seen.Inventory = &policyv1alpha1.ServerInventory{Wipe: &policyv1alpha1.WipeReport{Entry: 6, State: policyv1alpha1.WipeVerified}}
		}, plan.ProveRest{Entry: 6}, "refused WipeUnproven"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), bound()...)
				x := w.manager.observe(t).x
				c.before(w, x)
				server, memory, wake := x.server.DeepCopy(), x.seen.Memory, x.wake
				steps := plan.Steps{Acts: slices.Concat([]plan.Act{c.first}, later), Then: loop.Waiting("WaitsForPower", "m", 0)}
				if got := came(x.carryOut(t.Context(), steps)); got != c.came {
					t.Errorf("it came to %q, want %q", got, c.came)
				}
				if diff := cmp.Diff(server, x.server); diff != "" {
					t.Errorf("the server (-before +after)\n%s", diff)
				}
				if !x.seen.Memory.Asked.Equal(memory.Asked) || x.wake != wake || len(x.notes) > 0 || len(x.requests) > 0 || len(x.Cache.Jobs("a")) > 0 {
					t.Errorf("wake %s, notes %v, %d requests, jobs %v", x.wake, x.notes, len(x.requests), x.Cache.Jobs("a"))
				}
				if kept := (&policyv1alpha1.ServerInventory{}); exists(w, kept, "", machineUUID) && kept.Custody != nil {
					t.Errorf("custody: %+v", kept.Custody)
				}
			})
		})
	}
}

func TestStepsThatAreDoneComeToTheirOwnProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), bound()...)
		x := w.manager.observe(t).x
		var order []string
		note := func(word string) plan.Act {
			return plan.Set{To: func(*v1alpha1.Server) { order = append(order, word) }}
		}
		acts := []plan.Act{note("a"), plan.Permit{Actions: []fleet.Action{fleet.PowerOn}}, note("b"), plan.Try{Steps: plan.Steps{Acts: []plan.Act{note("c")}}}, note("d")}
		if got := came(x.carryOut(t.Context(), plan.Steps{Acts: acts, Then: loop.Waiting("WaitsForPower", "m", 0)})); got != "waits WaitsForPower" {
			t.Errorf("it came to %q", got)
		}
		if want := []string{"a", "b", "c", "d"}; !slices.Equal(order, want) {
			t.Errorf("done in order %v, want %v", order, want)
		}
	})
}
