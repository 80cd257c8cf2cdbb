// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/internal/counted"
)

// counts gives a manager a counted time whose monotonic clock is its clock, and a wall clock that is ahead.
func (m *manager) counts(ahead time.Duration) *manager {
	start := m.clock
	m.Counted = counted.NewClock(epoch, func() time.Duration { return time.Duration(m.clock-start) * time.Second })
	m.Now = func() time.Time { return at(m.clock).Add(ahead) }
	return m
}

func seconds(n int) counted.Time { return counted.Time(n) * counted.Time(time.Second) }

func TestCountedTimeGoesFromLeaderToLeader(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	down := false
	api := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if down {
				return errors.New("the API server is down")
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	expect := func(m *manager, when string, want int) {
		t.Helper()
		if got := m.Counted.Now(); got != seconds(want) {
			t.Errorf("%s: %s, want %d s", when, got, want)
		}
	}
	first := startManager(api, 0).counts(0)
	expect(first, "before the lease was read", 0)
	first.beatUntil(t, 100) // the last heartbeat at 100
	first.clock = 109
	expect(first, "of the first leader", 110)

	second := startManager(api, 400).counts(365 * 24 * time.Hour) // the first was killed, and a year passes by the wall clock
	down = true
	if err := second.beat(t.Context()); err == nil {
		t.Error("a lease that cannot be read was renewed")
	}
	expect(second, "where the lease cannot be read", 0)
	down = false
	second.Outage()
	second.beatUntil(t, 450)
	expect(second, "of the next, without what no heartbeat stored", 151)

	second.clock = 457
	if err := second.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	third := startManager(api, 1000).counts(-time.Hour)
	if err := (Standby{third.Heartbeat}).Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(third, "of one that waits for its turn", 0)
	third.clock = 1015
	third.Outage()
	expect(third, "of one whose predecessor ended in order, with its wait", 151+7+15)
}
