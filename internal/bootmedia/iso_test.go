// SPDX-License-Identifier: Apache-2.0

package bootmedia

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

// someBytes returns bytes that differ at each place and are the same in each run.
func someBytes(n int) []byte {
	b := make([]byte, 0, n+32)
	sum := sha256.Sum256(nil)
	for len(b) < n {
		sum = sha256.Sum256(sum[:])
		b = append(b, sum[:]...)
	}
	return b[:n]
}

func testISO(t *testing.T, uki []byte) *ISO {
	t.Helper()
	iso, err := NewISO(ISOOptions{
		VolumeID: "config-2",
		UKI:      bytes.NewReader(uki),
		UKISize:  int64(len(uki)),
		Arch:     "amd64",
		Files: map[string][]byte{
			"metalprobe/config.json":        []byte(`{"purpose":"discovery"}`),
			"openstack/latest/user_data":    []byte("#cloud-config\n"),
			"openstack/latest/user-data":    []byte("another with the same plain name\n"),
			"openstack/latest/network.json": someBytes(5000),
			"a.file.with.dots":              nil,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return iso
}

func content(t *testing.T, image *Image) []byte {
	t.Helper()
	b, err := io.ReadAll(image.Reader())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAnISOOfTheSameInputsHasTheSameBytes(t *testing.T) {
	uki := someBytes(100_000)
	first, second := content(t, testISO(t, uki).Image), content(t, testISO(t, uki).Image)
	if !bytes.Equal(first, second) {
		t.Error("two images of the same inputs differ")
	}
	const golden = "de17fc03a9b154a2497a0ce46213add2ce9716e33bd16f2bb4b515afa3a0ad8c"
	if got := fmt.Sprintf("%x", sha256.Sum256(first)); got != golden {
		t.Errorf("the bytes changed: sha256 %s, want %s", got, golden)
	}
}

func TestAnISOCanBeReadInAnyPieces(t *testing.T) {
	iso := testISO(t, someBytes(100_000))
	all := content(t, iso.Image)
	if err := iotest.TestReader(iso.Reader(), all); err != nil {
		t.Error(err)
	}
	for _, size := range []int{1, 511, 2048, 70_001} {
		piece := make([]byte, size)
		for off := int64(0); off < iso.Size(); off += max(int64(size), 997) {
			n, err := iso.ReadAt(piece, off)
			if err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			if !bytes.Equal(piece[:n], all[off:off+int64(n)]) || n < size && off+int64(n) != iso.Size() {
				t.Fatalf("%d bytes at %d differ from the whole", size, off)
			}
		}
	}
}

func TestAUKIThatWasCutIsAnError(t *testing.T) {
	iso, err := NewISO(ISOOptions{UKI: bytes.NewReader(someBytes(1000)), UKISize: 2000, Arch: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(iso.Reader()); err == nil || !strings.Contains(err.Error(), "a part of 2000 bytes ended at 1000") {
		t.Errorf("reading gives %v", err)
	}
}

func TestWhatDoesNotGoOntoAnISO(t *testing.T) {
	good := ISOOptions{UKI: bytes.NewReader([]byte("x")), UKISize: 1, Arch: "amd64"}
	for name, c := range map[string]struct {
		change func(*ISOOptions)
		want   string
	}{
		"another architecture":    {func(o *ISOOptions) { o.Arch = "s390x" }, `architecture "s390x"`},
		"no UKI":                  {func(o *ISOOptions) { o.UKI = nil }, "there is no UKI"},
		"an empty UKI":            {func(o *ISOOptions) { o.UKISize = 0 }, "a boot file of 0 bytes does not fit"},
		"a UKI of 3 GB":           {func(o *ISOOptions) { o.UKISize = 3 << 30 }, "does not fit"},
		"a long volume ID":        {func(o *ISOOptions) { o.VolumeID = strings.Repeat("x", 33) }, "volume ID"},
		"a path that climbs":      {func(o *ISOOptions) { o.Files = map[string][]byte{"../x": nil} }, "leading slash"},
		"a path from the root":    {func(o *ISOOptions) { o.Files = map[string][]byte{"/x": nil} }, "leading slash"},
		"too deep a path":         {func(o *ISOOptions) { o.Files = map[string][]byte{"1/2/3/4/5/6/7/8/x": nil} }, "at most 7 folders"},
		"a name that is too long": {func(o *ISOOptions) { o.Files = map[string][]byte{strings.Repeat("x", 129): nil} }, "128 printable"},
		"a name with an umlaut":   {func(o *ISOOptions) { o.Files = map[string][]byte{"ü": nil} }, "printable ASCII"},
		"a file that is a folder": {func(o *ISOOptions) { o.Files = map[string][]byte{"x": nil, "x/y": nil} }, "a file and a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			options := good
			c.change(&options)
			if _, err := NewISO(options); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestPlainNames(t *testing.T) {
	for name, want := range map[string]string{
		"config.json":                        "CONFIG.JSON;1",
		"user_data":                          "USER_DATA.;1",
		"a.b.c":                              "A_B.C;1",
		".hidden":                            "_HIDDEN.;1",
		strings.Repeat("long", 10) + ".json": "LONGLONGLONGLONGLONGLONGL.JSON;1",
	} {
		if got := plainName(name, false, 0); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
}

func FuzzNewISO(f *testing.F) {
	f.Add("metalprobe/config.json", []byte("{}"))
	f.Add("a/b/c", []byte(nil))
	f.Fuzz(func(_ *testing.T, path string, content []byte) {
		iso, err := NewISO(ISOOptions{UKI: bytes.NewReader(content), UKISize: int64(len(content)), Arch: "arm64",
			Files: map[string][]byte{path: content, "other": content}})
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, iso.Reader()); err != nil {
			panic(err)
		}
	})
}

// A program of Debian must read what we write. Where it is missing, the test is skipped.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func file(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestXorrisoReadsTheISO(t *testing.T) {
	path := file(t, content(t, testISO(t, someBytes(100_000)).Image))
	out := run(t, "xorriso", "-no_rc", "-indev", path, "-report_el_torito", "plain", "-find", "/", "-exec", "lsdl")
	for _, want := range []string{
		"Volume id    : 'config-2'",
		"UEFI",
		"/metalprobe/config.json",
		"/openstack/latest/user_data",
		"/openstack/latest/user-data",
		"/a.file.with.dots",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	target := filepath.Join(t.TempDir(), "out")
	run(t, "xorriso", "-no_rc", "-osirrox", "on", "-indev", path, "-extract", "/openstack/latest/network.json", target)
	if got, err := os.ReadFile(target); err != nil || !bytes.Equal(got, someBytes(5000)) {
		t.Errorf("the file read back differs (%v)", err)
	}
}

func TestFsckAndMtoolsReadTheESP(t *testing.T) {
	for _, size := range []int{1, 100_000, 40 << 20} {
		t.Run(fmt.Sprintf("%d bytes", size), func(t *testing.T) {
			esp, err := NewESP("amd64", bytes.NewReader(someBytes(size)), int64(size))
			if err != nil {
				t.Fatal(err)
			}
			path := file(t, content(t, esp))
			run(t, "fsck.fat", "-n", "-v", path)
			target := filepath.Join(t.TempDir(), "out")
			run(t, "mcopy", "-i", path, "::/EFI/BOOT/BOOTX64.EFI", target)
			if got, err := os.ReadFile(target); err != nil || !bytes.Equal(got, someBytes(size)) {
				t.Errorf("the file read back differs (%v)", err)
			}
		})
	}
}
