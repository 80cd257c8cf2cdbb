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

// auditPolicy makes the API server write one line for each request that could change something: who, what, and the
// answer, without any content.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    verbs: [create, update, patch, delete, deletecollection]
  - level: None
`

// maxAuditLine bounds one line of the audit log.
const maxAuditLine = 1 << 20

// write is one kind of request that could change something.
type write struct {
	// Writer is who it was; see writers.
	Writer string
	Verb   string
	// Resource is plural.group, plural alone for the core group.
	Resource    string
	Subresource string
	Code        int
	// Reason is why it was refused, where it was.
	Reason string
}

// class says what a write is to the one who counts.
type class int

const (
	// classWrite changes objects.
	classWrite class = iota
	// classEvent tells somebody something.
	classEvent
	// classOther is a question in the form of a create, or a lease that is held.
	classOther
)

func (w write) class() class {
	switch w.Resource {
	case "events", "events.events.k8s.io":
		return classEvent
	case "leases.coordination.k8s.io", "tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io",
		"selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectreviews.authentication.k8s.io":
		return classOther
	}
	return classWrite
}

// conflict says whether the write was refused because its author had read something older.
func (w write) conflict() bool { return w.Code == http.StatusConflict && w.Reason != "AlreadyExists" }

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
func readAudit(path string, phases []interval, writers map[string]string) ([]map[write]int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	counts, err := readAuditLog(file, phases, writers)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return counts, nil
}

// readAuditLog counts the writes of each phase. writers gives the names that users are to have in the counts; others
// keep their own.
func readAuditLog(r io.Reader, phases []interval, writers map[string]string) ([]map[write]int, error) {
	counts := make([]map[write]int, len(phases))
	for i := range counts {
		counts[i] = map[write]int{}
	}
	err := eachAuditLine(r, func(line *auditLine) {
		for i, phase := range phases {
			if phase.holds(line.Received) {
				counts[i][line.write(writers)]++
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

func (l *auditLine) write(writers map[string]string) write {
	w := write{Writer: l.User.Username, Verb: l.Verb, Resource: l.ObjectRef.Resource, Subresource: l.ObjectRef.Subresource,
		Code: l.ResponseStatus.Code, Reason: l.ResponseStatus.Reason}
	if l.ObjectRef.APIGroup != "" {
		w.Resource += "." + l.ObjectRef.APIGroup
	}
	if name := writers[w.Writer]; name != "" {
		w.Writer = name
	}
	return w
}
