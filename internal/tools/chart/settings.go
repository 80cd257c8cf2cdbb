// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// setting is what the values of the chart change in one object.
type setting struct {
	// object is kind/name.
	object string
	// when is a condition under which the object is rendered; empty always renders it.
	when string
	// annotations say how Helm installs the object.
	annotations map[string]string
	places      []place
}

// place is a value in an object that a template expression stands for.
type place struct {
	// path leads to the value. A word is a key; a number is an index; -1 appends to a list.
	path []any
	// want is what the kustomization says there; nil where it says nothing.
	want any
	// template is the expression. One of several lines stands for the whole line of the value.
	template string
}

const (
	manager     = "Deployment/metalaw-manager"
	bootService = "Deployment/metalaw-boot"
	registry    = "https://metalaw-registry.metalaw-system.svc:10000"
)

func inPod(path ...any) []any { return append([]any{"spec", "template", "spec"}, path...) }

func inManager(path ...any) []any { return append(inPod("containers", 0), path...) }

// settings lists every value of the chart but the switches of whole kustomizations, which are in parts.
var settings = []setting{
	{object: "Namespace/metalaw-system", when: ".Values.createNamespace"},
	// Operators change budgets and freeze the fleet: neither an upgrade nor an uninstall may undo that. It is no hook,
	// because Argo CD deletes hooks and makes them anew. Helm makes it only where there is none; a cluster without the
	// kind has none.
	{object: "FleetControl/fleet", annotations: map[string]string{"helm.sh/resource-policy": "keep"},
		when: `not (and (.Capabilities.APIVersions.Has "policy.metalaw.dev/v1alpha1/FleetControl") ` +
			`(lookup "policy.metalaw.dev/v1alpha1" "FleetControl" "" "fleet"))`},
	{object: "PodDisruptionBudget/metalaw-manager", when: "gt (int .Values.replicas) 1"},
	{object: manager, places: []place{
		{path: []any{"spec", "replicas"}, want: 2, template: "{{ .Values.replicas }}"},
		{path: inManager("image"), want: "metalaw:latest", template: "{{ .Values.image | quote }}"},
		{path: inManager("args", 7), want: "--registry-url=" + registry,
			template: `{{ printf "--registry-url=%s" .Values.registry.url | quote }}`},
		{path: inManager("args", 8), want: "--credential-use=on",
			template: `{{ printf "--credential-use=%s" .Values.credentialUse | quote }}`},
		{path: inManager("args", -1), template: `{{- range .Values.registry.extraDNSNames }}
- {{ printf "--extra-dns-names=%s" . | quote }}
{{- end }}
{{- with .Values.probeImage }}
- {{ printf "--probe-image=%s" . | quote }}
{{- end }}
{{- if and .Values.boot.enabled .Values.boot.mediaURL }}
- {{ printf "--media-url=%s" .Values.boot.mediaURL | quote }}
{{- end }}
{{- with .Values.bmcCA }}
- --bmc-ca-file=/bmc-ca/ca.crt
{{- end }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}`},
		{path: inManager("resources"), want: map[string]any{
			"requests": map[string]any{"cpu": "100m", "memory": "128Mi"}, "limits": map[string]any{"memory": "512Mi"},
		}, template: `resources:
{{- toYaml .Values.resources | nindent 10 }}`},
		{path: inManager("volumeMounts", -1), template: `{{- with .Values.bmcCA }}
- {mountPath: /bmc-ca, name: bmc-ca, readOnly: true}
{{- end }}`},
		{path: inPod("volumes", -1), template: `{{- with .Values.bmcCA }}
- {configMap: {name: metalaw-bmc-ca}, name: bmc-ca}
{{- end }}`},
		{path: inPod("imagePullSecrets"), template: pullSecrets},
	}},
	{object: bootService, places: []place{
		{path: []any{"spec", "replicas"}, want: 2, template: "{{ .Values.boot.replicas }}"},
		{path: inManager("image"), want: "metalaw:latest", template: "{{ .Values.image | quote }}"},
		{path: inManager("args", 2), want: "--boot-url=https://metalaw-boot.metalaw-system.svc:8082",
			template: `{{ printf "--boot-url=%s" .Values.boot.url | quote }}`},
		{path: inManager("args", 3), want: "--media-url=https://metalaw-media.metalaw-system.svc:8083",
			template: `{{ printf "--media-url=%s" .Values.boot.mediaURL | quote }}`},
		{path: inManager("args", 4), want: "--allow-registries=ghcr.io/metalaw",
			template: `{{ printf "--allow-registries=%s" (join "," .Values.boot.allowRegistries) | quote }}`},
		{path: inManager("args", -1), template: `{{- range .Values.boot.extraArgs }}
- {{ . | quote }}
{{- end }}`},
		{path: inPod("imagePullSecrets"), template: pullSecrets},
	}},
	{object: "ClusterRoleBinding/metalaw-fedhcp", places: []place{
		{path: []any{"subjects", 0, "name"}, want: "fedhcp", template: "{{ .Values.fedhcp.serviceAccount | quote }}"},
		{path: []any{"subjects", 0, "namespace"}, want: "fedhcp", template: "{{ .Values.fedhcp.namespace | quote }}"},
	}},
	{object: "Service/metalaw-boot", places: serviceFor(".Values.boot", showsAddresses)},
	{object: "Service/metalaw-media", places: serviceFor(".Values.boot", showsAddresses)},
	{object: "Service/metalaw-registry", places: serviceFor(".Values.registry", "")},
}

