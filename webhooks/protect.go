// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

var protectPath = review.AnnotationsPath.Key(v1alpha1.ProtectAnnotation)

// checkProtected refuses the deletion of what somebody protects, whoever asks for it: a person, the collector of garbage, or
// the end of the namespace. Only "false" lifts it, so that a value that was mistyped and stored unseen protects as well.
func checkProtected(o client.Object, kind string, found *review.Findings) {
	if value, set := o.GetAnnotations()[v1alpha1.ProtectAnnotation]; !set || value == "false" {
		return
	}
	name := o.GetName()
	if namespace := o.GetNamespace(); namespace != "" {
		name = "-n " + namespace + " " + name
	}
	found.Deny(field.Forbidden(protectPath, "it is protected from deletion; where it is really to go, take the annotation away first: "+
		"kubectl annotate "+strings.ToLower(kind)+" "+name+" "+v1alpha1.ProtectAnnotation+"-"))
}
