// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/metalaw/metalaw/internal/tools/metalaw-image/oci"
)

// pushed is a registry with a boot image for two architectures under the name boot:v1.
func pushed(t *testing.T, boots ...oci.Boot) (host string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	byArch := map[string]v1.Image{}
	for _, boot := range boots {
		image, err := oci.BootImage(boot)
		if err != nil {
			t.Fatal(err)
		}
		byArch[boot.Arch] = image
	}
	ref, err := name.ParseReference(host + "/boot:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, oci.Index(byArch)); err != nil {
		t.Fatal(err)
	}
	return host
}

func open(t *testing.T, options Options) *Store {
	t.Helper()
	options.Arch = "amd64"
	if options.Folder == "" {
		options.Folder = t.TempDir()
	}
	if options.Limit == 0 {
		options.Limit = 1 << 20
	}
	store, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func read(t *testing.T, store *Store, image Image, kind Kind) string {
	t.Helper()
	blob, err := store.Open(t.Context(), image, image.Layers[kind])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = blob.Close() }()
	content, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestAnImageOfTheArchitectureIsServedByItsLayers(t *testing.T) {
	host := pushed(t, oci.Boot{Arch: "amd64", Kernel: []byte("kernel"), Initramfs: []byte("initramfs"), UKI: []byte("uki")},
		oci.Boot{Arch: "arm64", UKI: []byte("another")})
	store := open(t, Options{Allowed: []string{host}})
	image, err := store.Resolve(t.Context(), host+"/boot:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Fetch(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	if got := read(t, store, image, Kernel) + " " + read(t, store, image, Initramfs) + " " + read(t, store, image, UKI); got != "kernel initramfs uki" {
		t.Errorf("read %q", got)
	}
	again, err := store.Resolve(t.Context(), image.Reference())
	if err != nil || again.Digest != image.Digest || !again.PXE() {
		t.Errorf("by digest %+v, %v", again, err)
	}
}

func TestAnImageThatCannotBeBootedIsRefusedWithARemedy(t *testing.T) {
	host := pushed(t, oci.Boot{Arch: "amd64", Kernel: []byte("a kernel alone")})
	for name, c := range map[string]struct {
		allowed, reference, says string
	}{
		"a registry that is not allowed": {"elsewhere.example", host + "/boot:v1", "add it to --allow-registries"},
		"a path that only begins alike":  {host + "/bo", host + "/boot:v1", "add it to --allow-registries"},
		"no such tag":                    {host, host + "/boot:v2", "check the name"},
		"no name of an image":            {host, "UPPER case", "write registry/path:tag"},
		"a kernel without an initramfs":  {host, host + "/boot:v1", "it is no boot image"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, Options{Allowed: []string{c.allowed}}).Resolve(t.Context(), c.reference)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %q", err, c.says)
			}
		})
	}
}

func TestTheCacheStaysWithinItsLimit(t *testing.T) {
	host := pushed(t, oci.Boot{Arch: "amd64", Kernel: bytes.Repeat([]byte("k"), 600), Initramfs: bytes.Repeat([]byte("i"), 300), UKI: bytes.Repeat([]byte("u"), 700)})
	folder := t.TempDir()
	store := open(t, Options{Folder: folder, Limit: 1000, Allowed: []string{host}})
	image, err := store.Resolve(t.Context(), host+"/boot:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Fetch(t.Context(), image); err == nil || !strings.Contains(err.Error(), "raise --cache-size") {
		t.Errorf("an image larger than the cache: %v", err)
	}
	held, err := store.Open(t.Context(), image, image.Layers[Kernel])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	read(t, store, image, UKI) // the kernel makes room, and stays readable for who has it open
	if content, err := io.ReadAll(held); err != nil || len(content) != 600 {
		t.Errorf("the open layer has %d bytes, %v", len(content), err)
	}
	if size := folderSize(t, folder); size > 1000 {
		t.Errorf("the cache holds %d bytes", size)
	}
	if got := read(t, store, image, Kernel); len(got) != 600 {
		t.Errorf("a layer that made room is not downloaded again: %d bytes", len(got))
	}
}

func folderSize(t *testing.T, folder string) (size int64) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return size
}

func TestLayersOfAnEarlierRunAreVerifiedAndUsed(t *testing.T) {
	host := pushed(t, oci.Boot{Arch: "amd64", UKI: []byte("uki")})
	folder := t.TempDir()
	first := open(t, Options{Folder: folder, Allowed: []string{host}})
	image, err := first.Resolve(t.Context(), host+"/boot:v1")
	if err != nil {
		t.Fatal(err)
	}
	read(t, first, image, UKI)
	file := filepath.Join(folder, "sha256-"+image.Layers[UKI].Digest.Hex)
	for name, content := range map[string]string{"whole": "uki", "damaged": "uky", "cut": "u"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "part-1"), []byte("unfinished"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := read(t, open(t, Options{Folder: folder, Allowed: []string{host}}), image, UKI); got != "uki" {
			t.Errorf("%s: read %q", name, got)
		}
		if _, err := os.Stat(filepath.Join(folder, "part-1")); err == nil {
			t.Errorf("%s: an unfinished download stays", name)
		}
	}
}

func TestContentOfAnotherDigestIsNotKept(t *testing.T) {
	c, err := openCache(t.TempDir(), 100)
	if err != nil {
		t.Fatal(err)
	}
	hash, _, err := v1.SHA256(strings.NewReader("wanted"))
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"other!", "wante", "wanted and more"} {
		if err := c.add(Layer{Digest: hash, Size: 6}, strings.NewReader(content)); err == nil {
			t.Errorf("%q was kept", content)
		}
	}
	if err := c.add(Layer{Digest: hash, Size: 6}, strings.NewReader("wanted")); err != nil {
		t.Error(err)
	}
}
