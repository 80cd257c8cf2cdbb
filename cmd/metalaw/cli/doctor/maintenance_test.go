// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// sm is ops/NAME of node-1, made so long before noon.
func sm(name string, age time.Duration, change ...func(*metalv1alpha1.ServerMaintenance)) metalv1alpha1.ServerMaintenance {
	m := metalv1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name, UID: types.UID("u-" + name),
		CreationTimestamp: metav1.NewTime(noon.Add(-age)), Annotations: map[string]string{}}}
	m.Spec.ServerRef.Name = "node-1"
	for _, c := range change {
		c(&m)
	}
	return m
}

func adopted(m *metalv1alpha1.ServerMaintenance) {
	m.Annotations[metalv1alpha1.AdoptAnnotation] = "true"
}

func serving(m *metalv1alpha1.ServerMaintenance) {
	m.Status.State = metalv1alpha1.ServerMaintenanceStateInMaintenance
}

func waitsFor(reason string) func(*metalv1alpha1.ServerMaintenance) {
	return func(m *metalv1alpha1.ServerMaintenance) {
		m.Status.Conditions = []metav1.Condition{{Type: "Granted", Status: "False", Reason: reason}}
	}
}

// handed is a server that names ops/NAME, with the UID where the manager granted it.
func handed(server, name, uid string) metalv1alpha1.Server {
	s := metalv1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: server, Annotations: map[string]string{}}}
	s.Spec.ServerMaintenanceRef = &metalv1alpha1.ObjectReference{Namespace: "ops", Name: name}
	if uid != "" {
		s.Annotations[metalv1alpha1.MaintenanceUIDAnnotation] = uid
	}
	return s
}

func TestMaintenancesAreToldByWhatWouldActOnThem(t *testing.T) {
	const hour = time.Hour
	const adopt = "annotate those that shall be granted with policy.metalaw.dev/adopt=true, and delete the others"
	hourAgo := noon.Add(-hour)
	for name, c := range map[string]struct {
		mode  string
		state maintenanceState
		err   error
		want  finding
	}{
		"none": {"off", maintenanceState{}, nil, finding{Verdict: Passed, Message: "the manager runs with --maintenance=off; there is no ServerMaintenance"}},
		"old ones of metal-operator, before the manager grants any": {"off", maintenanceState{maintenances: []metalv1alpha1.ServerMaintenance{
			sm("b", hour, serving), sm("a", hour)}}, nil, finding{Verdict: Warned, Message: "the manager runs with --maintenance=off and grants nothing. " +
			"With on: 1 are older than the consent and wait for adoption (ops/a); 1 were left in another state by another manager and wait for adoption (ops/b)", Remedy: adopt}},
		"one that was adopted, before the manager grants any": {"plan", maintenanceState{maintenances: []metalv1alpha1.ServerMaintenance{sm("a", hour, adopted)}}, nil,
			finding{Verdict: Warned, Message: "the manager runs with --maintenance=plan and grants nothing. With on: 1 wait for their servers (ops/a)",
				Remedy: "delete those that shall not be granted before you set --maintenance=on"}},
		"each sort, while the manager grants": {"on", maintenanceState{Consented: hourAgo, servers: []metalv1alpha1.Server{handed("node-1", "h", "u-h")},
			maintenances: []metalv1alpha1.ServerMaintenance{sm("h", 2*hour, serving), sm("w", time.Minute, waitsFor("WindowClosed")),
				sm("x", time.Minute, waitsFor("LimitReached")), sm("old", 2*hour),
				sm("stopped", time.Minute, func(m *metalv1alpha1.ServerMaintenance) { m.Annotations[metalv1alpha1.AbortAnnotation] = "no" })}}, nil,
			finding{Verdict: Warned, Message: "the manager runs with --maintenance=on; 1 have their servers (ops/h); 2 wait for their servers (ops/w, ops/x); " +
				"1 are older than the consent and wait for adoption (ops/old); 1 end or are over (ops/stopped)", Remedy: adopt}},
		"those that wait, while the manager grants": {"on", maintenanceState{Consented: hourAgo, maintenances: []metalv1alpha1.ServerMaintenance{
			sm("w", time.Minute, waitsFor("WindowClosed")), sm("x", time.Minute, waitsFor("WindowClosed")), sm("y", time.Minute, waitsFor("LimitReached"))}}, nil,
			finding{Verdict: Passed, Message: "the manager runs with --maintenance=on; 3 wait for their servers (ops/w, ops/x, ops/y); why they wait: LimitReached 1, WindowClosed 2"}},
		"not to a reader without rights": {"on", maintenanceState{}, forbidden,
			finding{Verdict: Unknown, Message: "cannot be read: " + forbidden.Error(), Remedy: "run it with the rights of ClusterRole cluster-admin, or read this by hand"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Check = "maintenances"
			if got := checkMaintenances(view{manager: managerState{Maintenance: c.mode}, maintenance: c.state, maintenanceErr: c.err}); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestServersThatAnotherProgramHoldsAreNamed(t *testing.T) {
	const remedy = "the manager never clears such a reference; the program or user who wrote spec.serverMaintenanceRef clears it"
	for name, c := range map[string]struct {
		servers []metalv1alpha1.Server
		want    finding
	}{
		"none":         {nil, finding{Verdict: Passed, Message: "no server names a maintenance that the manager did not grant"}},
		"ours, gone":   {[]metalv1alpha1.Server{handed("node-1", "x", "u-x")}, finding{Verdict: Passed, Message: "no server names a maintenance that the manager did not grant"}},
		"theirs":       {[]metalv1alpha1.Server{handed("node-1", "a", "")}, finding{Verdict: Warned, Message: "1 servers name a maintenance that the manager did not grant: node-1 (ops/a)", Remedy: remedy}},
		"theirs, gone": {[]metalv1alpha1.Server{handed("node-1", "x", "")}, finding{Verdict: Warned, Message: "1 servers name a ServerMaintenance of this API group that does not exist: node-1 (ops/x)", Remedy: remedy}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Check = "foreign maintenances"
			state := maintenanceState{servers: c.servers, maintenances: []metalv1alpha1.ServerMaintenance{sm("a", time.Hour)}}
			if got := checkForeignMaintenances(view{maintenance: state}); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestClaimsThatAreAskedForNothingAreNamed(t *testing.T) {
	claim := metalv1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{metalv1alpha1.MaintenanceNeededLabel: "true"}}}
	claim.Spec.ServerRef = &corev1.LocalObjectReference{Name: "node-1"}
	leaving := metalv1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Annotations: map[string]string{metalv1alpha1.DecommissionAnnotation: "old"}}}
	const passed = "every claim that is asked for its server is asked for a maintenance or a decommission"
	for name, c := range map[string]struct {
		state maintenanceState
		want  finding
	}{
		"for a maintenance":  {maintenanceState{maintenances: []metalv1alpha1.ServerMaintenance{sm("a", time.Hour)}}, finding{Verdict: Passed, Message: passed}},
		"for a decommission": {maintenanceState{servers: []metalv1alpha1.Server{leaving}}, finding{Verdict: Passed, Message: passed}},
		"for nothing": {maintenanceState{}, finding{Verdict: Warned,
			Message: "1 claims have label metal.ironcore.dev/maintenance-needed, and no maintenance wants their servers: shop/web",
			Remedy:  "take the label away: kubectl label serverclaim -n NAMESPACE NAME metal.ironcore.dev/maintenance-needed-"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Check, c.state.claims = "maintenance labels", []metalv1alpha1.ServerClaim{claim}
			if got := checkMaintenanceLabels(view{maintenance: c.state}); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}
