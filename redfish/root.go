// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/stmcginnis/gofish/schemas"
)

// serviceRoot is what we need of /redfish/v1/.
type serviceRoot struct {
	Type           text `json:"@odata.type"`
	RedfishVersion text
	Vendor         text
	Systems        link
	Managers       link
	Links          object[struct {
		Sessions                link
		ManagerProvidingService link
	}]
	ProtocolFeaturesSupported object[struct {
		ExpandQuery object[struct {
			ExpandAll, Levels, NoLinks flag
		}]
	}]
}

// root reads the service root once, without credentials.
func (o *operation) root() (*serviceRoot, error) {
	if known := o.c.recall().root; known != nil {
		return known, nil
	}
	got, err := o.sendAs(credential{}, http.MethodGet, schemas.DefaultServiceRoot, nil, nil)
	if err != nil {
		return nil, err
	}
	root := &serviceRoot{}
	if err := o.decode(schemas.DefaultServiceRoot, got, root); err != nil {
		return nil, err
	}
	if root.RedfishVersion == "" && !strings.Contains(string(root.Type), "ServiceRoot") {
		return nil, o.bad(http.MethodGet, schemas.DefaultServiceRoot, got.status, "the answer is not a Redfish service root; check address and port")
	}
	o.c.learn(func(m *memory) { m.root = root })
	return root, nil
}

func (r *serviceRoot) sessions() string {
	return cmp.Or(string(r.Links.Value.Sessions), "/redfish/v1/SessionService/Sessions")
}

// expand returns the query that puts a collection's members into it; empty where the service does not offer it.
func (r *serviceRoot) expand() string {
	offer := r.ProtocolFeaturesSupported.Value.ExpandQuery.Value
	var query string
	switch {
	case offer.NoLinks.Value:
		query = "$expand=."
	case offer.ExpandAll.Value:
		query = "$expand=*"
	default:
		return ""
	}
	if offer.Levels.Value {
		query += "($levels=1)"
	}
	return query
}
