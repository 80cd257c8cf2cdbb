// SPDX-License-Identifier: Apache-2.0

package power

import (
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/redfish"
)

// shutDown asks the operating system and says whether to wait for it. A manager asks once; one that comes after asks again
// where nothing shows, because its predecessor may have died before it asked. A BMC that cannot ask is not waited for.
func (d *decision) shutDown() (p loop.Progress, wait bool) {
	switch {
	case d.cutting():
		return loop.Progress{}, false
	case !d.outstanding() || d.Request.Action != v1alpha1.PowerActionGracefulShutdown || d.OfFormerEntry():
		return d.ask(v1alpha1.PowerActionGracefulShutdown, fleet.Shutdown), true
	case d.unheard():
		return d.askAgain(fleet.Shutdown), true
	}
	if err := d.failedWith(); err != nil {
		if p, again := d.askWhereFailed(err); again {
			return p, true
		}
	}
	return d.awaitShutdown()
}

// askWhereFailed asks again where the BMC failed at the last request, within the grace, and where force is not allowed for as
// long as it takes: else an operating system that never heard of it would have its power cut, or run on.
func (d *decision) askWhereFailed(err error) (p loop.Progress, again bool) {
	switch left := shutdownPause(d.Grace, d.Want.Graceful, err) - d.Since(); {
	case cannotAsk(err) || d.Want.Force && d.Now.Sub(d.RecordedAt) >= d.Want.Graceful:
		return loop.Progress{}, false
	case !redfish.MayHaveHappened(err) && RetryAfter(err) > d.Since():
		return d.failed(err, RetryAfter(err)-d.Since()), true
	case redfish.MayHaveHappened(err) && left > 0:
		d.out.Again = left
		return loop.Progress{}, false
	}
	return d.askAgain(fleet.Shutdown), true
}

// awaitShutdown waits for the operating system, if there is time left. That is counted from the record, so that no restart
// begins it anew; who was asked late still has a while, and what surely was not heard is not waited for.
func (d *decision) awaitShutdown() (p loop.Progress, wait bool) {
	err := d.failedWith()
	left := max(d.Want.Graceful-d.Now.Sub(d.RecordedAt), d.Grace-d.Since())
	if err != nil && !redfish.MayHaveHappened(err) {
		left = 0
	}
	switch {
	case left > 0 && err != nil:
		return d.failed(err, min(left, d.poll())), true
	case left > 0:
		return loop.Waiting(WaitsForPower, "the operating system to shut down", min(left, d.poll())), true
	case d.Want.Force:
		return loop.Progress{}, false
	case err != nil:
		return d.failed(err, d.Grace), true
	}
	return loop.Failing(RequestFailed, "the operating system did not shut down in time and the policy does not allow force", d.Grace), true
}

// shutdownPause is how long after a BMC failed at a shutdown the next one is asked for: as seldom as what was accepted, but at
// half the grace where that is sooner, and not before what RetryAfter says, which is 15 s at least.
func shutdownPause(powerGrace, graceful time.Duration, err error) time.Duration {
	return max(min(powerGrace, graceful/2), RetryAfter(err))
}
