// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// postReset is the action ComputerSystem.Reset.
func postReset(x *exchange) answer {
	m := x.machine()
	if m == nil {
		return notFound(x.path)
	}
	p := x.bmc.profile
	if p.ActionRefusesIfMatch && x.req.Header.Get("If-Match") != "" {
		return failure(http.StatusPreconditionFailed, "PreconditionFailed", "An action takes no If-Match.")
	}
	var in struct{ ResetType ResetType }
	if bad := x.decode(&in); bad != nil {
		return *bad
	}
	switch m.reset(in.ResetType) {
	case verdictAccepted:
	case verdictUnsupported:
		return failure(http.StatusBadRequest, "ActionParameterNotSupported",
			fmt.Sprintf("The value %q for the parameter ResetType in the action Reset is not supported.", in.ResetType))
	case verdictBusy:
		return failure(http.StatusConflict, "ResourceInUse", "The system is changing its power state: try again later.")
	case verdictAlready:
		if p.AlreadyStatus >= http.StatusBadRequest {
			return failure(p.AlreadyStatus, "NoOperation", fmt.Sprintf("The system is %s: the request cannot be carried out.", m.state))
		}
		return success(p.AlreadyStatus)
	}
	script := x.task
	if script == nil && p.ResetStatus == http.StatusAccepted {
		script = &TaskScript{}
	}
	if script != nil {
		return x.startTask(*script)
	}
	return success(p.ResetStatus)
}

func getResetActionInfo(x *exchange) answer {
	m := x.machine()
	if m == nil || !x.bmc.profile.ResetByActionInfo {
		return notFound(x.path)
	}
	body := x.bmc.resource(m.systemPath()+"/ResetActionInfo", "ActionInfo.v1_3_0", "ResetActionInfo", "Reset Action Info")
	body["Parameters"] = []any{doc{
		"Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": x.bmc.profile.ResetTypes,
	}}
	return ok(body)
}

func getBootOptions(x *exchange) answer {
	m := x.machine()
	if m == nil {
		return notFound(x.path)
	}
	path := m.systemPath() + "/BootOptions"
	var paths []string
	for _, ref := range defaultBootOrder {
		paths = append(paths, path+"/"+ref)
	}
	return ok(x.bmc.collection(path, "BootOptionCollection", "Boot Options", paths))
}

func getBootOption(x *exchange) answer {
	m := x.machine()
	i := slices.IndexFunc(defaultBootOrder, func(ref string) bool { return strings.EqualFold(ref, x.params["option"]) })
	if m == nil || i < 0 {
		return notFound(x.path)
	}
	ref := defaultBootOrder[i]
	body := x.bmc.resource(m.systemPath()+"/BootOptions/"+ref, "BootOption.v1_0_4", ref, ref)
	body["BootOptionReference"], body["DisplayName"], body["BootOptionEnabled"] = ref, bootOptions[ref].display, true
	body["Alias"] = bootOptions[ref].target
	return ok(body)
}

func (x *exchange) settingsMachine() *Machine {
	if id := x.bmc.profile.SettingsID; id == "" || !strings.EqualFold(id, x.params["settings"]) {
		return nil
	}
	return x.machine()
}

func (x *exchange) settingsBody(m *Machine) doc {
	id := x.bmc.profile.SettingsID
	body := x.bmc.resource(m.systemPath()+"/"+id, "ComputerSystem.v1_20_0", id, "System Settings")
	all := x.bootBody(m)
	body["Boot"] = all
	if shown := x.bmc.profile.SettingsShows; len(shown) > 0 {
		some := doc{}
		for _, name := range shown {
			some[name] = all[name]
		}
		body["Boot"] = some
	}
	x.bmc.profile.showLED(body, m.led)
	return body
}

func getSettings(x *exchange) answer {
	m := x.settingsMachine()
	if m == nil {
		return notFound(x.path)
	}
	return ok(x.settingsBody(m))
}

func patchSettings(x *exchange) answer {
	m := x.settingsMachine()
	if m == nil {
		return notFound(x.path)
	}
	return x.changeSystem(m, x.settingsBody, true)
}
