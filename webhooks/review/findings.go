// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"maps"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Findings is everything that the rules have to say about one request. The request passes when nothing is denied.
type Findings struct {
	Denials  []metav1.StatusCause
	Warnings []string
	// audit is what the API server's audit log gets to know of a request that passes.
	audit map[string]string
}

// Deny adds a refusal in the form that the API server itself gives to mistakes in a field.
func (f *Findings) Deny(errs ...*field.Error) {
	for _, err := range errs {
		if err.Field == (*field.Path)(nil).String() { // it is about the object as a whole
			err.Field = ""
		}
		f.Denials = append(f.Denials, metav1.StatusCause{Type: metav1.CauseType(err.Type), Field: err.Field, Message: err.ErrorBody()})
	}
}

// Warn adds a sentence that is shown to who asked; kubectl prints it.
func (f *Findings) Warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

func (f *Findings) add(other Findings) {
	f.Denials = append(f.Denials, other.Denials...)
	f.Warnings = append(f.Warnings, other.Warnings...)
	maps.Copy(f.Audited(), other.audit)
}

// Audited is what an answer writes into the audit log, by key.
func (f *Findings) Audited() map[string]string {
	if f.audit == nil {
		f.audit = map[string]string{}
	}
	return f.audit
}

// Pass says that no finding denies the request.
func (f *Findings) Pass() bool { return len(f.Denials) == 0 }

// Text names every refusal, each with its field. Diagnostics name their place themselves and stand on a line each.
func (f *Findings) Text() string {
	var text strings.Builder
	for i, d := range f.Denials {
		switch {
		case d.Type == causeDiagnostic:
			text.WriteString("\n" + d.Field + ": " + d.Message)
			continue
		case i > 0:
			text.WriteString("; ")
		}
		if d.Field != "" {
			text.WriteString(d.Field + ": ")
		}
		text.WriteString(d.Message)
	}
	return text.String()
}

// Response is the answer to the API server. A refusal is a Status as the API server itself would give: Forbidden (403)
// where the user must not do this, or no field is said to be wrong; Invalid (422) where what is written is wrong. It
// has one cause for each finding. kubectl shows the causes of what is invalid, each behind its field, and the message
// of the rest.
func (f *Findings) Response(req *admissionv1.AdmissionRequest, kind string) admission.Response {
	if f.Pass() {
		response := admission.Allowed("").WithWarnings(f.Warnings...)
		response.AuditAnnotations = f.audit
		return response
	}
	code, reason, is := int32(http.StatusForbidden), metav1.StatusReasonForbidden, "is not allowed"
	for _, d := range f.Denials {
		if d.Type != metav1.CauseTypeForbidden && d.Field != "" {
			code, reason, is = http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "is invalid"
		}
	}
	if reason == metav1.StatusReasonForbidden {
		is = strings.ToLower(string(req.Operation)) + " " + is
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Warnings: f.Warnings,
		Result: &metav1.Status{
			Status:  metav1.StatusFailure,
			Code:    code,
			Reason:  reason,
			Message: fmt.Sprintf("%s %q: %s: %s", kind, req.Name, is, f.Text()),
			Details: &metav1.StatusDetails{Name: req.Name, Group: req.Kind.Group, Kind: kind, Causes: f.Denials},
		},
	}}
}
