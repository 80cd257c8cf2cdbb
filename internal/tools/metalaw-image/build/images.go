// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/metalaw/metalaw/internal/tools/metalaw-image/oci"
)

// ImageOptions say how the container images are made.
type ImageOptions struct {
	// Out takes an OCI layout for each image.
	Out string
	// Probe is the OCI layout of the boot artefact, which becomes one of the images.
	Probe string
	// Arches are the architectures of the container images.
	Arches []string
	// Certificates is the PEM file of the authorities that the programs trust.
	Certificates string
	// Push is a registry with a prefix, and empty for no push. Version is the tag.
	Push, Version string
	// Names takes a line for each image: its name by digest.
	Names io.Writer
}

// programs are the container images by name.
var programs = map[string]struct {
	folder string
	user   int
}{
	"manager":    {"cmd/metalaw", oci.Nonroot},
	"emulator":   {"test/redfish-emulator", oci.Nonroot},
	"metalprobe": {agentFolder, 0}, // it opens disks
}

const agentFolder = "cmd/metalprobe"

// Images writes the container images and the boot artefact as OCI layouts, and pushes them if it is asked to.
func Images(ctx context.Context, options ImageOptions) error {
	certificates, err := os.ReadFile(options.Certificates)
	if err != nil {
		return fmt.Errorf("reading the certificates: %w; install the package ca-certificates", err)
	}
	work, err := os.MkdirTemp("", "metalaw-images-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // a folder of ours
	for _, name := range []string{"manager", "metalprobe", "emulator"} {
		byArch := map[string]v1.Image{}
		for _, arch := range options.Arches {
			binary, err := goBuild(ctx, work, arch, options.Version, programs[name].folder)
			if err != nil {
				return err
			}
			byArch[arch], err = oci.ProgramImage(oci.Program{Arch: arch, Name: path.Base(programs[name].folder), Binary: binary,
				Certificates: certificates, User: programs[name].user, Version: options.Version})
			if err != nil {
				return err
			}
		}
		if err := options.store(ctx, name, oci.Index(byArch)); err != nil {
			return err
		}
	}
	probe, err := oci.ReadLayout(options.Probe)
	if err != nil {
		return fmt.Errorf("%w; build the boot artefact first", err)
	}
	return options.store(ctx, "probe", probe)
}

// store writes an image, pushes it if it is asked to, and prints its name.
func (o ImageOptions) store(ctx context.Context, name string, index v1.ImageIndex) error {
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	folder := filepath.Join(o.Out, name)
	if err := oci.WriteLayout(folder, index, o.Version); err != nil {
		return err
	}
	full := folder + "@" + digest.String()
	if o.Push != "" {
		if full, err = oci.Push(ctx, strings.TrimSuffix(o.Push, "/")+"/"+name, o.Version, index); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(o.Names, full)
	return err
}

// goBuild builds the program of a folder as a static binary, and returns it. The same sources give the same bytes.
func goBuild(ctx context.Context, work, arch, version, folder string) ([]byte, error) {
	binary := filepath.Join(work, path.Base(folder)+"-"+arch)
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		"-s -w -buildid= -X main.version="+version, "-o", binary, "./"+folder)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if _, err := output(command); err != nil {
		return nil, fmt.Errorf("building %s for %s: %w", folder, arch, err)
	}
	return os.ReadFile(binary)
}

// addFolder adds names and contents of all files of a folder, in order.
func addFolder(add func([]byte), folder fs.FS) error {
	return fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		add([]byte(name))
		add(content)
		return err
	})
}
