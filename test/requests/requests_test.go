// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestARequestIsAboutAnObject(t *testing.T) {
	const metal = "/apis/metal.ironcore.dev/v1alpha1/"
	for name, c := range map[string]struct {
		method, url string
		want        target
		of          class
	}{
		"a patch of a status":          {"PATCH", metal + "servers/a/status", target{"patch", "servers", "status", "", "a"}, classWrite},
		"a creation in a namespace":    {"POST", "/api/v1/namespaces/n/secrets", target{"create", "secrets", "", "n", ""}, classWrite},
		"a read of one object":         {"GET", metal + "namespaces/n/serverclaims/c", target{"get", "serverclaims", "", "n", "c"}, classRead},
		"a read of many":               {"GET", metal + "servers?limit=500", target{"list", "servers", "", "", ""}, classRead},
		"an Event":                     {"POST", "/apis/events.k8s.io/v1/namespaces/n/events", target{"create", "events", "", "n", ""}, classEvent},
		"a read of a namespace itself": {"GET", "/api/v1/namespaces/n", target{"get", "namespaces", "", "", "n"}, classRead},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := url.Parse(c.url)
			if err != nil {
				t.Fatal(err)
			}
			got, counts := targetOf(c.method, at)
			if !counts || got != c.want || got.class() != c.of {
				t.Errorf("got %+v, %v, %s; want %+v, %s", got, counts, got.class(), c.want, c.of)
			}
		})
	}
	for name, text := range map[string]string{"a watch": metal + "servers?watch=true", "discovery": "/apis", "a probe": "/readyz",
		"a lease": "/apis/coordination.k8s.io/v1/namespaces/n/leases/l"} {
		t.Run(name+" does not count", func(t *testing.T) {
			at, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if got, counts := targetOf("GET", at); counts {
				t.Errorf("counts as %+v", got)
			}
		})
	}
}

