// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"
)

// emulatedPatterns are the resources that change while a tree is served, besides its hosts: sessions and tasks.
var emulatedPatterns = []string{
	"/redfish", root + "/SessionService/Sessions", root + "/SessionService/Sessions/{session}",
	root + "/TaskService/Tasks", root + "/TaskService/Tasks/{task}", root + "/TaskService/TaskMonitors/{task}",
}

// inventedPatterns are served where the tree does not have them.
var inventedPatterns = []string{root + "/SessionService", root + "/TaskService"}

const systemPattern = root + "/Systems/{system}"

// The routes of a captured tree. Their patterns are what requests are counted by.
var (
	treeRoot = &route{
		pattern: root, methods: getPatch(getCaptured, patchCaptured), open: map[string]bool{http.MethodGet: true, http.MethodHead: true},
	}
	treeAny      = &route{pattern: "captured", methods: getPatch(getCaptured, patchCaptured)}
	treeSystem   = &route{pattern: systemPattern, methods: getPatch(getTreeHost, patchTreeHost)}
	treeSettings = &route{pattern: root + "/Systems/{system}/{settings}", methods: getPatch(getTreeHost, patchTreeHost)}
	treeReset    = &route{pattern: root + "/Systems/{system}/Actions/ComputerSystem.Reset", methods: post(postReset)}
	treeRestart  = &route{pattern: root + "/Managers/{manager}/Actions/Manager.Reset", methods: post(postTreeManagerReset)}
)

// route finds what serves a path of this tree; nil where nothing does.
func (t *Tree) route(path string) (*route, map[string]string) {
	own, params := findRoute(path)
	if own != nil && slices.Contains(emulatedPatterns, own.pattern) {
		return own, params
	}
	for i := range t.hosts {
		h := &t.hosts[i]
		params := map[string]string{"system": h.id}
		switch {
		case strings.EqualFold(path, h.uri):
			return treeSystem, params
		case h.settings != "" && strings.EqualFold(path, h.settings):
			return treeSettings, params
		case strings.EqualFold(path, h.resetTarget):
			return treeReset, params
		}
	}
	for target, manager := range t.managed.resets {
		if strings.EqualFold(path, target) {
			return treeRestart, map[string]string{"manager": manager}
		}
	}
	if medium, params := t.mediaRoute(path); medium != nil {
		return medium, params
	}
	uri := t.canonical(path)
	switch {
	case uri == root:
		return treeRoot, nil
	case t.docs[uri] != nil:
		return treeAny, nil
	case own != nil && slices.Contains(inventedPatterns, own.pattern):
		return own, params
	}
	return nil, nil
}

// findRoute finds the route of a path on this BMC.
func (b *bmc) findRoute(path string) (*route, map[string]string) {
	if b.tree != nil {
		return b.tree.route(path)
	}
	return findRoute(path)
}

// getCaptured serves a resource as it was captured, also where it is no JSON.
func getCaptured(x *exchange) answer {
	t := x.bmc.tree
	body := t.doc(x.path)
	if body == nil {
		return answer{status: http.StatusOK, body: json.RawMessage(t.docs[t.canonical(x.path)])}
	}
	return tagged(body)
}

// getTreeHost serves a host or its settings as they were captured, with the power, boot settings and light of now.
func getTreeHost(x *exchange) answer { return tagged(x.treeHostBody(x.machine())) }

func (x *exchange) treeHostBody(m *Machine) doc {
	body := x.bmc.tree.doc(x.path)
	if m == nil {
		return body
	}
	before := fingerprint(body)
	if _, shown := body["PowerState"]; shown {
		body["PowerState"] = string(m.stateSince(x.stale))
	}
	m.showBoot(object(body, "Boot"))
	m.showLight(body)
	if now := fingerprint(body); now != before {
		retag(body, now)
	}
	return body
}

// showBoot puts the boot settings of now where the tree shows such a property.
func (m *Machine) showBoot(boot doc) {
	show := func(name string, value any, known bool) {
		if _, shown := boot[name]; shown && known {
			boot[name] = value
		}
	}
	o := m.override
	show("BootSourceOverrideEnabled", o.enabled, true)
	show("BootSourceOverrideTarget", o.target, true)
	show("BootSourceOverrideMode", o.mode, o.mode != "")
	show("HttpBootUri", o.uri, o.uri != "")
	show("BootOrder", m.order, m.reordered)
}

// tagged answers with a resource and, where it was captured with an entity tag, with the header too.
func tagged(body doc) answer {
	a := ok(body)
	if tag := text(body, "@odata.etag"); tag != "" {
		a.header = http.Header{"Etag": {tag}}
	}
	return a
}

func fingerprint(body doc) string {
	raw, err := json.Marshal(body)
	if err != nil {
		return ""
	}
	h := fnv.New64a()
	_, _ = h.Write(raw) // a hash cannot fail to be written to
	return fmt.Sprintf("%x", h.Sum64())
}

// retag gives a changed resource another entity tag of the same form.
func retag(body doc, now string) {
	if tag := text(body, "@odata.etag"); strings.HasSuffix(tag, `"`) {
		body["@odata.etag"] = tag[:len(tag)-1] + "-" + now + `"`
	}
}

// postTreeManagerReset restarts the BMC where its own manager is asked. Another manager, as of a GPU board, accepts and
// nothing else happens; the log of writes shows which one was asked.
func postTreeManagerReset(x *exchange) answer {
	t, manager := x.bmc.tree, x.params["manager"]
	var in struct{ ResetType ResetType }
	if len(x.body) > 0 {
		if bad := x.decode(&in); bad != nil {
			return *bad
		}
	}
	action := object(t.doc(manager), "Actions", "#Manager.Reset")
	if offered := t.resetTypes(action); in.ResetType != "" && len(offered) > 0 && !slices.Contains(offered, in.ResetType) {
		return refusal("ActionParameterValueNotInList", "ResetType", "", fmt.Sprintf("The value %q is not offered for ResetType.", in.ResetType))
	}
	a := success(x.bmc.profile.ResetStatus)
	if manager == t.managed.uri {
		b, own := x.bmc, x.conn
		a.after = func() { b.restart(own) }
	}
	return a
}
