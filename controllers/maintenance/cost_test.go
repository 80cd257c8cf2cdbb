// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/maintenance"
)

func TestWhatManyMaintenancesInWavesWrite(t *testing.T) {
	const many = 24
	var objects []client.Object
	for i := range many {
		name := fmt.Sprintf("s%d", i+1)
		objects = append(objects,
			free(func(s *v1alpha1.Server) {
				s.Name, s.UID, s.Spec.SystemUUID = name, types.UID("server-"+name), name
				s.Labels = map[string]string{"wave": fmt.Sprint(i % 2)}
			}),
			sm("m-"+name, func(m *v1alpha1.ServerMaintenance) { m.Spec.ServerRef.Name = name }))
	}
	w := newWorld(t, objects...)
	w.policy = &maintenance.Policy{Limits: []maintenance.Limit{{Name: "fleet", Most: maintenance.Amount{Number: 5}}},
		Waves: []maintenance.Wave{{Name: "first", MatchLabels: maintenance.Selector{"wave": "0"}}}}
	for range many {
		w.pass()
		w.lifecycle()
		w.pass()
		var list v1alpha1.ServerMaintenanceList
		if err := w.api.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		has := 0
		for i := range list.Items {
			if list.Items[i].Status.State == v1alpha1.ServerMaintenanceStateInMaintenance {
				has++
				w.delete(&list.Items[i])
			}
		}
		if has > 5 {
			t.Fatalf("%d servers are in maintenance at once", has)
		}
		w.pass()
		w.lifecycle()
		w.available()
	}
	count := map[string]int{}
	for _, one := range w.writes {
		count[one[strings.LastIndex(one, "s"):]]++
	}
	for i := range many {
		name := fmt.Sprintf("s%d", i+1)
		if n := count[name]; n < 5 || n > 6 {
			t.Errorf("the maintenance of %s took %d writes", name, n)
		}
	}
}

// available has every server that comes out of maintenance inspected.
func (w *world) available() {
	w.t.Helper()
	var list v1alpha1.ServerList
	if err := w.api.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		if s := &list.Items[i]; s.Status.State == v1alpha1.StateInitial {
			s.Status.State = v1alpha1.StateAvailable
			if err := w.api.Status().Update(w.t.Context(), s); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// BenchmarkPass is what a pass decides without the reading of caches and the writes.
func BenchmarkPass(b *testing.B) {
	v := &view{at: noon, setting: maintenance.Default(), servers: map[string]*v1alpha1.Server{},
		claims: map[v1alpha1.ObjectReference]*v1alpha1.ServerClaim{}, of: map[string][]*v1alpha1.ServerMaintenance{}}
	for i := range 10000 {
		name := fmt.Sprintf("s%05d", i)
		v.servers[name] = free(func(s *v1alpha1.Server) { s.Name, s.UID = name, types.UID(name) })
		if i%10 == 0 {
			v.maintenances = append(v.maintenances, sm(name, func(m *v1alpha1.ServerMaintenance) { m.Spec.ServerRef.Name = name }))
		}
	}
	v.group()
	s := newScheduler(nil, nil, Options{Mode: On, Bundles: &world{policy: v.setting}, Now: func() time.Time { return noon }})
	for b.Loop() {
		if answers := s.decide(v); len(answers) != 1000 || len(v.concerned()) != 1000 {
			b.Fatal("not every maintenance was answered")
		}
	}
}

func TestOneThatIsPlannedOnlySaysWhatItWouldBeAnswered(t *testing.T) {
	w := newWorld(t, free(), sm("a", annotated(v1alpha1.PlanOnlyAnnotation, "true")), sm("b"))
	w.rounds()
	w.is("a", "Pending PlanOnly")
	w.is("b", "InMaintenance ServerGranted")
	got := w.sm("a").Status
	want := "Annotation policy.metalaw.dev/plan-only has it planned only; remove it to have it granted. " +
		"It would wait (ServerHeld). Maintenance ops/b holds the server. This one waits until it ends."
	if c := conditionOf(&got, v1alpha1.ConditionGranted); c.Message != want {
		t.Errorf("it says %q", c.Message)
	}
}
