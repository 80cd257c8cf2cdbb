// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

const machineUUID = "1a2b3c4d-0000-0000-0000-000000000001"

var (
	noon    = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	entered = noon.Add(-time.Hour)
)

// micro is a moment before noon as it is stored.
func micro(ago time.Duration) metav1.MicroTime { return metav1.NewMicroTime(noon.Add(-ago)) }

func microPtr(ago time.Duration) *metav1.MicroTime {
	at := micro(ago)
	return &at
}

// seenIn is the server a in a state, in entry 7, which it entered an hour ago. Its BMC was read a second ago: the machine is off.
func seenIn(state v1alpha1.ServerState, change ...func(*Seen)) Seen {
	server := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid-a"}}
	server.Spec.SystemUUID = machineUUID
	server.Status.State = state
	server.Status.NetworkInterfaces = []v1alpha1.NetworkInterface{{Name: "eth0", MACAddress: "02:00:00:00:00:01"}}
	server.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7, EnteredAt: metav1.NewMicroTime(entered)}
	s := Seen{
		Config: Config{Namespace: "metalaw-system", ProbeImage: "probe", WipeImage: "wipe", RegistryURL: "https://registry", BootTarget: "Pxe",
			PowerGrace: time.Minute, BootGrace: 10 * time.Minute},
		Observation: policies.Observation{Server: server, Now: noon},
		BMC: BMC{Tried: true, Begun: noon.Add(-2 * time.Second), At: noon.Add(-time.Second),
			System: redfish.SystemSnapshot{Power: redfish.PowerOff, Identity: redfish.Identity{UUID: machineUUID}}},
		NewID: "new-id",
	}
	for _, c := range change {
		c(&s)
	}
	s.System = s.Read()
	s.Facts = s.Observation.Facts()
	return s
}

func on(s *Seen) { s.BMC.System.Power = redfish.PowerOn }

// stale makes the reading older than what a decision may rely on.
func stale(s *Seen) { s.BMC.Begun, s.BMC.At = noon.Add(-time.Minute), noon.Add(-time.Minute) }

// silent has the last read fail.
func silent(s *Seen) { s.BMC.Err = errors.New("no route") }

// other has another machine answer.
func other(s *Seen) { s.BMC.System.Identity.UUID = "99999999-0000-0000-0000-000000000001" }

// job is a call that this process made.
func job(id string, j power.Job) func(*Seen) {
	return func(s *Seen) {
		j.Known = true
		if s.BMC.Jobs == nil {
			s.BMC.Jobs = map[string]power.Job{}
		}
		s.BMC.Jobs[id] = j
		if j.Running {
			s.BMC.LastJob = noon
		} else if j.EndedAt.After(s.BMC.LastJob) {
			s.BMC.LastJob = j.EndedAt
		}
	}
}

// failed is a call that the BMC refused a while ago.
func failed(ago time.Duration) power.Job {
	return power.Job{Err: &redfish.ResponseError{Method: "PATCH", Status: 400, Message: "no"}, Words: "no", EndedAt: noon.Add(-ago)}
}

func lifecycle(change func(*v1alpha1.LifecycleStatus)) func(*Seen) {
	return func(s *Seen) { change(s.Server.Status.Lifecycle) }
}

func marks(marks ...string) func(*Seen) {
	return lifecycle(func(l *v1alpha1.LifecycleStatus) { l.Marks = marks })
}

func unborn(s *Seen) { s.Server.Status.Lifecycle = nil }

func annotated(key, value string) func(*Seen) {
	return func(s *Seen) { metav1.SetMetaDataAnnotation(&s.Server.ObjectMeta, key, value) }
}

// claimed binds the server to the claim shop/web, which asks for a power.
func claimed(asks v1alpha1.Power) func(*Seen) {
	return func(s *Seen) {
		s.Claim = &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}}
		s.Claim.Spec.Power, s.Claim.Spec.Image = asks, "os"
		s.Server.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
		annotated(v1alpha1.ClaimUIDAnnotation, "uid-web")(s)
	}
}

