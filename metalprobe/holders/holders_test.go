// SPDX-License-Identifier: Apache-2.0

package holders

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/metalaw/metalaw/metalprobe/kernel"
)

// stack is a tree from one line for each file: its path below sys/block, a colon and its content.
func stack(text string) kernel.Tree {
	files := fstest.MapFS{}
	for line := range strings.Lines(text) {
		if name, content, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			prefix := "sys/block/"
			if strings.HasPrefix(name, "proc/") {
				prefix = ""
			}
			files[prefix+name] = &fstest.MapFile{Data: []byte(strings.TrimSpace(content) + "\n")}
		}
	}
	return kernel.Tree{Root: files}
}

const (
	array = `
sda/holders/md0:
sdb/holders/md0:
md0/md/level: raid1
md0/md/array_state: clean
md0/slaves/sda:
md0/slaves/sdb:
`
	volume = `
sda/sda1/partition: 1
sda/sda1/dev: 8:1
sda/sda1/holders/dm-0:
dm-0/dm/name: vg-root
dm-0/dm/uuid: LVM-abc
dm-0/dev: 253:0
dm-0/slaves/sda:
`
)

func TestPlan(t *testing.T) {
	for _, test := range []struct {
		name, tree string
		left       string // a disk that the wipe does not erase
		want       string
	}{
		{"nothing on top", "sda/size: 1", "", ""},
		{"an LVM volume on a partition", volume, "", "remove vg-root (LVM volume vg-root)"},
		{"an LVM volume that is mounted", volume + "proc/self/mountinfo: 1 1 253:0 / /data rw - ext4 /dev/dm-0 rw", "",
			"it is held by LVM volume vg-root, mounted at /data"},
		{"an array over two disks of the wipe", array, "", "clear sys/block/md0/md/array_state (RAID array md0)"},
		{"an array over a disk that the wipe leaves", array, "sdb", "it is held by RAID array md0, which also reaches sdb"},
		{"LVM on an array", array + "md0/holders/dm-0:\ndm-0/dm/name: vg-data\ndm-0/dm/uuid: LVM-x\ndm-0/slaves/md0:\n", "",
			"remove vg-data (LVM volume vg-data), clear sys/block/md0/md/array_state (RAID array md0)"},
		{"LVM on an array over a disk that the wipe leaves", array + "md0/holders/dm-0:\ndm-0/dm/name: vg-data\ndm-0/dm/uuid: LVM-x\ndm-0/slaves/md0:\n", "sdb",
			"it is held by LVM volume vg-data, which also reaches sdb"},
		{"encryption", "sda/holders/dm-1:\ndm-1/dm/name: secret\ndm-1/dm/uuid: CRYPT-LUKS2\ndm-1/slaves/sda:\n", "", "remove secret (encryption secret)"},
		{"a disk of bcache", "sda/holders/bcache0:\nbcache0/bcache/stop:\nbcache0/slaves/sda:\nsda/bcache/stop:\n", "",
			"1 sys/block/bcache0/bcache/stop (bcache bcache0), 1 sys/block/sda/bcache/stop (bcache)"},
		{"a cache of bcache", "sda/bcache/set/stop:\nsda/bcache/stop:\n", "", "1 sys/block/sda/bcache/set/stop (bcache)"},
		{"a device that is not known", "sda/holders/drbd0:\ndrbd0/slaves/sda:\n", "", "it is held by drbd0, which the agent cannot stop"},
	} {
		t.Run(test.name, func(t *testing.T) {
			steps, err := Plan(Find(stack(test.tree), "sda"), func(disk string) bool { return disk != test.left })
			var words []string
			for _, s := range steps {
				if s.Mapping != "" {
					words = append(words, fmt.Sprintf("remove %s (%s)", s.Mapping, s.Title))
				} else {
					words = append(words, fmt.Sprintf("%s %s (%s)", s.Value, s.File, s.Title))
				}
			}
			if err != nil {
				words = []string{err.Error()}
			}
			if got := strings.Join(words, ", "); got != test.want && (err == nil || !strings.HasPrefix(got, test.want)) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

type failing struct{}

func (failing) Write(string, string) error { return errors.New("busy") }
func (failing) RemoveMapping(string) error { return errors.New("busy") }

func TestAStepThatFailsNamesWhatHolds(t *testing.T) {
	for _, s := range []Step{{Mapping: "vg", Title: "LVM volume vg"}, {File: "f", Title: "RAID array md0"}} {
		if err := s.Do(failing{}); err == nil || err.Error() != "it is held by "+s.Title+", which does not stop: busy" {
			t.Errorf("got %v", err)
		}
	}
}
