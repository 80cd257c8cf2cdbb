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
				"the same credentials are tried again only after " + toTheMinute(auth.Until)
		}
		return message, true
	}
	return err.Error(), true
}

// toTheMinute is the end of the minute in which a moment lies, so that a text which holds it changes seldom.
func toTheMinute(at time.Time) string {
	return at.UTC().Add(time.Minute - 1).Truncate(time.Minute).Format("2006-01-02 15:04 MST")
}

// Retry says how refused credentials that were put right at the BMC are tried before their pause has ended: by an annotation
// on the BMC object of that name. It says nothing of another error, nor where there is no such object.
func Retry(err error, bmc string) string {
	var auth *redfish.AuthError
	if bmc == "" || !errors.As(err, &auth) || auth.Until.IsZero() {
		return ""
	}
	return "; if they were corrected at the BMC, have them tried sooner by annotation " +
		v1alpha1.OperationAnnotation + "=" + v1alpha1.OperationRetry + " on BMC " + bmc
}
