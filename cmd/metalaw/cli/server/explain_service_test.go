// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// wants is a maintenance of node-1 that waits.
func wants(name string, uid types.UID, change ...func(*v1alpha1.ServerMaintenance)) *v1alpha1.ServerMaintenance {
	m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name, UID: uid, CreationTimestamp: metav1.NewTime(noon.Add(-10 * 60e9))}}
	m.Spec.ServerRef.Name = "node-1"
	m.Status.State = v1alpha1.ServerMaintenanceStatePending
	m.Status.Conditions = []metav1.Condition{{Type: "Granted", Status: "False", Reason: "WaitsForApproval", Message: "claim shop/web has not approved"}}
	for _, c := range change {
		c(m)
	}
	return m
}

func granted(m *v1alpha1.ServerMaintenance) {
	at := metav1.NewTime(noon.Add(-5 * 60e9))
	m.Status.State, m.Status.GrantedAt = v1alpha1.ServerMaintenanceStateInMaintenance, &at
	m.Status.Conditions = []metav1.Condition{{Type: "Granted", Status: "True", Reason: "ServerGranted"},
		{Type: "Served", Status: "False", Reason: "BootFailed", Message: "no image"}}
}

// handedTo makes node-1 name a maintenance, granted with a UID where one is given.
func handedTo(name, uid string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: "ops", Name: name}
		if uid != "" {
			s.Annotations[v1alpha1.MaintenanceUIDAnnotation] = uid
		}
	}
}

func TestTheServiceOfAServerIsExplained(t *testing.T) {
	leaves := annotated(v1alpha1.DecommissionAnnotation, "end of lease")
	waits := func(s *v1alpha1.Server) {
		s.Status.Conditions = []metav1.Condition{{Type: "Decommission", Status: "False", Reason: "ClaimHolds", Message: "claim shop/web has not ended"}}
	}
	const ends = "; metalaw server recommission node-1 takes it back"
	for name, c := range map[string]struct {
		objects []client.Object
		want    []string
	}{
		"no maintenance": {[]client.Object{nodeIn("Available")}, nil},
		"one holds it, another waits": {[]client.Object{nodeIn("Maintenance", handedTo("a", "u1")), wants("a", "u1", granted), wants("b", "u2")}, []string{
			"Handed to:   ops/a, InMaintenance since 5m; BootFailed: no image",
			"Wanted by:   ops/b: WaitsForApproval: claim shop/web has not approved"}},
		"another program holds it": {[]client.Object{nodeIn("Maintenance", handedTo("x", ""))}, []string{
			"Handed to:   ops/x, which does not exist here; another program or a user wrote it, and the manager neither clears it nor touches the machine"}},
		"a user wrote the reference to one that exists": {[]client.Object{nodeIn("Maintenance", handedTo("a", "")), wants("a", "u1")}, []string{
			"Handed to:   ops/a; another program or a user wrote it, and the manager neither clears it nor touches the machine"}},
		"what held it is gone": {[]client.Object{nodeIn("Maintenance", handedTo("a", "u1"))}, []string{
			"Handed to:   ops/a was granted and does not exist any more; the manager gives the server back"}},
		"what held it has a namesake": {[]client.Object{nodeIn("Maintenance", handedTo("a", "u1")), wants("a", "u9")}, []string{
			"Handed to:   ops/a was granted and deleted, and one of the same name was made since; the manager gives the server back"}},
		"it goes out of service": {[]client.Object{nodeIn("Reserved", leaves, waits)}, []string{
			"Out of use:  it goes out of service: end of lease; claim shop/web has not ended" + ends}},
		"it went out of service": {[]client.Object{nodeIn("Decommissioned", leaves)}, []string{
			"Out of use:  it went out of service: end of lease" + ends}},
		"its hardware is at fault": {[]client.Object{nodeIn("Available", func(s *v1alpha1.Server) {
			s.Status.Conditions = []metav1.Condition{{Type: "FaultyHardware", Status: "True", Reason: "DiskFailed", Message: "Failed disk S1. Decommission it, or mend it.",
				LastTransitionTime: metav1.NewTime(noon.Add(-60e9))}}
		})}, []string{"At fault:    Failed disk S1. Decommission it, or mend it."}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := explain(t.Context(), reader(t, nil, c.objects...), "node-1", noon)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			e.text(&terminal.Terminal{Out: &out, Err: &out, Now: noon})
			var got []string
			for line := range strings.Lines(out.String()) {
				for _, field := range []string{"Out of use:", "Handed to:", "Wanted by:", "At fault:"} {
					if strings.HasPrefix(line, field) {
						got = append(got, strings.TrimSuffix(line, "\n"))
					}
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}
