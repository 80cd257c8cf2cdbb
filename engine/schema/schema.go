// SPDX-License-Identifier: Apache-2.0

// Package schema describes the files of a bundle, and the placement of a claim, as JSON schemas, for editors and other programs.
// What the parsers check beyond a schema (types of expressions, places, what refers to what) only they can tell.
package schema

import (
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/selection"
)

// draft is the version of JSON Schema in which the schemas are written.
const draft = "http://json-schema.org/draft-07/schema#"

// object is a JSON schema.
type object = map[string]any

// Topics lists what there are schemas of, sorted.
func Topics() []string { return slices.Sorted(maps.Keys(topics)) }

var topics = map[string]func(*engine.Vocabulary) object{
	"bundle": func(*engine.Vocabulary) object { return file("Bundle", bundleFields()) }, "lifecycle": lifecycle,
	"scenarios": scenarios, "macprefixes": macPrefixes, "manifest": manifest, "placement": placementOf,
	"selection": func(*engine.Vocabulary) object { return selection.Schema() },
	"admission": func(*engine.Vocabulary) object { return admission.Schema() },
}

// Of is the JSON schema of a topic: of bundle.yaml, lifecycle.yaml, scenarios.yaml, macprefixes.yaml or manifest.yaml, of the
// input that selection.rego and admission.rego read, or of the placement of a claim. It is nil for any other topic.
func Of(topic string, v *engine.Vocabulary) map[string]any {
	of, ok := topics[topic]
	if !ok {
		return nil
	}
	s := maps.Clone(of(v))
	s["$schema"] = draft
	return s
}