func TestAPathAtABMCHasNamesForItsParts(t *testing.T) {
	for path, want := range map[string]string{
		"/redfish/v1/Systems/437XR/Actions/ComputerSystem.Reset": "/redfish/v1/Systems/{}/Actions/ComputerSystem.Reset",
		"/redfish/v1/Systems":                            "/redfish/v1/Systems",
		"/redfish/v1/SessionService/Sessions/(session)":  "/redfish/v1/SessionService/Sessions/{}",
		"/redfish/v1/Systems/1/EthernetInterfaces/NIC-1": "/redfish/v1/Systems/{}/EthernetInterfaces/{}",
	} {
		if got := bmcObject(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestAPatchNamesWhatItChanges(t *testing.T) {
	const known = `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Settled","message":"a"},{"type":"Power","status":"True","reason":"On"}]}}`
	for name, c := range map[string]struct {
		patch, known string
		want         []string
	}{
		"fields, without the lock": {`{"metadata":{"resourceVersion":"1"},"spec":{"power":"On"}}`, known, []string{"spec.power"}},
		"what is taken away":       {`{"spec":{"serverClaimRef":null}}`, known, []string{"-spec.serverClaimRef"}},
		"one condition of two": {`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Busy"},{"type":"Power","status":"True","reason":"On"}]}}`,
			known, []string{"status.conditions Ready=False/Busy"}},
		"a message, and a condition that goes": {`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Settled","message":"b"}]}}`,
			known, []string{"status.conditions -Power", "status.conditions Ready's message"}},
		"all conditions of an object that is not known": {`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Settled"}]}}`,
			`{}`, []string{"status.conditions Ready=True/Settled"}},
		"a deep field by its first names": {`{"status":{"lifecycle":{"request":{"action":"On"}}}}`, known, []string{"status.lifecycle.request"}},
		"nothing, where it is no JSON":    {`x`, known, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var before map[string]any
			if err := json.Unmarshal([]byte(c.known), &before); err != nil {
				t.Fatal(err)
			}
			if got := changed([]byte(c.patch), before); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestOnlyWhatIsWrittenCounts(t *testing.T) {
	fields := []string{"-metadata.annotations.a", "metadata.labels.b", "-status.lifecycle.bootedAt", "status.powerState"}
	if got, want := written(slices.Clone(fields), ""), fields[:2]; !slices.Equal(got, want) {
		t.Errorf("the main part: got %q, want %q", got, want)
	}
	if got, want := written(slices.Clone(fields), "status"), fields[2:]; !slices.Equal(got, want) {
		t.Errorf("the status: got %q, want %q", got, want)
	}
}

func TestAnEventIsReadInEitherEncoding(t *testing.T) {
	event := &eventsv1.Event{Reason: "Wiped", Action: "Move"}
	event.Regarding.Kind, event.Regarding.Name = "Server", "a"
	raw, err := event.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := (&runtime.Unknown{Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	for name, sent := range map[string][]byte{"JSON": text, "protobuf": append([]byte("k8s\x00"), wrapped...)} {
		if of, says := eventOf(sent); of != "a" || !slices.Equal(says, []string{"Server", "Wiped", "Move"}) {
			t.Errorf("%s: got %q, %q", name, of, says)
		}
	}
}

func TestTheReasonIsWhatTheOperatorWasDoing(t *testing.T) {
	got := byWhom([]string{
		"net/http.(*Client).Do",
		module + "controllers/server.find[...]",
		module + "controllers/server.decided.look",
		module + "controllers/server.(*scope).guarded.func1.1",
		module + "redfish.(*client).write",
		module + "controllers/loop.(*Reconciler[go.shape.*uint8,go.shape.int]).write",
		module + "controllers/loop.(*Reconciler[...]).Reconcile",
		"sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).Reconcile",
	})
	want := []string{"loop.Reconciler.write", "server.scope.guarded", "server.decided.look", "server.find"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// served has requests answered by one function, and recorded.
func served(t *testing.T, r *recorder, answer http.HandlerFunc) *http.Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: r.through(passing(func(request *http.Request) (*http.Response, error) {
		request.URL.Scheme, request.URL.Host = to.Scheme, to.Host
		return http.DefaultTransport.RoundTrip(request)
	}))}
}

func TestARequestIsRecordedWithItsController(t *testing.T) {
	r := newRecorder()
	client := served(t, r, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
	})
	log := logr.New(&sink{recorder: r}).WithValues("controller", "claim")
	request, err := http.NewRequestWithContext(logr.NewContext(t.Context(), log), http.MethodPatch,
		"http://api/apis/metal.ironcore.dev/v1alpha1/namespaces/n/serverclaims/c/status", strings.NewReader(`{"status":{"phase":"Bound"}}`))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	c := r.since(0)[0]
	if c.Controller != "claim" || c.Object != "serverclaims/status" || c.Name != "n/c" || c.Answer != http.StatusConflict ||
		!slices.Equal(c.Fields, []string{"status.phase"}) {
		t.Errorf("recorded %+v", c)
	}
}

func TestTheAnswerReachesTheManager(t *testing.T) {
	r := newRecorder()
	client := served(t, r, func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		_, _ = w.Write(append([]byte(`{"metadata":{"name":"made"},"sent":`), append(body, '}')...))
	})
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost,
		"http://api/apis/metal.ironcore.dev/v1alpha1/servers", strings.NewReader(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := string(body), `{"metadata":{"name":"made"},"sent":{"a":1}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if c := r.since(0)[0]; c.Name != "made" {
		t.Errorf("recorded the name %q", c.Name)
	}
}

func TestBuildsAreComparedByTheirMedians(t *testing.T) {
	server := func(statuses, reads int) []phase {
		p := phase{name: "claim"}
		for range statuses {
			p.calls = append(p.calls, call{Class: classWrite, Verb: "patch", Object: "servers/status"})
		}
		for range reads {
			p.calls = append(p.calls, call{Class: classRead, Verb: "get", Object: "bmcs"})
		}
		return []phase{p}
	}
	before := count([][]phase{server(3, 2), server(4, 2), server(3, 2)})
	after := count([][]phase{server(3, 0), server(2, 0), server(2, 0)})
	if got := total(before, "claim", classWrite).text(); got != "3 (3 to 4)" {
		t.Errorf("the writes are %s", got)
	}
	want := []difference{{kind{"claim", classWrite, "patch", "servers/status"}, 3, 2}, {kind{"claim", classRead, "get", "bmcs"}, 2, 0}}
	if got := compare(before, after); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := compare(before, before); len(got) != 0 {
		t.Errorf("a build differs from itself: %+v", got)
	}
}
