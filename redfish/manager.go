// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
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
	doc, _, err := op.manager()
	if err != nil {
		return ManagerSnapshot{}, err
	}
	root, err := op.root()
	if err != nil {
		return ManagerSnapshot{}, err
	}
	snapshot := ManagerSnapshot{
		UUID:            cleanUUID(string(doc.UUID)),
		Manufacturer:    orElse(string(doc.Manufacturer), string(root.Vendor)),
		Model:           string(doc.Model),
		SKU:             orElse(string(doc.SKU), string(doc.PartNumber)),
		SerialNumber:    cleanSerial(string(doc.SerialNumber)),
		FirmwareVersion: string(doc.FirmwareVersion),
		Power:           powerState(doc.PowerState),
		LastResetTime:   plausible(doc.LastResetTime),
	}
	err = op.systems(root, doc.incarnation(), &snapshot)
	return snapshot, err
}

// incarnation names a BMC between two of its restarts, as far as it tells: what it listed in another one is not relied on.
func (d *managerDoc) incarnation() string {
	return string(d.UUID + "\x00" + d.SerialNumber + "\x00" + d.LastResetTime)
}

// manager reads the BMC's own resource, by its remembered URI where there is one.
func (o *operation) manager() (*managerDoc, string, error) {
	if uri := o.c.recall().managerURI; uri != "" {
		doc, err := o.managerAt(uri)
		if !statusIs(err, http.StatusNotFound) {
			return doc, uri, err
		}
		o.c.forgetTopology()
	}
	root, err := o.root()
	if err != nil {
		return nil, "", err
	}
	if uri := string(root.Links.Value.ManagerProvidingService); uri != "" {
		doc, err := o.managerAt(uri)
		if err == nil {
			o.c.learn(func(m *memory) { m.managerURI = uri })
		}
		if !statusIs(err, http.StatusNotFound) {
			return doc, uri, err
		}
	}
	return o.findManager(root)
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
	doc.ETag = text(orElse(got.header.Get("ETag"), string(doc.ETag)))
	return doc, nil
}

// findManager picks, among up to seven, the BMC: the first that says so and manages a server, else the first that says
// so, else the first.
func (o *operation) findManager(root *serviceRoot) (*managerDoc, string, error) {
	if root.Managers == "" {
		return nil, "", o.bad(http.MethodGet, "/redfish/v1/", http.StatusOK, "the service root links no managers")
	}
	members, err := o.members(string(root.Managers))
	if err != nil {
		return nil, "", err
	}
	var best *managerDoc
	var bestURI string
	var failed error
	bestRank := -1
	for _, m := range members {
		doc := &managerDoc{}
		if m.err != nil || json.Unmarshal(m.raw, doc) != nil {
			failed = m.err
			continue
		}
		rank := 0
		if strings.EqualFold(string(doc.ManagerType), "BMC") {
			rank = 1
			if len(doc.Links.Value.ManagerForServers.Values) > 0 {
				rank = 2
			}
		}
		if rank > bestRank {
			best, bestURI, bestRank = doc, m.URI, rank
		}
	}
	switch {
	case best != nil && failed == nil:
		o.c.learn(func(m *memory) { m.managerURI = bestURI })
		return best, bestURI, nil
	case best != nil: // perhaps a better one could not be read: use this one, but do not remember it
		return best, bestURI, nil
	case failed != nil:
		return nil, "", failed
	}
	return nil, "", o.bad(http.MethodGet, string(root.Managers), http.StatusOK, "the collection lists no manager")
}

// systems lists the hosts. A list is remembered only when every member could be read.
func (o *operation) systems(root *serviceRoot, incarnation string, into *ManagerSnapshot) error {
	known := o.c.recall()
	if len(known.systemURIs) > 0 && known.listedBy == incarnation && time.Since(known.listedAt) < o.c.options.SystemsFor {
		into.SystemURIs = append([]string(nil), known.systemURIs...)
		return nil
	}
	if root.Systems == "" {
		return o.bad(http.MethodGet, "/redfish/v1/", http.StatusOK,
			"the service root links no systems; this BMC may still be starting, or manages no host")
	}
	asked, writes := time.Now(), o.c.recall().writes
	members, err := o.members(string(root.Systems))
	if err != nil {
		return err
	}
	listed := map[string]listedSystem{}
	defer func() { o.c.keepListed(listed, writes) }()
	var failed error
	for _, m := range members {
		var doc systemDoc
		switch {
		case m.err == nil && json.Unmarshal(m.raw, &doc) == nil:
			if doc.resettable(m.URI) {
				into.SystemURIs = append(into.SystemURIs, m.URI)
				listed[m.URI] = listedSystem{doc: &doc, asked: asked}
				into.Listed = append(into.Listed, listed[m.URI].snapshot(m.URI))
			}
		case isTray(m.URI):
		default:
			failed = m.err
			into.Unreadable = append(into.Unreadable, m.URI)
		}
	}
	switch {
	case len(into.SystemURIs) == 0 && failed != nil:
		return failed
	case len(into.SystemURIs) == 0:
		return o.bad(http.MethodGet, string(root.Systems), http.StatusOK,
			"the collection lists no system that can be reset; that is never taken for a system that is gone")
	case len(into.Unreadable) == 0:
		o.c.learn(func(m *memory) {
			m.systemURIs, m.listedAt, m.listedBy = append([]string(nil), into.SystemURIs...), time.Now(), incarnation
		})
	}
	return nil
}

// plausible reads the time of the last reset; a clock that was never set gives the zero time.
func plausible(t text) time.Time {
	at, err := time.Parse(time.RFC3339, string(t))
	if err != nil || at.Year() < 2010 || at.After(time.Now().Add(48*time.Hour)) {
		return time.Time{}
	}
	return at
}
