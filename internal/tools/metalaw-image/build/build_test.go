// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/metalaw/metalaw/internal/tools/metalaw-image/oci"
	"github.com/metalaw/metalaw/internal/tools/metalaw-image/uki"
)

const someSum = "a86e2049672f52354c4536a089203b6c82639420424d31c91cf31a181fd4d8f1"

// stub is an EFI program without sections that has room for some.
func stub() []byte {
	b := make([]byte, 1024)
	copy(b, "MZ")
	b[60] = 128
	copy(b[128:], "PE\x00\x00\x64\x86\x00\x00")
	b[128+20] = 240
	optional := b[152:]
	copy(optional, "\x0b\x02")
	optional[33] = 16 // 4096
	optional[37] = 2  // 512
	optional[61] = 4  // 1024
	return b
}

func someParts() Parts {
	return Parts{
		Release: "6.1.0-1-amd64",
		Kernel:  []byte("kernel"),
		Modules: fstest.MapFS{
			"modules.dep": {Data: []byte("kernel/drivers/nvme/host/nvme.ko: kernel/drivers/nvme/host/nvme-core.ko\n" +
				"kernel/drivers/nvme/host/nvme-core.ko:\nkernel/sound/soundcore.ko:\n")},
			"modules.alias":                         {Data: []byte("alias pci:v*d*sv*sd*bc01sc08i02* nvme\n")},
			"modules.softdep":                       {},
			"modules.builtin":                       {Data: []byte("kernel/drivers/acpi/button.ko\n")},
			"kernel/drivers/nvme/host/nvme.ko":      {Data: []byte("nvme")},
			"kernel/drivers/nvme/host/nvme-core.ko": {Data: []byte("nvme-core")},
			"kernel/sound/soundcore.ko":             {Data: []byte("soundcore")},
		},
		Patterns:  []string{"drivers/nvme/host/nvme"},
		Required:  []string{"nvme", "nvme-core", "button"},
		Agent:     []byte("agent"),
		CA:        []byte("PEM"),
		Firmware:  fstest.MapFS{"bnx2/a.fw": {Data: []byte("firmware")}},
		Stub:      stub(),
		Cmdline:   "console=ttyS0",
		OSRelease: "ID=metalprobe\n",
	}
}

func TestTheSamePartsGiveTheSameBytes(t *testing.T) {
	sums := map[string]bool{}
	for range 2 {
		made, err := Assemble(someParts())
		if err != nil {
			t.Fatal(err)
		}
		files, err := write(t.TempDir(), "amd64", made)
		if err != nil {
			t.Fatal(err)
		}
		sums[fmt.Sprint(files)] = true
	}
	if len(sums) != 1 {
		t.Errorf("two builds differ: %v", sums)
	}
}

