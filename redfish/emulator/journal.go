// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Write is one request that was not a GET, as the BMC received it.
type Write struct {
	// Number counts the fleet's writes from 1, in the order of arrival.
	Number int       `json:"number"`
	Time   time.Time `json:"time"`
	// Machine is the one that the path names, else the first behind the BMC; SystemUUID is its UUID at that time.
	Machine    string `json:"machine"`
	SystemUUID string `json:"systemUUID"`
	Method     string `json:"method"`
	Path       string `json:"path"`
	// Body is the JSON received, with passwords and tokens redacted.
	Body string `json:"body,omitempty"`
	// Auth is session:ID, basic:USER or empty; a session that is not known is session:?.
	Auth string `json:"auth,omitempty"`
	// User is who was let in; empty where nobody was.
	User string `json:"user,omitempty"`
	// Status is what was answered; 0 where nothing was (yet).
	Status int `json:"status"`
	// Executed says whether the request reached its handler.
	Executed bool `json:"executed"`
	// Power is the machine's true power state when the request arrived.
	Power PowerState `json:"power"`
	// Faults names the faults that hit the request.
	Faults []string `json:"faults,omitempty"`
}

// Filter selects writes and requests. A zero field selects everything.
type Filter struct {
	Machine string
	Method  string
	// Path is a glob as in Fault.
	Path string
	// Since leaves out writes with this number and lower ones.
	Since int
}

// RequestCount says how often one kind of request came in.
type RequestCount struct {
	// Machine is the first machine behind the BMC.
	Machine string `json:"machine"`
	Method  string `json:"method"`
	// Pattern is the path with names for its variable parts, such as /redfish/v1/Systems/{system}; "other" for paths
	// that do not exist.
	Pattern string `json:"pattern"`
	Count   int    `json:"count"`
}

type requestKey struct{ machine, method, pattern string }

type journal struct {
	limit int

	mu       sync.Mutex
	writes   []*Write
	number   int
	requests map[requestKey]int
}

func newJournal(limit int) *journal {
	return &journal{limit: limit, requests: map[requestKey]int{}}
}

func (j *journal) count(machine, method, pattern string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests[requestKey{machine, method, pattern}]++
}

// begin logs a write on arrival; change completes it.
func (j *journal) begin(w Write) *Write {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.number++
	w.Number = j.number
	if len(j.writes) >= j.limit {
		j.writes = slices.Delete(j.writes, 0, max(1, j.limit/10))
	}
	j.writes = append(j.writes, &w)
	return &w
}

// change completes a logged write; w may be nil.
func (j *journal) change(w *Write, change func(*Write)) {
	if w == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	change(w)
}

// read is a logged write as it stands.
func (j *journal) read(w *Write) Write {
	j.mu.Lock()
	defer j.mu.Unlock()
	return *w
}

// Writes returns the logged writes that filter selects, oldest first. Logins and logouts are writes too: filter by
// path "/redfish/v1/Systems/**" for what changes machines.
func (f *Fleet) Writes(filter Filter) []Write {
	path := glob(filter.Path)
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	var selected []Write
	for _, w := range f.log.writes {
		switch {
		case filter.Machine != "" && filter.Machine != w.Machine,
			filter.Method != "" && filter.Method != w.Method,
			path != nil && !path.MatchString(w.Path),
			w.Number <= filter.Since:
			continue
		}
		selected = append(selected, *w)
	}
	return selected
}

// LastWrite is the number of the newest write, for Filter.Since; 0 where there is none.
func (f *Fleet) LastWrite() int {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	return f.log.number
}

// Requests returns how often each kind of request came in, sorted. Filter.Path is a glob over patterns.
func (f *Fleet) Requests(filter Filter) []RequestCount {
	path := glob(filter.Path)
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	var counts []RequestCount
	for k, n := range f.log.requests {
		switch {
		case filter.Machine != "" && filter.Machine != k.machine,
			filter.Method != "" && filter.Method != k.method,
			path != nil && !path.MatchString(k.pattern):
			continue
		}
		counts = append(counts, RequestCount{Machine: k.machine, Method: k.method, Pattern: k.pattern, Count: n})
	}
	slices.SortFunc(counts, func(a, b RequestCount) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Pattern, b.Pattern), cmp.Compare(a.Method, b.Method))
	})
	return counts
}

// RequestTotal is the sum of Requests.
func (f *Fleet) RequestTotal(filter Filter) int {
	n := 0
	for _, c := range f.Requests(filter) {
		n += c.Count
	}
	return n
}

// ResetRequests forgets the request counts, so that a test can count from a moment on. The log of writes stays.
func (f *Fleet) ResetRequests() {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	f.log.requests = map[requestKey]int{}
}

// Writes is Fleet.Writes for this machine, without logins and logouts.
func (m *Machine) Writes() []Write {
	all := m.bmc.fleet.Writes(Filter{Machine: m.name})
	return slices.DeleteFunc(all, func(w Write) bool { return strings.Contains(strings.ToLower(w.Path), "/sessionservice/") })
}

// Resets lists the reset types that were asked of this machine, in order, whatever the answer was.
func (m *Machine) Resets() []ResetType {
	var kinds []ResetType
	for _, w := range m.bmc.fleet.Writes(Filter{Machine: m.name, Method: "POST", Path: "**/ComputerSystem.Reset"}) {
		var body struct{ ResetType ResetType }
		if json.Unmarshal([]byte(w.Body), &body) == nil {
			kinds = append(kinds, body.ResetType)
		}
	}
	return kinds
}

// redact returns a JSON body without secrets. What is not JSON is not repeated at all.
func redact(body []byte) string {
	if len(body) == 0 {
		return ""
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Sprintf("(%d bytes that are not JSON)", len(body))
	}
	out, err := json.Marshal(redactValue(v))
	if err != nil {
		return fmt.Sprintf("(%d bytes)", len(body))
	}
	return string(out)
}

func redactValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			lower := strings.ToLower(k)
			if strings.Contains(lower, "password") || strings.Contains(lower, "token") || strings.Contains(lower, "secret") {
				v[k] = "***"
			} else {
				v[k] = redactValue(inner)
			}
		}
	case []any:
		for i := range v {
			v[i] = redactValue(v[i])
		}
	}
	return v
}
