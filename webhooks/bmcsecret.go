// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// checkBMCSecret: immutable freezes the credentials and cannot be taken back. The CRD says the same; this holds where an
// old CRD is installed, too.
func checkBMCSecret(c change[v1alpha1.BMCSecret]) findings {
	var found findings
	if c.created() || c.deleted() || !isTrue(c.old.Immutable) {
		return found
	}
	const remedy = "make a new BMCSecret and let the BMCs name that"
	if !isTrue(c.new.Immutable) {
		found.deny(field.Forbidden(field.NewPath("immutable"), "it is true and cannot be taken back; "+remedy))
	}
	if !maps.EqualFunc(c.old.Data, c.new.Data, bytes.Equal) {
		found.deny(field.Forbidden(field.NewPath("data"), "the BMCSecret is immutable; "+remedy))
	}
	if !maps.Equal(c.old.StringData, c.new.StringData) {
		found.deny(field.Forbidden(field.NewPath("stringData"), "the BMCSecret is immutable; "+remedy))
	}
	return found
}

func isTrue(b *bool) bool { return b != nil && *b }

func judgeBMCSecret(_ context.Context, c change[v1alpha1.BMCSecret]) (findings, map[string]any, error) {
	return checkBMCSecret(c), nil, nil
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
