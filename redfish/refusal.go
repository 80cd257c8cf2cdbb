// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// Refused reports whether err says that a BMC, or the adapter for it, surely did not do what was asked and would refuse the
// same again. What may be otherwise in a moment is none: a busy BMC, one that starts (404), one in a transition (409), a
// system that is not Off, another machine, a refused password.
func Refused(err error) bool {
	var never *NotAskedError
	var open *openError
	if err == nil || errors.As(err, &open) || errors.As(err, &never) {
		return false
	}
	var override *OverrideError
	if errors.As(err, &override) {
		return !override.Later
	}
	var unsupported *UnsupportedError
	if errors.As(err, &unsupported) {
		return true
	}
	var auth *AuthError
	if errors.As(err, &auth) {
		return auth.Status == http.StatusForbidden && auth.Until.IsZero()
	}
	var response *ResponseError
	if !errors.As(err, &response) || !writes(response.Method) || passing(response.MessageID) {
		return false
	}
	switch response.Status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusGone, http.StatusPreconditionFailed,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity,
		http.StatusPreconditionRequired, http.StatusNotImplemented:
		return true
	}
	return false
}

// passing reports whether a message identifier says that the same may be taken later, whatever the status beside it. They
// are of the DMTF's Base registry; InvalidOperationForSystemState is what iLO answers with 400 during the self test.
func passing(messageID string) bool {
	name := messageID[strings.LastIndexByte(messageID, '.')+1:]
	return slices.Contains([]string{
		"ResourceInUse", "ResourceInStandby", "ServiceTemporarilyUnavailable", "ServiceInUnknownState", "ServiceShuttingDown",
		"OperationTimeout", "InvalidOperationForSystemState",
	}, name)
}
