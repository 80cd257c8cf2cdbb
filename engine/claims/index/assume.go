// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"

	"github.com/metalaw/metalaw/engine/selection"
)

// Assume has a server count as claimed by the claim of this UID and namespace, before that is written, so that the next claim sees it as
// taken at once. It is kept over newer versions of the server, until Release. It says no, and changes nothing, where the
// hard contract does not let the claim have the server as it is now, or another claim is assumed to have it.
func (x *Index) Assume(name string, spec selection.ClaimSpec, claim, namespace string) (*Entry, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.available(name, spec)
	if e == nil {
		return nil, false
	}
	x.settle(e, -1)
	x.assumed[name], x.assumedIn[name] = claim, namespace
	x.settle(e, 1)
	return e, true
}

// Assumed says for which claim each server is assumed, by the server's name.
func (x *Index) Assumed() map[string]string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return maps.Clone(x.assumed)
}

// Release ends what was assumed of a server for a claim: it counts as what its version says. Calling it again, or for a claim
// that was not assumed to have the server, does nothing. It returns the server where it is known and was released now.
func (x *Index) Release(name string, claim string) *Entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	if assumed, ok := x.assumed[name]; !ok || assumed != claim {
		return nil
	}
	e := x.servers[name]
	if e != nil {
		x.settle(e, -1)
	}
	delete(x.assumed, name)
	delete(x.assumedIn, name)
	if e != nil {
		x.settle(e, 1)
		if e.IsFree() {
			x.offered++
		}
	}
	return e
}
