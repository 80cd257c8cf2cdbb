// SPDX-License-Identifier: Apache-2.0

// Package oci writes OCI images: container images of static programs, and artefacts that a boot operator serves. It needs
// neither a container runtime nor a base image. The same inputs give the same digests.
package oci

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The media types by which a boot operator knows the layers of a boot artefact.
const (
	KernelMediaType    types.MediaType = "application/vnd.ironcore.image.kernel"
	InitramfsMediaType types.MediaType = "application/vnd.ironcore.image.initramfs"
	UKIMediaType       types.MediaType = "application/vnd.ironcore.image.uki"
)

// Nonroot is the user of a program that needs no rights.
const Nonroot = 65532

// fileTime is the time of each file in an image, the same as on boot media.
var fileTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// Boot is what a machine of an architecture boots from.
type Boot struct {
	Arch                   string
	Kernel, Initramfs, UKI []byte
}

// BootImage returns the artefact of one architecture.
func BootImage(boot Boot) (v1.Image, error) {
	var layers []mutate.Addendum
	for _, layer := range []struct {
		content []byte
		kind    types.MediaType
	}{
		{boot.Kernel, KernelMediaType},
		{boot.Initramfs, InitramfsMediaType},
		{boot.UKI, UKIMediaType},
	} {
		if len(layer.content) > 0 {
			layers = append(layers, mutate.Addendum{Layer: static.NewLayer(layer.content, layer.kind), MediaType: layer.kind})
		}
	}
	image, err := compose(boot.Arch, layers, v1.Config{})
	if err != nil {
		return nil, fmt.Errorf("composing the boot artefact for %s: %w", boot.Arch, err)
	}
	return image, nil
}

// Program is a static program with all that it needs in a container.
type Program struct {
	Arch string
	// Name is the program's, and its path below the root.
	Name   string
	Binary []byte
	// Certificates are the authorities that it trusts, in PEM.
	Certificates []byte
	// User runs it; zero is root.
	User int
	// Version goes into a label.
	Version string
}

// ProgramImage returns a container image of one architecture with a single layer.
func ProgramImage(program Program) (v1.Image, error) {
	content, err := rootFilesystem(program)
	if err != nil {
		return nil, fmt.Errorf("composing the image of %s: %w", program.Name, err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("composing the image of %s: %w", program.Name, err)
	}
	user := strconv.Itoa(program.User)
	image, err := compose(program.Arch, []mutate.Addendum{{Layer: layer, MediaType: types.OCILayer}}, v1.Config{
		User:       user + ":" + user,
		Entrypoint: []string{"/" + program.Name},
		WorkingDir: "/",
		Env:        []string{"PATH=/"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    program.Name,
			"org.opencontainers.image.version":  program.Version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	})
	if err != nil {
		return nil, fmt.Errorf("composing the image of %s for %s: %w", program.Name, program.Arch, err)
	}
	return image, nil
}

// rootFilesystem returns the layer of a program, as a tar archive with sorted names.
func rootFilesystem(program Program) ([]byte, error) {
	nonroot := strconv.Itoa(Nonroot)
	files := map[string]tar.Header{
		program.Name:                        {Mode: 0o755},
		"etc/passwd":                        {Mode: 0o644},
		"etc/group":                         {Mode: 0o644},
		"tmp":                               {Mode: 0o1777, Typeflag: tar.TypeDir},
		"etc/ssl/certs/ca-certificates.crt": {Mode: 0o644},
	}
	content := map[string][]byte{
		program.Name: program.Binary,
		"etc/passwd": []byte("root:x:0:0:root:/:/sbin/nologin\n" +
			"nonroot:x:" + nonroot + ":" + nonroot + ":nonroot:/:/sbin/nologin\n"),
		"etc/group":                         []byte("root:x:0:\nnonroot:x:" + nonroot + ":\n"),
		"etc/ssl/certs/ca-certificates.crt": program.Certificates,
	}
	for _, name := range slices.Collect(maps.Keys(files)) {
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			files[folder] = tar.Header{Mode: 0o755, Typeflag: tar.TypeDir}
		}
	}
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := files[name]
		header.Name, header.ModTime, header.Format = name, fileTime, tar.FormatUSTAR
		if header.Typeflag == tar.TypeDir {
			header.Name += "/"
		} else {
			header.Typeflag, header.Size = tar.TypeReg, int64(len(content[name]))
		}
		if err := archive.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(content[name]); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), archive.Close()
}

// compose makes an OCI image of layers.
func compose(arch string, layers []mutate.Addendum, config v1.Config) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err := mutate.ConfigFile(base, &v1.ConfigFile{
		Architecture: arch,
		OS:           "linux",
		Created:      v1.Time{Time: fileTime},
		Config:       config,
		RootFS:       v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(base, layers...)
}

// Index returns an index over the images of several architectures.
func Index(byArch map[string]v1.Image) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range slices.Sorted(maps.Keys(byArch)) {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        byArch[arch],
			Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return index
}
