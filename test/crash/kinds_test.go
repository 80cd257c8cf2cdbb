// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// A kind is what a write is and what it is for: the verb, the resource, and the fields that it touches, where names and
// times of single objects are left out. Two writes of one kind are the same line of the manager at work on two objects.

// telling are the fields whose values make a kind of their own.
var telling = []string{"state", "phase", "action", "reclaimPolicy", "power"}

// quiet are fields that come with every write of their sort.
var quiet = []string{"resourceVersion", "observedGeneration", "uid"}

// mutates says that a request to the API server changes something that lasts.
func mutates(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	// Reviews are questions.
	return !strings.Contains(r.URL.Path, "authentication.k8s.io") && !strings.Contains(r.URL.Path, "authorization.k8s.io")
}

// apiKind names a request to the API server.
func apiKind(r *http.Request, body []byte) string {
	resource, named, subresource := resourceOf(r.URL.Path)
	if resource == "events" {
		return "api " + r.Method + " events"
	}
	kind := "api " + r.Method + " " + resource
	if subresource != "" {
		kind += "/" + subresource
	}
	if strings.HasPrefix(named, "metalaw-replica-") { // each process has one of its own
		named = "metalaw-replica"
	}
	if resource == "leases" || strings.HasSuffix(resource, "webhookconfigurations") {
		return kind + " " + named
	}
	var object map[string]any
	if json.Unmarshal(body, &object) != nil {
		return kind
	}
	switch r.Method {
	case http.MethodPatch:
		return kind + " " + strings.Join(purpose(fieldsOf("", object, 3), subresource), " ")
	case http.MethodPost:
		if purpose := annotation(object, v1alpha1.BootPurposeAnnotation); purpose != "" {
			return kind + " for " + purpose
		}
	}
	return kind
}

// along are fields that ride along with whatever is written, as far as something else is written.
var along = regexp.MustCompile(`^status\.(conditions|powerState|biosVersion|indicatorLED|manufacturer|model|serialNumber|sku|processors|` +
	`networkInterfaces|totalSystemMemory|firmwareVersion|ip|lastResetTime|macAddress|bmcSerial.*|` +
	`lifecycle\.(entry|enteredAt|enteredCounted|seenOn.*|history|rule|revision|request\.(askedAt|askedCounted|shownAt=none))|` +
	`operation\.(entry|id|name|startedAt|finishedAt.*|message.*))$`)

// purpose is what is left of the fields of a patch without those that ride along.
func purpose(fields []string, subresource string) []string {
	var left []string
	for _, field := range fields {
		if !along.MatchString(field) && !(subresource != "" && strings.HasPrefix(field, "metadata.")) && !(subresource == "status" && strings.HasPrefix(field, "spec.")) &&
			!(subresource == "" && strings.HasPrefix(field, "status.") && !strings.HasPrefix(fields[0], "status.")) {
			left = append(left, field)
		}
	}
	if len(left) == 0 {
		return fields
	}
	return left
}

// resourceOf splits a path of the API server: /api/v1/[namespaces/NS/]RESOURCE[/NAME[/SUBRESOURCE]], or with a group.
func resourceOf(path string) (resource, name, subresource string) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	skip := 2 // api/v1
	if segments[0] == "apis" {
		skip = 3
	}
	if len(segments) <= skip {
		return path, "", ""
	}
	segments = segments[skip:]
	if segments[0] == "namespaces" && len(segments) > 2 {
		segments = segments[2:]
	}
	segments = append(segments, "", "")
	return segments[0], segments[1], segments[2]
}

// fieldsOf lists the fields that a merge patch touches, down to a depth.
func fieldsOf(path string, value any, depth int) []string {
	object, is := value.(map[string]any)
	if !is || depth == 0 || len(object) == 0 {
		return []string{path + shown(path, value)}
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if slices.Contains(quiet, key) {
			continue
		}
		inner := depth - 1
		if key == "lifecycle" || key == "annotations" || key == "operation" || key == "request" || key == "finalizers" {
			inner = max(inner, 1)
		}
		all = append(all, fieldsOf(strings.TrimPrefix(path+"."+key, "."), object[key], inner)...)
	}
	return all
}

func shown(path string, value any) string {
	if value == nil {
		return "=none"
	}
	if object, is := value.(map[string]any); is { // a request deeper down
		if action, is := object["action"].(string); is {
			return "=" + action
		}
		if _, is := object["shownAt"]; is {
			return "=shown"
		}
		return ""
	}
	if text, is := value.(string); is && slices.Contains(telling, path[strings.LastIndexByte(path, '.')+1:]) {
		return "=" + text
	}
	return ""
}

func annotation(object map[string]any, name string) string {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[name].(string)
	return text
}

var sessionID = regexp.MustCompile(`/Sessions/[^/]+`)

// bmcKind names a write to a BMC.
func bmcKind(w emulator.Write) string {
	path := sessionID.ReplaceAllString(strings.TrimPrefix(w.Path, "/redfish/v1"), "/Sessions/*")
	var body map[string]any
	if w.Method == http.MethodDelete || json.Unmarshal([]byte(w.Body), &body) != nil {
		return fmt.Sprintf("bmc %s %s", w.Method, path)
	}
	delete(body, "UserName")
	delete(body, "Password")
	text, err := json.Marshal(body)
	if err != nil || len(body) == 0 {
		return fmt.Sprintf("bmc %s %s", w.Method, path)
	}
	return fmt.Sprintf("bmc %s %s %s", w.Method, path, text)
}
