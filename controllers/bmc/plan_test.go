// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/redfish"
)

const (
	uuid1   = "11111111-1111-1111-1111-111111111111"
	uuid2   = "22222222-2222-2222-2222-222222222222"
	uri1    = "/redfish/v1/Systems/1"
	uri2    = "/redfish/v1/Systems/2"
	ordered = "01020304-0506-0708-090a-0b0c0d0e0f10"
	swapped = "04030201-0605-0807-090a-0b0c0d0e0f10"
)

func system(uri, uuid string) System {
	return System{URI: uri, Identity: redfish.Identity{UUID: uuid, SerialNumber: "S1"}}
}

// behind is a Server that names the BMC.
func behind(bmc, name, uuid, uri string) server {
	return server{name: name, uuid: uuid, uri: uri, bmc: bmc, serial: "S1"}
}

func known(servers ...server) map[string][]server {
	m := map[string][]server{}
	for _, s := range servers {
		m[s.uuid] = append(m[s.uuid], s)
	}
	return m
}

func TestPlan(t *testing.T) {
	mine1, mine2 := behind("b", "b-system-0", uuid1, uri1), behind("b", "b-system-1", uuid2, uri2)
	theirs := behind("old", "old-system-0", uuid1, uri1)
	for _, c := range []struct {
		name     string
		facts    facts
		steps    []step
		reasons  []string
		wake     time.Duration
		consumed bool
	}{
		{name: "a new system becomes a server", facts: facts{systems: []System{system(uri1, uuid1)}},
			steps: []step{{kind: create, uuid: uuid1, uri: uri1}}},
		{name: "an upper-case UUID is stored in lower case", facts: facts{systems: []System{system(uri1, "ABCDEF00-1111-1111-1111-111111111111")}},
			steps: []step{{kind: create, uuid: "abcdef00-1111-1111-1111-111111111111", uri: uri1}}},
		{name: "two new systems become two servers", facts: facts{systems: []System{system(uri1, uuid1), system(uri2, uuid2)}},
			steps: []step{{kind: create, uuid: uuid1, uri: uri1}, {kind: create, uuid: uuid2, uri: uri2, index: 1}}},
		{name: "a known system changes nothing", facts: facts{systems: []System{system(uri1, uuid1)}, owned: []server{mine1}, byUUID: known(mine1)}},
		{name: "systems in another order keep their servers", facts: facts{systems: []System{system(uri2, uuid2), system(uri1, uuid1)},
			owned: []server{mine1, mine2}, byUUID: known(mine1, mine2)}},
		{name: "systems that swapped their URIs keep their servers", facts: facts{systems: []System{system(uri1, uuid2), system(uri2, uuid1)},
			owned: []server{mine1, mine2}, byUUID: known(mine1, mine2)},
			steps: []step{{kind: point, server: "b-system-1", uuid: uuid2, uri: uri1}, {kind: point, server: "b-system-0", uuid: uuid1, uri: uri2}}},
		{name: "a trailing slash and case make no other URI", facts: facts{systems: []System{system("/redfish/v1/systems/1/", uuid1)},
			owned: []server{mine1}, byUUID: known(mine1)}},
		{name: "no system takes nothing away", facts: facts{owned: []server{mine1}}},
		{name: "a system that cannot be read changes nothing", facts: facts{systems: []System{{URI: uri1, Err: "status 500"}}, owned: []server{mine1}}},
		{name: "a system without UUID is not managed", facts: facts{systems: []System{system(uri1, "")}}, reasons: []string{"SystemUnidentified"}},
		{name: "a UUID that cannot name an inventory is not managed", facts: facts{systems: []System{system(uri1, "a b")}}, reasons: []string{"SystemUnidentified"}},
		{name: "two systems with one UUID are both refused", facts: facts{systems: []System{system(uri1, uuid1), system(uri2, uuid1)}},
			reasons: []string{"SystemConflict", "SystemConflict"}},
		{name: "of two systems with one UUID the incumbent stays", facts: facts{systems: []System{system(uri1, uuid1), system(uri2, uuid1)},
			owned: []server{mine1}, byUUID: known(mine1)}, reasons: []string{"SystemConflict"}},
		{name: "a new UUID in a server's place waits", facts: facts{systems: []System{system(uri1, uuid2)}, owned: []server{mine1}},
			reasons: []string{"SystemUnaccepted"}},
		{name: "a new UUID in a server's place is made when accepted", facts: facts{systems: []System{system(uri1, uuid2)}, owned: []server{mine1}, accepted: uuid2},
			steps: []step{{kind: create, uuid: uuid2, uri: uri1}}, consumed: true},
		{name: "accepting another UUID accepts nothing", facts: facts{systems: []System{system(uri1, uuid2)}, owned: []server{mine1}, accepted: "33333333-3333-3333-3333-333333333333"},
			reasons: []string{"SystemUnaccepted"}},
		{name: "a further system beside those that are known becomes a server", facts: facts{systems: []System{system(uri1, uuid1), system(uri2, uuid2)},
			owned: []server{mine1}, byUUID: known(mine1)}, steps: []step{{kind: create, uuid: uuid2, uri: uri2, index: 1}}},
		{name: "a new UUID waits while a known system cannot be read", facts: facts{systems: []System{{URI: uri1, Err: "status 500"}, system(uri2, uuid2)},
			owned: []server{mine1}}, reasons: []string{"SystemUnaccepted"}},
		{name: "an acceptance that was served is consumed", facts: facts{systems: []System{system(uri1, uuid1)}, owned: []server{mine1}, byUUID: known(mine1), accepted: uuid1},
			consumed: true},
		{name: "the other byte order is the same machine", facts: facts{systems: []System{system(uri1, swapped)},
			owned: []server{behind("b", "b-system-0", ordered, uri1)}, byUUID: map[string][]server{swapped: {behind("b", "b-system-0", ordered, uri1)}}}},
		{name: "a server whose BMC is gone is taken over", facts: facts{systems: []System{system(uri2, uuid1)}, byUUID: known(theirs),
			incumbents: map[string]incumbent{"old": {gone: true}}},
			steps: []step{{kind: point, server: "old-system-0", uuid: uuid1, uri: uri2, from: "old"}}},
		{name: "a server whose BMC has been unreachable for long is taken over", facts: facts{systems: []System{system(uri1, uuid1)}, byUUID: known(theirs),
			incumbents: map[string]incumbent{"old": {lost: 10 * time.Minute}}},
			steps: []step{{kind: point, server: "old-system-0", uuid: uuid1, uri: uri1, from: "old"}}},
		{name: "a server whose BMC is unreachable for a moment is waited for", facts: facts{systems: []System{system(uri1, uuid1)}, byUUID: known(theirs),
			incumbents: map[string]incumbent{"old": {lost: 4 * time.Minute}}}, reasons: []string{"SystemConflict"}, wake: 6 * time.Minute},
		{name: "a server whose BMC answers stays there", facts: facts{systems: []System{system(uri1, uuid1)}, byUUID: known(theirs),
			incumbents: map[string]incumbent{"old": {}}}, reasons: []string{"SystemConflict"}},
		{name: "another machine with the same UUID takes nothing over", facts: facts{
			systems: []System{{URI: uri1, Identity: redfish.Identity{UUID: uuid1, SerialNumber: "OTHER"}}}, byUUID: known(theirs),
			incumbents: map[string]incumbent{"old": {gone: true}}}, reasons: []string{"SystemConflict"}},
		{name: "a server without BMC is taken in", facts: facts{systems: []System{system(uri1, uuid1)}, byUUID: known(behind("", "by-hand", uuid1, ""))},
			steps: []step{{kind: point, server: "by-hand", uuid: uuid1, uri: uri1}}},
		{name: "a server with an access of its own keeps it", facts: facts{systems: []System{system(uri1, uuid1)},
			byUUID: known(server{name: "by-hand", uuid: uuid1, inline: true})}, reasons: []string{"SystemConflict"}},
		{name: "a new system that another BMC shows as well is refused", facts: facts{systems: []System{system(uri1, uuid1)},
			rivals: map[string][]string{uuid1: {"twin"}}}, reasons: []string{"SystemConflict"}},
		{name: "a server without BMC whose system two BMCs show stays without", facts: facts{systems: []System{system(uri1, uuid1)},
			byUUID: known(behind("", "by-hand", uuid1, "")), rivals: map[string][]string{uuid1: {"twin"}}}, reasons: []string{"SystemConflict"}},
		{name: "a server whose BMC is gone is not taken over while two show its system", facts: facts{systems: []System{system(uri1, uuid1)},
			byUUID: known(theirs), incumbents: map[string]incumbent{"old": {gone: true}}, rivals: map[string][]string{uuid1: {"twin"}}},
			reasons: []string{"SystemConflict"}},
		{name: "a BMC that is lost for long is no rival for its own server", facts: facts{systems: []System{system(uri1, uuid1)},
			byUUID: known(theirs), incumbents: map[string]incumbent{"old": {lost: time.Hour}}, rivals: map[string][]string{uuid1: {"old"}}},
			steps: []step{{kind: point, server: "old-system-0", uuid: uuid1, uri: uri1, from: "old"}}},
		{name: "a new UUID waits for acceptance before anything else", facts: facts{systems: []System{system(uri1, uuid2)}, owned: []server{mine1},
			rivals: map[string][]string{uuid2: {"twin"}}}, reasons: []string{"SystemUnaccepted"}},
		{name: "two servers for one machine are told, and nothing is done", facts: facts{systems: []System{system(uri1, uuid1)}, owned: []server{mine1}, byUUID: known(mine1, theirs)},
			reasons: []string{"SystemConflict"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.facts.bmc, c.facts.takeOverAfter = "b", 10*time.Minute
			p := makePlan(c.facts)
			var reasons []string
			for _, r := range p.refusals {
				reasons = append(reasons, r.reason)
			}
			if diff := cmp.Diff(c.steps, p.steps, cmp.AllowUnexported(step{})); diff != "" {
				t.Errorf("steps: %s", diff)
			}
			if diff := cmp.Diff(c.reasons, reasons); diff != "" {
				t.Errorf("refusals: %s\n%v", diff, p.refusals)
			}
			if p.requeueAfter != c.wake || p.consumed != c.consumed {
				t.Errorf("wake %s, consumed %t, want %s, %t", p.requeueAfter, p.consumed, c.wake, c.consumed)
			}
		})
	}
}