const pullSecrets = `{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{- toYaml . | nindent 6 }}
{{- end }}`

// showsAddresses keeps the addresses of machines and BMCs, to which the boot service binds what it serves.
const showsAddresses = `
{{- if and (ne . "ClusterIP") $.Values.boot.externalTrafficPolicy }}
externalTrafficPolicy: {{ $.Values.boot.externalTrafficPolicy }}
{{- end }}`

// serviceFor lets values make a Service reachable from outside the cluster. more is what such a Service has besides.
func serviceFor(values, more string) []place {
	return []place{
		{path: []any{"spec", "type"}, template: "{{- with " + values + `.serviceType }}
type: {{ . }}` + more + `
{{- end }}`},
		{path: []any{"metadata", "annotations"}, template: "{{- with " + values + `.serviceAnnotations }}
annotations:
{{- toYaml . | nindent 4 }}
{{- end }}`},
	}
}

// put writes a mark at the place of an object, and fails where the object does not say there what is expected.
func (p place) put(o object, mark string) error {
	var at any = map[string]any(o)
	for i, step := range p.path {
		last := i == len(p.path)-1
		switch here := at.(type) {
		case map[string]any:
			key, _ := step.(string)
			if last {
				if err := p.expected(here[key]); err != nil {
					return err
				}
				here[key] = mark
				return nil
			}
			if index, isList := here[key].([]any); isList && i == len(p.path)-2 && p.path[i+1] == -1 {
				here[key] = append(index, mark)
				return nil
			}
			at = here[key]
		case []any:
			index, _ := step.(int)
			if index >= len(here) {
				return fmt.Errorf("%v: the list has %d entries", p.path, len(here))
			}
			if last {
				if err := p.expected(here[index]); err != nil {
					return err
				}
				here[index] = mark
				return nil
			}
			at = here[index]
		default:
			return fmt.Errorf("%v: nothing is at %v", p.path, step)
		}
	}
	return nil
}

func (p place) expected(found any) error {
	if fmt.Sprint(found) != fmt.Sprint(p.want) {
		return fmt.Errorf("%v: the kustomization says %v, and the chart expects %v; change settings.go", p.path, found, p.want)
	}
	return nil
}

// replace puts the expression where the mark is.
func (p place) replace(text, mark string) string {
	if !strings.Contains(p.template, "\n") {
		return strings.Replace(text, mark, p.template, 1)
	}
	line := regexp.MustCompile(`(?m)^( *)(- |[A-Za-z]+: )` + mark + `$`)
	found := line.FindStringSubmatchIndex(text)
	if found == nil {
		return text
	}
	indent := text[found[2]:found[3]]
	var lines []string
	for l := range strings.SplitSeq(p.template, "\n") {
		if strings.HasPrefix(l, "{{-") {
			lines = append(lines, l) // what it trims before it needs no indent
			continue
		}
		lines = append(lines, indent+l)
	}
	return text[:found[0]] + strings.Join(lines, "\n") + text[found[1]:]
}
