// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/drive"
	"github.com/metalaw/metalaw/metalprobe/erasure"
)

// stopping is a kernel that does what it is asked: what it stops is gone from the tree.
type stopping struct {
	root string
	did  []string
	fail error
}

func (s *stopping) Write(name, value string) error {
	s.did = append(s.did, name+" "+value)
	if s.fail == nil && strings.HasSuffix(name, "/md/array_state") {
		return s.gone(strings.Split(name, "/")[2])
	}
	return s.fail
}

func (s *stopping) RemoveMapping(name string) error {
	s.did = append(s.did, "remove "+name)
	return errors.Join(s.fail, s.gone("dm-0"))
}

func (s *stopping) gone(name string) error {
	held, err := filepath.Glob(filepath.Join(s.root, "sys/block/*/holders", name))
	for _, link := range held {
		err = errors.Join(err, os.Remove(link))
	}
	return err
}

// onTop is a RAID array over one disk, and an LVM volume on the array.
func onTop(disks ...string) string {
	text := "block/md0 -> ../devices/virtual/block/md0\nblock/dm-0 -> ../devices/virtual/block/dm-0\n" +
		"devices/virtual/block/md0/md/array_state: clean\ndevices/virtual/block/md0/holders/dm-0 -> ../../dm-0\n" +
		"devices/virtual/block/dm-0/dm/name: vg-data\ndevices/virtual/block/dm-0/dm/uuid: LVM-1\n" +
		"devices/virtual/block/dm-0/slaves/md0 -> ../../md0\n"
	for _, disk := range disks {
		text += "devices/virtual/block/md0/slaves/" + disk + " -> /" + disk + "\n"
	}
	return text
}

