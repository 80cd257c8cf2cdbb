// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFileSinkSaysWhichRecordsItHas(t *testing.T) {
	directory := t.TempDir()
	s, err := Open("file://" + directory)
	if err != nil {
		t.Fatal(err)
	}
	if has, err := s.Has(t.Context(), "u", 1); has || err != nil {
		t.Errorf("an empty sink has it: %v", err)
	}
	if err := s.Append(t.Context(), record("names u-000002", "h")); err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(directory, "sanitization-2025-12-31-other.jsonl")
	if err := os.WriteFile(torn, []byte(`{"metadata":{"name":"u-000003"},"cut`), 0o600); err != nil {
		t.Fatal(err)
	}
	for number, want := range map[int64]bool{1: true, 2: false, 3: false} {
		if has, err := s.Has(t.Context(), "u", number); has != want || err != nil {
			t.Errorf("%d: %t %v", number, has, err)
		}
	}
	if has, err := s.Has(t.Context(), "v", 1); has || err != nil {
		t.Errorf("another machine's: %t %v", has, err)
	}
	if err := os.Remove(torn); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(torn, 0o700); err != nil {
		t.Fatal(err)
	}
	if has, err := s.Has(t.Context(), "v", 1); has || err == nil {
		t.Error("what cannot be read counts as absent")
	}
}

func TestAnObjectStoreSaysWhichRecordsItHas(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	b := &bucket{objects: map[string]string{"/records/site-a/u/u-000001.json": "{}"}}
	server := httptest.NewServer(b)
	defer server.Close()
	s, err := Open("s3://records/site-a?region=eu&endpoint=" + server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for number, want := range map[int64]bool{1: true, 2: false} {
		if has, err := s.Has(t.Context(), "u", number); has != want || err != nil {
			t.Errorf("%d: %t %v", number, has, err)
		}
	}
	b.status = http.StatusForbidden
	if has, err := s.Has(t.Context(), "u", 1); has || !errors.Is(err, ErrNotAllowed) {
		t.Errorf("forbidden: %t %v", has, err)
	}
	b.status = http.StatusBadGateway
	if has, err := s.Has(t.Context(), "u", 2); has || err == nil || errors.Is(err, ErrNotAllowed) {
		t.Errorf("out of order: %t %v", has, err)
	}
}

func FuzzTheLinesOfAFileSink(f *testing.F) {
	f.Add(`{"metadata":{"name":"u-000001"}}`+"\n"+`{"cut`, "u-000001")
	f.Fuzz(func(t *testing.T, text, name string) {
		has, err := linesHave(strings.NewReader(text), name)
		if err != nil || has && !strings.Contains(text, name) {
			t.Errorf("%t %v", has, err)
		}
	})
}
