// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func reachedThrough(bmc string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Spec.BMCRef = nil
		if bmc != "" {
			s.Spec.BMCRef = &corev1.LocalObjectReference{Name: bmc}
		}
	}
}

func at(uri string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Spec.SystemURI = uri }
}

func TestAServerKeepsItsBMCAndItsSystem(t *testing.T) {
	const giveUp = "to give the Server up, delete it, with annotation policy.metalaw.dev/delete-data: \"true\" where it holds data"
	const bmc = "Forbidden\nspec.bmcRef: Forbidden: the server is reached through BMC b1. The manager writes another one when that shows the system and " +
		"the old one is deleted or has not shown it for long. Where the old BMC is gone, delete the BMC (its Servers stay); " + giveUp
	const uri = "Forbidden\nspec.systemURI: Forbidden: the server is the system at /redfish/v1/Systems/1; the manager follows what the BMC shows " +
		"for the server's systemUUID; " + giveUp
	inline := reachedBy("", &v1alpha1.BMCAccess{Address: "10.0.0.7"})
	for name, c := range map[string]struct {
		before, after *v1alpha1.Server
		who           string
		want          string
	}{
		"another BMC is refused":               {before: server(), after: server(reachedThrough("b2")), want: bmc},
		"no BMC any more, too":                 {before: server(), after: server(reachedThrough("")), want: bmc},
		"the manager writes another BMC":       {before: server(), after: server(reachedThrough("b2")), who: manager},
		"a BMC may be named where none was":    {before: server(reachedThrough("")), after: server()},
		"another system is refused":            {before: server(), after: server(at("/redfish/v1/Systems/2")), want: uri},
		"no system any more, too":              {before: server(), after: server(at("")), want: uri},
		"the manager writes another system":    {before: server(), after: server(at("/redfish/v1/Systems/2")), who: manager},
		"a system may be named where none was": {before: server(at("")), after: server()},
		"beside an access of its own nothing else puts the system right": {before: server(inline, at("/redfish/v1/Systems/1")),
			after: server(inline, at("/redfish/v1/Systems/2"))},
		"the other byte order of the UUID passes": {before: server(), after: server(standingFor(swappedUUID))},
		"the rest may change":                     {before: server(), after: server(booting("Boot0001"))},
	} {
		t.Run(name, func(t *testing.T) {
			if c.who == "" {
				c.who = user
			}
			got, warnings := newWorld(t, defaults(t)).ask(PathValidateServer, c.who, admissionv1.Update, c.before, c.after)
			if diff := cmp.Diff(c.want, got); diff != "" || len(warnings) > 0 {
				t.Error(diff, warnings)
			}
		})
	}
}
