// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// depth is how many names a path of a field has at most.
const depth = 3

// changed names what a merge patch changes of an object as it was known before; nil where it was not.
func changed(patch []byte, known map[string]any) []string {
	var of map[string]any
	if json.Unmarshal(patch, &of) != nil {
		return nil
	}
	paths := map[string]bool{}
	walk(paths, nil, of, known)
	return slices.Sorted(maps.Keys(paths))
}

// written leaves out what the API server does not take: the status beside the main part, and anything else with the status.
func written(fields []string, sub string) []string {
	return slices.DeleteFunc(fields, func(field string) bool {
		return strings.HasPrefix(strings.TrimPrefix(field, "-"), "status.") != (sub == "status")
	})
}

func walk(paths map[string]bool, at []string, patch, known map[string]any) {
	for name, value := range patch {
		path := append(slices.Clone(at), name)
		text := strings.Join(path, ".")
		if text == "metadata.resourceVersion" || text == "metadata.uid" {
			continue // the lock, which changes nothing
		}
		was := known[name]
		switch now := value.(type) {
		case map[string]any:
			if len(path) < depth {
				before, _ := was.(map[string]any)
				walk(paths, path, now, before)
				continue
			}
		case []any:
			if name == "conditions" {
				before, _ := was.([]any)
				for _, one := range conditions(before, now) {
					paths[text+" "+one] = true
				}
				continue
			}
		case nil:
			text = "-" + text
		}
		paths[text] = true
	}
}

// conditions names those that are not as they were.
func conditions(before, after []any) []string {
	was := map[any]map[string]any{}
	for _, one := range before {
		if c, is := one.(map[string]any); is {
			was[c["type"]] = c
		}
	}
	var all []string
	for _, one := range after {
		c, is := one.(map[string]any)
		if !is {
			continue
		}
		former := was[c["type"]]
		delete(was, c["type"])
		switch {
		case former == nil, former["status"] != c["status"], former["reason"] != c["reason"]:
			all = append(all, fmt.Sprintf("%v=%v/%v", c["type"], c["status"], c["reason"]))
		case former["message"] != c["message"]:
			all = append(all, fmt.Sprintf("%v's message", c["type"]))
		case former["observedGeneration"] != c["observedGeneration"]:
			all = append(all, fmt.Sprintf("%v's generation", c["type"]))
		}
	}
	for kind := range was {
		all = append(all, fmt.Sprintf("-%v", kind))
	}
	return all
}
