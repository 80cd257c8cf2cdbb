// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Bodies that the cases below change in one place each.
const (
	bmcByAccess = `
kind: BMC
apiVersion: metal.ironcore.dev/v1alpha1
metadata: {name: b}
spec: {access: {ip: 10.0.0.7, macAddress: "00:11:22:33:44:55"}, bmcSecretRef: {name: s}, protocol: {name: Redfish, port: 443}}`
	bmcByEndpoint = `
kind: BMC
apiVersion: metal.ironcore.dev/v1alpha1
metadata: {name: b}
spec: {endpointRef: {name: e}, bmcSecretRef: {name: s}, protocol: {name: Redfish, port: 443}}`
	claim = `
kind: ServerClaim
apiVersion: metal.ironcore.dev/v1alpha1
metadata: {name: c, namespace: ns1}
spec: {power: "Off", image: "os:1"}`
	boundClaim = `
kind: ServerClaim
apiVersion: metal.ironcore.dev/v1alpha1
metadata: {name: c, namespace: ns1}
spec: {power: "Off", image: "os:1", serverRef: {name: a}, serverSelector: {matchLabels: {rack: r1}}, ignitionSecretRef: {name: i}}`
	server = `
kind: Server
apiVersion: metal.ironcore.dev/v1alpha1
metadata: {name: s}
spec: {systemUUID: 38947555-7742-3448-3784-823347823834}`
	claimedServer = `
kind: Server
apiVersion: metal.ironcore.dev/v1alpha1
metadata: {name: s}
spec: {systemUUID: 38947555-7742-3448-3784-823347823834, serverClaimRef: {namespace: ns1, name: c}}`
	openSecret = `
kind: BMCSecret
apiVersion: metal.ironcore.dev/v1alpha1
metadata: {name: s}
data: {username: cm9vdA==, password: YQ==}`
	frozenSecret = `
kind: BMCSecret
apiVersion: metal.ironcore.dev/v1alpha1
metadata: {name: s}
immutable: true
data: {username: cm9vdA==, password: YQ==}`
	slashedSecret = `
kind: BMCSecret
apiVersion: metal.ironcore.dev/v1alpha1
metadata: {name: s}
immutable: true
data: {username: cm9vdA==, password: "+//+"}`
	revision = `
kind: PolicyRevision
apiVersion: policy.metalaw.dev/v1alpha1
metadata: {name: default-1.0.0}
spec: {bundle: default, version: 1.0.0, digest: "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", content: H4sI}`
	inventory = `
kind: ServerInventory
apiVersion: policy.metalaw.dev/v1alpha1
metadata: {name: 38947555-7742-3448-3784-823347823834}
spec: {systemUUID: 38947555-7742-3448-3784-823347823834}`
	wipeRecord = `
kind: SanitizationRecord
apiVersion: policy.metalaw.dev/v1alpha1
metadata: {name: 38947555-7742-3448-3784-823347823834-000001}
spec:
  sequence: 1
  hash: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
  recordedAt: "2026-03-01T11:05:01Z"
  machine: {systemUUID: 38947555-7742-3448-3784-823347823834}
  entry: 9
  state: Failed
  startedAt: "2026-03-01T11:00:00.000000Z"
  media: [{path: /dev/sda, serial: D1, state: Failed}]`
	endpoint = `
kind: Endpoint
apiVersion: metal.ironcore.dev/v1alpha1
metadata: {name: e}
spec: {macAddress: "00:11:22:33:44:55", ip: 10.0.0.7}`
	readinessRule = `
kind: ServerReadinessRule
apiVersion: metal.ironcore.dev/v1alpha1
metadata: {name: r}
spec:
  conditions: [{type: NetworkReady, requiredStatus: "True"}]
  enforcementMode: Continuous
  taint: {key: example.com/network, value: wiring, effect: NoBind}
  serverSelector: {matchLabels: {rack: r1}}`
	sbc = `
kind: ServerBootConfiguration
apiVersion: metal.ironcore.dev/v1alpha1
metadata: {name: c, namespace: ns1}
spec: {serverRef: {name: a}, image: "os:1"}`
)

func swap(body, from, to string) string {
	if !strings.Contains(body, from) {
		panic("the case replaces " + from + ", which is not in its body")
	}
	return strings.Replace(body, from, to, 1)
}

