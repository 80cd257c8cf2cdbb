// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"net/http"
	"slices"
	"strings"
)

const (
	insertAction = "#VirtualMedia.InsertMedia"
	ejectAction  = "#VirtualMedia.EjectMedia"
)

// treeSlot is a slot of virtual media that a tree shows.
type treeSlot struct {
	uri string
	// host is the system whose drive it is; the first one where only the manager lists it.
	host string
	slot MediaSlot
	// insert and eject are the targets of the actions; empty where Image is written instead.
	insert, eject string
	// image is what was inserted when the tree was captured.
	image string
}

// findMedia lists the slots of the hosts and of the managers.
func (t *Tree) findMedia(service doc) {
	for i := range t.hosts {
		t.addMedia(t.doc(t.hosts[i].uri), t.hosts[i].id)
	}
	_, managers := t.members(t.member(service, "Managers"))
	for _, manager := range managers {
		t.addMedia(manager, t.hosts[0].id)
	}
}

func (t *Tree) addMedia(owner doc, host string) {
	uris, bodies := t.members(t.member(owner, "VirtualMedia"))
	for i, body := range bodies {
		if slices.ContainsFunc(t.media, func(s treeSlot) bool { return s.uri == uris[i] }) {
			continue
		}
		slot := treeSlot{uri: uris[i], host: host, slot: MediaSlot{ID: text(body, "Id"), Types: words(body["MediaTypes"])}}
		slot.insert = strings.TrimRight(text(object(body, "Actions", insertAction), "target"), "/")
		slot.eject = strings.TrimRight(text(object(body, "Actions", ejectAction), "target"), "/")
		if slot.insert != "" && slot.eject == "" { // it is shown while something is inserted
			slot.eject = uris[i] + "/Actions/VirtualMedia.EjectMedia"
		}
		if inserted, _ := body["Inserted"].(bool); inserted {
			slot.image = text(body, "Image")
		}
		t.media = append(t.media, slot)
	}
}

// The routes of the slots of a captured tree.
var (
	treeMedium = &route{pattern: "captured/VirtualMedia/{medium}", methods: getPatch(getTreeMedium, patchTreeMedium)}
	treeInsert = &route{pattern: "captured/VirtualMedia/{medium}/Insert", methods: post(postTreeInsert)}
	treeEject  = &route{pattern: "captured/VirtualMedia/{medium}/Eject", methods: post(postTreeEject)}
)

// mediaRoute finds the slot that a path is about; nil where it is about none.
func (t *Tree) mediaRoute(path string) (*route, map[string]string) {
	for i := range t.media {
		s := &t.media[i]
		params := map[string]string{"medium": s.uri, "system": s.host}
		switch {
		case strings.EqualFold(path, s.uri):
			return treeMedium, params
		case s.insert != "" && strings.EqualFold(path, s.insert):
			return treeInsert, params
		case s.eject != "" && strings.EqualFold(path, s.eject):
			return treeEject, params
		}
	}
	return nil, nil
}

// treeMedium is the slot that the route found, and what it holds.
func (x *exchange) treeMedium() (*Machine, *medium, *treeSlot) {
	i := slices.IndexFunc(x.bmc.tree.media, func(s treeSlot) bool { return s.uri == x.params["medium"] })
	m := x.machine()
	if i < 0 || m == nil {
		return nil, nil, nil
	}
	slot := &x.bmc.tree.media[i]
	_, used := m.media[strings.ToLower(slot.uri)]
	held := m.mediumAt(slot.uri, slot.slot)
	if !used && slot.image != "" {
		held.image, held.inserted = slot.image, true
	}
	return m, held, slot
}

func (x *exchange) treeMediumBody(held *medium, slot *treeSlot) doc {
	body := x.bmc.tree.doc(slot.uri)
	before := fingerprint(body)
	held.show(body)
	if actions := object(body, "Actions"); held.inserted && actions != nil && slot.eject != "" {
		actions[ejectAction] = doc{"target": slot.eject}
	}
	if now := fingerprint(body); now != before {
		retag(body, now)
	}
	return body
}

func getTreeMedium(x *exchange) answer {
	_, held, slot := x.treeMedium()
	if held == nil {
		return notFound(x.path)
	}
	return tagged(x.treeMediumBody(held, slot))
}

func postTreeInsert(x *exchange) answer {
	m, held, _ := x.treeMedium()
	if held == nil {
		return notFound(x.path)
	}
	return x.insertMedium(m, held)
}

func postTreeEject(x *exchange) answer {
	m, held, _ := x.treeMedium()
	if held == nil {
		return notFound(x.path)
	}
	m.eject(held)
	return noContent()
}

// patchTreeMedium takes Image where the tree shows no action for it.
func patchTreeMedium(x *exchange) answer {
	m, held, slot := x.treeMedium()
	switch {
	case held == nil:
		return notFound(x.path)
	case slot.insert != "":
		return failure(http.StatusMethodNotAllowed, "OperationNotAllowed", "Use the actions InsertMedia and EjectMedia.")
	}
	if refused := x.bmc.tree.manners.condition(x.req, x.treeMediumBody(held, slot)); refused != nil {
		return *refused
	}
	return x.changeMedium(m, held, func() doc { return x.treeMediumBody(held, slot) })
}
