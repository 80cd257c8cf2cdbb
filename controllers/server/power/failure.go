// SPDX-License-Identifier: Apache-2.0

package power

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/metalaw/metalaw/redfish"
)

// storedRefusalError is a refusal that an earlier process heard.
type storedRefusalError struct{ words string }

func (r *storedRefusalError) Error() string { return r.words }

// NotAsked says that a request was withheld at the last moment by what we know: the server is not as decided any more, is
// frozen, or could not be looked up. A step before it that the BMC failed at is the BMC's doing.
func NotAsked(err error) bool {
	var never *redfish.NotAskedError
	var refused *redfish.ResponseError
	return errors.As(err, &never) && !errors.As(never.Err, &refused) && redfish.Reason(never.Err) == redfish.ReasonUnknownError
}

// RetryAfter is how long to leave a BMC alone that refused a request: as long as it asks, and never less than a while; a
// shorter one where it was not even asked.
func RetryAfter(err error) time.Duration {
	const unasked, least = 2 * time.Second, 15 * time.Second
	if NotAsked(err) {
		return unasked
	}
	var refused *redfish.ResponseError
	switch {
	case !errors.As(err, &refused):
		return least
	case refused.Method == http.MethodGet:
		return max(unasked, refused.RetryAfter)
	}
	return max(least, refused.RetryAfter)
}

// cannotAsk says that a BMC has no way to ask the operating system, rather than none at the moment.
func cannotAsk(err error) bool {
	var unsupported *redfish.UnsupportedError
	if errors.As(err, &unsupported) {
		return true
	}
	var refused *redfish.ResponseError
	if !errors.As(err, &refused) || refused.Method != http.MethodPost {
		return false
	}
	return slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}, refused.Status)
}