func TestWhatHoldsADiskIsStoppedBeforeItsErase(t *testing.T) {
	const scsi = "devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda/"
	held := scsi + "holders/md0 -> ../../../../../../../../../virtual/block/md0\n"
	other := scsiAt("sdb", "pci0000:00/0000:00:1f.2/ata2/host1")
	remote := scsiAt("sdb", "platform/host1/session1")
	for name, c := range map[string]struct {
		sysfs  string
		change func(*Host, *stopping)
		did    string
		// want begins the error; empty expects none.
		want string
	}{
		"nothing holds it":          {sata, nil, "", ""},
		"an array with LVM on top":  {sata + held + onTop("sda"), nil, "remove vg-data, sys/block/md0/md/array_state clear", ""},
		"an array over two of ours": {sata + held + onTop("sda", "sdb") + other, nil, "remove vg-data, sys/block/md0/md/array_state clear", ""},
		"an array over a remote disk": {sata + held + onTop("sda", "sdb") + remote, nil, "",
			"it is held by LVM volume vg-data, which also reaches sdb, a disk that the wipe does not erase"},
		"an array over a disk that the policy excuses": {sata + held + onTop("sda", "sdb") + other +
			"devices/pci0000:00/0000:00:1f.2/ata2/host1/target0:0:0/0:0:0:0/serial: KEEP\n",
			func(h *Host, _ *stopping) { h.Policy.Excused = []string{"KEEP"} }, "",
			"it is held by LVM volume vg-data, which also reaches sdb"},
		"a kernel that refuses": {sata + held + onTop("sda"), func(_ *Host, s *stopping) { s.fail = errors.New("busy") },
			"remove vg-data, sys/block/md0/md/array_state clear", "it is held by LVM volume vg-data, which does not stop: busy"},
	} {
		t.Run(name, func(t *testing.T) {
			host := sysfs(t, c.sysfs)
			kernel := &stopping{root: rootOf(t, host)}
			host.Change = kernel
			if c.change != nil {
				c.change(host, kernel)
			}
			step, err := host.release(t.Context(), "sda")
			if did := strings.Join(kernel.did, ", "); did != c.did {
				t.Errorf("did %q, want %q", did, c.did)
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if c.did != "" && (step.Method != erasure.MethodRelease || (step.Result == policyv1alpha1.EraseSucceeded) != (c.want == "")) {
				t.Errorf("step %+v", step)
			}
		})
	}
}

func rootOf(t *testing.T, host *Host) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(fmt.Sprint(host.Root))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestADriveThatSanitizesIsWaitedForAndThenJudged(t *testing.T) {
	ended := false
	host := sysfs(t, localNVMe)
	host.Drive = func(string, erasure.Protocol) drive.Answers {
		return drive.Answers{Sanitizing: !ended, Reservation: map[bool]drive.Reservation{true: drive.ReservationNone}[ended]}
	}
	verdict := host.judge("nvme0n1")
	if verdict.Standing != DiskOurs || !verdict.Sanitizing || !strings.Contains(verdict.Reason, "a sanitize") {
		t.Errorf("while it runs: %+v", verdict)
	}
	if err := host.mayErase(policyv1alpha1.BlockDevice{Name: "nvme0n1"}); err == nil {
		t.Error("it may be erased while a sanitize runs in it")
	}
	ended = true
	if verdict := host.judge("nvme0n1"); verdict.Standing != DiskOurs || verdict.Sanitizing {
		t.Errorf("after its end: %+v", verdict)
	}
	host.Drive = func(string, erasure.Protocol) drive.Answers { return drive.Answers{Reservation: drive.ReservationHeld} }
	if host.mayErase(policyv1alpha1.BlockDevice{Name: "nvme0n1"}) == nil {
		t.Error("a drive that a host holds may be erased after its sanitize")
	}
}

func TestARemoteDriveThatSanitizesStaysRefused(t *testing.T) {
	host := sysfs(t, tcpNVMe)
	host.Drive = func(string, erasure.Protocol) drive.Answers { return drive.Answers{Sanitizing: true} }
	if verdict := host.judge("nvme0n1"); verdict.Standing != DiskRefused || verdict.Sanitizing {
		t.Errorf("got %+v", verdict)
	}
}

// A SCSI drive shows no capacity while a sanitize runs in it.
func TestADriveWithoutCapacityThatSanitizesIsNotBroken(t *testing.T) {
	asleep := strings.Replace(scsiAt("sda", pci+"/host0/port-0:0/end_device-0:0"), "size: 2048", "size: 0", 1)
	for _, sanitizing := range []bool{true, false} {
		host := sysfs(t, asleep)
		host.Drive = func(string, erasure.Protocol) drive.Answers { return drive.Answers{Sanitizing: sanitizing} }
		disks, _, err := host.Disks(t.Context())
		if err != nil || len(disks) != 1 {
			t.Fatalf("%d disks, %v", len(disks), err)
		}
		verdict := disks[0].Verdict()
		if verdict.Sanitizing != sanitizing || (verdict.Standing == DiskOurs) != sanitizing {
			t.Errorf("sanitizing %t: %+v", sanitizing, verdict)
		}
		if sanitizing == strings.Contains(verdict.Reason, "replace it") {
			t.Errorf("sanitizing %t: %s", sanitizing, verdict.Reason)
		}
	}
}

func TestAnEraseBeginsWithItsPreparations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 8192)), 0o600); err != nil {
		t.Fatal(err)
	}
	step := func(method string, err error) preparation {
		return func(context.Context, EraseOrder) (policyv1alpha1.EraseStep, error) {
			return policyv1alpha1.EraseStep{Method: method, Result: policyv1alpha1.EraseSucceeded}, err
		}
	}
	d := &blockDisk{info: policyv1alpha1.BlockDevice{Path: path}, guard: func() error { return nil },
		prepare: []preparation{step(erasure.MethodAwait, nil), step("", nil), step(erasure.MethodRelease, nil)}}
	outcome, err := d.Erase(t.Context(), EraseOrder{})
	if err != nil || len(outcome.Steps) < 3 || outcome.Steps[0].Method != erasure.MethodAwait || outcome.Steps[1].Method != erasure.MethodRelease ||
		outcome.Method != erasure.MethodZero {
		t.Errorf("got %+v, %v", outcome, err)
	}
	d.prepare = []preparation{step(erasure.MethodAwait, errors.New("still runs"))}
	if _, err := d.Erase(t.Context(), EraseOrder{}); err == nil || !strings.Contains(err.Error(), "not erased: still runs") {
		t.Errorf("got %v", err)
	}
}
