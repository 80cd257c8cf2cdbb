// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func bootIndex(t *testing.T) v1.ImageIndex {
	t.Helper()
	byArch := map[string]v1.Image{}
	for _, arch := range []string{"arm64", "amd64"} {
		image, err := BootImage(Boot{Arch: arch, Kernel: []byte("kernel " + arch), Initramfs: []byte("initramfs"), UKI: []byte("uki " + arch)})
		if err != nil {
			t.Fatal(err)
		}
		byArch[arch] = image
	}
	return Index(byArch)
}

func program(t *testing.T) v1.Image {
	t.Helper()
	image, err := ProgramImage(Program{Arch: "amd64", Name: "metalaw", Binary: []byte("\x7fELF"), Certificates: []byte("PEM"), User: Nonroot, Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestABootArtefactIsWhatABootOperatorReads(t *testing.T) {
	index := bootIndex(t)
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	got = append(got, string(manifest.MediaType))
	for _, entry := range manifest.Manifests {
		got = append(got, entry.Platform.String()+" "+string(entry.MediaType))
		image, err := index.Image(entry.Digest)
		if err != nil {
			t.Fatal(err)
		}
		m, err := image.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, "  "+string(m.Config.MediaType))
		for _, layer := range m.Layers {
			got = append(got, fmt.Sprintf("  %s %d", layer.MediaType, layer.Size))
		}
	}
	want := `application/vnd.oci.image.index.v1+json
linux/amd64 application/vnd.oci.image.manifest.v1+json
  application/vnd.oci.image.config.v1+json
  application/vnd.ironcore.image.kernel 12
  application/vnd.ironcore.image.initramfs 9
  application/vnd.ironcore.image.uki 9
linux/arm64 application/vnd.oci.image.manifest.v1+json
  application/vnd.oci.image.config.v1+json
  application/vnd.ironcore.image.kernel 12
  application/vnd.ironcore.image.initramfs 9
  application/vnd.ironcore.image.uki 9`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

func TestTheSameInputsHaveTheSameDigests(t *testing.T) {
	for name, c := range map[string]struct {
		digest func() (v1.Hash, error)
		want   string
	}{
		"boot artefact":   {func() (v1.Hash, error) { return bootIndex(t).Digest() }, "b1c4ba62220c336e616ed598899d611fb196590d6833ef3bf632cf738faa9c5a"},
		"container image": {func() (v1.Hash, error) { return program(t).Digest() }, "8ccc29b33c3f8b4de2b51b2265c6437ddecb35790b1727830cf504f4d658c5a3"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := c.digest(); err != nil || got.Hex != c.want {
				t.Errorf("got %s (%v), want %s", got.Hex, err, c.want)
			}
		})
	}
}

func TestAContainerImageHoldsAProgramThatIsNotRoot(t *testing.T) {
	image := program(t)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/metalaw"}) || config.OS != "linux" {
		t.Errorf("configuration %+v", config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers (%v)", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	archive := tar.NewReader(content)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %d %d", header.FileInfo().Mode(), header.Name, header.Uid, header.ModTime.Unix()))
	}
	want := []string{
		"drwxr-xr-x etc/ 0 1577836800",
		"-rw-r--r-- etc/group 0 1577836800",
		"-rw-r--r-- etc/passwd 0 1577836800",
		"drwxr-xr-x etc/ssl/ 0 1577836800",
		"drwxr-xr-x etc/ssl/certs/ 0 1577836800",
		"-rw-r--r-- etc/ssl/certs/ca-certificates.crt 0 1577836800",
		"-rwxr-xr-x metalaw 0 1577836800",
		"dtrwxrwxrwx tmp/ 0 1577836800",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestALayoutIsReplacedAndReadBack(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "images", "probe")
	index := Index(map[string]v1.Image{"amd64": program(t)})
	for _, next := range []v1.ImageIndex{index, bootIndex(t)} {
		if err := WriteLayout(folder, next, "v1"); err != nil {
			t.Fatal(err)
		}
		got, err := ReadLayout(folder)
		if err != nil {
			t.Fatal(err)
		}
		have, _ := got.Digest()
		if want, _ := next.Digest(); have != want {
			t.Errorf("read %s, wrote %s", have, want)
		}
	}
	blobs, err := os.ReadDir(filepath.Join(folder, "blobs", "sha256"))
	if err != nil || len(blobs) != 10 { // index, two manifests, two configurations, five layers
		t.Errorf("%d blobs, want none of the former layout (%v)", len(blobs), err)
	}
	others, err := os.ReadDir(filepath.Dir(folder))
	if err != nil || len(others) != 1 {
		t.Errorf("%d entries beside the layout (%v)", len(others), err)
	}
}

func TestTheLayoutOfAProgramIsSound(t *testing.T) {
	folder := t.TempDir()
	if err := WriteLayout(folder, Index(map[string]v1.Image{"amd64": program(t)}), ""); err != nil {
		t.Fatal(err)
	}
	index, err := ReadLayout(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
}

func TestAFolderThatIsNoLayoutIsLeftAlone(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "thesis.txt")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteLayout(folder, bootIndex(t), ""); err == nil || !strings.Contains(err.Error(), "choose another folder") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestAnIndexIsPushedAndNamedByDigest(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	index := bootIndex(t)
	got, err := Push(t.Context(), host+"/lab/probe", "v1", index)
	if err != nil {
		t.Fatal(err)
	}
	digest, _ := index.Digest()
	if want := host + "/lab/probe@" + digest.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	reference, err := name.ParseReference(got)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(reference, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "arm64"}))
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(content); err != nil || !bytes.Equal(b, []byte("kernel arm64")) {
		t.Errorf("the kernel reads back as %q (%v)", b, err)
	}
	if _, err := Push(t.Context(), host+"/UPPER", "v1", index); err == nil || !strings.Contains(err.Error(), "write registry/prefix") {
		t.Errorf("a bad name gives %v", err)
	}
}
