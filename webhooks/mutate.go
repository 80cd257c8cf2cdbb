// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/macprefixes"
	"github.com/metalaw/metalaw/webhooks/review"
)

// replacement is one change of an object, as JSON patch spells it.
type replacement struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value,omitempty"`
}

// mutation is one request with its objects decoded, before it is held against any rule.
type mutation[T any] struct {
	// old is nil on a creation.
	old, new *T
	user     authenticationv1.UserInfo
	// byManager says that the manager's own user asks.
	byManager bool
}

// normalizeEndpoint writes the MAC address in lower case with colons. What is no MAC address is left for the validation,
// which says so.
func normalizeEndpoint(m mutation[v1alpha1.Endpoint]) []replacement {
	mac, err := macprefixes.Normalize(m.new.Spec.MACAddress)
	if err != nil || mac == m.new.Spec.MACAddress {
		return nil
	}
	return []replacement{{"replace", "/spec/macAddress", mac}}
}

// normalizeServer writes the system UUID in lower case, and who asks for an operation.
func normalizeServer(m mutation[v1alpha1.Server]) []replacement {
	var changes []replacement
	if uuid := strings.ToLower(m.new.Spec.SystemUUID); uuid != m.new.Spec.SystemUUID {
		changes = append(changes, replacement{"replace", "/spec/systemUUID", uuid})
	}
	return append(changes, recordWho(m)...)
}

// mutator answers the mutating reviews of one kind.
func mutator[T any](managerUser string, normalize func(mutation[T]) []replacement) admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, req admission.Request) admission.Response {
		m := mutation[T]{user: req.UserInfo, byManager: req.UserInfo.Username == managerUser}
		var err error
		if m.new, err = review.Object[T](req.Object.Raw); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("the object cannot be read: %w", err))
		}
		if m.old, err = review.Object[T](req.OldObject.Raw); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("the stored object cannot be read: %w", err))
		}
		if m.new == nil {
			return admission.Allowed("")
		}
		changes := normalize(m)
		if len(changes) == 0 {
			return admission.Allowed("")
		}
		patch, err := json.Marshal(changes)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		response, jsonPatch := admission.Allowed(""), admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = patch, &jsonPatch
		return response
	})
}
