// SPDX-License-Identifier: Apache-2.0

package redfish

import "time"

// A BMC is first read as such, and then each of its systems for itself. Where the list of systems showed them whole, the
// first of those reads needs no request for the system.

// listedFor is how long what a list showed of a system may stand for a read of it.
const listedFor = 5 * time.Second

// listedSystem is a system as the list of systems showed it.
type listedSystem struct {
	doc *systemDoc
	// asked is when the list was asked for: what happened afterwards may not be in it.
	asked time.Time
}

// justListed returns a system as it was listed a moment ago, once; nil where it was not, where anything was written to the
// BMC since, and where the list shows less than a system's own resource does. The snapshot is as old as the list.
func (c *client) justListed(uri string) (*systemDoc, SystemSnapshot) {
	var found listedSystem
	c.learn(func(m *memory) {
		found = m.listed[uri]
		delete(m.listed, uri)
	})
	if !found.lately() || !found.doc.whole() || found.snapshot(uri).Health == HealthCritical { // the list names no parts
		return nil, SystemSnapshot{}
	}
	snapshot := found.snapshot(uri)
	if len(snapshot.ResetTypes) == 0 {
		snapshot.ResetTypes = c.knownResetTypes(string(found.doc.Actions.Value.Reset.Value.ActionInfo))
	}
	return found.doc, snapshot
}

// keepListed remembers a list that was asked for after so many writes, unless there was one since: it may not be in it.
func (c *client) keepListed(listed map[string]listedSystem, writes int) {
	c.learn(func(m *memory) {
		if m.writes == writes {
			m.listed = listed
		}
	})
}

func (l listedSystem) lately() bool { return l.doc != nil && time.Since(l.asked) <= listedFor }

// snapshot is as old as the list.
func (l listedSystem) snapshot(uri string) SystemSnapshot {
	s := l.doc.snapshot(uri)
	s.TakenAt = l.asked
	return s
}

// whole reports that a document shows all that is acted upon.
func (d *systemDoc) whole() bool {
	return cleanUUID(string(d.UUID)) != "" && d.PowerState != "" && d.Status.Present && d.Boot.Present &&
		d.EthernetInterfaces != "" && d.Actions.Value.Reset.Value.Target != ""
}
