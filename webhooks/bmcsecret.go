// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

// checkBMCSecret: immutable freezes the credentials and cannot be taken back. That it cannot be taken back the CRD says,
// too. The credentials are held here alone: a rule of the CRD reads base64 in the alphabet for URLs, and would refuse
// every write of a secret in which there is a / or a +.
func checkBMCSecret(c review.Change[v1alpha1.BMCSecret], found *review.Findings) {
	if c.Deleted() {
		return
	}
	checkSecretTrust(c.New, found)
	warnOfWhiteSpace(c.New, found)
	if c.Created() || !ptr.Deref(c.Old.Immutable, false) {
		return
	}
	if !ptr.Deref(c.New.Immutable, false) {
		found.Deny(field.Forbidden(field.NewPath("immutable"), "it is true and cannot be taken back; "+newBMCSecret))
	}
	denyChanges(found, field.NewPath("data"), c.Old.Data, c.New.Data, bytes.Equal)
	denyChanges(found, field.NewPath("stringData"), c.Old.StringData, c.New.StringData, func(a, b string) bool { return a == b })
}

// warnOfWhiteSpace names each credential with white space around it. It quotes no value.
func warnOfWhiteSpace(s *v1alpha1.BMCSecret, found *review.Findings) {
	for _, key := range []string{v1alpha1.BMCSecretUsernameKey, v1alpha1.BMCSecretPasswordKey} {
		path, value := field.NewPath("data").Key(key), string(s.Data[key])
		if text, set := s.StringData[key]; set {
			path, value = field.NewPath("stringData").Key(key), text
		}
		if strings.TrimSpace(value) != value {
			found.Warn("%s: it begins or ends with white space, such as a line break; the manager leaves that out. "+
				"Write the value without it (printf %%s instead of echo); "+
				"if it belongs to the account, change the account", path)
		}
	}
}

// newBMCSecret is how to go on from a secret that is frozen.
const newBMCSecret = "make a new BMCSecret and let the BMCs name that"

// denyChanges names every key that was added, changed or removed, in order.
func denyChanges[V any](found *review.Findings, path *field.Path, before, after map[string]V, same func(a, b V) bool) {
	all := map[string]V{}
	maps.Copy(all, before)
	maps.Copy(all, after)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		was, had := before[key]
		is, has := after[key]
		what := "changed"
		switch {
		case !had:
			what = "added"
		case !has:
			what = "removed"
		case same(was, is):
			continue
		}
		found.Deny(field.Forbidden(path.Key(key), "it cannot be "+what+", because the BMCSecret is immutable; "+newBMCSecret))
	}
}

// redactBMCSecret leaves the keys and takes the values, so that no rule can put a password into a message. The copy of
// the last applied manifest holds them too.
func redactBMCSecret(o map[string]any) {
	for _, name := range []string{"data", "stringData"} {
		values, ok := o[name].(map[string]any)
		if !ok {
			continue
		}
		for key := range values {
			values[key] = ""
		}
	}
	if meta, ok := o["metadata"].(map[string]any); ok {
		if annotations, ok := meta["annotations"].(map[string]any); ok {
			delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		}
	}
}
