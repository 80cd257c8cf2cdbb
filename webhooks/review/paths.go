// SPDX-License-Identifier: Apache-2.0

package review

import (
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

// AnnotationsPath is where the annotations of an object stand.
var AnnotationsPath = field.NewPath("metadata", "annotations")

// AnnotationPath is the JSON pointer of an annotation.
func AnnotationPath(name string) string {
	return "/metadata/annotations/" + strings.ReplaceAll(name, "/", "~1")
}

// maxUser is how many characters of a name status.operation can store.
const maxUser = 253

// NameOf is the user's name as far as status.operation can store it.
func NameOf(user authenticationv1.UserInfo) string {
	return diag.ShortenedCharacters(user.Username, maxUser)
}

// Bundles gives the policies: the one in force, and one that servers are pinned to, by the name of its PolicyRevision.
type Bundles interface {
	Active() *bundle.Bundle
	Revision(name string) (*bundle.Bundle, bool)
}
