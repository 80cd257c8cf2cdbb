// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"
)

type managerDoc struct {
	ODataID         text `json:"@odata.id"`
	ETag            text `json:"@odata.etag"`
	ID              text `json:"Id"`
	ManagerType     text
	UUID            text
	Manufacturer    text
	Model           text
	SKU             text `json:"SKU"`
	PartNumber      text
	SerialNumber    text
	FirmwareVersion text
	PowerState      text
	LastResetTime   text
	VirtualMedia    link
	Links           object[struct {
		ManagerForServers list[link]
	}]
	Actions object[struct {
		Reset object[resetAction] `json:"#Manager.Reset"`
	}]
}

// Manager implements Reader.
func (c *client) Manager(ctx context.Context) (ManagerSnapshot, error) {
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return ManagerSnapshot{}, err
	}
	defer cancel()
	if seen, ok := c.takeOver(); ok {
		return seen, nil
	}
	asked := time.Now()
	doc, systems, err := op.managerAndSystems()
	if err != nil {
		return ManagerSnapshot{}, err
	}
	root, err := op.root()
	if err != nil {
		return ManagerSnapshot{}, err
	}
	return ManagerSnapshot{
		UUID:            cleanUUID(string(doc.UUID)),
		Manufacturer:    cmp.Or(string(doc.Manufacturer), string(root.Vendor)),
		Model:           string(doc.Model),
		SKU:             cmp.Or(string(doc.SKU), string(doc.PartNumber)),
		SerialNumber:    cleanSerial(string(doc.SerialNumber)),
		FirmwareVersion: string(doc.FirmwareVersion),
		Power:           powerState(doc.PowerState),
		LastResetTime:   plausible(doc.LastResetTime),
		SystemURIs:      systems.uris,
		Listed:          systems.listed,
		Unreadable:      systems.unreadable,
		TakenAt:         asked,
	}, nil
}

// managerAndSystems reads the BMC, and lists its systems where the list is not remembered from this incarnation of it.
func (o *operation) managerAndSystems() (*managerDoc, systemList, error) {
	known := o.c.recall()
	if known.managerURI != "" {
		doc, err := o.managerAt(known.managerURI)
		switch {
		case statusIs(err, http.StatusNotFound):
			o.c.forgetTopology()
		case err != nil:
			return nil, systemList{}, err
		case len(known.systemURIs) > 0 && known.listedBy == doc.incarnation() && time.Since(known.listedAt) < o.c.options.SystemsFor:
			return doc, systemList{uris: append([]string(nil), known.systemURIs...)}, nil
		}
	}
	systems, err := o.listSystems()
	if err != nil {
		return nil, systemList{}, err
	}
	chosen, err := o.chooseManager(systems)
	if err != nil {
		return nil, systemList{}, err
	}
	if len(systems.unreadable) == 0 {
		o.c.learn(func(m *memory) {
			m.systemURIs, m.listedAt, m.listedBy = append([]string(nil), systems.uris...), time.Now(), chosen.doc.incarnation()
			m.managerURI, m.managerProven = chosen.uri, chosen.doubt == ""
		})
	}
	return chosen.doc, systems, nil
}

// incarnation names a BMC between two of its restarts, as far as it tells: what it listed in another one is not relied on.
func (d *managerDoc) incarnation() string {
	return string(d.UUID + "\x00" + d.SerialNumber + "\x00" + d.LastResetTime)
}

func (o *operation) managerAt(uri string) (*managerDoc, error) {
	doc := &managerDoc{}
	got, err := o.get(uri, doc)
	if err != nil {
		return nil, err
	}
	if doc.ODataID == "" && doc.ID == "" {
		return nil, o.bad(http.MethodGet, uri, got.status, "the answer describes no manager")
	}
	doc.ETag = cmp.Or(text(got.header.Get("ETag")), doc.ETag)
	return doc, nil
}

// systemList is what the collection of systems shows of hosts.
type systemList struct {
	uris       []string
	listed     []SystemSnapshot
	unreadable []string
	// managedBy are the managers that the hosts name, each once.
	managedBy []string
}

// listSystems lists the hosts. No host at all is an error.
func (o *operation) listSystems() (systemList, error) {
	var out systemList
	root, err := o.root()
	if err != nil {
		return out, err
	}
	if root.Systems == "" {
		if root.Managers != "" { // refused credentials are told before a link that is missing
			if _, err := o.members(string(root.Managers)); err != nil {
				return out, err
			}
		}
		return out, o.bad(http.MethodGet, "/redfish/v1/", http.StatusOK,
			"the service root links no systems; this BMC may still be starting, or manages no host")
	}
	asked, writes := time.Now(), o.c.recall().writes
	members, err := o.members(string(root.Systems))
	if err != nil {
		return out, err
	}
	listed := map[string]listedSystem{}
	defer func() { o.c.keepListed(listed, writes) }()
	var failed error
	for _, m := range members {
		var doc systemDoc
		switch {
		case m.err == nil && json.Unmarshal(m.raw, &doc) == nil:
			if doc.resettable(m.URI) {
				out.uris = append(out.uris, m.URI)
				listed[m.URI] = listedSystem{doc: &doc, asked: asked}
				out.listed = append(out.listed, listed[m.URI].snapshot(m.URI))
				out.managedBy = addManagers(out.managedBy, doc.Links.Value.ManagedBy.Values)
			}
		case isTray(m.URI):
		default:
			failed = m.err
			out.unreadable = append(out.unreadable, m.URI)
		}
	}
	switch {
	case len(out.uris) == 0 && failed != nil:
		return systemList{}, failed
	case len(out.uris) == 0:
		return systemList{}, o.bad(http.MethodGet, string(root.Systems), http.StatusOK,
			"the collection lists no system that can be reset; that is never taken for a system that is gone")
	}
	return out, nil
}

// plausible reads the time of the last reset; a clock that was never set gives the zero time.
func plausible(t text) time.Time {
	at, err := time.Parse(time.RFC3339, string(t))
	if err != nil || at.Year() < 2010 || at.After(time.Now().Add(48*time.Hour)) {
		return time.Time{}
	}
	return at
}
