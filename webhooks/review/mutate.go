// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"encoding/json"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Edit is one change of an object, as JSON patch spells it.
type Edit struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Mutator answers the mutating reviews of one kind, before the object is held against any rule.
func Mutator[T any](managerUser string, normalize func(ctx context.Context, c Change[T]) (edits []Edit, warnings []string)) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		c, err := decode[T](&req.AdmissionRequest, managerUser)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if c.Deleted() {
			return admission.Allowed("")
		}
		edits, warnings := normalize(ctx, c)
		response := admission.Allowed("").WithWarnings(warnings...)
		if len(edits) == 0 {
			return response
		}
		if response.Patch, err = json.Marshal(edits); err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		jsonPatch := admissionv1.PatchTypeJSONPatch
		response.PatchType = &jsonPatch
		return response
	})
}