// fields is a mapping with these keys and no others.
func fields(properties object, required ...string) object {
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// file is a file that begins with apiVersion and kind.
func file(kind string, properties object, required ...string) object {
	properties["apiVersion"] = object{"const": "policy.metalaw.dev/v1alpha1"}
	properties["kind"] = object{"const": kind}
	return fields(properties, required...)
}

func text(doc string) object               { return object{"type": "string", "description": doc} }
func words(doc string, w ...string) object { return object{"enum": w, "description": doc} }
func list(of object) object                { return object{"type": "array", "items": of} }
func truth(doc string) object              { return object{"type": "boolean", "description": doc} }

// mapping has keys that the author chooses.
func mapping(of object) object { return object{"type": "object", "additionalProperties": of} }

func span(doc string) object {
	return object{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$|^0$`, "description": doc}
}

func count(doc string, least, most int) object {
	return object{"type": "integer", "minimum": least, "maximum": most, "description": doc}
}

func bundleFields() object {
	settings := fields(object{
		"sanitization": words("whether a server that held a claim is erased before it is offered again",
			bundle.SanitizationRequired, bundle.SanitizationNone),
		"firstSeen":    words("what to do with a machine that is found running", bundle.FirstSeenObserve, bundle.FirstSeenManage),
		"releaseGrace": span("how long to wait between a claim's end and the wipe"),
		"releasePower": words("when the machine of a claim that ended is powered off",
			bundle.PowerAfterGrace, bundle.PowerImmediate),
		"releaseShutdown": span("how long its operating system may take to shut down, under Immediate"),
		"probe":           fields(object{"allowUnauthenticated": truth("accept reports without a token")}),
		"bmc": fields(object{"tls": words("how a BMC's certificate is checked", bundle.TLSVerify, bundle.TLSInsecure, bundle.TLSPin),
			"pinWithin": list(text("a network in which the certificate of a BMC is pinned at first use"))}),
		"boot": fields(bootFields(object{
			"withoutOverride": truth("switch a machine on whose BMC shows no boot override; never for a wipe"),
			"ways": list(words("from where a machine boots, the preferred way first", bundle.BootWayVirtualMedia, bundle.BootWayNetwork)),
			"ignition": words("how long the boot service serves the ignition of a claim",
				bundle.IgnitionAlways, bundle.IgnitionUntilFirstSign),
			"models": list(fields(bootFields(object{"manufacturer": text("as status of a Server shows it; * at the end for any ending"),
				"model": text("as status of a Server shows it; * at the end for any ending")}))),
		})),
		"offer": fields(object{"accepts": list(words("what may be known of a disk of a machine that is offered",
			bundle.AcceptWiped, bundle.AcceptBlank, bundle.AcceptAttested, bundle.AcceptUnread, bundle.AcceptData))}),
		"wipe": fields(object{
			"hidden": words("what becomes of a wipe of a machine with storage that no disk shows",
				bundle.HiddenReport, bundle.HiddenFail),
			"removable": words("what becomes of removable media that are not the BMC's",
				bundle.RemovableLeave, bundle.RemovableErase),
			"identity": words("what becomes of an agent whose machine is not known to be the BMC's",
				bundle.IdentityReport, bundle.IdentityProved),
			"acceptDriveErase": truth("a verified erase by the drive's own command stands, without an overwrite after it"),
			"minimumTerm":      words("the term of NIST SP 800-88 that each disk must reach", "", "Clear", "Purge"),
			"namespaces":       mapping(words("a stronger term for disks that a claim of this namespace held", "Clear", "Purge")),
			"excused": list(text("a disk that is left as it is without failing the wipe, by wwid, serial number or model; " +
				"hidden storage by its PCI numbers, slot or serial number")),
			"allowed": list(text("a disk that is erased although other machines may share it, by wwid, serial number or model")),
		}),
		"maintenance":  maintenanceFields(),
		"decommission": decommissionFields(),
		"health": fields(object{"criticalStops": words("what a critical part of a machine stops",
			bundle.StopsInspection, bundle.StopsOffering, bundle.StopsNothing)}),
		"canary": fields(object{"maxHalts": count("how many servers a canary may halt", 0, 100000),
			"maxErrors": count("how many servers a canary may bring to Error", 0, 100000)}),
		"coverage": fields(object{"rego": count("per cent of the lines of Rego that tests evaluate", 80, 100),
			"effects": count("per cent of the effects that scenarios show", 0, 100)}),
		"labels": fields(object{"inventory": truth("whether labels of Servers show their hardware; true where it is left out")}),
		"claims": fields(object{
			"priority": fields(object{"max": count("the most that a claim can have", -bundle.MaxPriority, bundle.MaxPriority),
				"namespaces": mapping(count("the most of a namespace, instead of max", -bundle.MaxPriority, bundle.MaxPriority)),
				"ageing":     span("how long a claim waits for one point more")}),
			"onUnsatisfiable": words("what becomes of a claim that no server could ever satisfy",
				bundle.UnsatisfiableDeny, bundle.UnsatisfiableWarn, bundle.UnsatisfiableAllow),
			"quota": fields(object{"default": count("how many claims a namespace may have", 0, bundle.MaxQuota),
				"namespaces": mapping(count("how many this namespace may have", 0, bundle.MaxQuota))}),
		}),
	})
	return object{"name": text("the bundle's name"), "version": text("semantic version"), "description": text("what it is for"),
		"minEngineVersion": text("the oldest engine that understands it"), "settings": settings}
}

// bootFields adds what a bundle may say for all machines and for one model.
func bootFields(more object) object {
	more["firstWord"] = span("how long after its power-on a machine may take until it uses its boot override")
	more["mode"] = words("how a machine boots", bundle.BootModeUEFI, bundle.BootModeLegacy)
	return more
}

func lifecycle(v *engine.Vocabulary) object {
	guard := text("defined names, combined with &&, || and !")
	rule := object{"type": "string", "pattern": `^[A-Z][A-Za-z0-9]{1,62}$`, "description": "unique; becomes reason, label and test name"}
	state := text("a state of this lifecycle")
	effect := words("an effect; see the reference", effectNames(v)...)
	ensured := fields(object{"do": effect, "when": guard, "with": mapping(object{})}, "do")
	exit := fields(object{"rule": rule, "to": state, "when": guard, "after": text("a length of time, or the name of a duration fact"),
		"retry": truth("counts as a retry"), "clears": list(text("a mark"))}, "rule", "to")
	interrupt := fields(object{"rule": rule, "to": state, "when": guard, "except": list(state)}, "rule", "to", "when")
	one := fields(object{
		"means": text("what the state means, in a sentence"), "stable": truth("a server may rest here"), "marks": list(text("a mark")),
		"operations": list(words("an operation that the state can use", v.Operations...)),
		"ensure":     list(object{"anyOf": []any{effect, ensured}}), "exits": list(exit),
	})
	return file("Lifecycle", object{
		"initial": state, "define": mapping(text("CEL over facts that yields true or false")), "interrupts": list(interrupt), "states": mapping(one),
		"says": mapping(text("what a server tells that came to rest by this rule")), "migrate": mapping(state),
		"invariants": list(fields(object{"rule": rule, "must": guard}, "rule", "must")),
	}, "initial", "states")
}

func scenarios(v *engine.Vocabulary) object {
	given := object{}
	for _, f := range v.Facts {
		if f.Name != engine.FactState {
			given[f.Name] = factSchema(f)
		}
	}
	causes := []string{string(engine.HaltGuardError), string(engine.HaltInvariant), string(engine.HaltSafety), string(engine.HaltUnknownState)}
	expect := fields(object{
		"to": text("the state moved to"), "stays": object{"const": true}, "halts": words("why it is halted", causes...),
		"rule": text("the rule that moves or halts"), "ensures": list(text("effects, exactly and in order")), "awaits": text("the effect that waits"),
	})
	return file("Scenarios", object{"scenarios": list(fields(object{"name": text("a sentence"), "state": text("the state it is in"),
		"given": fields(given), "expect": expect}, "name", "state", "expect"))}, "scenarios")
}

// factSchema is the schema of a fact's value as a scenario gives it.
func factSchema(f engine.FactType) object {
	s := object{"type": "string"}
	switch f.Kind {
	case engine.Bool:
		s = object{"type": "boolean"}
	case engine.Int:
		s = object{"type": "integer", "minimum": f.Least}
	case engine.Enum:
		s = object{"enum": f.Values}
	case engine.Set:
		s = list(object{"type": "string"})
	case engine.Duration, engine.Age:
		s = span("")
	case engine.String:
		// any text
	}
	s["description"] = f.Doc
	return s
}

func manifest(*engine.Vocabulary) object {
	return file("Manifest", object{"files": list(fields(object{"name": text("a file of the bundle"),
		"configMap": text("the ConfigMap that holds it under its name"), "digest": object{"type": "string", "pattern": `^sha256:[0-9a-f]{64}$`}},
		"name", "configMap", "digest"))}, "files")
}

func macPrefixes(*engine.Vocabulary) object {
	return fields(object{"macPrefixes": list(fields(object{
		"macPrefix":    object{"type": "string", "description": "6 to 12 hexadecimal digits, in quotes"},
		"manufacturer": text("shown to people"), "protocol": words("how it is spoken to", "Redfish", "RedfishLocal", "RedfishWithRegistryPatch"),
		"protocolScheme": words("https unless given", "https", "http"), "port": count("443 or 80 unless given", 1, 65535), "type": words("", "bmc"),
		"defaultCredentials":   list(fields(object{"username": text(""), "password": text("")}, "username", "password")),
		"credentialsSecretRef": fields(object{"name": text("a Secret in the manager's namespace")}, "name"),
		"console":              fields(object{"type": words("", "IPMI", "SSH", "SSHLenovo"), "port": count("", 1, 65535)}, "type"),
	}, "macPrefix", "manufacturer"))}, "macPrefixes")
}

func effectNames(v *engine.Vocabulary) []string {
	names := make([]string, len(v.Effects))
	for i, e := range v.Effects {
		names[i] = e.Name
	}
	return names
}