func TestWhatMayBeCreated(t *testing.T) {
	defs := load(t)
	for name, c := range map[string]struct {
		body string
		want []string // what the complaints say, in order; none means accepted
	}{
		"a BMC with access alone is accepted":                {bmcByAccess, nil},
		"a BMC with endpointRef alone is accepted":           {bmcByEndpoint, nil},
		"a BMC with access and endpointRef null is accepted": {swap(bmcByAccess, "spec: {", "spec: {endpointRef: null, "), nil},
		"a BMC with both is refused": {swap(bmcByAccess, "spec: {", "spec: {endpointRef: {name: e}, "),
			[]string{"exactly one of access and endpointRef must be set"}},
		"a BMC with neither is refused": {swap(bmcByEndpoint, "endpointRef: {name: e}, ", ""),
			[]string{"exactly one of access and endpointRef must be set"}},
		"a BMC with an empty endpointRef is refused": {swap(bmcByEndpoint, "{name: e}", "{}"),
			[]string{"endpointRef.name must not be empty"}},
		"a BMC with an address that is none is refused": {swap(bmcByAccess, "10.0.0.7", "10.0.0.777"),
			[]string{"ip must be an IPv4 or IPv6 address"}},
		"a BMC with a MAC address alone is accepted":        {swap(bmcByAccess, "ip: 10.0.0.7, ", ""), nil},
		"a BMC whose client writes no address as null":      {swap(bmcByAccess, "10.0.0.7", "null"), nil},
		"a BMC with a mapped IPv4 address is accepted":      {swap(bmcByAccess, "10.0.0.7", `"::ffff:10.0.0.7"`), nil},
		"a BMC with a link-local address is accepted":       {swap(bmcByAccess, "10.0.0.7", `"fe80::1%eth0"`), nil},
		"a BMC with a mapped address that is none":          {swap(bmcByAccess, "10.0.0.7", `"::ffff:10.0.0.777"`), []string{"ip must be an IPv4"}},
		"a BMC in a state of another program's is accepted": {bmcByAccess + "\nstatus: {state: Unreachable}", nil},
		"a BMC with a protocol that nobody knows is refused": {swap(bmcByAccess, "Redfish", "Telnet"),
			[]string{`Unsupported value: "Telnet"`}},

		"an endpoint with an IPv6 address is accepted":       {swap(endpoint, "10.0.0.7", `"fd00::7"`), nil},
		"an endpoint with a MAC spelt otherwise is accepted": {swap(endpoint, "00:11:22:33:44:55", "AA-11-22-33-44-55"), nil},
		"an endpoint with a malformed MAC is refused": {swap(endpoint, "00:11:22:33:44:55", "00:11:22:33:44"),
			[]string{"spec.macAddress"}},
		"an endpoint with a malformed address is refused": {swap(endpoint, "10.0.0.7", "nowhere"),
			[]string{"ip must be an IPv4 or IPv6 address"}},

		"a server is accepted": {server, nil},
		"a server whose UUID is not lower case is refused": {swap(server, "38947555-7742-3448-3784-823347823834", "38947555-7742-3448-3784-8233478238FA"),
			[]string{"systemUUID must be stored in lower case"}},
		"a server whose UUID cannot name an object is refused": {swap(server, "38947555-7742-3448-3784-823347823834", "not_set"),
			[]string{"systemUUID must consist of"}},
		"a server with a claim reference without namespace is refused": {swap(claimedServer, "namespace: ns1, ", ""),
			[]string{"spec.serverClaimRef.namespace: Required value"}},
		"a server with the deprecated power is accepted":             {swap(server, "spec: {", "spec: {power: \"On\", "), nil},
		"a server in a state that only its policy knows is accepted": {server + "\nstatus: {state: BurnIn, powerState: \"\"}", nil},
		"a server with the same taint twice is refused": {swap(server, "spec: {", "spec: {taints: [{key: k, value: v, effect: NoBind}, {key: k, value: v}], "),
			[]string{"spec.taints[1]: Duplicate value"}},
		"a server with two values of one key and effect is accepted": {
			swap(server, "spec: {", "spec: {taints: [{key: k, effect: NoBind}, {key: k, value: v}, {key: k, value: w}], "), nil},
		"a server whose parts are in states of its BMC's own is accepted": {server + `
status: {storages: [{name: a, state: StandbyOffline, drives: [{name: d, state: Quiesced}], volumes: [{name: v, state: InTest}]}]}`, nil},
		"a server with one key tainted by two effects is accepted": {swap(server, "spec: {", "spec: {taints: [{key: k}, {key: k, effect: Evict}], "), nil},

		"a claim for any server is accepted": {claim, nil},
		"a claim with both ways is accepted": {boundClaim, nil},
		"a claim without power is refused":   {swap(claim, `power: "Off", `, ""), []string{"spec.power: Required value"}},
		"a claim without image is refused":   {swap(claim, `, image: "os:1"`, ""), []string{"spec.image: Required value"}},
		"a claim for a nameless server is refused": {swap(boundClaim, "serverRef: {name: a}", `serverRef: {name: ""}`),
			[]string{"serverRef.name must not be empty"}},

		"a readiness rule is accepted":                   {readinessRule, nil},
		"a readiness rule for every server is accepted":  {swap(readinessRule, "{matchLabels: {rack: r1}}", "{}"), nil},
		"a readiness rule that evicts is accepted":       {swap(readinessRule, "NoBind", "Evict"), nil},
		"a readiness rule without selector is refused":   {swap(readinessRule, "serverSelector: {matchLabels: {rack: r1}}", ""), []string{"spec.serverSelector: Required value"}},
		"a readiness rule without conditions is refused": {swap(readinessRule, `[{type: NetworkReady, requiredStatus: "True"}]`, "[]"), []string{"spec.conditions"}},
		"a readiness rule with one condition twice is refused": {swap(readinessRule, "[{type", `[{type: NetworkReady, requiredStatus: "False"}, {type`),
			[]string{"spec.conditions[1]: Duplicate value"}},
		"a readiness rule with a status that no condition has is refused": {swap(readinessRule, `"True"`, "Maybe"), []string{`Unsupported value: "Maybe"`}},
		"a readiness rule with a mode that nobody knows is refused":       {swap(readinessRule, "Continuous", "Once"), []string{`Unsupported value: "Once"`}},
		"a readiness rule with a key that is too long is refused": {swap(readinessRule, "example.com/network", strings.Repeat("k", 254)),
			[]string{"taint key must have at most 253 characters"}},

		"a boot configuration for no server is refused": {swap(sbc, "serverRef: {name: a}, ", ""), []string{"spec.serverRef: Required value"}},
		"an inventory named otherwise than by its UUID is refused": {swap(inventory, "{name: 38947555-7742", "{name: 00000000-7742"),
			[]string{"a ServerInventory is named by its spec.systemUUID"}},
		"a revision with a digest of another kind is refused": {swap(revision, "sha256:", "md5:"), []string{"spec.digest"}},
	} {
		t.Run(name, func(t *testing.T) {
			body := object(t, c.body)
			_, _, got := defs[body["kind"].(string)].admit(body, nil)
			compare(t, c.want, got)
		})
	}
}

