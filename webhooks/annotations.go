// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

// answers are the values of those annotations of a Server that say yes or no. Any other would be read as no, without a word,
// by somebody who meant yes. That of v1alpha1.ForceOverrideAnnotation is held against the right to force besides.
var answers = map[string][]string{
	v1alpha1.ConsentAnnotation:    {v1alpha1.ConsentTakeOver},
	v1alpha1.DeleteDataAnnotation: {"true", "false"},
	v1alpha1.DisklessAnnotation:   {"true", "false"},
}

// checkAnswers refuses a value that means nothing. What is stored already is not held against a change of something else.
func checkAnswers(c review.Change[v1alpha1.Server], found *review.Findings) {
	for _, name := range []string{v1alpha1.ConsentAnnotation, v1alpha1.DeleteDataAnnotation, v1alpha1.DisklessAnnotation} {
		value, set := review.Written(c.Old, c.New, name)
		if set && !slices.Contains(answers[name], value) {
			err := field.NotSupported(review.AnnotationsPath.Key(name), value, answers[name])
			err.Detail += "; to say no, leave the annotation out"
			found.Deny(err)
		}
	}
}

// checkAcceptance refuses the acceptance of a system that no text tells, and warns of one that no UUID tells.
func checkAcceptance(c review.Change[v1alpha1.BMC], found *review.Findings) {
	value, set := review.Written(c.Old, c.New, v1alpha1.AcceptSystemAnnotation)
	path := review.AnnotationsPath.Key(v1alpha1.AcceptSystemAnnotation)
	switch {
	case !set || uuidForm.MatchString(strings.ToLower(value)):
	case !namesSystem(value):
		found.Deny(field.Invalid(path, value, "it is no UUID of a system; write the one that the condition SystemsAccepted of the BMC names"))
	default:
		found.Warn("%s: %q is no UUID; it accepts nothing unless the BMC shows a system by this very text. "+
			"Write the UUID that the condition SystemsAccepted of the BMC names", path, value)
	}
}

// namesSystem says that text may be the UUID of a system as the condition SystemsAccepted shows it, in any case. It need not
// have the form of one: where a BMC shows other text, that is what tells the system.
func namesSystem(text string) bool {
	return systemText.MatchString(text) && len(text) <= maxSystemText
}

var systemText = regexp.MustCompile(`^[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?$`)

// maxSystemText is how long spec.systemUUID of a Server may be.
const maxSystemText = 64
