// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxBody bounds the requests that a BMC reads.
const maxBody = 1 << 20

// exchange is one request on its way through a BMC.
type exchange struct {
	fleet  *Fleet
	bmc    *bmc
	conn   *conn
	req    *http.Request
	path   string // without trailing slash
	body   []byte
	route  *route
	params map[string]string
	faults []*Injected
	write  *Write

	user  string
	stale time.Duration
	task  *TaskScript
}

// ServeHTTP answers a request that came in over one of the fleet's own listeners.
func (f *Fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := connOf(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	x := &exchange{fleet: f, bmc: c.endpoint.owner.Load(), conn: c, req: r, path: strings.TrimRight(r.URL.Path, "/")}
	x.body, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return // the client broke off
	}
	x.receive()
	reply := x.respond()
	if reply == nil {
		x.conn.abort()
		return
	}
	x.send(w, reply)
}

// receive finds route and faults, counts the request and logs it.
func (x *exchange) receive() {
	x.route, x.params = x.bmc.findRoute(x.path)
	pattern := "other"
	if x.route != nil {
		pattern = x.route.pattern
	}
	x.bmc.mu.Lock()
	defer x.bmc.mu.Unlock()
	x.faults = x.fleet.faults.match(x.bmc, x.req.Method, x.path)
	x.fleet.log.count(x.bmc.machines[0].name, x.req.Method, pattern)
	switch x.req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return
	}
	m := x.machine()
	if m == nil {
		m = x.bmc.machines[0]
	}
	w := Write{
		Time: x.fleet.clock.Now(), Machine: m.name, SystemUUID: m.identity.UUID,
		Method: x.req.Method, Path: x.path, Body: redact(x.body), Power: m.state,
	}
	for _, i := range x.faults {
		w.Faults = append(w.Faults, i.fault.Name)
	}
	x.write = x.fleet.log.begin(w)
}

// machine is the one that the path names; nil where it names none. bmc.mu is held.
func (x *exchange) machine() *Machine {
	for _, m := range x.bmc.machines {
		if id := x.params["system"]; id != "" && strings.EqualFold(m.systemID, id) {
			return m
		}
	}
	return nil
}

// respond answers a request, past whoever interferes with it. It returns nil where the connection is to be reset.
func (x *exchange) respond() *reply {
	if !x.undisturbed(false) {
		return nil
	}
	rep := x.answered()
	if rep != nil && !x.undisturbed(true) {
		return nil
	}
	return rep
}

// undisturbed asks whoever interferes with writes, if anybody does.
func (x *exchange) undisturbed(done bool) bool {
	if x.write == nil || x.fleet.opts.Interfere == nil {
		return true
	}
	return x.fleet.opts.Interfere(x.fleet.log.read(x.write), done)
}

// answered goes through the faults and the handler. It returns nil where the connection is to be reset.
func (x *exchange) answered() *reply {
	var decisive *Action
	ignore := false
	for _, i := range x.faults {
		a := &i.fault.Action
		if !sleep(x.req.Context(), x.fleet.clock, a.Delay) {
			return nil
		}
		x.stale = max(x.stale, a.StalePower)
		ignore = ignore || a.Ignore
		if a.AsTask != nil {
			x.task = a.AsTask
		}
		if decisive == nil && a.answers() {
			decisive = a
		}
	}
	var result answer
	if decisive == nil || decisive.Execute {
		result = x.execute(ignore)
	}
	if decisive != nil {
		if decisive.Drop {
			<-x.req.Context().Done()
			return nil
		}
		if decisive.Reset {
			return nil
		}
		result = x.replaced(decisive)
	}
	rep := x.render(result)
	for _, i := range x.faults {
		rep.spoil(&i.fault.Action, x.path)
	}
	return rep
}

// execute authenticates and runs the handler.
func (x *exchange) execute(ignore bool) answer {
	x.bmc.mu.Lock()
	defer x.bmc.mu.Unlock()
	if len(x.body) > maxBody {
		return failure(http.StatusRequestEntityTooLarge, "PayloadTooLarge", "The request is too large.")
	}
	open := x.route != nil && x.route.open[x.req.Method]
	if !open {
		user, who, allowed := x.bmc.authenticate(x.req)
		x.user = user
		x.fleet.log.change(x.write, func(w *Write) { w.Auth, w.User = who, user })
		if !allowed {
			a := failure(http.StatusUnauthorized, "NoValidSession", "There is no valid session established with the implementation.")
			a.header = http.Header{"Www-Authenticate": {`Basic realm="Redfish"`}}
			return a
		}
	}
	if x.route == nil {
		return notFound(x.path)
	}
	method := x.req.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	handle := x.route.methods[method]
	if handle == nil {
		a := failure(http.StatusMethodNotAllowed, "OperationNotAllowed", "The method is not allowed here.")
		a.header = http.Header{"Allow": {strings.Join(x.route.allow(), ", ")}}
		return a
	}
	if ignore && x.write != nil {
		return success(x.bmc.profile.ResetStatus)
	}
	x.fleet.log.change(x.write, func(w *Write) { w.Executed = true })
	result := handle(x)
	if method == http.MethodGet && result.status == http.StatusOK {
		return x.finishRead(result)
	}
	return result
}

// finishRead adds what every read has: expansion and the entity tag. bmc.mu is held.
func (x *exchange) finishRead(a answer) answer {
	body, isDoc := a.body.(doc)
	if !isDoc {
		return a
	}
	p := x.bmc.profile
	tag := p.etag(body)
	if refused := x.expand(body); refused != nil {
		return *refused
	}
	if p.ETags == ETagsNone || strings.HasSuffix(strings.ToLower(x.path), "/redfish") {
		return a
	}
	a.header = http.Header{"Etag": {tag}}
	if x.req.Header.Get("If-None-Match") == tag {
		return answer{status: http.StatusNotModified, header: a.header}
	}
	tagged := doc{"@odata.etag": tag}
	for k, v := range body {
		tagged[k] = v
	}
	a.body = tagged
	return a
}

// decode reads the request's JSON object. bad is nil where that worked.
func (x *exchange) decode(into any) (bad *answer) {
	if err := json.Unmarshal(x.body, into); err != nil {
		a := failure(http.StatusBadRequest, "MalformedJSON", fmt.Sprintf("The request body is not a JSON object that fits: %v.", err))
		return &a
	}
	return nil
}
