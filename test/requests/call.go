// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// class says as what a request counts; the words are those of `make load`.
type class string

const (
	classWrite    class = "write"
	classEvent    class = "Event"
	classRead     class = "uncached read"
	classBMCRead  class = "BMC read"
	classBMCWrite class = "BMC write"
)

// classes are in the order in which they are shown.
var classes = []class{classWrite, classEvent, classRead, classBMCRead, classBMCWrite}

// call is one request of the manager.
type call struct {
	at    time.Time
	Class class
	Verb  string
	// Object is a resource with its subresource, or the path at a BMC with names for its variable parts.
	Object string
	Name   string
	// Fields are what a write changed, or what an Event or a BMC was told.
	Fields []string
	// Answer is the HTTP status; 0 where none came.
	Answer     int
	Controller string
	// By are the functions of the operator that led to the request, the outermost first.
	By []string
}

// target is what a request to the API server is about.
type target struct {
	verb, resource, sub, namespace, name string
}

func (t target) key() string { return strings.TrimPrefix(t.namespace+"/"+t.name, "/") }

func (t target) object() string { return strings.TrimSuffix(t.resource+"/"+t.sub, "/") }

// verbs are those of the API by the methods of HTTP.
var verbs = map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
	http.MethodDelete: "delete"}

// uncounted are resources of questions about rights, and of leases: they concern no server.
var uncounted = []string{"leases", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectreviews"}

// targetOf takes the URL of a request apart. It is false for a watch, for discovery, and for what concerns no server.
func targetOf(method string, at *url.URL) (target, bool) {
	parts := strings.Split(strings.Trim(at.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return target{}, false
	}
	t := target{verb: verbs[method]}
	if len(parts) > 2 && parts[0] == "namespaces" {
		t.namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	t.resource, t.name, t.sub = parts[0], parts[1], parts[2]
	if watch := at.Query().Get("watch"); watch == "true" || watch == "1" || slices.Contains(uncounted, t.resource) {
		return target{}, false
	}
	if t.verb == "get" && t.name == "" {
		t.verb = "list"
	}
	return t, t.verb != ""
}

func (t target) class() class {
	switch {
	case t.verb == "get" || t.verb == "list":
		return classRead
	case t.resource == "events":
		return classEvent
	}
	return classWrite
}

// members are the parts of a path at a BMC that name one of several.
var members = regexp.MustCompile(`/(Systems|Managers|Chassis|Sessions|EthernetInterfaces|Storage|Drives|VirtualMedia|Tasks)/[^/]+`)

// bmcObject gives the variable parts of a path at a BMC one name.
func bmcObject(path string) string { return members.ReplaceAllString(path, "/$1/{}") }

func bmcClass(method string) class {
	if method == http.MethodGet || method == http.MethodHead {
		return classBMCRead
	}
	return classBMCWrite
}
