// SPDX-License-Identifier: Apache-2.0

// Package build makes the images of metalaw: what machines boot, of Debian's kernels, and container images. It calls the
// programs of Debian and Go; what it writes are the bytes that packages uki and bootmedia compose.
package build

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Lock names the Debian packages of each image, so that a later build has the same bytes.
type Lock struct {
	Images map[string]LockedImage `json:"images"`
}

// LockedImage are the packages of one image.
type LockedImage struct {
	Kernel Package `json:"kernel"`
	// Stub is the package with the EFI stub of systemd.
	Stub Package `json:"stub"`
}

// Package is one version of a Debian package.
type Package struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
	SHA256       string `json:"sha256"`
}

const lockHeader = `# SPDX-License-Identifier: Apache-2.0
#
# The Debian packages of which "make probe-image" is made. "make probe-image-lock" writes this file.
`

const renewal = `run "make probe-image-lock" and commit what it changes`

var (
	packageName  = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	versionText  = regexp.MustCompile(`^\d[A-Za-z0-9.+:~-]*$`)
	sha256Text   = regexp.MustCompile(`^[0-9a-f]{64}$`)
	architecture = regexp.MustCompile(`^(amd64|arm64|all)$`)
)

// ReadLock reads a lock file.
func ReadLock(path string) (Lock, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Lock{}, fmt.Errorf("reading the lock file: %w; %s", err, renewal)
	}
	lock, err := ParseLock(text)
	if err != nil {
		return Lock{}, fmt.Errorf("reading the lock file %s: %w; %s", path, err, renewal)
	}
	return lock, nil
}

// ParseLock reads the text of a lock file.
func ParseLock(text []byte) (Lock, error) {
	var lock Lock
	if err := yaml.UnmarshalStrict(text, &lock); err != nil {
		return Lock{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(lock.Images)) {
		if _, known := kinds[name]; !known {
			return Lock{}, fmt.Errorf("image %q is not known; want one of %s", name, strings.Join(Kinds(), ", "))
		}
		for _, p := range []Package{lock.Images[name].Kernel, lock.Images[name].Stub} {
			if !packageName.MatchString(p.Name) || !versionText.MatchString(p.Version) ||
				!architecture.MatchString(p.Architecture) || !sha256Text.MatchString(p.SHA256) {
				return Lock{}, fmt.Errorf("image %s: package %+v needs a name, a version, an architecture and a sha256", name, p)
			}
		}
	}
	return lock, nil
}

// RenewLock writes a lock file with the packages that Debian serves now.
func RenewLock(ctx context.Context, path string, archive *Archive) error {
	lock := Lock{Images: map[string]LockedImage{}}
	for _, name := range Kinds() {
		kind := kinds[name]
		kernel, err := archive.Resolve(ctx, kind.kernel, kind.arch, true)
		if err != nil {
			return err
		}
		stub, err := archive.Resolve(ctx, "systemd-boot-efi", kind.arch, false)
		if err != nil {
			return err
		}
		lock.Images[name] = LockedImage{Kernel: kernel, Stub: stub}
	}
	text, err := yaml.Marshal(lock)
	if err != nil {
		return fmt.Errorf("writing the lock file: %w", err)
	}
	if err := os.WriteFile(path, append([]byte(lockHeader), text...), 0o644); err != nil { //nolint:gosec // part of the repository
		return fmt.Errorf("writing the lock file: %w", err)
	}
	return nil
}
