// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"regexp"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// ephemeral is our own end of a connection, whose port differs from one attempt to the next.
var ephemeral = regexp.MustCompile(`(\d+\.\d+\.\d+\.\d+|\[[:.%\w]*\]):\d+->`)

// Describe says why a BMC cannot be used, in words that stay the same while the cause does, so that a status which holds
// them is not written again with every attempt. news is false where the BMC was not even asked, because of what
// happened before: whatever was said then says more.
func Describe(err error) (message string, news bool) {
	var unreachable *redfish.UnreachableError
	var auth *redfish.AuthError
	switch {
	case err == nil:
		return "", true
	case errors.As(err, &unreachable):
		plain := *unreachable
		plain.RetryAt = time.Time{}
		return ephemeral.ReplaceAllString(plain.Error(), ""), unreachable.RetryAt.IsZero()
	case errors.As(err, &auth):
		plain := *auth
		plain.Until = time.Time{}
		message = plain.Error()
		if !auth.Until.IsZero() {
			message += "; correct the BMCSecret, which is then tried at once; so that no account is locked, " +
				"the same credentials are not tried again before " + wholeMinute(auth.Until).Format("15:04 MST") +
				"; if they were corrected at the BMC, have them tried now by annotation " +
				v1alpha1.OperationAnnotation + "=" + v1alpha1.OperationRetry + " on the BMC"
		}
		return message, true
	}
	return err.Error(), true
}

// wholeMinute is the first whole minute that is not before t: a pause is said to end no sooner than it does.
func wholeMinute(t time.Time) time.Time {
	t = t.UTC()
	if whole := t.Truncate(time.Minute); whole.Equal(t) {
		return t
	}
	return t.Truncate(time.Minute).Add(time.Minute)
}
