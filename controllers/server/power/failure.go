// SPDX-License-Identifier: Apache-2.0

package power

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
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

// PostponedError says that a request was kept from being sent by what ends by itself or is lifted, such as a freeze, rather
// than because what was decided does not hold any more.
type PostponedError struct{ Cause error }

func (e *PostponedError) Error() string { return e.Cause.Error() }

// Unwrap is the cause.
func (e *PostponedError) Unwrap() error { return e.Cause }

// Postponed says that the call was surely not made, and is still wanted.
func (j Job) Postponed() bool {
	var held *PostponedError
	return NotAsked(j.Err) && errors.As(j.Err, &held)
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

// maxRefusal is what the API accepts as the words of a refusal.
const maxRefusal = 1024

// Recorded is the stored request with what the BMC said when it refused it, and how often in a row it said the same. The
// policy decides on that count, and a restart of the manager loses neither.
func (a Asked) Recorded() *v1alpha1.PowerRequest {
	request := a.Request.DeepCopy()
	if request == nil || request.RefusedAt != nil {
		return request
	}
	switch {
	case request.ShownAt != nil, a.Job.Succeeded():
		request.Refusal, request.Refusals = "", 0
	case a.Job.Known && redfish.Refused(a.Job.Err):
		refuse(request, loop.Shortened(a.Job.Words, maxRefusal), metav1.NewMicroTime(a.Now))
	}
	return request
}

// refuse adds one refusal to a request.
func refuse(request *v1alpha1.PowerRequest, said string, at metav1.MicroTime) {
	if sameRefusal(request.Refusal, said) {
		request.Refusals++
	} else {
		request.Refusals = 1
	}
	request.Refusal, request.RefusedAt = said, &at
}

var digits = regexp.MustCompile(`\d+`)

// sameRefusal compares two refusals without their numbers: some BMCs number their messages.
func sameRefusal(a, b string) bool {
	return digits.ReplaceAllString(a, "0") == digits.ReplaceAllString(b, "0")
}

// refusedPause is how long to wait after so many equal refusals: 90 s, 3 min, then 6 min at the default grace. Four of them
// so take more than ten minutes, which lets a new BMC firmware or a self test pass before a policy counts four as final.
func (a Asked) refusedPause() time.Duration {
	return a.Grace * 3 / 2 << min(max(a.Request.Refusals-1, 0), 2)
}
