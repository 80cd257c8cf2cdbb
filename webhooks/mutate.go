// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/macprefixes"
)

// replacement is one field that is stored in another spelling.
type replacement struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value"`
}

// normalizeEndpoint writes the MAC address in lower case with colons. What is no MAC address is left for the validation,
// which says so.
func normalizeEndpoint(e *v1alpha1.Endpoint) *replacement {
	mac, err := macprefixes.Normalize(e.Spec.MACAddress)
	if err != nil || mac == e.Spec.MACAddress {
		return nil
	}
	return &replacement{"replace", "/spec/macAddress", mac}
}

// normalizeServer writes the system UUID in lower case.
func normalizeServer(s *v1alpha1.Server) *replacement {
	uuid := strings.ToLower(s.Spec.SystemUUID)
	if uuid == s.Spec.SystemUUID {
		return nil
	}
	return &replacement{"replace", "/spec/systemUUID", uuid}
}

// mutator answers the mutating reviews of one kind.
func mutator[T any](normalize func(*T) *replacement) admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, req admission.Request) admission.Response {
		o, err := object[T](req.Object.Raw)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("the object cannot be read: %w", err))
		}
		if o == nil {
			return admission.Allowed("")
		}
		change := normalize(o)
		if change == nil {
			return admission.Allowed("")
		}
		patch, err := json.Marshal([]replacement{*change})
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		response, jsonPatch := admission.Allowed(""), admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = patch, &jsonPatch
		return response
	})
}
