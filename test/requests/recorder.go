// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// recorder stands between the manager and the API server, and hears of each request to a BMC.
type recorder struct {
	mu    sync.Mutex
	calls []call
	// known are the objects as the manager saw them last past its cache, by resource and name.
	known map[string]map[string]any
	// told is what a BMC was sent last, by method and path.
	told map[string]string
}

func newRecorder() *recorder {
	return &recorder{known: map[string]map[string]any{}, told: map[string]string{}}
}

// through has everything that is sent to the API server recorded.
func (r *recorder) through(next http.RoundTripper) http.RoundTripper {
	return passing(func(request *http.Request) (*http.Response, error) { return r.pass(next, request) })
}

type passing func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (p passing) RoundTrip(request *http.Request) (*http.Response, error) { return p(request) }

// pass sends a request on, and records it with its answer.
func (r *recorder) pass(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	t, counts := targetOf(request.Method, request.URL)
	if !counts {
		return next.RoundTrip(request)
	}
	var sent []byte
	if request.Body != nil {
		var err error
		if sent, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
		request.Body = io.NopCloser(bytes.NewReader(sent))
	}
	c := call{at: time.Now(), Class: t.class(), Verb: t.verb, Object: t.object(), Name: t.key(), By: byWhom(callers())}
	c.Controller = controllerOf(logr.FromContextOrDiscard(request.Context()), c.By)
	response, err := next.RoundTrip(request)
	if err != nil {
		r.record(c, t, sent, nil)
		return response, err
	}
	c.Answer = response.StatusCode
	body, err := io.ReadAll(response.Body)
	if err := response.Body.Close(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	r.record(c, t, sent, body)
	return response, nil
}

// record keeps a request to the API server, and what its answer says of the object.
func (r *recorder) record(c call, t target, sent, answer []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := t.resource + " " + t.key()
	switch {
	case c.Class == classEvent:
		c.Name, c.Fields = eventOf(sent)
	case t.verb == "patch":
		c.Fields = written(changed(sent, r.known[key]), t.sub)
	}
	if t.verb == "create" && c.Class == classWrite {
		t.name = nameIn(answer)
		c.Name, key = t.key(), t.resource+" "+t.key()
	}
	r.calls = append(r.calls, c)
	var object map[string]any
	if c.Answer < http.StatusMultipleChoices && t.verb != "list" && json.Unmarshal(answer, &object) == nil {
		r.known[key] = object
	}
}

// nameIn is the name of an object that was made without one in the path.
func nameIn(body []byte) string {
	object := &metav1.PartialObjectMetadata{}
	if decode(body, object) != nil {
		return ""
	}
	return object.Name
}

// message is an object that the API server may show in either encoding.
type message interface{ Unmarshal(raw []byte) error }

// decode reads JSON, or what Kubernetes makes of protobuf. Each object has its metadata in the same field of that.
func decode(body []byte, into message) error {
	raw, is := bytes.CutPrefix(body, []byte("k8s\x00"))
	if !is {
		return json.Unmarshal(body, into)
	}
	var wrapped runtime.Unknown
	if err := wrapped.Unmarshal(raw); err != nil {
		return err
	}
	return into.Unmarshal(wrapped.Raw)
}

// eventOf is what an Event is about, and what it says.
func eventOf(sent []byte) (name string, says []string) {
	event := &eventsv1.Event{}
	if decode(sent, event) != nil {
		return "", nil
	}
	of := target{namespace: event.Regarding.Namespace, name: event.Regarding.Name}
	return of.key(), []string{event.Regarding.Kind, event.Reason, event.Action}
}

// sent hears of each write that arrives at a BMC.
func (r *recorder) sent(write emulator.Write, done bool) bool {
	if !done {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.told[write.Method+" "+write.Path] = write.Body
	}
	return true
}

// asked records a request to a BMC, of which the manager's log tells.
func (r *recorder) asked(log logr.Logger, values map[string]any) {
	method, path := fmt.Sprint(values["method"]), fmt.Sprint(values["path"])
	c := call{at: time.Now(), Class: bmcClass(method), Verb: method, Object: bmcObject(path),
		Name: fmt.Sprint(values["address"]), By: byWhom(callers())}
	if took, is := values["took"].(time.Duration); is {
		c.at = c.at.Add(-took)
	}
	c.Answer, _ = values["status"].(int)
	c.Controller = controllerOf(log, c.By)
	r.mu.Lock()
	defer r.mu.Unlock()
	if body := r.told[method+" "+path]; c.Class == classBMCWrite && body != "" {
		c.Fields = []string{body}
	}
	r.calls = append(r.calls, c)
}

// count is how many requests were recorded so far.
func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// since returns the requests after the first n, in the order in which they were sent.
func (r *recorder) since(n int) []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(r.calls[n:]), func(a, b call) int { return a.at.Compare(b.at) })
}