func TestWhatMayBeChanged(t *testing.T) {
	defs := load(t)
	for name, c := range map[string]struct {
		old, body string
		want      []string
	}{
		"a BMC's access stays": {bmcByAccess, swap(bmcByAccess, "10.0.0.7", "10.0.0.8"), []string{"access is immutable"}},
		"a BMC's endpointRef stays": {bmcByEndpoint, swap(bmcByEndpoint, "endpointRef: {name: e}", "endpointRef: {name: f}"),
			[]string{"endpointRef is immutable"}},
		"a BMC keeps the way in which it is reached": {bmcByAccess, bmcByEndpoint,
			[]string{"a BMC keeps the way in which it is reached"}},
		"a BMC's secret may change": {bmcByAccess, swap(bmcByAccess, "bmcSecretRef: {name: s}", "bmcSecretRef: {name: t}"), nil},

		"an endpoint's address may change": {endpoint, swap(endpoint, "10.0.0.7", "10.0.0.8"), nil},

		"a claim gets a server": {claim, swap(claim, "spec: {", "spec: {serverRef: {name: a}, "), nil},
		"a claim never loses its server": {boundClaim, swap(boundClaim, "serverRef: {name: a}, ", ""),
			[]string{"a claim never loses its server"}},
		"a claim cannot null its server": {boundClaim, swap(boundClaim, "serverRef: {name: a}", "serverRef: null"),
			[]string{"a claim never loses its server"}},
		"a claim's server stays": {boundClaim, swap(boundClaim, "serverRef: {name: a}", "serverRef: {name: b}"),
			[]string{"serverRef is immutable"}},
		"a claim never loses its selector": {boundClaim, swap(boundClaim, "serverSelector: {matchLabels: {rack: r1}}, ", ""),
			[]string{"serverSelector is required once set"}},
		"a claim's selector stays": {boundClaim, swap(boundClaim, "rack: r1", "rack: r2"), []string{"serverSelector is immutable"}},
		"a bound claim's power, image and ignition may change": {boundClaim,
			swap(swap(swap(boundClaim, `power: "Off"`, `power: "On"`), "os:1", "os:2"), "ignitionSecretRef: {name: i}", "ignitionSecretRef: {name: j}"), nil},

		"a server may be claimed":  {server, claimedServer, nil},
		"a server may be released": {claimedServer, server, nil},
		"a server's claim reference may be nulled": {claimedServer,
			swap(claimedServer, "serverClaimRef: {namespace: ns1, name: c}", "serverClaimRef: null"), nil},
		"a server does not go from one claim to another": {claimedServer, swap(claimedServer, "name: c}", "name: d}"),
			[]string{"serverClaimRef cannot be changed from one claim to another"}},
		"a server does not go to a claim of that name elsewhere": {claimedServer, swap(claimedServer, "namespace: ns1", "namespace: ns2"),
			[]string{"serverClaimRef cannot be changed from one claim to another"}},

		"an open secret may change": {openSecret, swap(openSecret, "YQ==", "Yg=="), nil},
		"a secret may be frozen":    {openSecret, frozenSecret, nil},
		"a frozen secret's labels may change, whatever its base64": {slashedSecret,
			swap(slashedSecret, "{name: s}", "{name: s, labels: {a: b}}"), nil},
		"a frozen secret's data is for the webhook to hold": {frozenSecret, swap(frozenSecret, "YQ==", "Yg=="), nil},
		"a frozen secret stays frozen": {frozenSecret, swap(frozenSecret, "immutable: true", "immutable: false"),
			[]string{"immutable cannot be taken back"}},
		"a frozen secret cannot forget that it is": {frozenSecret, openSecret, []string{"immutable cannot be taken back"}},

		"a readiness rule's conditions stay": {readinessRule, swap(readinessRule, "NetworkReady", "BurnedIn"), []string{"conditions is immutable"}},
		"a readiness rule's mode stays":      {readinessRule, swap(readinessRule, "Continuous", "BootstrapOnly"), []string{"enforcementMode is immutable"}},
		"the key of a readiness rule's taint stays": {readinessRule, swap(readinessRule, "example.com/network", "example.com/other"),
			[]string{"taint key is immutable"}},
		"the value of a readiness rule's taint stays":       {readinessRule, swap(readinessRule, "wiring", "cable"), []string{"taint value is immutable"}},
		"the value of a readiness rule's taint cannot go":   {readinessRule, swap(readinessRule, "value: wiring, ", ""), []string{"taint value is immutable"}},
		"the value of a readiness rule's taint cannot come": {swap(readinessRule, "value: wiring, ", ""), readinessRule, []string{"taint value is immutable"}},
		"the effect of a readiness rule's taint stays":      {readinessRule, swap(readinessRule, "NoBind", "Evict"), []string{"taint effect is immutable"}},
		"a readiness rule's selector stays":                 {readinessRule, swap(readinessRule, "rack: r1", "rack: r2"), []string{"serverSelector is immutable"}},
		"a readiness rule's labels may change":              {readinessRule, swap(readinessRule, "{name: r}", "{name: r, labels: {a: b}}"), nil},

		"a record of a wipe is accepted and stays": {wipeRecord, wipeRecord, nil},
		"what a record says of a disk stays": {wipeRecord, swap(wipeRecord, "state: Failed}", "state: Verified}"),
			[]string{"a sanitization record is immutable"}},
		"a record does not lose a disk": {wipeRecord, swap(wipeRecord, "media: [{path: /dev/sda, serial: D1, state: Failed}]", "message: none"),
			[]string{"a sanitization record is immutable"}},

		"a revision's content stays":     {revision, swap(revision, "H4sI", "H4sJ"), []string{"spec is immutable"}},
		"a revision's status may change": {revision, revision + "\nstatus: {stage: Active, servers: 3}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			old, body := object(t, c.old), object(t, c.body)
			d := defs[body["kind"].(string)]
			stored, _, complaints := d.admit(old, nil)
			if len(complaints) > 0 {
				t.Fatalf("the object to change is itself refused: %q", complaints)
			}
			_, _, got := d.admit(body, stored)
			compare(t, c.want, got)
		})
	}
}

