// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/metalaw/metalaw/internal/peers"
	"github.com/metalaw/metalaw/metalprobe"
)

// answer is what was asked for.
type answer struct {
	status  int
	outcome Outcome
	body    any
}

// endpoint answers one kind of request: exactly one of the two is set.
type endpoint func(request *http.Request) (*answer, *refusal)

// route is an endpoint and what it needs of a request.
type route struct {
	serve endpoint
	// body says that it reads the body, and allow which servers need no token; nil: none.
	body  bool
	allow Allow
}

// wants says that the body of a request is worth reading: no server would accept one without a token that must have one.
func (to route) wants(request *http.Request) bool {
	_, shown := presented(request)
	return to.body && (shown || to.allow != nil)
}

func (r *Registry) routes() http.Handler {
	mux := http.NewServeMux()
	allow := r.options.AllowUnauthenticated
	for pattern, to := range map[string]route{
		"POST /register":        {serve: r.register, body: true, allow: allow},
		"GET /systems/{uuid}":   {serve: r.system},
		"DELETE /delete/{uuid}": {serve: r.remove},
		"POST /bootstate":       {serve: r.bootState, body: true, allow: r.options.AllowUnauthenticatedBootState},
		"GET /wipe/{uuid}":      {serve: r.wipeStatus},
		"POST /wipe":            {serve: r.wipe, body: true},
		"POST /phase":           {serve: r.phase, body: true, allow: allow},
	} {
		mux.Handle(pattern, r.guarded(pattern, to))
	}
	mux.Handle("/", r.guarded("other", route{serve: func(*http.Request) (*answer, *refusal) {
		return nil, notFound("no such endpoint")
	}}))
	return mux
}

// guarded limits, serves, answers and counts.
func (r *Registry) guarded(name string, to route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		started := time.Now()
		given, refused := r.limited(w, request, to)
		if refused == nil {
			r.requests.WithLabelValues(name, string(given.outcome)).Inc()
			write(w, given.status, given.body)
			return
		}
		r.requests.WithLabelValues(name, string(refused.outcome)).Inc()
		r.note(name, request, refused)
		if refused.status == http.StatusUnauthorized {
			// An answer takes its time, whatever was looked up for it.
			metalprobe.Wait(request.Context(), r.options.UnauthorizedDelay-time.Since(started))
		}
		if refused.retryAfter > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(int64(refused.retryAfter/time.Second)))
		}
		if refused.status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
			// Else the server would wait for the rest of the body before it answers.
			w.Header().Set("Connection", "close")
		}
		body := map[string]any{"error": refused.message, "remedy": refused.remedy}
		if name == "GET /wipe/{uuid}" && refused.status == http.StatusConflict {
			body["current"], body["reason"] = false, refused.message
		}
		if refused.outcome == OutcomeHeld {
			body["held"], body["reason"] = true, refused.message
		}
		write(w, refused.status, body)
	})
}

// limited counts a request, reads its body, and serves it once it is its turn.
func (r *Registry) limited(w http.ResponseWriter, request *http.Request, to route) (*answer, *refusal) {
	from, refused := r.sources.count(request.RemoteAddr, r.options.Now())
	if refused != nil {
		return nil, refused
	}
	if to.wants(request) {
		done, refused := readBody(w, request, r.bodies.Share(peers.Of(request.RemoteAddr)))
		if refused != nil {
			return nil, refused
		}
		defer done()
	}
	leave, refused := r.sources.turn(request.Context(), from)
	if refused != nil {
		return nil, refused
	}
	defer leave()
	return to.serve(request)
}

func (r *Registry) note(name string, request *http.Request, refused *refusal) {
	server := ""
	if refused.server != nil {
		server = refused.server.Name
	}
	log := r.options.Log.With("endpoint", name, "outcome", refused.outcome, "server", server, "source", peers.Of(request.RemoteAddr).String())
	switch {
	case refused.err != nil:
		log.Error("probe report not served", "error", refused.err)
	case refused.server != nil:
		log.Warn("probe report refused", "cause", refused.message)
	default:
		log.Debug("probe report refused", "cause", refused.message)
	}
	r.recordEvent(refused, name)
}

func write(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// The peer is gone where this fails; there is nobody to tell.
	_, _ = w.Write(append(text, '\n'))
}

// read decodes a body: one JSON value, not more than metalprobe.MaxBody, and nothing after it.
// Fields that it does not know are left out, because agents of others send more. A request without a token is refused
// before that, where no server would accept it.
func read(request *http.Request, allow Allow, into any) *refusal {
	if _, shown := presented(request); !shown && allow == nil {
		return unauthorized(nil)
	}
	decoder := json.NewDecoder(request.Body)
	err := decoder.Decode(into)
	if err == nil {
		if _, end := decoder.Token(); end == nil {
			err = errors.New("there is more after the JSON value")
		} else if !errors.Is(end, io.EOF) {
			err = end
		}
	}
	if err == nil {
		return nil
	}
	if tooLarge, is := errors.AsType[*http.MaxBytesError](err); is {
		return &refusal{
			status: http.StatusRequestEntityTooLarge, outcome: OutcomeTooLarge,
			message: fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit), remedy: "send less",
		}
	}
	return invalid(fmt.Errorf("the body is not the JSON that was expected: %.256s", err.Error()))
}
