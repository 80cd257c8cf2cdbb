// SPDX-License-Identifier: Apache-2.0

package bundle

import "testing"

func TestPartsAreThoseThatAManifestLists(t *testing.T) {
	manifest := WriteParts(map[string]string{"a.rego": "one"}, Files{"a.rego": []byte("a")})
	parts := Parts(string(manifest))
	if len(parts) != 1 || parts[0].Name != "a.rego" || parts[0].ConfigMap != "one" || !parts[0].Is("a") || parts[0].Is("b") {
		t.Errorf("%+v", parts)
	}
	if broken := Parts("files: {"); broken != nil {
		t.Errorf("%+v", broken)
	}
}
