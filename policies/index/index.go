// SPDX-License-Identifier: Apache-2.0

// Package index feeds the index of the fleet with versions of servers, from a watch, from the answer to a write, or as
// a caller read them.
package index

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/claims/index"
	"github.com/metalaw/metalaw/policies"
)

// Index is every server as it was seen last: by the watch, or in the answer to a write. An older version never replaces a
// newer one, so that a binding that was written holds here at once and a watch that lags does not undo it. It is safe for
// concurrent use.
type Index struct {
	*index.Index

	// mu orders what comes in.
	mu       sync.Mutex
	byUUID   map[string]string            // server name by system UUID
	hardware map[string]policies.Hardware // by system UUID
}

// New makes an index of no servers.
func New() *Index {
	return &Index{Index: index.New(), byUUID: map[string]string{}, hardware: map[string]policies.Hardware{}}
}

// Saw takes in a server from the watch. The Change is empty where a newer version is known already.
func (x *Index) Saw(s *v1alpha1.Server) Change {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.Get(s.Name)
	if before != nil && Server(before).UID == s.UID && !Newer(s.ResourceVersion, Server(before).ResourceVersion) {
		return Change{}
	}
	return x.put(before, s)
}

// Wrote takes in the answer to a write of this process, or to a read past the cache. A server that is gone by now stays gone. The watch
// will have nothing new to tell of this version, so that the Change, which may be empty, is the caller's to pass on: it can hold what
// others wrote.
func (x *Index) Wrote(s *v1alpha1.Server) Change {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.Get(s.Name)
	if before == nil || Server(before).UID != s.UID || !Newer(s.ResourceVersion, Server(before).ResourceVersion) {
		return Change{}
	}
	return x.put(before, s)
}

// Gone takes a server out.
func (x *Index) Gone(name string) Change {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.Index.Gone(name)
	if e != nil {
		x.forget(Server(e))
	}
	return Change{Before: e}
}

// SawInventory takes in what an agent reported. The Change is that of its server, empty where there is none or nothing new.
func (x *Index) SawInventory(inv *policyv1alpha1.ServerInventory) Change {
	h := policies.HardwareOf(inv)
	x.mu.Lock()
	defer x.mu.Unlock()
	uuid := inv.Spec.SystemUUID
	if x.hardware[uuid] == h {
		return Change{}
	}
	x.hardware[uuid] = h
	return x.renew(uuid)
}

// ForgetInventory drops what an agent reported. The Change is that of its server, empty where there is none or nothing was known.
func (x *Index) ForgetInventory(uuid string) Change {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.hardware[uuid]; !known {
		return Change{}
	}
	delete(x.hardware, uuid)
	return x.renew(uuid)
}

// renew makes a server anew whose inventory changed.
func (x *Index) renew(uuid string) Change {
	before := x.Get(x.byUUID[uuid])
	if before == nil {
		return Change{}
	}
	return x.put(before, Server(before))
}

// put replaces what is known of a server.
func (x *Index) put(before *Entry, s *v1alpha1.Server) Change {
	r := recordOf(s, x.hardware[s.Spec.SystemUUID])
	matters := true
	if before != nil {
		x.forget(Server(before))
		matters = Server(before).UID != s.UID || differ(&before.Record, &r)
	}
	x.byUUID[s.Spec.SystemUUID] = s.Name
	return Change{before, x.Put(r, matters)}
}

func (x *Index) forget(s *v1alpha1.Server) {
	if uuid := s.Spec.SystemUUID; x.byUUID[uuid] == s.Name {
		delete(x.byUUID, uuid)
	}
}

// Newer says whether one resource version is later than another. Where they cannot be compared, what came last counts as later.
func Newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}
