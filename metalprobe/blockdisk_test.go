// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/erasure"
)

// diskOf is a file full of data that stands for a disk.
func diskOf(t *testing.T, size int) *blockDisk {
	t.Helper()
	name := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(name, []byte(strings.Repeat("secret", size/6+1))[:size], 0o600); err != nil {
		t.Fatal(err)
	}
	return &blockDisk{info: policyv1alpha1.BlockDevice{Path: name}, guard: func() error { return nil }}
}

func TestEraseOverwritesEveryByte(t *testing.T) {
	const chunk, sampled = 4 << 20, 258 * 256 << 10
	for name, size := range map[string]int{
		"a disk of less than a sector":     100,
		"a disk of less than a chunk":      512 * 3,
		"a disk that ends within a chunk":  chunk + 4097,
		"a disk of exactly one chunk":      chunk,
		"a disk that is read back in part": sampled + 512,
	} {
		t.Run(name, func(t *testing.T) {
			disk := diskOf(t, size)
			if _, err := disk.Recheck(t.Context()); err == nil {
				t.Error("a disk full of data passed")
			}
			got, err := disk.Erase(t.Context(), EraseOrder{})
			if err != nil || got.Method != "zero" || got.Term != policyv1alpha1.TermClear || !got.Verification.Passed {
				t.Fatalf("got %+v, %v", got, err)
			}
			if _, err := disk.Recheck(t.Context()); err != nil {
				t.Error(err)
			}
			content, err := os.ReadFile(disk.info.Path)
			if err != nil {
				t.Fatal(err)
			}
			if len(content) != size || strings.Trim(string(content), "\x00") != "" {
				t.Errorf("%d bytes, of which some are not zero", len(content))
			}
		})
	}
}

// Else the zeros of a new disk would stand for a disk that nobody erased.
func TestADiskThatWasExchangedIsNotProvedByReadingItAgain(t *testing.T) {
	disk := diskOf(t, 512)
	if _, err := disk.Erase(t.Context(), EraseOrder{}); err != nil {
		t.Fatal(err)
	}
	disk.guard = func() error { return errors.New("another disk has its name now") }
	if _, err := disk.Recheck(t.Context()); err == nil || !strings.Contains(err.Error(), "another disk has its name now") {
		t.Errorf("got %v", err)
	}
}

func TestEraseStopsWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := diskOf(t, 100).Erase(ctx, EraseOrder{})
	expectProblems(t, err, []string{"stopped at byte 0 of 100"})
}

func TestOnlyVolumesOfOneAdapterShareALane(t *testing.T) {
	host := sysfs(t, raid+sata)
	volume := Verdict{Standing: DiskOurs, OverwriteOnly: true}
	if got := laneOf(host.sys().Resolve("sys/block/sda"), volume); got != "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0" {
		t.Errorf("got %q", got)
	}
	if got := laneOf(host.sys().Resolve("sys/block/sda"), Verdict{Standing: DiskOurs}); got != "" {
		t.Errorf("a disk that is no volume has the lane %q", got)
	}
}

func TestInWhatLanguageADriveTakesCommands(t *testing.T) {
	for name, c := range map[string]struct {
		disk    policyv1alpha1.BlockDevice
		verdict Verdict
		want    erasure.Protocol
	}{
		"NVMe":                         {policyv1alpha1.BlockDevice{Name: "nvme0n1"}, Verdict{Transport: "nvme/pcie"}, erasure.NVMe},
		"SATA":                         {policyv1alpha1.BlockDevice{Name: "sda"}, Verdict{Transport: "sata"}, erasure.ATA},
		"SATA behind a SAS adapter":    {policyv1alpha1.BlockDevice{Name: "sda", Vendor: "ATA"}, Verdict{Transport: "sas"}, erasure.ATA},
		"SAS":                          {policyv1alpha1.BlockDevice{Name: "sda", Vendor: "SEAGATE"}, Verdict{Transport: "sas"}, erasure.SCSI},
		"a volume, not its drives":     {policyv1alpha1.BlockDevice{Name: "sda"}, Verdict{Transport: "raid", OverwriteOnly: true}, erasure.NoProtocol},
		"a virtio disk has no command": {policyv1alpha1.BlockDevice{Name: "vda"}, Verdict{Transport: "virtio"}, erasure.NoProtocol},
		"nor has an eMMC":              {policyv1alpha1.BlockDevice{Name: "mmcblk0"}, Verdict{Transport: "mmc"}, erasure.NoProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			if got := protocolOf(c.disk, c.verdict); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestADiskThatWasExchangedIsNotErased(t *testing.T) {
	host := sysfs(t, localNVMe+"devices/"+pci+"/nvme/nvme0/serial: THIS\n"+at("nvme0n1", pci+"/nvme/nvme0", "wwid", "eui.1"))
	for name, c := range map[string]struct {
		info policyv1alpha1.BlockDevice
		want string
	}{
		"the same disk":         {policyv1alpha1.BlockDevice{Name: "nvme0n1", Serial: "THIS", WWID: "eui.1"}, ""},
		"another serial number": {policyv1alpha1.BlockDevice{Name: "nvme0n1", Serial: "THAT", WWID: "eui.1"}, "another disk has its name now"},
		"another wwid":          {policyv1alpha1.BlockDevice{Name: "nvme0n1", Serial: "THIS", WWID: "eui.2"}, "another disk has its name now"},
	} {
		t.Run(name, func(t *testing.T) {
			err := host.mayErase(c.info)
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
