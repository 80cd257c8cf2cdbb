// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"sync"
	"time"
)

// object is what the driver reads of any object.
type object struct {
	Metadata struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
		// ResourceVersion is where a watch goes on from.
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		SystemUUID     string     `json:"systemUUID"`
		ServerClaimRef *reference `json:"serverClaimRef"`
		ServerRef      *reference `json:"serverRef"`
	} `json:"spec"`
	Status struct {
		State     string `json:"state"`
		Lifecycle struct {
			EnteredAt time.Time `json:"enteredAt"`
		} `json:"lifecycle"`
		PowerState string      `json:"powerState"`
		Phase      string      `json:"phase"`
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

type reference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (r *reference) key() string {
	if r == nil || r.Name == "" {
		return ""
	}
	return strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (o *object) key() string { return (&reference{o.Metadata.Namespace, o.Metadata.Name}).key() }

// fleet is what the API server shows of servers and claims.
type fleet struct {
	mu       sync.Mutex
	objects  map[kind]map[string]object
	bindings *bindings
	visits   *visits
	changed  chan struct{}
}

func newFleet() *fleet {
	objects := map[kind]map[string]object{kindServer: {}, kindClaim: {}, kindMaintenance: {}}
	return &fleet{objects: objects, bindings: newBindings(), visits: newVisits(nil), changed: make(chan struct{})}
}

// apply takes over one change.
func (f *fleet) apply(k kind, deleted bool, o object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.set(k, deleted, o)
	f.tell()
}

// replace takes over a whole list: what is not in it is gone.
func (f *fleet) replace(k kind, list []object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	there := map[string]bool{}
	for i := range list {
		there[list[i].key()] = true
		f.set(k, false, list[i])
	}
	for key, o := range f.objects[k] {
		if !there[key] {
			f.set(k, true, o)
		}
	}
	f.tell()
}

// set is called with mu held.
func (f *fleet) set(k kind, deleted bool, o object) {
	key, refers := o.key(), ""
	if deleted {
		delete(f.objects[k], key)
	} else {
		f.objects[k][key] = o
		refers = o.refers(k)
	}
	switch k {
	case kindServer:
		f.bindings.serverNames(key, refers)
		f.visits.serverIs(key, o.Status.State, o.Status.Lifecycle.EnteredAt, time.Now())
	case kindClaim:
		f.bindings.claimNames(key, refers)
	default:
		if deleted {
			f.visits.maintenanceGone(key, time.Now())
		}
	}
}

// refers is the claim that a server names, or the server that a claim names.
func (o *object) refers(k kind) string {
	if k == kindServer {
		return o.Spec.ServerClaimRef.key()
	}
	return o.Spec.ServerRef.key()
}

// tell is called with mu held.
func (f *fleet) tell() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// next is closed at the next change.
func (f *fleet) next() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// read calls see with everything there is; see must not keep the maps.
func (f *fleet) read(see func(servers, claims map[string]object)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	see(f.objects[kindServer], f.objects[kindClaim])
}

// visit begins to follow maintenances of n servers, which are to be made.
func (f *fleet) visit(n int) *visits {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.visits = newVisits(plan(n, f.objects[kindServer]))
	return f.visits
}

// readMaintenances is read for claims and maintenances. What it calls may use the visits.
func (f *fleet) readMaintenances(see func(claims, maintenances map[string]object)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	see(f.objects[kindClaim], f.objects[kindMaintenance])
}

// doubleBinds is how often two claims had one server, or one claim two servers, until now.
func (f *fleet) doubleBinds() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bindings.doubles
}
