// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"fmt"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/placement"
)

// QuotaExceeded says in words that a namespace which has so many servers does not get so many more; empty where it may. Servers whose
// claims are gone are named, because nothing that its claims do gives those back.
func QuotaExceeded(q bundle.Quota, namespace string, held Held, more int) string {
	words := q.Exceeded(namespace, held.Servers, more)
	if limit, _ := q.Limit(namespace); words == "" || limit == 0 || held.Orphaned == 0 {
		return words
	}
	return words + fmt.Sprintf("; counted are servers held for claims that are gone (%d). Ask an operator of the fleet to release them, "+
		"or create such a claim again under its name, with the spec.serverRef that it had", held.Orphaned)
}

// The reasons of the condition Bound that a claim's own state leads to.
const (
	ReasonInvalidPlacement = "InvalidPlacement"
	ReasonQuotaExceeded    = "QuotaExceeded"
	ReasonGangWaiting      = "GangWaiting"
)

// Assembled says why a gang cannot be given servers of any fleet: with the reason for its members' condition and in
// words. Both are empty where it can. Sizes holds the size that each member gives; lost is how many name a server that
// they do not keep.
func Assembled(quota bundle.Quota, namespace string, sizes []int64, lost int) (reason, why string) {
	members, message := placement.MusterOf(sizes)
	if members == placement.Contradictory {
		return ReasonInvalidPlacement, message + "; none of them gets a server until they agree"
	}
	if len(sizes) > 0 { // also where members are missing: admission lets in no more than the quota allows
		if tooSmall := quota.TooSmall(namespace, sizes[0]); tooSmall != "" {
			return ReasonQuotaExceeded, tooSmall
		}
	}
	switch {
	case members == placement.Incomplete:
		return ReasonGangWaiting, message + "; none of them gets a server until all do"
	case lost > 0:
		return ReasonGangWaiting, fmt.Sprintf("%d of its %d members name a server that is not theirs; "+
			"none of the others gets a server until that is mended", lost, len(sizes))
	}
	return "", ""
}
