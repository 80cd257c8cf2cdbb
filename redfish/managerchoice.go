// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// A service may show up to seven managers: those of GPU boards, of mezzanine cards, of the fabric. The BMC is the one that
// a host names in Links.ManagedBy, else the one whose Links.ManagerForServers lists a host.
// Evidence: on a DGX H100 only the manager of the GPU board lists servers, and the host names another one; on a Cray
// EX235n hosts name none, and the one that lists them is of the type EnclosureManager.

// managerChoice is the manager that stands for the BMC.
type managerChoice struct {
	uri string
	doc *managerDoc
	// doubt says why it may be another one; empty where links prove it. It is read all the same, and never restarted.
	doubt string
}

const noManagerNamed = "no system that can be reset names its manager, and no manager names such a system; restart the BMC by other means"

// chooseManager picks the manager of the hosts that are listed.
func (o *operation) chooseManager(systems systemList) (managerChoice, error) {
	var named []managerChoice
	for _, uri := range systems.managedBy {
		doc, err := o.managerAt(uri)
		switch {
		case statusIs(err, http.StatusNotFound):
		case err != nil:
			return managerChoice{}, err
		default:
			named = append(named, managerChoice{uri: uri, doc: doc})
		}
	}
	if len(named) > 0 {
		return chosen(named), nil
	}
	return o.listedManager(systems.uris)
}

// chosen picks among managers that links prove. A board controller goes before what manages it too, such as a chassis.
func chosen(named []managerChoice) managerChoice {
	if bmcs := slices.DeleteFunc(slices.Clone(named), func(m managerChoice) bool { return !m.doc.isBMC() }); len(bmcs) > 0 {
		named = bmcs
	}
	first := named[0]
	if len(named) > 1 {
		var uris []string
		for _, m := range named {
			uris = append(uris, m.uri)
		}
		first.doubt = fmt.Sprintf("its systems have several managers (%s); restart the one that is meant by other means", strings.Join(uris, ", "))
	}
	return first
}

func (d *managerDoc) isBMC() bool { return strings.EqualFold(string(d.ManagerType), "BMC") }

// listedManager picks the manager that lists one of the hosts. Where none does, the guess is the one that provides the
// service, else the first that is a BMC and lists no server, else the first.
func (o *operation) listedManager(hosts []string) (managerChoice, error) {
	root, err := o.root()
	if err != nil {
		return managerChoice{}, err
	}
	if root.Managers == "" {
		return managerChoice{}, o.bad(http.MethodGet, "/redfish/v1/", http.StatusOK, "the service root links no managers")
	}
	members, err := o.members(string(root.Managers))
	if err != nil {
		return managerChoice{}, err
	}
	var named, all []managerChoice
	var failed error
	for _, m := range members {
		doc := &managerDoc{}
		if m.err != nil || json.Unmarshal(m.raw, doc) != nil {
			failed = m.err
			continue
		}
		all = append(all, managerChoice{uri: m.URI, doc: doc, doubt: noManagerNamed})
		if slices.ContainsFunc(doc.Links.Value.ManagerForServers.Values, func(l link) bool { return containsURI(hosts, string(l)) }) {
			named = append(named, managerChoice{uri: m.URI, doc: doc})
		}
	}
	switch {
	case len(named) > 0:
		return chosen(named), nil
	case len(all) > 0:
		return guessed(all, string(root.Links.Value.ManagerProvidingService)), nil
	case failed != nil:
		return managerChoice{}, failed
	}
	return managerChoice{}, o.bad(http.MethodGet, string(root.Managers), http.StatusOK, "the collection lists no manager")
}

func guessed(all []managerChoice, providing string) managerChoice {
	for _, m := range all {
		if providing != "" && sameURI(m.uri, providing) {
			return m
		}
	}
	for _, m := range all {
		if m.doc.isBMC() && len(m.doc.Links.Value.ManagerForServers.Values) == 0 {
			return m
		}
	}
	return all[0]
}

// addManagers adds the managers that are not there yet.
func addManagers(to []string, more []link) []string {
	for _, l := range more {
		if l != "" && !containsURI(to, string(l)) {
			to = append(to, string(l))
		}
	}
	return to
}

func containsURI(uris []string, uri string) bool {
	return slices.ContainsFunc(uris, func(known string) bool { return sameURI(known, uri) })
}

// sameURI compares links of one BMC, which may differ in case and in a slash at the end.
func sameURI(a, b string) bool {
	return strings.EqualFold(strings.TrimRight(a, "/"), strings.TrimRight(b, "/"))
}
