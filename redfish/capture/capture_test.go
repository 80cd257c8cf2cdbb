// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// bmc serves resources from memory.
type bmc map[string]string

func (b bmc) get(_ context.Context, uri string) ([]byte, error) {
	body, has := b[uri]
	if !has {
		return nil, errors.New(uri + ": 404")
	}
	return []byte(body), nil
}

func TestACrawlFollowsLinksWithinTheService(t *testing.T) {
	tree, problems, err := Crawl(t.Context(), bmc{
		"/redfish/v1":            `{"Systems":{"@odata.id":"/redfish/v1/Systems/"},"JsonSchemas":{"@odata.id":"/redfish/v1/JsonSchemas"},"Other":{"@odata.id":"https://elsewhere/redfish/v1/x"}}`,
		"/redfish/v1/Systems":    `{"Members":[{"@odata.id":"/redfish/v1/Systems/1"},{"@odata.id":"/redfish/v1/Systems/2#/a"}],"Members@odata.nextLink":"/redfish/v1/Systems?$skip=2"}`,
		"/redfish/v1/Systems/1":  `{"Up":{"@odata.id":"/redfish/v1/Systems"},"Log":{"@odata.id":"/redfish/v1/Systems/1/LogServices/SEL/Entries"}}`,
		"/redfish/v1/Systems/2":  `not JSON`,
		"/redfish/v1/Systems/99": `{}`,
	}.get, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/redfish/v1", "/redfish/v1/Systems", "/redfish/v1/Systems/1"}, slices.Sorted(maps.Keys(tree))); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"/redfish/v1/Systems/2: invalid character 'o' in literal null (expecting 'u')",
		"/redfish/v1/Systems?$skip=2: 404",
	}
	slices.Sort(problems)
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Error(diff)
	}
}

func TestACrawlEnds(t *testing.T) {
	endless := func(_ context.Context, uri string) ([]byte, error) {
		return json.Marshal(map[string]any{"Next": map[string]string{"@odata.id": uri + "/x"}})
	}
	tree, problems, err := Crawl(t.Context(), endless, Options{Most: 7})
	if err != nil || len(tree) != 7 || len(problems) != 1 || problems[0] != "only the first 7 resources were read; 1 more are known" {
		t.Errorf("%d resources, %q, %v", len(tree), problems, err)
	}
}

func TestWhatIdentifiesIsReplacedEverywhere(t *testing.T) {
	tree := Tree{
		"/redfish/v1/Systems/CZ1234ABCD": []byte(`{"SerialNumber":"CZ1234ABCD","UUID":"38947555-7742-3448-3784-823347823834","Model":"R750",
			"HostName":"db1","Mac":"B0:7B:25:00:11:22","Address":"10.2.3.4","Mask":"255.255.255.0","Password":"hunter22","PartNumber":"N/A","AssetTag":"N/A",
			"Self":{"@odata.id":"/redfish/v1/Systems/CZ1234ABCD"}}`),
		"/redfish/v1/Chassis/1": []byte(`{"Name":"chassis of CZ1234ABCD at 10.2.3.4"}`),
	}
	got, err := tree.Redact([]byte("salt"))
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for uri, body := range got {
		all.WriteString(uri)
		all.Write(body)
	}
	for _, gone := range []string{"CZ1234ABCD", "38947555", "db1", "00:11:22", "10.2.3.4", "hunter22"} {
		if strings.Contains(all.String(), gone) {
			t.Errorf("%s is still there:\n%s", gone, all.String())
		}
	}
	for _, stays := range []string{"R750", "B0:7B:25:", "255.255.255.0", `"AssetTag": "N/A"`} {
		if !strings.Contains(all.String(), stays) {
			t.Errorf("%s is gone:\n%s", stays, all.String())
		}
	}
	var system, chassis map[string]any
	for uri, body := range got {
		if strings.Contains(uri, "Systems") {
			if err := json.Unmarshal(body, &system); err != nil {
				t.Fatal(err)
			}
			if want := map[string]any{"@odata.id": uri}; !cmp.Equal(system["Self"], any(want)) || !strings.HasSuffix(uri, system["SerialNumber"].(string)) {
				t.Errorf("%s does not name itself: %v, %v", uri, system["Self"], system["SerialNumber"])
			}
		} else if err := json.Unmarshal(body, &chassis); err != nil {
			t.Fatal(err)
		}
	}
	if want := "chassis of " + system["SerialNumber"].(string) + " at " + system["Address"].(string); chassis["Name"] != want {
		t.Errorf("got %q, want %q", chassis["Name"], want)
	}
}

// The real trees of real BMCs: a capture of each is one that the emulator reads, and nothing of its identity is left.
func TestARealTreeIsCapturedWithoutItsIdentity(t *testing.T) {
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
			original := unpack(t, file)
			crawled, _, err := Crawl(t.Context(), original.get, Options{})
			if err != nil {
				t.Fatal(err)
			}
			redacted, err := crawled.Redact([]byte("salt"))
			if err != nil {
				t.Fatal(err)
			}
			target := filepath.Join(t.TempDir(), "captured.tar.gz")
			out, err := os.Create(target)
			if err != nil {
				t.Fatal(err)
			}
			if err := redacted.Pack(out, "captured"); err != nil {
				t.Fatal(err)
			}
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := emulator.ReadTree(target); err != nil {
				t.Error(err)
			}
			r := &redactor{known: map[string]string{}}
			for _, body := range crawled {
				var document any
				if err := json.Unmarshal(body, &document); err != nil {
					t.Fatal(err)
				}
				r.learn("", document)
			}
			for value := range r.known {
				if !tells(value) {
					continue
				}
				for uri, body := range redacted {
					if bytes.Contains(body, []byte(value)) || strings.Contains(uri, value) {
						t.Errorf("%s still holds %q", uri, value)
						break
					}
				}
			}
			t.Logf("%d resources of %d, %d values replaced", len(redacted), len(original), len(r.known))
		})
	}
}

func FuzzRedact(f *testing.F) {
	f.Add([]byte(`{"SerialNumber":"A1","Members":[{"@odata.id":"/redfish/v1"}]}`))
	f.Fuzz(func(_ *testing.T, body []byte) {
		_, _ = Tree{"/redfish/v1": body}.Redact([]byte("s")) // it must not panic
		_, _, _ = Crawl(context.Background(), bmc{"/redfish/v1": string(body)}.get, Options{Most: 3})
	})
}

// unpack reads a captured tree.
func unpack(t *testing.T, file string) bmc {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	plain, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	found := bmc{}
	archive := tar.NewReader(plain)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		_, uri, inside := strings.Cut(header.Name, "/redfish/v1")
		if header.Typeflag != tar.TypeReg || !inside || !strings.HasSuffix(uri, "/index.json") {
			continue
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		found["/redfish/v1"+strings.TrimSuffix(uri, "/index.json")] = string(text)
	}
}
