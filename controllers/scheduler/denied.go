// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"net"
	"regexp"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/claims/solve"
)

// deniedError is the API server's refusal to write one server.
type deniedError struct {
	server string
	error
}

// Unwrap makes the API server's own error visible.
func (d deniedError) Unwrap() error { return d.error }

// refusedBy is the verdict for a claim whose writes are denied. It speaks of the first of them, and names no server.
func refusedBy(denied error) solve.Refusal {
	message := denied.Error()
	var status apierrors.APIStatus
	if errors.As(denied, &status) {
		message = status.Status().Message
	}
	var first deniedError
	if errors.As(denied, &first) {
		// The words of a webhook are free text, and Status().Details names no server in them: the name can only be looked for.
		message = strings.ReplaceAll(message, " "+strconv.Quote(first.server), "")
		for range 2 { // two that stand side by side share what is between them
			message = whole(first.server).ReplaceAllString(message, "${1}the server${2}")
		}
	}
	return solve.Refusal{Reason: v1alpha1.ReasonBindingRefused,
		Message: "the API server refuses to give the claim a server, and is asked again within a minute: " + message}
}

// whole finds the name of an object where it stands by itself, however it is quoted.
func whole(name string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[^-.a-zA-Z0-9])` + regexp.QuoteMeta(name) + `($|[^-a-zA-Z0-9])`)
}

// isDenied says that the API server refused a write: it certainly did not happen, and would not the next time either.
func isDenied(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// isUnanswered says that a request got no answer, so that the next one most likely gets none either. What went wrong in another way
// concerns the one claim.
func isUnanswered(err error) bool {
	var network net.Error // a url.Error is one
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
