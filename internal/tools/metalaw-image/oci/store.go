// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// WriteLayout writes an index as an OCI image layout into a folder, in place of the layout that was there. A folder with
// anything else is left alone. The tag may be empty.
func WriteLayout(folder string, index v1.ImageIndex, tag string) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("writing an OCI layout: %w", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "oci-layout")); err != nil && len(entries) > 0 {
		return fmt.Errorf("writing an OCI layout: %s is not empty and no OCI layout; remove it or choose another folder", folder)
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil { //nolint:gosec // images are no secrets
		return fmt.Errorf("writing an OCI layout: %w", err)
	}
	unfinished, err := os.MkdirTemp(filepath.Dir(folder), ".layout-")
	if err != nil {
		return fmt.Errorf("writing an OCI layout: %w", err)
	}
	defer os.RemoveAll(unfinished)                      //nolint:errcheck // it is gone after a success
	if err := os.Chmod(unfinished, 0o755); err != nil { //nolint:gosec // images are no secrets
		return fmt.Errorf("writing an OCI layout: %w", err)
	}
	target, err := layout.Write(unfinished, empty.Index)
	if err != nil {
		return fmt.Errorf("writing an OCI layout: %w", err)
	}
	var options []layout.Option
	if tag != "" {
		options = append(options, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag}))
	}
	if err := target.AppendIndex(index, options...); err != nil {
		return fmt.Errorf("writing an OCI layout: %w", err)
	}
	if err := readable(unfinished); err != nil {
		return fmt.Errorf("writing an OCI layout: %w", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("writing an OCI layout: %w", err)
	}
	if err := os.Rename(unfinished, folder); err != nil {
		return fmt.Errorf("writing an OCI layout: %w", err)
	}
	return nil
}

// readable lets everyone read the files below a folder: a layout is made to be copied and served.
func readable(folder string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return os.Chmod(path, 0o644) //nolint:gosec // images are no secrets
	})
}

// ReadLayout returns the index that WriteLayout wrote.
func ReadLayout(folder string) (v1.ImageIndex, error) {
	top, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, fmt.Errorf("reading the OCI layout %s: %w", folder, err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading the OCI layout %s: %w", folder, err)
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("reading the OCI layout %s: it has %d entries, want one; write it again", folder, len(manifest.Manifests))
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		return nil, fmt.Errorf("reading the OCI layout %s: %w", folder, err)
	}
	return index, nil
}

// Push writes an index to a registry under a repository and a tag, with the credentials of the Docker configuration of
// the user. It returns the name by digest.
func Push(ctx context.Context, repository, tag string, index v1.ImageIndex) (string, error) {
	target, err := name.ParseReference(repository + ":" + tag)
	if err != nil {
		return "", fmt.Errorf("pushing an image: %w; write registry/prefix", err)
	}
	digest, err := index.Digest()
	if err != nil {
		return "", fmt.Errorf("pushing %s: %w", target, err)
	}
	if err := remote.WriteIndex(target, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", fmt.Errorf("pushing %s: %w; check the name, and log in with a program that writes the Docker configuration", target, err)
	}
	return target.Context().Name() + "@" + digest.String(), nil
}
