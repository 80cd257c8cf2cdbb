// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

// manager is one process; its clock is in seconds.
type manager struct {
	*Heartbeat
	clock int
}

func startManager(api client.Client, second int) *manager {
	m := &manager{clock: second}
	m.Heartbeat = &Heartbeat{Client: api, Reader: api, Namespace: "ns", Now: func() time.Time { return at(m.clock) }}
	return m
}

func (m *manager) beatUntil(t *testing.T, second int) {
	t.Helper()
	for ; m.clock <= second; m.clock += 10 {
		if err := m.beat(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	m.clock = second
}

func TestAbsencesAddUpOverManagers(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).Build()
	first := startManager(api, 0)
	first.beatUntil(t, 100)
	second := startManager(api, 400)
	expect := func(m *manager, from, until, want int) {
		t.Helper()
		if got := m.Absent(at(from), at(until)); got != time.Duration(want)*time.Second {
			t.Errorf("between %d and %d: absent for %s, want %d s", from, until, got, want)
		}
	}
	expect(second, 50, 400, 300) // known before its own first heartbeat
	second.beatUntil(t, 600)
	expect(second, 50, 600, 300)
	third := startManager(api, 610) // a quick restart is none
	third.beatUntil(t, 700)
	fourth := startManager(api, 1000)
	fourth.beatUntil(t, 1100)
	expect(fourth, 0, 1100, 600)
	expect(fourth, 200, 800, 300) // the second half of one and the first of the other
	expect(fourth, 1000, 1100, 0)

	fourth.clock = 2000 // it stood still, as a machine does that is suspended
	expect(fourth, 1090, 2000, 900)
	fourth.beatUntil(t, 2050)
	expect(fourth, 1090, 2050, 900)
}

func TestAListThatCannotBeReadBeginsAnew(t *testing.T) {
	h := &Heartbeat{}
	lease := &coordinationv1.Lease{}
	lease.Annotations = map[string]string{absencesAnnotation: "{"}
	h.note(lease, epoch)
	if len(h.absences) != 0 {
		t.Error(h.absences)
	}
}
