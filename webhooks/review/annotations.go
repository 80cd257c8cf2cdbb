// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/engine/spelling"
)

const (
	// annotationPrefix begins the annotations that are metalaw's own.
	annotationPrefix = "policy.metalaw.dev/"
	// maxReason is how many characters of a reason are kept.
	maxReason = 1024
)

var yesNo = []string{"true", "false"}

// Pointer is an object of a kind.
type Pointer[T any] interface {
	*T
	client.Object
}

// Written is the value of an annotation that a change writes; set is false where it writes none, or one that is stored.
func Written[T any, P Pointer[T]](before, after *T, name string) (value string, set bool) {
	value, set = P(after).GetAnnotations()[name]
	if before == nil || !set {
		return value, set
	}
	was, had := P(before).GetAnnotations()[name]
	return value, !had || was != value
}

// CheckYesNo refuses a value that is neither yes nor no. What is stored already is not held against a change of something else.
func CheckYesNo[T any, P Pointer[T]](before, after *T, name string, found *Findings) {
	if value, set := Written[T, P](before, after, name); set && !slices.Contains(yesNo, value) {
		found.Deny(field.NotSupported(AnnotationsPath.Key(name), value, yesNo))
	}
}

// CheckReason refuses a reason that says nothing, or more than can be kept.
func CheckReason[T any, P Pointer[T]](before, after *T, name, remedy string, found *Findings) {
	value, set := Written[T, P](before, after, name)
	path := AnnotationsPath.Key(name)
	switch {
	case !set:
	case strings.TrimSpace(value) == "":
		found.Deny(field.Required(path, remedy))
	case utf8.RuneCountInString(value) > maxReason:
		err := field.TooLong(path, "", maxReason)
		err.Detail = fmt.Sprintf("may not be longer than %d characters", maxReason)
		found.Deny(err)
	}
}

// CheckNames warns of an annotation that looks like one of metalaw's and that it does not read of a kind: who misspells protect has no
// protection. A rule of the bundle may read it, so that it is not refused.
func CheckNames[T any, P Pointer[T]](before, after *T, kind string, known []string, found *Findings) {
	for _, key := range slices.Sorted(maps.Keys(P(after).GetAnnotations())) {
		if !strings.HasPrefix(key, annotationPrefix) || slices.Contains(known, key) {
			continue
		}
		if before != nil {
			if _, had := P(before).GetAnnotations()[key]; had {
				continue
			}
		}
		found.Warn("%s: nothing reads this annotation of a %s; %s", AnnotationsPath.Key(key), kind, meant(key, known))
	}
}

// meant offers what the author meant: the nearest name, or one of which the first letters are written; else it tells
// all.
func meant(key string, known []string) string {
	word := strings.ToLower(strings.TrimPrefix(key, annotationPrefix))
	var all []string
	for _, k := range known {
		all = append(all, strings.TrimPrefix(k, annotationPrefix))
	}
	near := spelling.Nearest(word, all)
	for _, name := range all {
		if near == "" && len(word) > 2 && strings.HasPrefix(name, word) {
			near = name
		}
	}
	if near == "" {
		return "known are " + strings.Join(known, ", ")
	}
	return "did you mean " + annotationPrefix + near + "?"
}
