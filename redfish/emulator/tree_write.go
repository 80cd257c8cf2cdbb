// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// changeable are the boot settings that a client may change where the tree shows them.
var changeable = []string{"BootSourceOverrideEnabled", "BootSourceOverrideTarget", "BootSourceOverrideMode", "HttpBootUri", "BootOrder"}

// refusal is a Base message about a property of the request, which it names as DSP0266 wants: in the message, in its arguments
// and, where it is a property, by its JSON pointer.
func refusal(messageID, property, pointer, message string) answer {
	body := errorBody("Base.1.13."+messageID, message)
	extended := body["error"].(doc)["@Message.ExtendedInfo"].([]any)[0].(doc)
	extended["MessageArgs"] = []any{property}
	if pointer != "" {
		extended["RelatedProperties"] = []any{"#/" + pointer}
	}
	return answer{status: http.StatusBadRequest, body: body}
}

func propertyUnknown(property, pointer string) answer {
	return refusal("PropertyUnknown", property, pointer, "The property "+property+" is not in the list of valid properties for the resource.")
}

func propertyReadOnly(property, pointer string) answer {
	return refusal("PropertyNotWritable", property, pointer,
		"The property "+property+" is a read only property and cannot be assigned a value.")
}

func wrongType(property, pointer string) answer {
	return refusal("PropertyValueTypeError", property, pointer,
		"The value for the property "+property+" is of a different type than the property can accept.")
}

// condition judges If-Match for a change of the resource that body shows; nil: go on.
func (m manners) condition(r *http.Request, body doc) *answer {
	want, tag := r.Header.Get("If-Match"), text(body, "@odata.etag")
	switch {
	case want == "" && m.patchWantsTag:
		a := failure(http.StatusPreconditionRequired, "PreconditionRequired",
			"The request did not provide the required precondition, such as an If-Match header.")
		return &a
	case want == "", want == "*", tag == "", strings.TrimPrefix(want, "W/") == strings.TrimPrefix(tag, "W/"):
		return nil
	}
	a := failure(http.StatusPreconditionFailed, "PreconditionFailed", "The entity tag supplied did not match the resource.")
	return &a
}

// patchCaptured refuses every change of a resource that only a capture knows.
func patchCaptured(x *exchange) answer {
	return x.patchTree(x.bmc.tree.doc(x.path), nil)
}

// patchTreeHost changes the boot settings or the light of a host, at the host or at its settings resource.
func patchTreeHost(x *exchange) answer {
	m := x.machine()
	return x.patchTree(x.treeHostBody(m), m)
}

// patchTree changes the boot settings and the light of m, all or none; m is nil where nothing can be changed.
func (x *exchange) patchTree(shown doc, m *Machine) answer {
	if refused := x.bmc.tree.manners.condition(x.req, shown); refused != nil {
		return *refused
	}
	var in doc
	if bad := x.decode(&in); bad != nil {
		return *bad
	}
	if refused := unchangeable(in, shown, m != nil); refused != nil {
		return *refused
	}
	boot, isObject := in["Boot"].(doc)
	if in["Boot"] != nil && !isObject {
		return wrongType("Boot", "Boot")
	}
	led, refused := treeLight(in, shown)
	if refused != nil {
		return *refused
	}
	if isObject {
		if refused := x.changeTreeBoot(m, boot, object(shown, "Boot")); refused != nil {
			return *refused
		}
	}
	if led != "" {
		m.led = led
		m.bmc.notify()
	}
	if x.bmc.profile.PatchStatus == http.StatusNoContent {
		return noContent()
	}
	return tagged(x.treeHostBody(m))
}

// unchangeable refuses the first property that the resource does not show, or that is not emulated for it.
func unchangeable(in, shown doc, host bool) *answer {
	for _, name := range slices.Sorted(maps.Keys(in)) {
		_, there := shown[name]
		var refused answer
		switch {
		case strings.HasPrefix(name, "@"):
			continue
		case !there:
			refused = propertyUnknown(name, name)
		case host && slices.Contains([]string{"Boot", indicatorLED, locationIndicatorActive}, name):
			continue
		default:
			refused = propertyReadOnly(name, name)
		}
		return &refused
	}
	return nil
}

// changeTreeBoot checks and applies a change of the boot settings that a resource shows.
func (x *exchange) changeTreeBoot(m *Machine, in, shown doc) *answer {
	refuse := func(a answer) *answer { return &a }
	next, ways := m.override, x.bmc.tree.manners
	var order []string
	for _, name := range slices.Sorted(maps.Keys(in)) {
		pointer := "Boot/" + name
		_, there := shown[name]
		switch {
		case strings.HasPrefix(name, "@"):
			continue
		case !there:
			return refuse(propertyUnknown(name, pointer))
		case !slices.Contains(changeable, name), name == "BootSourceOverrideMode" && ways.modeIsReadOnly:
			return refuse(propertyReadOnly(name, pointer))
		case ways.bootInSettings && x.route.pattern == systemPattern:
			return refuse(refusal("PropertyNotWritable", name, pointer,
				"This operation for "+name+" is supported at the settings resource of the system."))
		}
		if name == "BootOrder" {
			order = words(in[name])
			if refused := sameOptions(order, m.order); refused != nil {
				return refused
			}
			continue
		}
		value, isText := in[name].(string)
		if !isText {
			return refuse(wrongType(name, pointer))
		}
		if offered := words(shown[name+"@Redfish.AllowableValues"]); len(offered) > 0 && !slices.Contains(offered, value) {
			return refuse(refusal("PropertyValueNotInList", name, pointer,
				fmt.Sprintf("The value %q for the property %s is not in the list of acceptable values.", value, name)))
		}
		next.set(name, value)
	}
	next.settle(in, ways)
	m.override = next
	if order != nil {
		m.order, m.reordered = order, true
	}
	m.bmc.notify()
	return nil
}

func (o *override) set(name, value string) {
	switch name {
	case "BootSourceOverrideEnabled":
		o.enabled = value
	case "BootSourceOverrideTarget":
		o.target = value
	case "BootSourceOverrideMode":
		o.mode = value
	case "HttpBootUri":
		o.uri = value
	}
}

// settle completes a change: a target alone counts once, and an override that is disabled has no target.
func (o *override) settle(in doc, ways manners) {
	_, target := in["BootSourceOverrideTarget"]
	_, enabled := in["BootSourceOverrideEnabled"]
	_, mode := in["BootSourceOverrideMode"]
	if target && !enabled && o.target != "None" && o.enabled == "Disabled" {
		o.enabled = "Once"
	}
	if o.enabled == "Disabled" || o.target == "None" {
		*o = override{enabled: "Disabled", target: "None", mode: o.mode}
		return
	}
	if ways.modeReverts && (target || enabled) && !mode {
		o.mode = "Legacy"
	}
}

// sameOptions refuses an order that is no permutation of the options that there are.
func sameOptions(order, have []string) *answer {
	if slices.Equal(slices.Sorted(slices.Values(order)), slices.Sorted(slices.Values(have))) {
		return nil
	}
	a := refusal("PropertyValueError", "BootOrder", "Boot/BootOrder", "The value for the property BootOrder does not list each boot option once.")
	return &a
}
