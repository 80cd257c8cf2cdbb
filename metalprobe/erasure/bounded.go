// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Bounded runs an erase, or a part of one, that may get stuck in the kernel. It listens to what the order expects. A step that takes
// longer than it said is told to stop, and so is everything when ctx ends; what has not stopped after the grace is left behind.
func Bounded(
	ctx context.Context, order Order, grace time.Duration, run func(context.Context, Order) (Outcome, error),
) (Outcome, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	type expectation struct {
		step  string
		limit time.Duration
	}
	type ended struct {
		outcome Outcome
		err     error
	}
	expect, done := make(chan expectation), make(chan ended, 1)
	order.Expect = func(step string, limit time.Duration) {
		select {
		case expect <- expectation{step, limit}:
		case <-ctx.Done():
		}
	}
	go func() {
		outcome, err := run(ctx, order)
		done <- ended{outcome, err}
	}()
	now := expectation{"the first step", cmp.Or(order.Floor, DefaultFloor)}
	timer := time.NewTimer(now.limit)
	defer timer.Stop()
	stopped := ctx.Done()
	for late := false; ; {
		select {
		case e := <-done:
			return e.outcome, e.err
		case now = <-expect:
			timer.Reset(now.limit)
		case <-stopped:
			stopped, late = nil, true
			timer.Reset(grace)
		case <-timer.C:
			if late {
				return Outcome{}, fmt.Errorf("%w; it hangs in the kernel, replace the disk", context.Cause(ctx))
			}
			stop(fmt.Errorf("DeadlineExceeded: %s did not end within %s", now.step, now.limit))
		}
	}
}