func TestAnInitramfsHoldsTheAgentAndWhatItNeeds(t *testing.T) {
	made, err := Assemble(someParts())
	if err != nil {
		t.Fatal(err)
	}
	want, err := uki.Cpio(map[string]uki.File{
		"dev/console":            {Mode: os.ModeDevice | os.ModeCharDevice | 0o600, Major: 5, Minor: 1},
		"dev/null":               {Mode: os.ModeDevice | os.ModeCharDevice | 0o666, Major: 1, Minor: 3},
		"etc/metalprobe":         {Mode: os.ModeDir | 0o755},
		"etc/metalprobe/ca.pem":  {Mode: 0o644, Content: []byte("PEM")},
		"etc/os-release":         {Mode: 0o644, Content: []byte("ID=metalprobe\n")},
		"init":                   {Mode: 0o755, Content: []byte("agent")},
		"lib/firmware/bnx2/a.fw": {Mode: 0o644, Content: []byte("firmware")},
		"lib/modules/6.1.0-1-amd64/kernel/drivers/nvme/host/nvme-core.ko": {Mode: 0o644, Content: []byte("nvme-core")},
		"lib/modules/6.1.0-1-amd64/kernel/drivers/nvme/host/nvme.ko":      {Mode: 0o644, Content: []byte("nvme")},
		"lib/modules/6.1.0-1-amd64/modules.alias":                         {Mode: 0o644, Content: []byte("alias pci:v*d*sv*sd*bc01sc08i02* nvme\n")},
		"lib/modules/6.1.0-1-amd64/modules.builtin":                       {Mode: 0o644, Content: []byte("kernel/drivers/acpi/button.ko\n")},
		"lib/modules/6.1.0-1-amd64/modules.dep": {Mode: 0o644, Content: []byte("kernel/drivers/nvme/host/nvme.ko: " +
			"kernel/drivers/nvme/host/nvme-core.ko\nkernel/drivers/nvme/host/nvme-core.ko:\n")},
		"lib/modules/6.1.0-1-amd64/modules.softdep": {Mode: 0o644},
		"mnt":  {Mode: os.ModeDir | 0o755},
		"proc": {Mode: os.ModeDir | 0o755},
		"run":  {Mode: os.ModeDir | 0o755},
		"sys":  {Mode: os.ModeDir | 0o755},
		"tmp":  {Mode: os.ModeDir | os.ModeSticky | 0o777},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want, err = uki.Zstd(want); err != nil || !bytes.Equal(made.Initramfs, want) {
		t.Errorf("the initramfs holds other files (%v)", err)
	}
	if made.Modules != 2 {
		t.Errorf("%d modules, want 2", made.Modules)
	}
}

func TestAMissingDriverFailsTheBuild(t *testing.T) {
	parts := someParts()
	parts.Required = []string{"ahci"}
	if _, err := Assemble(parts); err == nil || !strings.Contains(err.Error(), "ahci is not among them") {
		t.Errorf("got %v", err)
	}
}

func TestThePatternsOfEachKindAreSound(t *testing.T) {
	for name, kind := range kinds {
		parts := someParts()
		parts.Patterns, parts.Required = kind.modules, []string{"nvme"}
		if _, err := Assemble(parts); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFilesAreKnownByTheirDigests(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "vmlinuz")
	if err := writeFile(path, strings.NewReader("kernel")); err != nil {
		t.Fatal(err)
	}
	made := record{Files: map[string]string{"vmlinuz": fmt.Sprintf("%x", sha256.Sum256([]byte("kernel")))}}
	if !made.complete(folder) {
		t.Error("the file is not known")
	}
	if err := os.WriteFile(path, []byte("kernal"), 0o600); err != nil {
		t.Fatal(err)
	}
	if made.complete(folder) {
		t.Error("a changed file is taken for the one that was written")
	}
	if (&record{}).complete(folder) {
		t.Error("a record without files is complete")
	}
}

func TestTheLockFileOfTheRepositoryHasEachKind(t *testing.T) {
	lock, err := ReadLock("../../../../config/image/lock.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, kind := range kinds {
		if got := lock.Images[name]; got.Kernel.Architecture != kind.arch || got.Stub.Architecture != kind.arch {
			t.Errorf("%s: %+v, want packages for %s", name, got, kind.arch)
		}
	}
}

func TestWhatIsNoLockFile(t *testing.T) {
	good := "images:\n  amd64:\n    kernel: {name: linux-image-6.1.0-1-amd64, version: 6.1.2-1, architecture: amd64, sha256: " + someSum + "}\n" +
		"    stub: {name: systemd-boot-efi, version: 252.39-1~deb12u2, architecture: amd64, sha256: " + someSum + "}\n"
	if _, err := ParseLock([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"another kind":              {"amd64:\n", "toaster:\n", `image "toaster" is not known`},
		"a name with an option":     {"name: linux-image", "name: --option linux", "needs a name"},
		"a version with a space":    {"6.1.2-1", "'6.1.2-1 x'", "needs a name"},
		"a short sha256":            {someSum, "a86e", "needs a name"},
		"an unknown architecture":   {"architecture: amd64", "architecture: s390x", "needs a name"},
		"a field that is not known": {"version:", "release:", `unknown field "release"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseLock([]byte(strings.Replace(good, c.from, c.to, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := ReadLock(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "make probe-image-lock") {
		t.Errorf("a missing file gives %v", err)
	}
}

func FuzzParseLock(f *testing.F) {
	f.Add([]byte("images:\n  amd64:\n    kernel: {name: linux, version: 6, architecture: amd64, sha256: " + someSum + "}\n"))
	f.Add([]byte("images: {}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		lock, err := ParseLock(text)
		if err != nil {
			return
		}
		for _, image := range lock.Images {
			if strings.HasPrefix(image.Kernel.Name, "-") || strings.ContainsAny(image.Kernel.Version, " /\n") {
				t.Errorf("%+v would reach apt", image.Kernel)
			}
		}
	})
}

// fakeApt puts programs of apt into the path that do what a script says.
func fakeApt(t *testing.T, script string) *Archive {
	t.Helper()
	folder := t.TempDir()
	for _, program := range []string{"apt-get", "apt-cache"} {
		if err := os.WriteFile(filepath.Join(folder, program), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	return &Archive{Folder: t.TempDir(), Log: io.Discard}
}

func TestAPackageIsFetchedOnceAndCompared(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	archive := fakeApt(t, "echo \"$@\" >>"+log+"\nprintf content >linux_1_amd64.deb\n")
	p := Package{Name: "linux", Version: "1", Architecture: "amd64", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte("content")))}
	for range 2 {
		path, err := archive.Fetch(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "content" {
			t.Errorf("got %q (%v)", got, err)
		}
	}
	if calls, err := os.ReadFile(log); err != nil || string(calls) != "-o APT::Sandbox::User=root download linux:amd64=1\n" {
		t.Errorf("apt-get was called with %q (%v)", calls, err)
	}
	p.SHA256 = someSum
	if _, err := archive.Fetch(t.Context(), p); err == nil || !strings.Contains(err.Error(), "the lock file has "+someSum) {
		t.Errorf("another sha256 gives %v", err)
	}
}

func TestAPackageThatIsNotServedAnyMoreNamesTheRemedy(t *testing.T) {
	archive := fakeApt(t, "case \"$*\" in *download*) echo \"E: Version '1' for 'linux' was not found\" >&2; exit 100;; esac\n")
	_, err := archive.Fetch(t.Context(), Package{Name: "linux", Version: "1", Architecture: "arm64", SHA256: someSum})
	if err == nil || !strings.Contains(err.Error(), "make probe-image-lock") || !strings.Contains(err.Error(), "was not found") {
		t.Errorf("got %v", err)
	}
}

func TestALockFileIsRenewedWithTheKernelsOfTheMetaPackages(t *testing.T) {
	archive := fakeApt(t, `case "$*" in
*"show --no-all-versions linux-image-cloud-amd64:amd64") echo "Depends: linux-image-6.1.0-9-cloud-amd64 (= 6.1.9-1)";;
*"show --no-all-versions linux-image-a"*) echo "Depends: linux-image-6.1.0-9-generic (= 6.1.9-1), other";;
*show*) echo "Version: 6.1.9-1"; echo "SHA256: `+someSum+`";;
esac
`)
	path := filepath.Join(t.TempDir(), "lock.yaml")
	if err := RenewLock(t.Context(), path, archive); err != nil {
		t.Fatal(err)
	}
	lock, err := ReadLock(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Package{Name: "linux-image-6.1.0-9-cloud-amd64", Version: "6.1.9-1", Architecture: "amd64", SHA256: someSum}
	if got := lock.Images["cloud"].Kernel; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := lock.Images["arm64"]; got.Kernel.Name != "linux-image-6.1.0-9-generic" || got.Stub.Architecture != "arm64" {
		t.Errorf("got %+v", got)
	}
}

func TestFieldsOfAControlFile(t *testing.T) {
	got := controlFields([]byte("Package: linux-image-amd64\nDepends: linux-image-6.1.0-56-amd64 (= 6.1.192-2)\n" +
		"Description: Linux\n more: text\n\nPackage: other\n"))
	if got["Depends"] != "linux-image-6.1.0-56-amd64 (= 6.1.192-2)" || got["Package"] != "linux-image-amd64" || len(got) != 3 {
		t.Errorf("got %q", got)
	}
}

func TestSigningNeedsKeyAndCertificate(t *testing.T) {
	if err := Probe(t.Context(), ProbeOptions{SignKey: "key"}); err == nil || !strings.Contains(err.Error(), "SIGN_CERT") {
		t.Errorf("got %v", err)
	}
}

func TestAnImageIsStoredPushedAndNamed(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	image, err := oci.BootImage(oci.Boot{Arch: "amd64", Kernel: []byte("kernel")})
	if err != nil {
		t.Fatal(err)
	}
	index := oci.Index(map[string]v1.Image{"amd64": image})
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(server.URL, "http://")
	out := t.TempDir()
	var names bytes.Buffer
	for _, push := range []string{"", host + "/lab/", host + "/lab"} {
		if err := (ImageOptions{Out: out, Push: push, Version: "v1", Names: &names}).store(t.Context(), "probe", index); err != nil {
			t.Fatal(err)
		}
	}
	pushed := host + "/lab/probe@" + digest.String()
	want := []string{filepath.Join(out, "probe") + "@" + digest.String(), pushed, pushed}
	if got := strings.Fields(names.String()); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