// boots puts a boot configuration in force that is prepared.
func booting(purpose string, change ...func(*v1alpha1.ServerBootConfiguration)) func(*Seen) {
	return func(s *Seen) {
		name := map[string]string{v1alpha1.BootPurposeWipe: "a-wipe", v1alpha1.BootPurposeClaim: "web"}[purpose]
		if name == "" {
			name = "a"
		}
		s.Boot = &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: name,
			Annotations: map[string]string{v1alpha1.BootPurposeAnnotation: purpose}}}
		s.Boot.Status.State = v1alpha1.ServerBootConfigurationStateReady
		for _, c := range change {
			c(s.Boot)
		}
	}
}

// keeps gives the machine an inventory.
func keeps(change func(*policyv1alpha1.ServerInventory)) func(*Seen) {
	return func(s *Seen) {
		if s.Inventory == nil {
			s.Inventory = &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: machineUUID}}
		}
		change(s.Inventory)
	}
}

func custody(c policyv1alpha1.Custody) func(*Seen) {
	return keeps(func(i *policyv1alpha1.ServerInventory) { i.Custody = &c })
}

func param(name string, v engine.Value) engine.Param { return engine.Param{Name: name, Value: v} }

// want is what steps are to be.
type want struct {
	// acts are the acts in order, in words.
	acts []string
	// then is how far the effect has come once each is done.
	then string
	// records, keeps and recalls change the server, the inventory and the memory from what is seen to what the acts make of them.
	records func(*v1alpha1.Server)
	keeps   func(*policyv1alpha1.ServerInventory)
	recalls func(*Memory)
}

