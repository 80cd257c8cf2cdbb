// SPDX-License-Identifier: Apache-2.0

// Package denied tells a write that the API server refuses from one that failed for a while: a quota, a policy of the
// cluster or a missing right refuses it again, and a person has to act.
package denied

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/metalaw/metalaw/controllers/loop"
)

const (
	// Again is when a refused write is tried again: no watch tells that a quota was raised or a policy mended.
	Again = 30 * time.Second
	// lostRace is the reason of a write that came after that of another program.
	lostRace = "LostRace"
	// maxQuote bounds the words of another program in a condition.
	maxQuote = 1024
)

// passing are the refusals that pass without a person: the same write may succeed a moment later.
var passing = []int32{http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict,
	http.StatusGone, http.StatusTooEarly, http.StatusTooManyRequests}

// By says that the API server refuses a request for good. Of an error that is no answer of the API server that is not known.
func By(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || Ends(err) {
		return false
	}
	code := answer.Status().Code
	return code >= 400 && code < 500 && !slices.Contains(passing, code)
}

// Ends says that the namespace of the object is being deleted, so that nothing is made in it any more.
func Ends(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) }

// Words is what the API server says of a request that it refuses.
func Words(err error) string {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return loop.Shortened(answer.Status().Message, maxQuote)
	}
	return loop.Shortened(err.Error(), maxQuote)
}

// Write is the progress of an effect whose write failed. A lost race is run again soon; a refusal gets the reason, names
// what is refused and quotes the API server; any other error goes back to the queue.
func Write(err error, reason, what string) loop.Progress {
	switch {
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		return loop.Waiting(lostRace, "another program wrote first", 100*time.Millisecond)
	case By(err):
		return loop.Failing(reason, fmt.Sprintf("The API server refuses %s. Raise the quota, or change the policy or the "+
			"right that refuses it; the manager tries again every %s. Its words: %s", what, Again, Words(err)), Again)
	}
	return loop.Broken(err)
}
