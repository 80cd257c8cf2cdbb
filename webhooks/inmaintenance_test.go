// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func handedTo(name string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: "ops", Name: name}
	}
}

func maintenanceBoots(name string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Spec.MaintenanceBootConfigurationRef = &v1alpha1.ObjectReference{Namespace: "ops", Name: name}
	}
}

// byUs is the record that the manager granted it, to a claim's server.
func byUs(s *v1alpha1.Server) {
	annotated(v1alpha1.MaintenanceUIDAnnotation, "u")(s)
	annotated(v1alpha1.MaintenanceClaimAnnotation, "c")(s)
}

func TestAServerInMaintenanceIsNotDeleted(t *testing.T) {
	const remedy = "; end the maintenance first, or set annotation metal.ironcore.dev/operation: allow-in-progress-delete"
	for name, c := range map[string]struct {
		before *v1alpha1.Server
		want   string
	}{
		"in state Maintenance":             {server(in("Maintenance")), "Forbidden: cannot delete Server s1 in state Maintenance" + remedy},
		"whoever handed it over":           {server(in("Maintenance"), handedTo("m")), "Forbidden: cannot delete Server s1 in state Maintenance" + remedy},
		"once the manager handed it over":  {server(in("Available"), handedTo("m"), byUs), "Forbidden: cannot delete Server s1, which ServerMaintenance ops/m has" + remedy},
		"but on its way there for another": {server(in("Available"), handedTo("m")), ""},
		"nor with what is left of a grant": {server(in("Available"), byUs), ""},
		"nor where a user does not wait":   {server(in("Maintenance"), handedTo("m"), byUs, asking("allow-in-progress-delete")), ""},
		"but where a user allows a change": {server(in("Maintenance"), asking("allow-in-progress-update")), "Forbidden: cannot delete Server s1 in state Maintenance" + remedy},
		"and data is another matter":       {server(in("Maintenance"), heldBy("a", "b"), asking("allow-in-progress-delete")), "metadata.annotations[policy.metalaw.dev/delete-data]: Forbidden: the server holds data: it is held by a claim (spec.serverClaimRef); to let it go all the same, set annotation policy.metalaw.dev/delete-data: \"true\" first"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := newWorld(t, defaults(t)).ask(PathValidateServer, user, admissionv1.Delete, c.before, nil)
			if diff := cmp.Diff(denied(c.want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheRecordOfAGrantGoesWithTheReference(t *testing.T) {
	const removed = `{"op":"remove","path":"/metadata/annotations/policy.metalaw.dev~1maintenance-`
	const both = "[" + removed + `uid"},` + removed + `claim-uid"}]`
	const boot = `{"op":"remove","path":"/spec/maintenanceBootConfigurationRef"}`
	granted := server(handedTo("m"), byUs)
	for name, c := range map[string]struct {
		before, after *v1alpha1.Server
		who           string
		want          string
	}{
		"which a user clears":                 {before: granted, after: server(byUs), want: both},
		"or replaces":                         {before: granted, after: server(handedTo("other"), byUs), want: both},
		"or sets where a record was left":     {before: server(byUs), after: server(handedTo("m"), byUs), want: both},
		"not while it stays":                  {before: granted, after: server(handedTo("m"), byUs, annotated("a", "b"))},
		"nor where the user took it away":     {before: granted, after: server()},
		"nor from what the manager writes":    {before: server(), after: granted, who: manager},
		"and what it boots with it":           {before: server(handedTo("m"), byUs, maintenanceBoots("m")), after: server(byUs, maintenanceBoots("m")), want: both[:len(both)-1] + "," + boot + "]"},
		"also where it took the record away":  {before: server(handedTo("m"), byUs, maintenanceBoots("m")), after: server(maintenanceBoots("m")), want: "[" + boot + "]"},
		"not what another program boots":      {before: server(handedTo("m"), maintenanceBoots("m")), after: server(maintenanceBoots("m"))},
		"nor what is booted from now on":      {before: server(handedTo("m"), byUs, maintenanceBoots("m")), after: server(handedTo("other"), maintenanceBoots("other"))},
		"of what a backup brings the consent": {after: granted, want: "[" + removed + `claim-uid"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			if c.who == "" {
				c.who = user
			}
			req := admissionv1.AdmissionRequest{Operation: admissionv1.Create, UserInfo: authenticationv1.UserInfo{Username: c.who},
				Object: runtime.RawExtension{Raw: raw(t, c.after)}}
			if c.before != nil {
				req.Operation, req.OldObject.Raw = admissionv1.Update, raw(t, c.before)
			}
			r := newWorld(t, defaults(t)).hooks[PathMutateServer].Handle(t.Context(), admission.Request{AdmissionRequest: req})
			if !r.Allowed || string(r.Patch) != c.want {
				t.Errorf("got %t %s, want %s", r.Allowed, r.Patch, c.want)
			}
		})
	}
}

func TestOnlyTheManagerRecordsAGrant(t *testing.T) {
	const uidPath, claimPath = "metadata.annotations[policy.metalaw.dev/maintenance-uid]: ", "metadata.annotations[policy.metalaw.dev/maintenance-claim-uid]: "
	const no = "Forbidden: only the manager changes it; to end the maintenance delete it, or clear spec.serverMaintenanceRef where nothing ends it"
	const stays = "Forbidden: it belongs to the reference that the manager wrote; take it away with that"
	const both = uidPath + no + "\n" + claimPath + no
	granted := server(handedTo("m"), byUs)
	for name, c := range map[string]struct {
		before, after *v1alpha1.Server
		who           string
		want          string
	}{
		"a user who makes one up is refused":           {before: server(handedTo("m")), after: granted, want: both},
		"also without a reference":                     {before: server(), after: server(byUs), want: both},
		"also together with it":                        {before: server(), after: granted, want: both},
		"one who changes the consent, too":             {before: granted, after: server(handedTo("m"), byUs, annotated(v1alpha1.MaintenanceClaimAnnotation, "d")), want: claimPath + no},
		"one who takes it away alone, too":             {before: granted, after: server(handedTo("m")), want: both},
		"one who keeps it for another reference, too":  {before: granted, after: server(handedTo("other"), byUs), want: uidPath + stays + "\n" + claimPath + stays},
		"a reference that is stuck is cleared with it": {before: granted, after: server()},
		"or without it, if no hook took it away":       {before: granted, after: server(byUs)},
		"what was left of it may go":                   {before: server(byUs), after: server()},
		"another program takes a server over":          {before: granted, after: server(handedTo("other"))},
		"other changes pass":                           {before: granted, after: server(handedTo("m"), byUs, booting("Boot0001"))},
		"the manager grants":                           {before: server(), after: granted, who: manager},
		"a backup brings the UID":                      {after: server(handedTo("m"), annotated(v1alpha1.MaintenanceUIDAnnotation, "u"))},
		"and no consent":                               {after: granted, want: claimPath + "Forbidden: the consent of a claim cannot come with a new server; leave it out"},
	} {
		t.Run(name, func(t *testing.T) {
			op := admissionv1.Create
			var before client.Object
			if c.before != nil {
				op, before = admissionv1.Update, c.before
			}
			if c.who == "" {
				c.who = user
			}
			got, _ := newWorld(t, defaults(t)).ask(PathValidateServer, c.who, op, before, c.after)
			if diff := cmp.Diff(denied(c.want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
