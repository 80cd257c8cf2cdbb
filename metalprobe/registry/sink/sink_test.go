// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func TestTheURLOfASink(t *testing.T) {
	for text, c := range map[string]struct {
		want Place
		says string
	}{
		"file:///var/records/": {want: Place{Directory: "/var/records"}},
		"s3://b":               {want: Place{Bucket: "b", Endpoint: "s3.amazonaws.com"}},
		"s3://b/a/c/?endpoint=https://minio:9000&region=eu": {want: Place{Bucket: "b", Prefix: "a/c", Endpoint: "minio:9000", Region: "eu"}},
		"s3://b?endpoint=http://10.0.0.1":                   {want: Place{Bucket: "b", Endpoint: "10.0.0.1", Plaintext: true}},
		"":                                                  {says: "scheme"},
		"/var/records":                                      {says: "scheme"},
		"file://var/records":                                {says: "three slashes"},
		"file:records":                                      {says: "three slashes"},
		"file:///a?region=x":                                {says: "unknown parameter"},
		"s3:///prefix":                                      {says: "no bucket"},
		"s3://key:secret@b":                                 {says: "names a user"},
		"s3://b#f":                                          {says: "fragment"},
		"s3://b?endpoint=minio:9000":                        {says: "endpoint"},
		"s3://b?endpoint=https://m/path":                    {says: "endpoint"},
		"s3://b?acl=x":                                      {says: "unknown parameter"},
		"s3://b?%":                                          {says: "parameters"},
		"\x7f":                                              {says: "no URL"},
	} {
		got, err := Parse(text)
		if c.says == "" && (err != nil || got != c.want) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("s3://b/p?endpoint=https://h&region=r")
	f.Add("file:///a/../b")
	f.Fuzz(func(t *testing.T, text string) {
		place, err := Parse(text)
		if err == nil && (place.Directory == "") == (place.Bucket == "") {
			t.Errorf("%q: neither or both of a directory and a bucket: %+v", text, place)
		}
		if err == nil && place.Directory != "" && !filepath.IsAbs(place.Directory) {
			t.Errorf("%q: directory %q", text, place.Directory)
		}
	})
}

func record(reason, hash string) *policyv1alpha1.SanitizationRecord {
	return &policyv1alpha1.SanitizationRecord{ObjectMeta: metav1.ObjectMeta{Name: "u-000001"}, Spec: policyv1alpha1.SanitizationRecordSpec{
		Sequence: 1, Reason: reason, Hash: hash, Machine: policyv1alpha1.SanitizedMachine{SystemUUID: "u"},
		RecordedAt: metav1.NewTime(time.Date(2026, 1, 2, 23, 0, 0, 0, time.UTC)),
	}}
}

func TestARecordIsALineOfTheFileOfItsDay(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "new")
	s, err := Open("file://" + directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{"a<b", "second"} {
		if err := s.Append(t.Context(), record(reason, "h")); err != nil {
			t.Fatal(err)
		}
	}
	found, err := os.ReadDir(directory)
	if err != nil || len(found) != 1 || !strings.HasPrefix(found[0].Name(), "sanitization-2026-01-02-") {
		t.Fatalf("found %v %v", found, err)
	}
	name := filepath.Join(directory, found[0].Name())
	torn, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := torn.WriteString(`{"cut":`); err != nil {
		t.Fatal(err)
	}
	if err := torn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), record("after a crash", "h")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 4 || lines[2] != `{"cut":` || !strings.Contains(lines[0], `"a<b"`) {
		t.Fatalf("lines %q", lines)
	}
	var kept policyv1alpha1.SanitizationRecord
	if err := json.Unmarshal([]byte(lines[3]), &kept); err != nil || kept.Spec.Reason != "after a crash" || kept.Kind != "SanitizationRecord" {
		t.Errorf("kept %+v %v", kept, err)
	}
}

func TestADirectoryThatCannotBeWrittenIsSaidAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("file://" + file); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// bucket speaks as much of S3 as the sink uses.
type bucket struct {
	mu      sync.Mutex
	objects map[string]string
	status  int
	headers http.Header
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text, found := b.objects[r.URL.Path]
	switch {
	case b.status != 0:
		w.WriteHeader(b.status)
	case r.Method == http.MethodPut && found && r.Header.Get("If-None-Match") == "*":
		w.WriteHeader(http.StatusPreconditionFailed)
	case r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		text := string(body)
		if strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") { // a chunk that bears its own signature
			_, text, _ = strings.Cut(text, "\r\n")
			text, _, _ = strings.Cut(text, "\r\n")
		}
		b.objects[r.URL.Path], b.headers = text, r.Header.Clone()
		w.Header().Set("ETag", `"e"`)
	case found:
		w.Header().Set("ETag", `"e"`)
		w.Header().Set("Last-Modified", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat))
		_, _ = io.WriteString(w, text)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func TestARecordIsAnObjectThatIsNeverReplaced(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	b := &bucket{objects: map[string]string{}}
	server := httptest.NewServer(b)
	defer server.Close()
	s, err := Open("s3://records/site-a?region=eu&endpoint=" + server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), record("first", "h1")); err != nil {
		t.Fatal(err)
	}
	const key = "/records/site-a/u/u-000001.json"
	var kept policyv1alpha1.SanitizationRecord
	if err := json.Unmarshal([]byte(b.objects[key]), &kept); err != nil || kept.Spec.Reason != "first" {
		t.Fatalf("objects %q, %v", b.objects, err)
	}
	if got := b.headers.Get("Authorization"); !strings.Contains(got, "Credential=id/") {
		t.Errorf("authorization %q", got)
	}
	if err := s.Append(t.Context(), record("first", "h1")); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if err := s.Append(t.Context(), record("another", "h2")); err == nil || !strings.Contains(err.Error(), "another record with hash h1") {
		t.Errorf("another in its place: %v", err)
	}
	b.status = http.StatusForbidden
	if err := s.Append(t.Context(), record("refused", "h3")); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("refused: %v", err)
	}
}
