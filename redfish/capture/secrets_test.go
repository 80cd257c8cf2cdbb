// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/internal/redact"
)

// suspicious are the words by which a reader would look for secrets. It shares nothing with the redactor.
var (
	suspicious = regexp.MustCompile(`(?i)passw|passphrase|secret|token|salt|hash$|key$|community|communities|authoriz|licen|cookie`)
	shaped     = regexp.MustCompile(`(?i)PRIVATE KEY-----[^\[]|://[^/\s\[]*[^/\s\]]@|://[^\s?]*\?[^\[\s]|passw(or)?d["']?\s*[:=]\s*["']?[^\s"'\[]|bearer [^\[]{8}`)
	// reviewed are suspicious keys at which no secret stands: what OData says of a key, how long a password may be, and switches.
	reviewed = regexp.MustCompile(`@(Redfish|odata|Message)\.|^@odata`)
	// words are texts that are no secret.
	words = regexp.MustCompile(`(?i)^(|\s*|\[hidden\]|enabled?|disabled?|true|false|yes|no|none|null|n/a|(not)?supported|unavailable)$`)
)

// strings of a document, with the keys that lead to each.
func walkStrings(path []string, value any, visit func(path []string, text string)) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walkStrings(append(slices.Clone(path), key), v[key], visit)
		}
	case []any:
		for _, below := range v {
			walkStrings(path, below, visit)
		}
	case string:
		visit(path, v)
	}
}

// Each string of each real tree is looked at after redaction. The log lists what is left at suspicious keys, for people.
func TestEachStringOfTheRealTreesIsLookedAt(t *testing.T) {
	folder := os.Getenv("METALAW_REDFISH_TREES")
	if folder == "" {
		t.Skip("METALAW_REDFISH_TREES names no folder of captured trees")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.tar.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tree in %s: %v", folder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".tar.gz"), func(t *testing.T) {
			tree := Tree{}
			for uri, body := range unpack(t, file) {
				if json.Valid([]byte(body)) { // a crawl would not have taken another
					tree[uri] = []byte(body)
				}
			}
			for name, redacted := range map[string]func() (Tree, error){
				"without identity": func() (Tree, error) { return tree.Redact([]byte("salt")) },
				"with identity":    tree.WithoutSecrets,
			} {
				clean, err := redacted()
				if err != nil {
					t.Fatal(err)
				}
				seen, left := 0, map[string]int{}
				for uri, body := range clean {
					var document any
					if err := json.Unmarshal(body, &document); err != nil {
						t.Fatalf("%s: %s: %v", name, uri, err)
					}
					walkStrings(nil, document, func(path []string, text string) {
						seen++
						key := path[len(path)-1]
						at := strings.Join(path, ".")
						switch {
						case shaped.MatchString(text):
							t.Errorf("%s: %s: %s: %q", name, uri, at, text)
						case !suspicious.MatchString(at) || words.MatchString(text):
						case suspicious.MatchString(key) && !reviewed.MatchString(key):
							t.Errorf("%s: %s: %s: %q", name, uri, at, text)
						default:
							left[fmt.Sprintf("%s = %.60s", at, text)]++
						}
					})
				}
				t.Logf("%s: %d strings; left at suspicious keys:", name, seen)
				for _, one := range slices.Sorted(maps.Keys(left)) {
					t.Logf("  %4d %s", left[one], one)
				}
			}
		})
	}
}

func TestACaptureThatKeepsIdentityKeepsNoSecret(t *testing.T) {
	tree := Tree{
		"/redfish/v1/A": []byte(`{"SerialNumber":"CZ1234ABCD","Users.2.IPMIKey":"k3y0123456","Url":"https://root:calvin@10.0.0.1/?a=b"}`),
		"/redfish/v1/B": []byte(`{"Note":"made with k3y0123456"}`),
	}
	got, err := tree.WithoutSecrets()
	if err != nil {
		t.Fatal(err)
	}
	all := string(got["/redfish/v1/A"]) + string(got["/redfish/v1/B"])
	for _, gone := range []string{"k3y", "calvin", "a=b"} {
		if strings.Contains(all, gone) {
			t.Errorf("%s is still there:\n%s", gone, all)
		}
	}
	for _, stays := range []string{"CZ1234ABCD", "10.0.0.1", redact.Hidden} {
		if !strings.Contains(all, stays) {
			t.Errorf("%s is gone:\n%s", stays, all)
		}
	}
}
