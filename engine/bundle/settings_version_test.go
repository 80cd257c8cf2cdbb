// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"strings"
	"testing"
)

func TestAVersionIsOneThatARevisionCanBeNamedBy(t *testing.T) {
	longest := "1.0.0-" + strings.Repeat("a", 58)
	for version, want := range map[string]string{
		"1.2.0":              "",
		"1.2.0-rc.1":         "",
		"1.2.0-RC.1+Build.7": "",
		"1.2.0--x":           "",
		longest:              "",
		longest + "a":        "version has 65 characters and may have 64",
		"1.0.0-a-.b":         `version is "1.0.0-a-.b", of which no name of a PolicyRevision can be made`,
		"1.0.0-a.-b":         `version is "1.0.0-a.-b", of which no name of a PolicyRevision can be made`,
		"1.0.0+a.-":          `version is "1.0.0+a.-", of which no name of a PolicyRevision can be made`,
	} {
		t.Run(version, func(t *testing.T) {
			m, found := parseManifest([]byte("apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: " +
				strings.Repeat("n", maxBundleName) + "\nversion: " + version + "\n"))
			got := ""
			if len(found) > 0 {
				got = found[0].Message
			}
			if got != want || want != "" && found[0].Code != "version-form" {
				t.Errorf("got %v, want %q", found, want)
			}
			name := RevisionName(m.Name, m.Version, "sha256:"+strings.Repeat("0", 64))
			if want == "" && (len(name) > 253 || !objectName.MatchString(name)) {
				t.Errorf("no object can have the name %q", name)
			}
		})
	}
}
