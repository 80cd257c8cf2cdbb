// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"net/http"
	"time"
)

const (
	// busyRepeats is how often a request is made again that a busy BMC refused. An operation is several requests in a row,
	// and starts over where one fails: without repeats, a BMC that answers every second request hardly ever lets one through.
	busyRepeats = 2
	// busyPatience is the longest wait before a repeat. A BMC that asks for more is left alone for as long as it asks.
	busyPatience = 3 * time.Second
)

// waitedOut says that err is the refusal of a busy BMC that is worth a repeat, after it has waited for that. It is for
// reads, and for changes that are read and checked anew before the repeat: what an action did that ended so is not known.
// No place among the requests is held meanwhile.
func (o *operation) waitedOut(err error, repeats int) bool {
	refused, answered := errors.AsType[*ResponseError](err)
	if repeats >= busyRepeats || o.left <= 0 || !answered || !busyStatus(refused.Status) {
		return false
	}
	wait := max(o.c.options.BusyPause<<repeats, refused.RetryAfter)
	return wait <= busyPatience && o.pause(wait)
}

// pause waits, unless the operation would end before; false where it did not wait.
func (o *operation) pause(wait time.Duration) bool {
	if deadline, bounded := o.ctx.Deadline(); bounded && time.Until(deadline) <= wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-o.ctx.Done():
		return false
	}
}

// busyStatus reports whether a status says that a BMC, or a proxy before it, may answer otherwise in a moment.
func busyStatus(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
