// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Refused reports whether err says that a BMC, or the adapter for it, surely did not do what was asked and would refuse the
// same again. What may be otherwise later is none: a busy BMC, one that starts (404), one in a transition (409), a write that
// lost a race (412), a system that is not Off, another machine, and what the account decides (401, 403).
func Refused(err error) bool {
	if is[*openError](err) || is[*NotAskedError](err) {
		return false
	}
	if override, ok := errors.AsType[*OverrideError](err); ok {
		return !override.Later
	}
	if media, ok := errors.AsType[*MediaError](err); ok {
		return !media.Later
	}
	if is[*UnsupportedError](err) {
		return true
	}
	response, answered := errors.AsType[*ResponseError](err)
	return answered && writes(response.Method) && !passing(response.MessageID) && slices.Contains(refusals, response.Status)
}

// refusals are the statuses with which a BMC would answer the same again.
var refusals = []int{
	http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusGone,
	http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity,
	http.StatusPreconditionRequired, http.StatusNotImplemented,
}

// passing reports whether a message identifier says that the same may be taken later, whatever the status beside it. Those of
// iLO are from HPE's message registries; those of iDRAC are of jobs (RED), of the Lifecycle Controller (LC) and of a start.
func passing(messageID string) bool {
	name := messageID[strings.LastIndexByte(messageID, '.')+1:]
	return busyIDRAC.MatchString(name) || slices.Contains([]string{
		"ResourceInUse", "ResourceInStandby", "ServiceTemporarilyUnavailable", "ServiceInUnknownState", "ServiceShuttingDown",
		"OperationTimeout", "InvalidOperationForSystemState", "UnableToModifyRightNow", "UnableToModifyDuringSystemPOST",
		"ResourceNotReadyRetry",
	}, name)
}

// busyIDRAC matches the identifiers of an iDRAC that is busy; SWC0700 is its "not ready" and RAC0508 a failure to begin.
var busyIDRAC = regexp.MustCompile(`^(RED|LC)\d+$|^SWC0700$|^RAC0508$`)
