// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

// auditEntry is one line of an audit log, at a second of a minute.
func auditEntry(second int, user, verb, group, resource, subresource, status string) string {
	return fmt.Sprintf(`{"kind":"Event","stage":"ResponseComplete","verb":%q,"user":{"username":%q},`+
		`"objectRef":{"resource":%q,"apiGroup":%q,"subresource":%q,"name":"x"},"responseStatus":{"metadata":{},%s},`+
		`"requestReceivedTimestamp":"2026-01-01T00:00:%02d.000000Z"}`+"\n", verb, user, resource, group, subresource, status, second)
}

func second(n int) time.Time { return time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC) }

func TestRequestsAreCountedByUserAndTime(t *testing.T) {
	const metal = "metal.ironcore.dev"
	log := auditEntry(1, "m", "patch", metal, "servers", "status", `"code":200`) +
		auditEntry(2, "m", "patch", metal, "servers", "status", `"code":200`) +
		auditEntry(2, "m", "patch", metal, "servers", "status", `"status":"Failure","reason":"Conflict","code":409`) +
		auditEntry(3, "somebody", "create", "", "secrets", "", `"code":201`) +
		auditEntry(4, "m", "get", metal, "servers", "", `"status":"Failure","reason":"NotFound","code":404`) +
		auditEntry(10, "m", "delete", "", "secrets", "", `"code":200`) +
		auditEntry(20, "m", "delete", "", "secrets", "", `"code":200`) +
		`{"stage":"ResponseStarted","verb":"create","objectRef":{"resource":"x"},"requestReceivedTimestamp":"2026-01-01T00:00:02Z"}` + "\n" +
		`{"stage":"ResponseComplete","verb":"create","requestReceivedTimestamp":"2026-01-01T00:00:02Z"}` + "\n"
	got, err := readAuditLog(strings.NewReader(log), []interval{{second(0), second(10)}, {second(10), second(20)}}, map[string]string{"m": "manager"})
	if err != nil {
		t.Fatal(err)
	}
	want := []map[audited]int{
		{
			{"manager", "patch", "servers.metal.ironcore.dev", "status", 200, ""}:         2,
			{"manager", "patch", "servers.metal.ironcore.dev", "status", 409, "Conflict"}: 1,
			{"somebody", "create", "secrets", "", 201, ""}:                                1,
			{"manager", "get", "servers.metal.ironcore.dev", "", 404, "NotFound"}:         1,
		},
		{{"manager", "delete", "secrets", "", 200, ""}: 1},
	}
	for i := range want {
		if !maps.Equal(got[i], want[i]) {
			t.Errorf("phase %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

func TestABrokenAuditLogIsAnError(t *testing.T) {
	if _, err := readAuditLog(strings.NewReader("{\"kind\":\n"), nil, nil); err == nil {
		t.Error("it was read")
	}
}

func TestRequestsAreOfAClass(t *testing.T) {
	for name, c := range map[string]struct {
		request  audited
		class    class
		conflict bool
	}{
		"a status":                 {audited{Resource: "servers.metal.ironcore.dev", Subresource: "status", Code: 200}, classWrite, false},
		"a conflict":               {audited{Resource: "servers.metal.ironcore.dev", Code: 409, Reason: "Conflict"}, classWrite, true},
		"what is there already":    {audited{Resource: "secrets", Code: 409, Reason: "AlreadyExists"}, classWrite, false},
		"an event":                 {audited{Resource: "events.events.k8s.io", Code: 201}, classEvent, false},
		"an event of the old kind": {audited{Resource: "events", Code: 201}, classEvent, false},
		"a lease that is held":     {audited{Resource: "leases.coordination.k8s.io", Code: 200}, classOther, false},
		"a read":                   {audited{Verb: "get", Resource: "servers.metal.ironcore.dev", Code: 200}, classRead, false},
		"a list":                   {audited{Verb: "list", Resource: "events", Code: 200}, classRead, false},
		"a lease that is read":     {audited{Verb: "get", Resource: "leases.coordination.k8s.io", Code: 200}, classOther, false},
		"a question about rights":  {audited{Resource: "subjectaccessreviews.authorization.k8s.io", Code: 201}, classOther, false},
	} {
		t.Run(name, func(t *testing.T) {
			if class, conflict := c.request.class(), c.request.conflict(); class != c.class || conflict != c.conflict {
				t.Errorf("class %d, conflict %t; want %d, %t", class, conflict, c.class, c.conflict)
			}
		})
	}
}
