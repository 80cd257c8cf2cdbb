// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/metalaw/metalaw/metalprobe/kernel"
)

// The layouts are those of Linux 6.1: the disk of a namespace, that of native multipath with its paths, and a disk that is hidden
// because its format is not known.
func TestReadListsTheNamespacesThatAreShown(t *testing.T) {
	const controller = "sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0/"
	for _, test := range []struct{ name, disks, want string }{
		{"a disk", "nvme0n1", "[1]"},
		{"a disk that is hidden", "nvme0n1 hidden", "[]"},
		{"a disk, and one that is hidden", "nvme0n1, nvme0n2 hidden", "[1]"},
		{"a path with its disk", "nvme0c0n1 hidden, head nvme0n1", "[1]"},
		{"a path without a disk", "nvme0c0n1 hidden", "[]"},
		{"a path whose disk is hidden", "nvme0c0n1 hidden, head nvme0n1 hidden", "[]"},
		{"a disk of another controller", "head nvme1n1", "[]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := fstest.MapFS{
				"sys/class/nvme/nvme0":   {Data: []byte("../../devices/pci0000:00/0000:00:04.0/nvme/nvme0"), Mode: 0o777 | fs.ModeSymlink},
				controller + "transport": {Data: []byte("pcie\n")},
			}
			for _, word := range strings.Split(test.disks, ", ") {
				name, hidden := strings.CutSuffix(word, " hidden")
				name, head := strings.CutPrefix(name, "head ")
				place := controller + name
				if head {
					place = "sys/devices/virtual/nvme-subsystem/nvme-subsys0/" + name
				}
				files["sys/block/"+name] = &fstest.MapFile{Data: []byte("../" + strings.TrimPrefix(place, "sys/")), Mode: 0o777 | fs.ModeSymlink}
				files[place+"/hidden"] = &fstest.MapFile{Data: []byte(map[bool]string{true: "1", false: "0"}[hidden])}
			}
			facts, err := Read(kernel.Tree{Root: files}, nil, func(string) bool { return true })
			if err != nil || len(facts.Controllers) != 1 {
				t.Fatalf("%+v, %v", facts, err)
			}
			if got := fmt.Sprint(facts.Controllers[0].Shown); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
