// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/go-logr/logr"
)

// module is the prefix of the operator's own functions.
const module = "github.com/metalaw/metalaw/"

// deepest bounds the frames that are looked at: a reconcile and the HTTP client have about 60.
const deepest = 256

// callers are the functions of this goroutine, the innermost first.
func callers() []string {
	frames := runtime.CallersFrames(stack())
	var all []string
	for {
		frame, more := frames.Next()
		all = append(all, frame.Function)
		if !more {
			return all
		}
	}
}

func stack() []uintptr {
	pcs := make([]uintptr, deepest)
	return pcs[:runtime.Callers(2, pcs)]
}

var (
	generics = regexp.MustCompile(`\[[^\]]*\]`)
	pointers = regexp.MustCompile(`\(\*?([A-Za-z0-9_]+)\)`)
	closures = regexp.MustCompile(`(\.func\d+|\.\d+|\.gowrap\d+|-fm|-range\d+)+$`)
)

// byWhom names the operator's functions among the callers, the outermost first. What is done for every caller says nothing, so
// it is left out.
func byWhom(callers []string) []string {
	var named []string
	for _, function := range slices.Backward(callers) {
		name, ours := strings.CutPrefix(function, module)
		if !ours || strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "redfish.") {
			continue
		}
		name = strings.TrimPrefix(name, "controllers/")
		name = closures.ReplaceAllString(generics.ReplaceAllString(name, ""), "")
		name = pointers.ReplaceAllString(name, "$1")
		if every(name) || len(named) > 0 && named[len(named)-1] == name {
			continue
		}
		named = append(named, name)
	}
	return named
}

// every says that a function is called whatever the reason: one of the loop, of the background reads, or of the door of the registry.
func every(name string) bool {
	switch name {
	case "loop.Reconciler.write", "loop.Reconciler.finalize":
		return false
	case "metalprobe/registry.Registry.ServeHTTP", "metalprobe/registry.Registry.routes.Registry.guarded", "metalprobe/registry.Registry.limited":
		return true
	}
	return strings.HasPrefix(name, "loop.") || strings.HasPrefix(name, "hardware.")
}

// controllerOf is who made a request: the controller that its context tells of, or the package that began it.
func controllerOf(log logr.Logger, by []string) string {
	if named, is := log.GetSink().(*sink); is {
		for i := 0; i+1 < len(named.values); i += 2 {
			if text, is := named.values[i+1].(string); is && named.values[i] == "controller" {
				return text
			}
		}
	}
	if len(by) > 0 {
		from, _, _ := strings.Cut(by[0], ".")
		return from
	}
	return ""
}
