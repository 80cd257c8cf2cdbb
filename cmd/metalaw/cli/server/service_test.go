// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestWhatTheEndOfServiceComesTo(t *testing.T) {
	in := func(state v1alpha1.ServerState, marks ...string) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			s.Status.State, s.Status.Lifecycle = state, &v1alpha1.LifecycleStatus{Marks: marks}
		}
	}
	intended := annotated(v1alpha1.DecommissionAnnotation, "end of lease")
	for name, c := range map[string]struct {
		verb    string
		server  *v1alpha1.Server
		outcome string
		message string
	}{
		"a claimed server waits for its claim": {"decommission", aServer(in("Reserved", "Dirty")), "asked",
			"decommission; it was in Reserved, held by shop/web; it takes no new claim; once claim shop/web is deleted, its disks are erased and it stays off; " +
				"metalaw explain server s shows how far it is"},
		"a server with data is erased": {"decommission", aServer(free, in("Error", "Dirty")), "asked",
			"decommission; it was in Error, held by unknown; it takes no new claim; its disks are erased, then it stays off; " +
				"metalaw explain server s shows how far it is"},
		"a clean server is switched off": {"decommission", aServer(free, in("Available")), "asked",
			"decommission; it was in Available; it takes no new claim; it is switched off and stays off; metalaw explain server s shows how far it is"},
		"a decommission is not asked twice": {"decommission", aServer(intended), "unchanged",
			`it goes out of service already ("end of lease"); metalaw explain server s shows how far it is`},
		"a server that went out of service stays there": {"decommission", aServer(free, in("Decommissioned"), intended), "unchanged",
			`it is Decommissioned already ("end of lease")`},
		"a server comes back": {"recommission", aServer(free, in("Decommissioned"), intended), "asked",
			"recommission; it was in Decommissioned; it goes to Initial; claims may have it after metalaw server uncordon s --reason ..."},
		"a decommission is withdrawn": {"recommission", aServer(in("Reserved"), intended), "asked",
			"recommission; it was in Reserved, held by shop/web; it stays in service; claims may have it after metalaw server uncordon s --reason ..."},
		"a server in service has nothing to withdraw": {"recommission", aServer(in("Reserved")), "unchanged",
			"it is in service, and no decommission stands"},
		"a disk is attested": {"attest", aServer(free, in("Error", "Dirty")), "asked",
			"attest disk S1 as destroy; it was in Error, held by unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &request{verb: verbNamed(t, c.verb)}
			if c.verb == "attest" {
				r.attests.disk, r.attests.method = "S1", "destroy"
			}
			got := r.plan(c.server, nil)
			if got.Outcome != c.outcome || got.Message != c.message {
				t.Errorf("got %s %q, want %s %q", got.Outcome, got.Message, c.outcome, c.message)
			}
		})
	}
}

func TestAnAttestNamesTheDiskAndNoOtherOperationDoes(t *testing.T) {
	left := []string{v1alpha1.AttestDiskAnnotation, "S0", v1alpha1.AttestMethodAnnotation, "removed", v1alpha1.ClaimUIDAnnotation, "u1"}
	for verb, want := range map[string]map[string]string{
		"attest": {"policy.metalaw.dev/claim-uid": "u1", "metal.ironcore.dev/operation": "attest-disk", "policy.metalaw.dev/operation-reason": "why",
			"policy.metalaw.dev/attest-disk": "S1", "policy.metalaw.dev/attest-method": "destroy"},
		"decommission": {"policy.metalaw.dev/claim-uid": "u1", "metal.ironcore.dev/operation": "decommission", "policy.metalaw.dev/operation-reason": "why"},
		"recommission": {"policy.metalaw.dev/claim-uid": "u1", "metal.ironcore.dev/operation": "recommission", "policy.metalaw.dev/operation-reason": "why"},
	} {
		t.Run(verb, func(t *testing.T) {
			s := aServer(annotated(left...))
			r := request{verb: verbNamed(t, verb), reason: "why", attests: attestation{"S1", "destroy"}}
			r.write(s)
			if diff := cmp.Diff(want, s.Annotations); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}

func TestAnAttestAsksFirst(t *testing.T) {
	r := request{verb: verbNamed(t, "attest"), names: []string{"s"}, attests: attestation{"S1", "destroy"}}
	if !r.asksFirst() {
		t.Error("it does not ask")
	}
}