// check compares steps with what they are to be, and what each act that changes something makes of literal objects.
func check(t *testing.T, s Seen, build func(Seen) Steps, w want) {
	t.Helper()
	server, memory := s.Server.DeepCopy(), s.Memory
	inventory := s.Inventory.DeepCopy()
	steps := build(s)
	if diff := cmp.Diff(server, s.Server); diff != "" {
		t.Errorf("the plan changes the server that is seen (-before +after)\n%s", diff)
	}
	if diff := cmp.Diff(w.acts, words(steps.Acts)); diff != "" {
		t.Errorf("acts (-want +got)\n%s", diff)
	}
	if again := words(build(s).Acts); !slices.Equal(again, words(steps.Acts)) {
		t.Errorf("the same is seen, and planned otherwise: %v", again)
	}
	if got := progress(steps.Then); got != w.then {
		t.Errorf("then %q, want %q: %s", got, w.then, steps.Then.Message)
	}
	if inventory == nil {
		inventory = &policyv1alpha1.ServerInventory{}
	}
	wantServer, wantInventory, wantMemory := server.DeepCopy(), inventory.DeepCopy(), memory
	if w.records != nil {
		w.records(wantServer)
	}
	if w.keeps != nil {
		w.keeps(wantInventory)
	}
	if w.recalls != nil {
		w.recalls(&wantMemory)
	}
	carryOut(steps, server, inventory, &memory)
	all := cmp.Exporter(func(reflect.Type) bool { return true })
	if diff := cmp.Diff(wantServer, server, all); diff != "" {
		t.Errorf("the server (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(wantInventory, inventory, all); diff != "" {
		t.Errorf("the inventory (-want +got)\n%s", diff)
	}
	if w.recalls == nil { // what is remembered of a boot is compared by its own test
		memory.Boot = wantMemory.Boot
	}
	if diff := cmp.Diff(wantMemory, memory, all); diff != "" {
		t.Errorf("the memory (-want +got)\n%s", diff)
	}
}

// carryOut applies each change to literal objects.
func carryOut(steps Steps, server *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory, memory *Memory) {
	for _, act := range steps.Acts {
		switch a := act.(type) {
		case Set:
			a.To(server)
		case Remember:
			a.To(memory)
		case Keep:
			a.To(inventory)
		case Try:
			carryOut(a.Steps, server, inventory, memory)
		}
	}
}

// progress is a progress in words; empty if the effect holds.
func progress(p loop.Progress) string {
	word := map[loop.Phase]string{loop.Pending: "waits ", loop.Failed: "fails "}[p.Phase] + p.Reason
	if p.Again > 0 {
		word += " " + p.Again.String()
	}
	return word
}

// words are acts in words.
func words(acts []Act) (all []string) {
	for _, a := range acts {
		all = append(all, word(a))
	}
	return all
}

func word(act Act) string {
	switch a := act.(type) {
	case Set:
		return "set"
	case Remember:
		return "remember"
	case Tell:
		return "tell " + a.Reason
	case Wake:
		if a.ForBMC {
			return fmt.Sprintf("poll %s", a.In)
		}
		return fmt.Sprintf("wake %s", a.In)
	case Refresh:
		return "refresh"
	case RefreshIdentity:
		return "refresh identity"
	case Forget:
		return "forget " + a.ID
	case Try:
		return "try " + strings.Join(words(a.Steps.Acts), ", ") + ", then " + progress(a.Steps.Then)
	case Permit:
		return "permit " + listed(a.Actions)
	case Recheck:
		return "recheck " + listed(a.Actions)
	case Confirm:
		return "confirm " + a.Action.String()
	case ConfirmClaim:
		return "confirm the claim"
	case ProveRest:
		return fmt.Sprintf("prove the wipe of entry %d", a.Entry)
	case Keep:
		return "keep"
	case Attest:
		return "attest " + a.Answer.Name
	case Prove:
		return "prove by " + a.Settled.By
	case Ignition:
		return fmt.Sprintf("ignition of %s for %s in entry %d", a.Agent.Name, a.Config.Purpose, a.Config.Entry)
	case AgentBoot:
		return "boot " + a.Agent.Name
	case MendIgnition:
		return "mend the ignition of " + a.Agent.Name
	case DropAgentBoot:
		return fmt.Sprintf("drop %s, named %t", a.Agent.Name, a.Named)
	case OwnedBoot:
		return fmt.Sprintf("boot %s/%s for %s", a.In.Owner.GetNamespace(), a.In.Owner.GetName(), a.In.Owner.Purpose)
	case Ask:
		return askWord(a)
	}
	return fmt.Sprintf("%T", act)
}

func askWord(a Ask) string {
	said := fmt.Sprintf("ask %s %T%+v as %s", a.ID, a.Call, a.Call, listed(a.Actions))
	if a.Stored {
		said += ", once it is stored"
	}
	if a.ShowsLater {
		said += ", shows later"
	}
	return said
}

func listed(actions []fleet.Action) string {
	var names []string
	for _, a := range actions {
		names = append(names, a.String())
	}
	return strings.Join(names, " and ")
}

// effect has one effect planned.
func effect(name string, params ...engine.Param) func(Seen) Steps {
	return func(s Seen) Steps { return Effect(s, engine.Effect{Name: name, Params: params}) }
}

func TestEachEffectOfTheVocabularyHasAPlanAndNoOtherHas(t *testing.T) {
	known := []string{engine.MarkEffect}
	for _, e := range policies.Vocabulary().Effects {
		known = append(known, e.Name)
	}
	slices.Sort(known)
	var planned []string
	for name := range effects {
		planned = append(planned, name)
	}
	slices.Sort(planned)
	if diff := cmp.Diff(known, planned); diff != "" {
		t.Errorf("(-vocabulary +planned)\n%s", diff)
	}
	if p := progress(effect("Dance")(seenIn(v1alpha1.StateAvailable)).Then); p != "fails UnknownEffect" {
		t.Errorf("of another effect: %q", p)
	}
}

func effectOf(name string) engine.Effect { return engine.Effect{Name: name} }

// diffOf compares two values with what they do not export.
func diffOf(want, got any) string {
	return cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true }))
}
