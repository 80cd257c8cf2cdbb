// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Archive fetches packages of Debian, of any architecture, without a change to the packages of this machine. It asks the
// sources that apt has on this machine, and keeps lists and packages in a folder of its own.
type Archive struct {
	// Folder keeps what was fetched; it is the same for all clones of the repository.
	Folder string
	// Log takes a line for each fetch.
	Log io.Writer

	updated bool
}

// Fetch returns the path of a package whose bytes are those of the lock file.
func (a *Archive) Fetch(ctx context.Context, p Package) (string, error) {
	path := filepath.Join(a.Folder, "packages", fmt.Sprintf("%s_%s.deb", p.Name, p.SHA256))
	if sum, err := fileSum(path); err == nil && sum == p.SHA256 {
		return path, nil
	}
	fmt.Fprintf(a.Log, "fetching %s %s for %s\n", p.Name, p.Version, p.Architecture) //nolint:errcheck // a log
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {                   //nolint:gosec // public packages
		return "", fmt.Errorf("fetching a package: %w", err)
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), "fetch-")
	if err != nil {
		return "", fmt.Errorf("fetching a package: %w", err)
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a folder of ours
	if err := a.download(ctx, folder, fmt.Sprintf("%s:%s=%s", p.Name, p.Architecture, p.Version)); err != nil {
		return "", fmt.Errorf("fetching %s %s for %s: Debian drops old versions: %s (%w)", p.Name, p.Version, p.Architecture, renewal, err)
	}
	found, err := filepath.Glob(filepath.Join(folder, "*.deb"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("fetching %s: apt-get left %d packages (%w)", p.Name, len(found), err)
	}
	sum, err := fileSum(found[0])
	if err != nil {
		return "", fmt.Errorf("fetching %s: %w", p.Name, err)
	}
	if sum != p.SHA256 {
		return "", fmt.Errorf("fetching %s %s: its sha256 is %s, the lock file has %s; find out why before you %s",
			p.Name, p.Version, sum, p.SHA256, renewal)
	}
	return path, os.Rename(found[0], path)
}

// download asks with the lists of this machine first: they are there, and reading lists of our own takes half a minute.
func (a *Archive) download(ctx context.Context, folder, what string) error {
	native := exec.CommandContext(ctx, "apt-get", "-o", "APT::Sandbox::User=root", "download", what)
	native.Dir = folder
	if _, err := output(native); err == nil {
		return nil
	}
	if err := a.update(ctx); err != nil {
		return err
	}
	_, err := a.apt(ctx, folder, "apt-get", "download", what)
	return err
}

// Resolve returns the newest version of a package. Of a meta package it returns the first package that it depends on.
func (a *Archive) Resolve(ctx context.Context, name, arch string, meta bool) (Package, error) {
	if err := a.update(ctx); err != nil {
		return Package{}, err
	}
	out, err := a.apt(ctx, "", "apt-cache", "show", "--no-all-versions", name+":"+arch)
	if err != nil {
		return Package{}, fmt.Errorf("looking up %s for %s: %w", name, arch, err)
	}
	fields := controlFields(out)
	if meta {
		first, _, _ := strings.Cut(fields["Depends"], ",")
		first, _, _ = strings.Cut(strings.TrimSpace(first), " ")
		if !strings.HasPrefix(first, "linux-image-") {
			return Package{}, fmt.Errorf("looking up %s for %s: it depends on %q, want a kernel", name, arch, fields["Depends"])
		}
		return a.Resolve(ctx, first, arch, false)
	}
	return Package{Name: name, Version: fields["Version"], Architecture: arch, SHA256: fields["SHA256"]}, nil
}

// controlFields returns the fields of one paragraph in the format of Debian's control files, without folded lines.
func controlFields(text []byte) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) == "" {
			break
		}
		if key, value, found := strings.Cut(line, ":"); found && line[0] != ' ' {
			fields[key] = strings.TrimSpace(value)
		}
	}
	return fields
}

// update reads the lists of Debian once.
func (a *Archive) update(ctx context.Context) error {
	if a.updated {
		return nil
	}
	for _, folder := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(a.Folder, folder), 0o755); err != nil { //nolint:gosec // public packages
			return fmt.Errorf("preparing the lists of Debian: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(a.Folder, "state", "status"), nil, 0o644); err != nil { //nolint:gosec // public packages
		return fmt.Errorf("preparing the lists of Debian: %w", err)
	}
	fmt.Fprintln(a.Log, "reading the package lists of Debian") //nolint:errcheck // a log
	if _, err := a.apt(ctx, "", "apt-get", "update", "-qq"); err != nil {
		return fmt.Errorf("reading the package lists of Debian: %w; this needs a Debian machine and its network", err)
	}
	a.updated = true
	return nil
}

// apt runs a program of apt with a state of its own and both architectures.
func (a *Archive) apt(ctx context.Context, folder, program string, args ...string) ([]byte, error) {
	state, err := filepath.Abs(a.Folder)
	if err != nil {
		return nil, err
	}
	options := []string{
		"-o", "APT::Architecture=amd64",
		"-o", "APT::Architectures=amd64,arm64",
		"-o", "Dir::State=" + filepath.Join(state, "state"),
		"-o", "Dir::State::status=" + filepath.Join(state, "state", "status"),
		"-o", "Dir::Cache=" + filepath.Join(state, "cache"),
		"-o", "Acquire::Languages=none",
		"-o", "APT::Sandbox::User=root",
	}
	command := exec.CommandContext(ctx, program, append(options, args...)...)
	command.Dir = folder
	command.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	return output(command)
}

// output runs a command and returns what it prints. Its error holds the end of what it complained about.
func output(command *exec.Cmd) ([]byte, error) {
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		text := strings.TrimSpace(complaint.String())
		return nil, fmt.Errorf("%s: %w: %s", filepath.Base(command.Path), err, text[max(0, len(text)-500):])
	}
	return out, nil
}

// ensure finds a program, and installs the Debian package that has it where it is missing.
func ensure(ctx context.Context, log io.Writer, program, debian string) (string, error) {
	find := func() (string, error) {
		if path, err := exec.LookPath(program); err == nil {
			return path, nil
		}
		return exec.LookPath("/usr/sbin/" + program)
	}
	path, err := find()
	if err == nil || !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, os.ErrNotExist) {
		return path, err
	}
	if os.Geteuid() != 0 {
		return "", fmt.Errorf("program %s is missing: install the Debian package %s", program, debian)
	}
	fmt.Fprintf(log, "installing %s\n", debian) //nolint:errcheck // a log
	for _, args := range [][]string{{"update", "-qq"}, {"install", "-y", "-qq", "--no-install-recommends", debian}} {
		command := exec.CommandContext(ctx, "apt-get", args...)
		command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if _, err := output(command); err != nil {
			return "", fmt.Errorf("installing %s: %w", debian, err)
		}
	}
	return find()
}

// fileSum returns the sha256 of a file.
func fileSum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
