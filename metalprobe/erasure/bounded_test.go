// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestEachStepHasADeadline(t *testing.T) {
	waits := func(ctx context.Context) (Outcome, error) {
		<-ctx.Done()
		return Outcome{Method: "half"}, context.Cause(ctx)
	}
	for name, c := range map[string]struct {
		run    func(ctx context.Context, order Order) (Outcome, error)
		method string
		err    string
		after  time.Duration
	}{
		"the first step has the floor": {func(ctx context.Context, _ Order) (Outcome, error) { return waits(ctx) },
			"half", "DeadlineExceeded: the first step did not end within 1m0s", time.Minute},
		"a step has what it said": {func(ctx context.Context, order Order) (Outcome, error) {
			<-time.After(50 * time.Second)
			order.Expect("zero", time.Hour)
			return waits(ctx)
		}, "half", "DeadlineExceeded: zero did not end within 1h0m0s", time.Hour + 50*time.Second},
		"a step that does not stop is left behind": {func(context.Context, Order) (Outcome, error) {
			<-time.After(24 * time.Hour)
			return Outcome{Method: "late"}, nil
		}, "", "DeadlineExceeded: the first step did not end within 1m0s; it hangs in the kernel, replace the disk", time.Minute + time.Second},
		"what ends in time is returned": {func(context.Context, Order) (Outcome, error) { return Outcome{Method: "zero"}, errors.New("EIO") },
			"zero", "EIO", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				got, err := Bounded(t.Context(), Order{Floor: time.Minute}, time.Second, c.run)
				if got.Method != c.method || err == nil || err.Error() != c.err || time.Since(begun) != c.after {
					t.Errorf("got %q, %v after %s", got.Method, err, time.Since(begun))
				}
				<-time.After(48 * time.Hour)
			})
		})
	}
}
