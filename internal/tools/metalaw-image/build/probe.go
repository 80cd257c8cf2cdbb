// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/metalaw/metalaw/internal/bootmedia"
	"github.com/metalaw/metalaw/internal/tools/metalaw-image/oci"
)

// ProbeOptions say how the boot images of the agent are made.
type ProbeOptions struct {
	// Out takes a folder for each image, and the boot artefact in oci.
	Out string
	// Images are names of Kinds.
	Images []string
	// Lock is the path of the lock file.
	Lock    string
	Archive *Archive
	// SignKey and SignCert sign the UKIs; both are empty for none.
	SignKey, SignCert string
	// CA is a PEM file that the agent trusts, and Firmware a folder for /lib/firmware; empty for none.
	CA, Firmware string
	// Cmdline is added to the command line of the UKIs.
	Cmdline string
	// Version is the agent's.
	Version string
	Log     io.Writer
}

// record is what a build leaves beside its files, so that the next one knows whether there is anything to do.
type record struct {
	Inputs  string `json:"inputs"`
	Kernel  string `json:"kernel"`
	Release string `json:"release"`
	Modules int    `json:"modules"`
	Signed  bool   `json:"signed"`
	// Files are the written files by name, with their sha256.
	Files map[string]string `json:"files"`
	// Firmware names files that drivers of the image may ask for and that are not in it.
	Firmware []string `json:"firmwareNotIncluded"`
}

const recordName = "image.json"

// The names of the written files.
const (
	kernelFile    = "vmlinuz"
	initramfsFile = "initramfs.zst"
	ukiFile       = "probe.efi"
	isoFile       = "probe.iso"
)

// Probe builds the boot images of the agent, and the boot artefact of those that are for machines.
func Probe(ctx context.Context, options ProbeOptions) error {
	if (options.SignKey == "") != (options.SignCert == "") {
		return fmt.Errorf("signing needs both SIGN_KEY and SIGN_CERT")
	}
	lock, err := ReadLock(options.Lock)
	if err != nil {
		return err
	}
	byArch := map[string]v1.Image{}
	for _, name := range options.Images {
		kind, known := kinds[name]
		locked, there := lock.Images[name]
		if !known || !there {
			return fmt.Errorf("image %q is not known or not in the lock file; want some of %v", name, Kinds())
		}
		began := time.Now()
		made, err := options.image(ctx, name, kind, locked)
		if err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
		options.report(name, made, time.Since(began))
		if kind.test {
			continue
		}
		if byArch[kind.arch], err = bootImage(filepath.Join(options.Out, name), kind.arch); err != nil {
			return err
		}
	}
	if len(byArch) == 0 {
		return nil
	}
	return oci.WriteLayout(filepath.Join(options.Out, "oci"), oci.Index(byArch), options.Version)
}

// image builds one image, unless it is there with the same inputs.
func (o ProbeOptions) image(ctx context.Context, name string, kind kind, locked LockedImage) (*record, error) {
	out := filepath.Join(o.Out, name)
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // images are no secrets
		return nil, err
	}
	work, err := os.MkdirTemp(o.Out, ".work-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work) //nolint:errcheck // a folder of ours

	parts := Parts{Patterns: kind.modules, Required: kind.required, Cmdline: kind.console + " loglevel=4"}
	if o.Cmdline != "" {
		parts.Cmdline += " " + o.Cmdline
	}
	if err := o.ourParts(ctx, kind, work, &parts); err != nil {
		return nil, err
	}
	inputs, err := o.inputs(locked, parts)
	if err != nil {
		return nil, err
	}
	if old, err := readRecord(out); err == nil && old.Inputs == inputs && old.complete(out) {
		return old, nil
	}
	if err := o.debianParts(ctx, locked, work, &parts); err != nil {
		return nil, err
	}
	made, err := Assemble(parts)
	if err != nil {
		return nil, err
	}
	if o.SignKey != "" {
		if made.UKI, err = o.sign(ctx, work, made.UKI); err != nil {
			return nil, err
		}
	}
	files, err := write(out, kind.arch, made)
	if err != nil {
		return nil, err
	}
	next := &record{Inputs: inputs, Kernel: locked.Kernel.Version, Release: parts.Release, Modules: made.Modules,
		Signed: o.SignKey != "", Files: files, Firmware: made.Firmware}
	text, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return nil, err
	}
	return next, os.WriteFile(filepath.Join(out, recordName), append(text, '\n'), 0o644) //nolint:gosec // images are no secrets
}

