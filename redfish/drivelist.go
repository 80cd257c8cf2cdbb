// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/metalaw/metalaw/redfish/drives"
)

// DriveReader reads the drives that a BMC lists of a system; every BMC of a Pool is one.
type DriveReader interface {
	// Drives reads the storage of one system, with the same identity check as Power. An empty list without an error
	// says that the BMC has no list of drives, or lists none yet: many list them only after POST. What could not be
	// read is an error, and then nothing of the list counts. It takes a request for each adapter, drive and volume.
	Drives(ctx context.Context, uri string, want Identity) (drives.List, error)
}

var _ DriveReader = (*client)(nil)

// Drives implements DriveReader.
func (c *client) Drives(ctx context.Context, uri string, want Identity) (drives.List, error) {
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return drives.List{}, err
	}
	defer cancel()
	doc, _, err := op.checked(uri, want)
	if err != nil {
		return drives.List{}, err
	}
	if doc.Storage == "" {
		return drives.List{}, nil
	}
	r := &driveReader{op: op, collection: string(doc.Storage)}
	adapters, err := r.adapters()
	if err != nil {
		return drives.List{}, err
	}
	return drives.Judge(adapters), nil
}

// driveReader reads one storage collection, each resource once.
type driveReader struct {
	op         *operation
	collection string
	drives     int
}

// adapters reads the members of the collection. One that is empty, absent or without a list of members has none.
func (r *driveReader) adapters() ([]drives.Adapter, error) {
	members, err := r.op.members(r.collection)
	if statusIs(err, http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, r.unlisted(err)
	}
	if err := r.complete(members); err != nil {
		return nil, err
	}
	var all []drives.Adapter
	for _, m := range members {
		a, err := r.adapter(m)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// unlisted forgives a collection that has no list of members at all, as AMI shows it until the host has told its
// drives.
func (r *driveReader) unlisted(err error) error {
	if r.op.fatal(err) || !statusIs(err, http.StatusOK) {
		return err
	}
	var bare map[string]json.RawMessage
	if _, again := r.op.get(r.collection, &bare); again != nil {
		return again
	}
	if _, shown := bare["Members"]; shown || bare["@odata.id"] == nil {
		return err
	}
	return nil
}

// complete reads once more what could not be read, and fails where that cannot be read either: a drive of it may be
// the hidden one.
func (r *driveReader) complete(members []member) error {
	if err := readAgain(r.op, members); err != nil {
		return err
	}
	for _, m := range members {
		if m.err != nil {
			return m.err
		}
	}
	return nil
}

func (r *driveReader) adapter(m member) (drives.Adapter, error) {
	var doc struct {
		Drives  json.RawMessage
		Volumes link
	}
	if err := json.Unmarshal(m.raw, &doc); err != nil {
		return drives.Adapter{}, r.odd(m.URI, "the storage is not usable JSON: "+err.Error())
	}
	var a drives.Adapter
	members, err := r.listed(m.URI, doc.Drives)
	if err != nil || len(members) == 0 {
		return a, err
	}
	if r.drives += len(members); r.drives > drives.MaxDrives {
		return a, r.odd(r.collection, tooMany)
	}
	a.Drives = resources(members)
	if doc.Volumes == "" {
		return a, nil
	}
	volumes, err := r.op.members(string(doc.Volumes))
	if statusIs(err, http.StatusNotFound) { // a link to a collection that the BMC does not have
		return a, nil
	}
	if err == nil {
		err = r.complete(volumes)
	}
	a.Volumes = resources(volumes)
	return a, err
}

// listed reads the drives of an adapter: an array of references or of whole drives, or a link to a collection.
func (r *driveReader) listed(uri string, raw json.RawMessage) ([]member, error) {
	var one link
	if isObject(raw) {
		if _ = one.UnmarshalJSON(raw); one == "" {
			return nil, r.odd(uri, "its drives are neither a list nor a link")
		}
		members, err := r.op.members(string(one))
		if err == nil {
			err = r.complete(members)
		}
		return members, err
	}
	var all []member
	references, isList := as[[]json.RawMessage](raw)
	if len(raw) > 0 && !isList {
		return nil, r.odd(uri, "its drives are neither a list nor a link")
	}
	if len(references) > drives.MaxDrives {
		return nil, r.odd(uri, tooMany)
	}
	for _, reference := range references {
		m := member{URI: memberURI(reference), raw: reference}
		if m.URI == "" {
			return nil, r.odd(uri, "a drive has no @odata.id")
		}
		if referenceOnly(reference) {
			m.raw = nil
			if _, m.err = r.op.get(m.URI, &m.raw); m.err != nil && r.op.fatal(m.err) {
				return nil, m.err
			}
		}
		all = append(all, m)
	}
	return all, r.complete(all)
}

var tooMany = fmt.Sprintf("more than %d drives are listed", drives.MaxDrives)

// odd is the error of an answer that was given and says nothing usable.
func (r *driveReader) odd(uri, message string) error {
	return r.op.bad(http.MethodGet, uri, http.StatusOK, message)
}

func resources(members []member) []drives.Resource {
	var all []drives.Resource
	for _, m := range members {
		all = append(all, drives.Resource{URI: m.URI, Raw: m.raw})
	}
	return all
}
