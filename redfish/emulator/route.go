// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// handler answers one request, with bmc.mu held.
type handler func(*exchange) answer

// route is one kind of resource.
type route struct {
	pattern  string
	segments []string
	methods  map[string]handler
	// open lists the methods that need no login.
	open map[string]bool
}

func (r *route) allow() []string { return slices.Sorted(maps.Keys(r.methods)) }

const root = "/redfish/v1"

// routes is the whole tree. Handlers decide by profile whether a resource is there.
var routes = buildRoutes()

func get(h handler) map[string]handler { return map[string]handler{http.MethodGet: h} }

func post(h handler) map[string]handler { return map[string]handler{http.MethodPost: h} }

func getPatch(g, p handler) map[string]handler {
	return map[string]handler{http.MethodGet: g, http.MethodPatch: p}
}

func buildRoutes() []*route {
	var list []*route
	add := func(pattern string, methods map[string]handler, open ...string) {
		r := &route{pattern: pattern, segments: strings.Split(pattern, "/"), methods: methods, open: map[string]bool{}}
		for _, m := range open {
			r.open[m] = true
		}
		list = append(list, r)
	}
	add("/redfish", get(getVersions), http.MethodGet, http.MethodHead)
	add(root, get(getServiceRoot), http.MethodGet, http.MethodHead)

	add(root+"/SessionService", get(getSessionService))
	add(root+"/SessionService/Sessions", map[string]handler{http.MethodGet: getSessions, http.MethodPost: postSession}, http.MethodPost)
	add(root+"/SessionService/Sessions/{session}", map[string]handler{http.MethodGet: getSession, http.MethodDelete: deleteSession})
	add(root+"/AccountService", get(getAccountService))
	add(root+"/AccountService/Accounts", map[string]handler{http.MethodGet: getAccounts, http.MethodPost: postAccount})
	add(root+"/AccountService/Accounts/{account}", map[string]handler{
		http.MethodGet: getAccount, http.MethodPatch: patchAccount, http.MethodDelete: deleteAccount,
	})
	add(root+"/TaskService", get(getTaskService))
	add(root+"/TaskService/Tasks", get(getTasks))
	add(root+"/TaskService/Tasks/{task}", get(getTask))
	add(root+"/TaskService/TaskMonitors/{task}", get(getTaskMonitor))

	add(root+"/Managers", get(getManagers))
	add(root+"/Managers/{manager}", get(getManager))
	add(root+"/Managers/{manager}/EthernetInterfaces", get(getManagerNICs))
	add(root+"/Managers/{manager}/EthernetInterfaces/{nic}", get(getManagerNIC))
	add(root+"/Managers/{manager}/Actions/Manager.Reset", post(postManagerReset))
	addMedia(add, root+"/Managers/{manager}")
	add(root+"/Chassis", get(getChassisCollection))
	add(root+"/Chassis/{chassis}", get(getChassis))

	addSystem(add)
	return list
}

// addSystem adds the systems and all below them.
func addSystem(add func(pattern string, methods map[string]handler, open ...string)) {
	system := root + "/Systems/{system}"
	add(root+"/Systems", get(getSystems))
	add(system, getPatch(getSystem, patchSystem))
	add(system+"/Actions/ComputerSystem.Reset", post(postReset))
	add(system+"/ResetActionInfo", get(getResetActionInfo))
	add(system+"/BootOptions", get(getBootOptions))
	add(system+"/BootOptions/{option}", get(getBootOption))
	add(system+"/EthernetInterfaces", get(getNICs))
	add(system+"/EthernetInterfaces/{nic}", get(getNIC))
	add(system+"/Processors", get(getProcessors))
	add(system+"/Processors/{processor}", get(getProcessor))
	add(system+"/Memory", get(getMemory))
	add(system+"/Memory/{dimm}", get(getDIMM))
	add(system+"/Storage", get(getStorageCollection))
	add(system+"/Storage/{storage}", get(getStorage))
	add(system+"/Storage/{storage}/Drives/{drive}", get(getDrive))
	add(system+"/Storage/{storage}/Volumes", get(getVolumes))
	add(system+"/Storage/{storage}/Drives/{drive}/Actions/Drive.SecureErase", post(postSecureErase))
	addMedia(add, system)
	// The settings resource has another name with each make, so it comes last.
	add(system+"/{settings}", getPatch(getSettings, patchSettings))
}

// addMedia adds the virtual media below a system or a manager.
func addMedia(add func(pattern string, methods map[string]handler, open ...string), below string) {
	media := below + "/VirtualMedia"
	add(media, get(getMediaCollection))
	add(media+"/{medium}", getPatch(getMedium, patchMedium))
	add(media+"/{medium}/Actions/VirtualMedia.InsertMedia", post(postInsertMedia))
	add(media+"/{medium}/Actions/VirtualMedia.EjectMedia", post(postEjectMedia))
}

// findRoute finds the route of a path and the values of its variable parts; nil where there is none.
// Case does not matter, as with most BMCs.
func findRoute(path string) (*route, map[string]string) {
	segments := strings.Split(path, "/")
	for _, r := range routes {
		if params, fits := r.match(segments); fits {
			return r, params
		}
	}
	return nil, nil
}

func (r *route) match(segments []string) (map[string]string, bool) {
	if len(segments) != len(r.segments) {
		return nil, false
	}
	params := map[string]string{}
	for i, want := range r.segments {
		switch {
		case strings.HasPrefix(want, "{"):
			params[want[1:len(want)-1]] = segments[i]
		case !strings.EqualFold(want, segments[i]):
			return nil, false
		}
	}
	return params, true
}

// lookup reads another resource of the same BMC, for $expand; nil where there is none. bmc.mu is held.
func (x *exchange) lookup(path string) doc {
	path = strings.TrimRight(path, "/")
	r, params := x.bmc.findRoute(path)
	if r == nil || r.methods[http.MethodGet] == nil {
		return nil
	}
	inner := *x
	inner.path, inner.route, inner.params = path, r, params
	body, isDoc := r.methods[http.MethodGet](&inner).body.(doc)
	if !isDoc || body["error"] != nil {
		return nil
	}
	if p := x.bmc.profile; p.ETags != ETagsNone {
		body["@odata.etag"] = p.etag(body)
	}
	return body
}
