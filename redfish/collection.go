// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// member is one member of a collection: read, or not readable.
type member struct {
	URI string
	raw json.RawMessage
	err error
}

type page struct {
	Members list[json.RawMessage]
	Next    text `json:"Members@odata.nextLink"`
}

// members reads a collection: in one request where the BMC expands it, else one more per member. The error of one member
// is kept in it and does not hide the others. A collection without a Members array is an error and never empty.
func (o *operation) members(uri string) ([]member, error) {
	raws, err := o.pages(uri)
	if err != nil {
		return nil, err
	}
	out := make([]member, 0, len(raws))
	for _, raw := range raws {
		m := member{URI: memberURI(raw), raw: raw}
		if m.URI == "" {
			m.err = o.bad(http.MethodGet, uri, 0, "a member of the collection has no @odata.id")
		} else if referenceOnly(raw) {
			m.raw = nil
			if _, m.err = o.get(m.URI, &m.raw); m.err != nil && o.fatal(m.err) {
				return nil, m.err
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// fatal errors concern the BMC, not one member: the rest would meet them too.
func (o *operation) fatal(err error) bool {
	refused, denied := errors.AsType[*AuthError](err)
	one := is[*ResponseError](err) || denied && refused.Until.IsZero()
	return !one || o.left <= 0
}

func (o *operation) pages(uri string) ([]json.RawMessage, error) {
	root, err := o.root()
	if err != nil {
		return nil, err
	}
	query := root.expand()
	if query == "" || strings.Contains(uri, "?") || o.c.recall().habits.noExpand {
		return o.follow(uri, uri)
	}
	raws, err := o.follow(uri, uri+"?"+query)
	if statusIs(err, http.StatusBadRequest, http.StatusNotFound, http.StatusInternalServerError, http.StatusNotImplemented) {
		if raws, err = o.follow(uri, uri); err == nil {
			o.c.learn(func(m *memory) { m.habits.noExpand = true })
		}
	}
	return raws, err
}

// follow reads a collection page by page; a page that was read already ends in an error.
func (o *operation) follow(uri, first string) ([]json.RawMessage, error) {
	var out []json.RawMessage
	seen := map[string]bool{}
	for next := first; next != ""; {
		if seen[next] {
			return nil, o.bad(http.MethodGet, uri, 0, "the collection's nextLink leads back to a page that was read already")
		}
		seen[next] = true
		var p page
		got, err := o.get(next, &p)
		if err != nil {
			return nil, err
		}
		if !p.Members.Present {
			return nil, o.bad(http.MethodGet, next, got.status, "the collection has no Members array")
		}
		out = append(out, p.Members.Values...)
		next = string(p.Next)
	}
	return out, nil
}

func memberURI(raw json.RawMessage) string {
	var l link
	if len(raw) == 0 || l.UnmarshalJSON(raw) != nil {
		return ""
	}
	return string(l)
}

// referenceOnly reports whether a member still has to be read.
func referenceOnly(raw json.RawMessage) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return true
	}
	for name := range fields {
		if !strings.HasPrefix(name, "@odata.") {
			return false
		}
	}
	return true
}

// lastSegment returns the last segment of a path, without a trailing slash.
func lastSegment(uri string) string {
	path, _, _ := strings.Cut(uri, "?")
	path = strings.TrimRight(path, "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}