// ourParts builds the agent and reads the files that the operator gave.
func (o ProbeOptions) ourParts(ctx context.Context, kind kind, work string, parts *Parts) error {
	var err error
	if parts.Agent, err = goBuild(ctx, work, kind.arch, o.Version, agentFolder); err != nil {
		return err
	}
	if o.CA != "" {
		if parts.CA, err = os.ReadFile(o.CA); err != nil {
			return fmt.Errorf("reading the CA: %w", err)
		}
		if !bytes.Contains(parts.CA, []byte("-----BEGIN CERTIFICATE-----")) {
			return fmt.Errorf("reading the CA: there is no certificate in %s; give a PEM file", o.CA)
		}
	}
	if o.Firmware != "" {
		parts.Firmware = os.DirFS(o.Firmware)
	}
	parts.OSRelease = fmt.Sprintf("ID=metalprobe\nNAME=metalprobe\nPRETTY_NAME=\"metalaw agent %s\"\nVERSION_ID=%s\n", o.Version, o.Version)
	return nil
}

// inputs returns a digest over all that an image is made of: this program, the packages and the files that were given.
func (o ProbeOptions) inputs(locked LockedImage, parts Parts) (string, error) {
	sum := sha256.New()
	add := func(text []byte) { fmt.Fprintf(sum, "%d\n%s\n", len(text), text) } //nolint:errcheck // a hash takes all
	packages, err := json.Marshal(locked)
	if err != nil {
		return "", err
	}
	for _, text := range [][]byte{packages, parts.Agent, parts.CA, []byte(parts.Cmdline), []byte(parts.OSRelease)} {
		add(text)
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	for _, path := range []string{self, o.SignKey, o.SignCert} {
		if path == "" {
			add(nil)
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		add(content)
	}
	if parts.Firmware != nil {
		if err := addFolder(add, parts.Firmware); err != nil {
			return "", fmt.Errorf("reading firmware: %w", err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// debianParts fetches and unpacks the packages of an image.
func (o ProbeOptions) debianParts(ctx context.Context, locked LockedImage, work string, parts *Parts) error {
	depmod, err := ensure(ctx, o.Log, "depmod", "kmod")
	if err != nil {
		return err
	}
	for _, p := range []Package{locked.Kernel, locked.Stub} {
		path, err := o.Archive.Fetch(ctx, p)
		if err != nil {
			return err
		}
		if _, err := output(exec.CommandContext(ctx, "dpkg-deb", "-x", path, work)); err != nil {
			return fmt.Errorf("unpacking %s: %w", p.Name, err)
		}
	}
	kernel, err := one(work + "/boot/vmlinuz-*")
	if err != nil {
		return err
	}
	stub, err := one(work + "/usr/lib/systemd/boot/efi/linux*.efi.stub")
	if err != nil {
		return err
	}
	folder, err := one(work + "/lib/modules/*")
	if err != nil {
		if folder, err = one(work + "/usr/lib/modules/*"); err != nil {
			return err
		}
	}
	parts.Release = filepath.Base(folder)
	base := filepath.Dir(filepath.Dir(filepath.Dir(folder)))
	if _, err := output(exec.CommandContext(ctx, depmod, "-b", base, parts.Release)); err != nil {
		return fmt.Errorf("indexing kernel modules: %w", err)
	}
	if parts.Kernel, err = os.ReadFile(kernel); err != nil {
		return err
	}
	if parts.Stub, err = os.ReadFile(stub); err != nil {
		return err
	}
	parts.Modules = os.DirFS(folder)
	return nil
}

// one returns the only path that a pattern matches.
func one(pattern string) (string, error) {
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("unpacking a package: %d files match %s, want one; the package has another layout", len(found), pattern)
	}
	return found[0], nil
}

// sign signs a UKI for Secure Boot.
func (o ProbeOptions) sign(ctx context.Context, work string, uki []byte) ([]byte, error) {
	sbsign, err := ensure(ctx, o.Log, "sbsign", "sbsigntool")
	if err != nil {
		return nil, err
	}
	unsigned, signed := filepath.Join(work, "unsigned.efi"), filepath.Join(work, "signed.efi")
	if err := os.WriteFile(unsigned, uki, 0o600); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, sbsign, "--key", o.SignKey, "--cert", o.SignCert, "--output", signed, unsigned)
	if _, err := output(command); err != nil {
		return nil, fmt.Errorf("signing the UKI: %w", err)
	}
	return os.ReadFile(signed)
}

// write writes the files of an image and returns their digests.
func write(out, arch string, made *Artefacts) (map[string]string, error) {
	iso, err := bootmedia.NewISO(bootmedia.ISOOptions{UKI: bytes.NewReader(made.UKI), UKISize: int64(len(made.UKI)), Arch: arch})
	if err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for name, content := range map[string]io.Reader{
		kernelFile:    bytes.NewReader(made.Kernel),
		initramfsFile: bytes.NewReader(made.Initramfs),
		ukiFile:       bytes.NewReader(made.UKI),
		isoFile:       iso.Reader(),
	} {
		sum := sha256.New()
		if err := writeFile(filepath.Join(out, name), io.TeeReader(content, sum)); err != nil {
			return nil, err
		}
		digests[name] = hex.EncodeToString(sum.Sum(nil))
	}
	return digests, nil
}

// writeFile writes a file under another name first, so that it is whole or not there.
func writeFile(path string, content io.Reader) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // it is gone after a success
	_, err = io.Copy(file, content)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Chmod(file.Name(), 0o644) //nolint:gosec // images are no secrets
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.Rename(file.Name(), path)
}

func readRecord(folder string) (*record, error) {
	text, err := os.ReadFile(filepath.Join(folder, recordName))
	if err != nil {
		return nil, err
	}
	var r record
	return &r, json.Unmarshal(text, &r)
}

// complete tells whether the files are as they were written.
func (r *record) complete(folder string) bool {
	for name, want := range r.Files {
		if got, err := fileSum(filepath.Join(folder, name)); err != nil || got != want {
			return false
		}
	}
	return len(r.Files) > 0
}

// bootImage reads the files of an image into an OCI image.
func bootImage(folder, arch string) (v1.Image, error) {
	boot := oci.Boot{Arch: arch}
	for name, to := range map[string]*[]byte{kernelFile: &boot.Kernel, initramfsFile: &boot.Initramfs, ukiFile: &boot.UKI} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		*to = content
	}
	return oci.BootImage(boot)
}

// report prints what was made.
func (o ProbeOptions) report(name string, made *record, took time.Duration) {
	fmt.Fprintf(o.Log, "%s: Linux %s, %d modules, %.1f s\n", name, made.Release, made.Modules, took.Seconds()) //nolint:errcheck // a log
	files := make([]string, 0, len(made.Files))
	for file := range made.Files {
		files = append(files, file)
	}
	slices.Sort(files)
	for _, file := range files {
		path := filepath.Join(o.Out, name, file)
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(o.Log, "  %6.1f MB  %s\n", float64(info.Size())/1e6, path) //nolint:errcheck // a log
		}
	}
}