func TestFollow(t *testing.T) {
	type labels = map[string]string
	for _, c := range []struct {
		name                string
		bmc, copied, server labels
		want                labels
	}{
		{"a new server gets all", labels{"rack": "r1"}, nil, nil, labels{"rack": "r1"}},
		{"a change follows", labels{"rack": "r2"}, labels{"rack": "r1"}, labels{"rack": "r1"}, labels{"rack": "r2"}},
		{"a label that went from the BMC goes", nil, labels{"rack": "r1"}, labels{"rack": "r1", "own": "x"}, labels{"own": "x"}},
		{"a label that somebody changed on the server stays when it goes from the BMC", nil, labels{"rack": "r1"}, labels{"rack": "mine"}, labels{"rack": "mine"}},
		{"a label that somebody changed on the server stays while the BMC's does", labels{"rack": "r1"}, labels{"rack": "r1"}, labels{"rack": "mine"}, labels{"rack": "mine"}},
		{"a label that somebody took away stays away", labels{"rack": "r1"}, labels{"rack": "r1"}, nil, labels{}},
		{"labels that were never the BMC's stay", labels{"rack": "r1"}, nil, labels{"own": "x"}, labels{"rack": "r1", "own": "x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, remember := follow(c.bmc, c.copied, c.server)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.bmc, remember); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCopiedLabelsThatCannotBeReadAreNone(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"a":1}`, "null"} {
		if got := copiedLabels(text); len(got) > 0 {
			t.Errorf("%q gave %v", text, got)
		}
	}
}

func FuzzCopiedLabels(f *testing.F) {
	f.Add(`{"rack":"r1"}`)
	f.Fuzz(func(_ *testing.T, text string) { copiedLabels(text) })
}

func TestAConflictSaysThatAnEndpointMakesItsBMCAgain(t *testing.T) {
	const remedy = "delete the BMC that is wrong, and first the Endpoint that it was made from, if there is one, because that makes it again"
	var p plan
	p.contested(facts{rivals: map[string][]string{uuid1: {"twin"}}}, System{}, uuid1, "")
	p.takeOver(facts{incumbents: map[string]incumbent{"old": {}}}, behind("old", "s", uuid1, ""), System{}, uuid1)
	for _, r := range p.refusals {
		if !strings.HasSuffix(r.message, remedy) {
			t.Error(r.message)
		}
	}
	if len(p.refusals) != 2 {
		t.Errorf("%d refusals", len(p.refusals))
	}
}
