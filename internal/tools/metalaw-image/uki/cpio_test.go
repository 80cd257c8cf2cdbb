// SPDX-License-Identifier: Apache-2.0

package uki

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
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

func someFiles() map[string]File {
	return map[string]File{
		"init":                  {Mode: 0o755, Content: []byte("#!/bin/sh\n")},
		"etc/metalprobe/ca.pem": {Mode: 0o444, Content: someBytes(1001)},
		"tmp":                   {Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		"dev/console":           {Mode: fs.ModeDevice | fs.ModeCharDevice | 0o600, Major: 5, Minor: 1},
		"lib64":                 {Mode: fs.ModeSymlink | 0o777, Content: []byte("lib")},
	}
}

func TestAnArchiveOfTheSameFilesHasTheSameBytes(t *testing.T) {
	archive, err := Cpio(someFiles())
	if err != nil {
		t.Fatal(err)
	}
	const golden = "c219e32c788a8975fc2cb52f8c6bf6dde732fd0c638b5207754090e4e65cf6b2"
	if got := fmt.Sprintf("%x", sha256.Sum256(archive)); got != golden {
		t.Errorf("the bytes changed: sha256 %s, want %s", got, golden)
	}
	if len(archive)%512 != 0 {
		t.Errorf("%d bytes are no multiple of 512", len(archive))
	}
}

func TestCpioReadsTheArchive(t *testing.T) {
	archive, err := Cpio(someFiles())
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("cpio")
	if err != nil {
		t.Skip("cpio is not installed")
	}
	list := exec.Command(program, "-itvn")
	list.Stdin = bytes.NewReader(archive)
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"drwxr-xr-x   2 0        0               0 Jan  1  2020 etc/metalprobe",
		"-r--r--r--   1 0        0            1001 Jan  1  2020 etc/metalprobe/ca.pem",
		"crw-------   1 0        0          5,   1 Jan  1  2020 dev/console",
		"drwxrwxrwt   2 0        0               0 Jan  1  2020 tmp",
		"lib64 -> lib",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestWhatDoesNotGoIntoAnArchive(t *testing.T) {
	for name, file := range map[string]File{
		"/init":  {},
		"../x":   {},
		".":      {},
		"a\x00b": {},
		"socket": {Mode: fs.ModeSocket},
	} {
		if _, err := Cpio(map[string]File{name: file}); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

func TestZstdIsReadBackAndAlwaysTheSame(t *testing.T) {
	content := bytes.Repeat(someBytes(10_000), 100)
	first, err := Zstd(content)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Zstd(content)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the second result differs (%v)", err)
	}
	reader, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if got, err := reader.DecodeAll(first, nil); err != nil || !bytes.Equal(got, content) {
		t.Errorf("it reads back otherwise (%v)", err)
	}
	if len(first) > len(content)/10 {
		t.Errorf("%d bytes became %d", len(content), len(first))
	}
}
