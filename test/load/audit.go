// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// auditPolicy makes the API server write one line for each request that could change an object, and for each read of the
// manager: the user, the object and the answer, without content. A watch is no read: it feeds the manager's cache.
func auditPolicy(manager string) string {
	return fmt.Sprintf(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    nonResourceURLs: ["*"]
  - level: Metadata
    verbs: [create, update, patch, delete, deletecollection]
  - level: Metadata
    verbs: [get, list]
    users: [%q]
  - level: None
`, manager)
}

// maxAuditLine bounds one line of the audit log.
const maxAuditLine = 1 << 20

// audited is one kind of request in the audit log.
type audited struct {
	// User is who it was; see users.
	User string
	Verb string
	// Resource is plural.group, plural alone for the core group.
	Resource    string
	Subresource string
	Code        int
	// Reason is why it was refused, where it was.
	Reason string
}

// class says as what a request counts.
type class int

const (
	// classWrite changes objects.
	classWrite class = iota
	// classRead reads objects past a cache.
	classRead
	// classEvent tells somebody something.
	classEvent
	// classOther is a question in the form of a create, or concerns a lease.
	classOther
)

func (a audited) read() bool { return a.Verb == "get" || a.Verb == "list" }

func (a audited) class() class {
	switch a.Resource {
	case "events", "events.events.k8s.io":
		if !a.read() {
			return classEvent
		}
	case "leases.coordination.k8s.io", "tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io",
		"selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectreviews.authentication.k8s.io":
		return classOther
	}
	if a.read() {
		return classRead
	}
	return classWrite
}

// absent says whether the request read an object that does not exist.
func (a audited) absent() bool { return a.class() == classRead && a.Code == http.StatusNotFound }

// conflict says whether the write was refused because its author had read something older.
func (a audited) conflict() bool { return a.Code == http.StatusConflict && a.Reason != "AlreadyExists" }

// interval is a stretch of time; the end is outside.
type interval struct{ From, To time.Time }

func (i interval) holds(t time.Time) bool { return !t.Before(i.From) && t.Before(i.To) }

// auditLine is what is read of a line of the audit log.
type auditLine struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code   int    `json:"code"`
		Reason string `json:"reason"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
}

// readAudit reads the file of readAuditLog.
func readAudit(path string, phases []interval, users map[string]string) ([]map[audited]int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	counts, err := readAuditLog(file, phases, users)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return counts, nil
}

// readAuditLog counts the requests of each phase. users gives the names that users are to have in the counts; others keep
// their own.
func readAuditLog(r io.Reader, phases []interval, users map[string]string) ([]map[audited]int, error) {
	counts := make([]map[audited]int, len(phases))
	for i := range counts {
		counts[i] = map[audited]int{}
	}
	err := eachAuditLine(r, func(line *auditLine) {
		for i, phase := range phases {
			if phase.holds(line.Received) {
				counts[i][line.audited(users)]++
			}
		}
	})
	return counts, err
}

// eachAuditLine calls see with each request that was answered.
func eachAuditLine(r io.Reader, see func(*auditLine)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxAuditLine)
	for lines.Scan() {
		var line auditLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		if line.ObjectRef != nil && line.Stage != "ResponseStarted" {
			see(&line)
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

func (l *auditLine) audited(users map[string]string) audited {
	a := audited{User: l.User.Username, Verb: l.Verb, Resource: l.ObjectRef.Resource, Subresource: l.ObjectRef.Subresource,
		Code: l.ResponseStatus.Code, Reason: l.ResponseStatus.Reason}
	if l.ObjectRef.APIGroup != "" {
		a.Resource += "." + l.ObjectRef.APIGroup
	}
	if name := users[a.User]; name != "" {
		a.User = name
	}
	return a
}