func TestDefaultsThatClientsMayLeaveOut(t *testing.T) {
	defs := load(t)
	for name, c := range map[string]struct {
		body, want string
	}{
		"a server is recycled, and claimable": {
			swap(server, "spec: {", "spec: {taints: [{key: k}], "),
			swap(server, "spec: {", "spec: {taints: [{key: k, value: \"\", effect: NoBind}], reclaimPolicy: Recycle, unclaimable: false, ")},
		"the taint of a readiness rule keeps claims away": {swap(readinessRule, ", effect: NoBind", ""), readinessRule},
		"a BMC is pending as soon as it has a status": {
			bmcByAccess + "\nstatus: {ip: 10.0.0.7}",
			bmcByAccess + "\nstatus: {ip: 10.0.0.7, state: Pending}"},
		"a null endpointRef is gone when stored": {
			swap(bmcByAccess, "spec: {", "spec: {endpointRef: null, "), bmcByAccess},
	} {
		t.Run(name, func(t *testing.T) {
			body := object(t, c.body)
			got, _, complaints := defs[body["kind"].(string)].admit(body, nil)
			if len(complaints) > 0 {
				t.Fatal(complaints)
			}
			if diff := cmp.Diff(object(t, c.want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// compare checks that there are as many complaints as expected and that each contains the words expected.
func compare(t *testing.T, want, got []string) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("want %d complaints %q, got %d: %q", len(want), want, len(got), got)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("complaint %d is %q, want words %q in it", i, got[i], want[i])
		}
	}
}
