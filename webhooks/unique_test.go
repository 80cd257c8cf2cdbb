// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

const justAdmitted = "Invalid\nspec.MACAddress: Duplicate value: \"" + mac + "\": Endpoint \"first\" was admitted with it a moment ago; if that was not stored, try again in two seconds; no two Endpoints have one spec.macAddress"

func TestTwoCreationsOfOneValueAtOnce(t *testing.T) {
	const taken = "Invalid\nspec.MACAddress: Duplicate value: \"" + mac + "\": Endpoint \"first\" has it; no two Endpoints have one spec.macAddress"
	for name, c := range map[string]struct {
		between func(*world)
		want    string
	}{
		"the second is refused while the first is on its way":                 {between: func(*world) {}, want: justAdmitted},
		"the second is refused while only the cache does not know":            {between: func(w *world) { w.onlyStored(endpoint("first", mac)); w.now = w.now.Add(20 * time.Second) }, want: taken},
		"the second passes once the first cannot be on its way any longer":    {between: func(w *world) { w.now = w.now.Add(inFlight) }},
		"the second passes where the first was refused for another reason":    {between: func(w *world) { w.refused(endpoint("first", mac)) }},
		"the second passes where the first was a dry run":                     {between: func(w *world) { w.forget() }},
		"a repetition of the first by its own name does not stand in its way": {between: func(w *world) { w.again(endpoint("first", mac)) }, want: justAdmitted},
		"the second passes after the first was stored under another MAC":      {between: func(w *world) { w.onlyStored(endpoint("first", "b0:7b:25:00:0a:fe")); w.now = w.now.Add(inFlight) }},
		"the memory of an admission ends":                                     {between: func(w *world) { w.now = w.now.Add(remembered) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, defaults(t))
			if got, _ := w.ask(PathValidateEndpoint, user, admissionv1.Create, nil, endpoint("first", mac)); got != "" {
				t.Fatal(got)
			}
			c.between(w)
			got, _ := w.ask(PathValidateEndpoint, user, admissionv1.Create, nil, endpoint("second", mac))
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// again admits an object once more.
func (w *world) again(e interface{ GetName() string }) {
	w.t.Helper()
	if got, _ := w.ask(PathValidateEndpoint, user, admissionv1.Create, nil, endpoint(e.GetName(), mac)); got != "" {
		w.t.Fatal(got)
	}
}

// forget begins anew, with the first creation as a dry run.
func (w *world) forget() {
	*w = *newWorld(w.t, defaults(w.t))
	if got, _ := w.ask(PathValidateEndpoint, user, admissionv1.Create, nil, endpoint("first", mac), dryRun); got != "" {
		w.t.Fatal(got)
	}
}

// refused begins anew with a policy that refuses the first creation.
func (w *world) refused(e interface{ GetName() string }) {
	*w = *newWorld(w.t, withFiles(w.t, map[string]string{"admission_test.rego": "package metalaw.admission_test\n", "admission.rego": `package metalaw.admission
deny contains {"code": "no-first", "message": "not this one"} if input.object.metadata.name == "first"
`}))
	want := "Forbidden\nnot this one"
	if got, _ := w.ask(PathValidateEndpoint, user, admissionv1.Create, nil, endpoint(e.GetName(), mac)); got != want {
		w.t.Fatal(got)
	}
}

func TestACacheThatLagsDoesNotRefuseWhatIsFree(t *testing.T) {
	gone := endpoint("gone", mac)
	w := newWorld(t, defaults(t), gone)
	w.onlyCached(gone)
	if got, _ := w.ask(PathValidateEndpoint, user, admissionv1.Create, nil, endpoint("new", mac)); got != "" {
		t.Error(got)
	}
}

func TestOfManyCreationsAtOnceOnePasses(t *testing.T) {
	w := newWorld(t, defaults(t))
	passed := make(chan string, 20)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			name := fmt.Sprint("e", i)
			if got, _ := w.ask(PathValidateEndpoint, user, admissionv1.Create, nil, endpoint(name, mac)); got == "" {
				passed <- name
			}
		})
	}
	all.Wait()
	if len(passed) != 1 {
		t.Errorf("%d of 20 passed", len(passed))
	}
}

func TestTwoSpellingsOfOneMachineAtOnceAreOne(t *testing.T) {
	w := newWorld(t, defaults(t))
	if got, _ := w.ask(PathValidateServer, user, admissionv1.Create, nil, server(serverNamed("first"))); got != "" {
		t.Fatal(got)
	}
	got, _ := w.ask(PathValidateServer, user, admissionv1.Create, nil, server(serverNamed("second"), standingFor(swappedUUID)))
	want := "Invalid\nspec.systemUUID: Duplicate value: \"" + swappedUUID + "\": Server \"first\" was admitted with it a moment ago; " +
		"if that was not stored, try again in two seconds"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTheMemoryOfAdmissionsStaysSmall(t *testing.T) {
	now := time.Unix(0, 0)
	u := &uniqueness{now: func() time.Time { return now }, recent: map[string]admitted{}}
	for i := range 1000 {
		now = now.Add(time.Second)
		u.reserve(fmt.Sprint(i), "name", true)
	}
	if n := len(u.recent); n > 64+1 {
		t.Errorf("%d admissions are remembered", n)
	}
}
