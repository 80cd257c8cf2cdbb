// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// shippedNow is the default bundle.
func shippedNow(t *testing.T) *bundle.Bundle {
	t.Helper()
	b, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// formerly is the default bundle of an earlier build, which parks no server in Released and Error.
func formerly(t *testing.T) *bundle.Bundle {
	t.Helper()
	all, err := policies.Former()
	if err != nil {
		t.Fatal(err)
	}
	b, found, err := bundle.Compile(all["default-1.1.0-26dcc35f3e"], policies.Vocabulary())
	if err != nil || found.HasErrors() {
		t.Fatal(err, found)
	}
	return b
}

// situation is a server in a state, and what is decided about it.
type situation struct {
	in Input
}

type with func(*situation)

// wasIn is the state in which the server was parked.
func wasIn(state string) with {
	return func(x *situation) { x.in.Server.Annotations[v1alpha1.PreParkStateAnnotation] = state }
}

// in is a server of ours in a state, off, for which nothing is asked.
func in(t *testing.T, b *bundle.Bundle, state v1alpha1.ServerState, changes ...with) Input {
	t.Helper()
	s := &v1alpha1.Server{}
	s.Name, s.Annotations = "a", map[string]string{}
	s.Status.State = state
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7, Marks: []string{policies.MarkManaged}}
	x := situation{in: Input{Observation: policies.Observation{Server: s, Now: noon}, Bundle: b, NewID: "new"}}
	x.in.System = policies.SystemReading{Reachable: true, Identity: policies.IdentitySame, Power: "Off", Health: "OK"}
	x.in.Decision = engine.Decision{From: engine.State(state), To: engine.State(state)}
	for _, c := range changes {
		c(&x)
	}
	if x.in.Facts == nil {
		x.in.Facts = x.in.Observation.Facts()
	}
	return x.in
}

func asks(operation string) with {
	return func(x *situation) {
		x.in.Server.Annotations[v1alpha1.OperationAnnotation] = operation
		x.in.Server.Annotations[v1alpha1.OperationByAnnotation] = "jane"
	}
}

func keeps(text string) with {
	return func(x *situation) { x.in.Server.Annotations[v1alpha1.ParkRequestedAnnotation] = text }
}

func records(operation string) with {
	return func(x *situation) {
		x.in.Server.Status.Operation = &v1alpha1.OperationStatus{ID: "1", Name: operation, State: v1alpha1.OperationPending, Entry: 7}
	}
}

// heldBy is a server that a claim with a UID holds.
func heldBy(uid string) with {
	return func(x *situation) {
		s := x.in.Server
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
		s.Annotations[v1alpha1.ClaimUIDAnnotation] = uid
		x.in.Claim = &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: types.UID(uid)}}
		x.in.Claim.Spec.Power, x.in.Claim.Spec.ServerRef = v1alpha1.PowerOn, &corev1.LocalObjectReference{Name: s.Name}
	}
}

func released(x *situation) {
	x.in.Server.Annotations[v1alpha1.ReleasedClaimAnnotation] = x.in.Server.Annotations[v1alpha1.ClaimUIDAnnotation]
	x.in.Server.Annotations[v1alpha1.ReleasedCountedAnnotation] = v1alpha1.ReleasedNoGrace
	x.in.Server.Status.Lifecycle.Marks = []string{policies.MarkDirty, policies.MarkManaged}
}

// moves has the server moved: the facts are those of before.
func moves(rule string, to v1alpha1.ServerState) with {
	return func(x *situation) {
		x.in.Facts = x.in.Observation.Facts()
		x.in.Decision = engine.Decision{From: engine.State(x.in.Server.Status.State), To: engine.State(to), Rule: rule, Groups: []string{"claim"}}
		x.in.Server.Status.State = to
		x.in.Server.Status.Lifecycle.Entry++
	}
}

// became says what stands: the operation, whether a request is kept, the annotation, and the reasons of the events.
func became(out Output) string {
	words := "no operation"
	if op := out.Server.Status.Operation; op != nil {
		words = fmt.Sprintf("%s %s", op.Name, op.State)
		if op.By != "" {
			words += " by " + op.By
		}
	}
	if _, stands := keptOn(out.Server); stands {
		words += ", kept"
	}
	if asked := Asked(out.Server); asked != "" {
		words += ", asks " + asked
	}
	for _, n := range out.Notes {
		words += ", " + n.Reason
	}
	return words
}

func TestARequestToParkIsKeptUntilItIsServed(t *testing.T) {
	now, former := shippedNow(t), formerly(t)
	const byJane, withHolder = `{"by":"jane"}`, `{"by":"jane","claim":"u1"}`
	park := asks(v1alpha1.OperationPark)
	for name, c := range map[string]struct {
		in   Input
		want string
	}{
		"in Initial it waits":                     {in(t, now, "Initial", park), "no operation, kept, ParkDeferred"},
		"in Discovery it waits":                   {in(t, now, "Discovery", park), "no operation, kept, ParkDeferred"},
		"in Cleanup it waits":                     {in(t, now, "Cleanup", park), "no operation, kept, ParkDeferred"},
		"in Maintenance it waits":                 {in(t, now, "Maintenance", park), "no operation, kept, ParkDeferred"},
		"in Available it is begun":                {in(t, now, "Available", park), "park Pending by jane, kept"},
		"in Reserved it is begun":                 {in(t, now, "Reserved", park, heldBy("u1")), "park Pending by jane, kept"},
		"in Released it is begun":                 {in(t, now, "Released", park), "park Pending by jane, kept"},
		"in Error it is begun":                    {in(t, now, "Error", park), "park Pending by jane, kept"},
		"in Released of a former bundle it waits": {in(t, former, "Released", park), "no operation, kept, ParkDeferred"},
		"in Error of a former bundle it waits":    {in(t, former, "Error", park), "no operation, kept, ParkDeferred"},
		"in Observing it is refused":              {in(t, now, "Observing", park), "no operation, OperationRefused"},
		"in Decommissioned it is refused":         {in(t, now, "Decommissioned", park), "no operation, OperationRefused"},
		"in Parked it is dropped":                 {in(t, now, "Parked", park), "no operation, ParkedOperationDropped"},
		"in Parked so is another one":             {in(t, now, "Parked", asks("hard-restart-server")), "no operation, ParkedOperationDropped"},
		"what was parked in Error is not offered by a former bundle": {
			in(t, former, "Parked", asks("unpark"), wasIn("Error")), "no operation, ParkedOperationDropped"},
		"and goes back by a present one":              {in(t, now, "Parked", asks("unpark"), wasIn("Error")), "unpark Pending by jane, asks unpark"},
		"in Parked so is an undo":                     {in(t, now, "Parked", asks("undo-release")), "no operation, ParkedOperationDropped"},
		"in Parked unpark is not":                     {in(t, now, "Parked", asks("unpark")), "unpark Pending by jane, asks unpark"},
		"an older one is replaced that has not begun": {in(t, now, "Error", park, records("retry")), "park Pending by jane, kept, OperationRefused"},
		"one that cannot begin replaces none":         {in(t, now, "Cleanup", park, records("force-off-server")), "force-off-server Pending, kept, ParkDeferred"},

		"it is begun once the state takes it":       {in(t, now, "Discovery", keeps(byJane), moves("ProbeReported", "Available")), "park Pending by jane, kept"},
		"it is begun after a restart of anything":   {in(t, now, "Available", keeps(byJane)), "park Pending by jane, kept"},
		"whatever is written there":                 {in(t, now, "Available", keeps("true")), "park Pending, kept"},
		"another operation goes first":              {in(t, now, "Error", keeps(byJane), asks("retry")), "retry Pending by jane, kept, asks retry"},
		"another operation takes the slot":          {in(t, now, "Error", keeps(byJane), records("park"), asks("retry")), "retry Pending by jane, kept, asks retry, ParkDeferred"},
		"one that runs is not disturbed":            {in(t, now, "Error", keeps(byJane), records("force-off-server")), "force-off-server Pending, kept"},
		"a move that serves it ends it":             {in(t, now, "Error", keeps(byJane), records("park"), moves("ParkedError", "Parked")), "park Succeeded"},
		"the end of the holder puts it back":        {in(t, now, "Reserved", keeps(withHolder), records("park"), heldBy("u1"), released, moves("ClaimEnded", "Cleanup")), "no operation, kept, ParkDeferred"},
		"the end of the holder may leave it begun":  {in(t, now, "Reserved", keeps(withHolder), records("park"), heldBy("u1"), released, moves("EndOffRefused", "Error")), "park Pending, kept"},
		"another revision puts it back":             {in(t, now, "Available", keeps(byJane), records("park"), moves(v1alpha1.RuleAdopted, "Initial")), "no operation, kept, ParkDeferred"},
		"a server that was forced there has it":     {in(t, now, "Parked", keeps(byJane)), "no operation"},
		"one of a former build ends as it did":      {in(t, now, "Reserved", records("park"), heldBy("u1"), released, moves("ClaimEnded", "Cleanup")), "park Failed"},
		"its holder keeps it":                       {in(t, now, "Reserved", keeps(withHolder), heldBy("u1"), records("park")), "park Pending, kept"},
		"another claim drops it":                    {in(t, now, "Available", keeps(byJane), heldBy("u2")), "no operation, ParkRequestDropped"},
		"another claim drops it once it was begun":  {in(t, now, "Reserved", keeps(byJane), heldBy("u2"), records("park")), "park Failed, ParkRequestDropped"},
		"also instead of its holder":                {in(t, now, "Reserved", keeps(withHolder), heldBy("u2")), "no operation, ParkRequestDropped"},
		"a holder that was released is no such one": {in(t, now, "Cleanup", keeps(byJane), heldBy("u1"), released), "no operation, kept"},

		"unpark withdraws it":                      {in(t, now, "Cleanup", keeps(byJane), asks("unpark")), "unpark Succeeded by jane"},
		"unpark withdraws one that was begun":      {in(t, now, "Reserved", keeps(withHolder), heldBy("u1"), records("park"), asks("unpark")), "unpark Succeeded by jane, OperationRefused"},
		"unpark waits for another operation":       {in(t, now, "Error", keeps(byJane), records("force-off-server"), asks("unpark")), "force-off-server Pending, asks unpark"},
		"unpark on a server that nobody parked":    {in(t, now, "Available", asks("unpark")), "unpark Succeeded by jane"},
		"what is misspelt is told in Parked, also": {in(t, now, "Parked", asks("unprak")), "no operation, UnknownOperation"},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.in.Server.DeepCopy()
			out := Decide(c.in)
			if got := became(out); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			for _, n := range out.Notes {
				if fine := n.Reason == v1alpha1.ReasonParkDeferred; n.Fine != fine || len(n.Message) > 200 {
					t.Errorf("%+v has %d characters", n, len(n.Message))
				}
			}
			if !reflect.DeepEqual(before, c.in.Server) {
				t.Error("the input was changed")
			}
		})
	}
}

func TestARequestToParkSaysWhereItIsServed(t *testing.T) {
	for name, c := range map[string]struct {
		bundle *bundle.Bundle
		want   string
	}{
		"by the shipped bundle": {shippedNow(t), "park waits in state Cleanup. The server is parked from Available, Reserved, Released, Error, "},
		"by a former one":       {formerly(t), "park waits in state Cleanup. The server is parked from Available, Reserved, "},
	} {
		t.Run(name, func(t *testing.T) {
			out := Decide(in(t, c.bundle, "Cleanup", asks(v1alpha1.OperationPark)))
			if len(out.Notes) != 1 || !strings.HasPrefix(out.Notes[0].Message, c.want+"and no new claim") {
				t.Error(out.Notes)
			}
		})
	}
}

func FuzzAKeptRequest(f *testing.F) {
	f.Add(`{"by":"jane","reason":"mend it","claim":"u1","at":"2026-05-01T12:00:00Z"}`)
	f.Add("true")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		s := &v1alpha1.Server{}
		s.Annotations = map[string]string{v1alpha1.ParkRequestedAnnotation: text}
		if _, stands := keptOn(s); !stands {
			t.Error("a request that is written does not stand")
		}
	})
}
