// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func hex(data []byte) string { return fmt.Sprintf("% x", data) }

// Sense data of SPC-5: fixed and descriptor format.
var (
	sanitizeRuns   = []byte{0x70, 0, 2, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x04, 0x1b, 0, 0x80, 0x80, 0}
	runsDescriptor = []byte{0x72, 2, 0x04, 0x1b, 0, 0, 0, 8, 0x02, 6, 0, 0, 0x80, 0x40, 0, 0}
	nothing        = []byte{0x70, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	failed         = []byte{0x70, 0, 3, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x31, 0x03, 0, 0, 0, 0}
)

func TestEraseBySCSICommands(t *testing.T) {
	const rest = "secure-discard Unsupported, discard Unsupported, zero Succeeded"
	for name, c := range map[string]struct {
		opcodes map[uint8]bool
		senses  [][]byte
		erases  bool
		log     string
		steps   string
		term    policyv1alpha1.SanitizationTerm
	}{
		"a block erase": {map[uint8]bool{2: true, 3: true}, [][]byte{sanitizeRuns, runsDescriptor, nothing}, true, "sanitize 48 a2",
			"scsi-sanitize-block Succeeded, zero Succeeded", "Purge"},
		"a crypto erase": {map[uint8]bool{3: true}, [][]byte{nothing}, true, "sanitize 48 a3",
			"scsi-sanitize-block Unsupported, scsi-sanitize-crypto Succeeded, zero Succeeded", "Purge"},
		"a failed erase is left by the exit action": {map[uint8]bool{2: true}, [][]byte{sanitizeRuns, failed}, false, "sanitize 48 a2, sanitize 48 1f",
			"scsi-sanitize-block Failed, scsi-sanitize-crypto Unsupported, " + rest, "Clear"},
		"an erase that does nothing": {map[uint8]bool{2: true}, [][]byte{nothing}, false, "sanitize 48 a2",
			"scsi-sanitize-block Failed, scsi-sanitize-crypto Unsupported, " + rest, "Clear"},
		"a device without": {nil, nil, false, "", "scsi-sanitize-block Unsupported, scsi-sanitize-crypto Unsupported, " + rest, "Clear"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := fullDisk(4 << 20)
				drive := &fakeDrive{t: t, disk: disk, opcodes: c.opcodes, senses: c.senses}
				if c.erases {
					drive.erases = clear8(disk)
				}
				got, err := Erase(t.Context(), Target{Medium: disk, Media: policyv1alpha1.MediaSSD, Protocol: SCSI, Commands: drive}, Order{})
				if err != nil || !disk.empty() || got.Term != c.term {
					t.Errorf("got %q, %v", got.Term, err)
				}
				if steps := strings.Join(summary(got.Steps), ", "); steps != c.steps {
					t.Errorf("steps\ngot  %s\nwant %s", steps, c.steps)
				}
				if log := strings.Join(drive.log, ", "); log != c.log {
					t.Errorf("commands\ngot  %s\nwant %s", log, c.log)
				}
			})
		})
	}
}

func TestACommandSucceedsOnlyWhereDeviceAdapterAndDriverSaySo(t *testing.T) {
	for name, c := range map[string]struct {
		status       uint8
		host, driver uint16
		want         string
	}{
		"all three":                     {0, 0, 0, ""},
		"with sense data, and no error": {0, 0, 8, ""},
		"the device refuses":            {2, 0, 8, "SCSI status 0x02, host_status 0x0, driver_status 0x8, sense 3/31/03"},
		"the adapter (QEMU's answer)":   {0, 7, 0, "host_status 0x7"},
		"the driver":                    {0, 0, 6, "driver_status 0x6"},
	} {
		t.Run(name, func(t *testing.T) {
			err := scsiAnswer(c.status, c.host, c.driver, failed)
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// Level 0 discovery of TCG Storage Core 2.01, section 3.3.6: a header of 48 bytes, then TPer (0001h) and Locking (0002h).
func discoveryOf(locking byte) []byte {
	page := make([]byte, 48, 80)
	page[3] = 72
	page = append(page, 0, 1, 0x10, 12, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	return append(page, 0, 2, 0x10, 8, locking, 0, 0, 0, 0, 0, 0, 0)
}

func TestALockedDriveIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		protocol Protocol
		page     []byte
		locked   bool
	}{
		"NVMe, locked":       {NVMe, discoveryOf(0x0f), true},
		"NVMe, unlocked":     {NVMe, discoveryOf(0x0b), false},
		"SCSI, locked":       {SCSI, discoveryOf(0x07), true},
		"SCSI without Opal":  {SCSI, nil, false},
		"a list that is cut": {SCSI, discoveryOf(0x07)[:50], false},
	} {
		t.Run(name, func(t *testing.T) {
			disk := fullDisk(1 << 20)
			disk.read = errors.New("input/output error")
			drive := nvme(t, disk, 0, 0, 0)
			drive.discovery = c.page
			_, err := Erase(t.Context(), Target{Medium: disk, Protocol: c.protocol, Commands: drive}, Order{})
			if got := err != nil && strings.HasPrefix(err.Error(), "DriveLocked: ") && strings.Contains(err.Error(), "PSID"); got != c.locked {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzParseSense(f *testing.F) {
	f.Add(sanitizeRuns)
	f.Add(runsDescriptor)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseSense(data)
		if err == nil && (s.key > 0xf || s.percent < -1 || s.percent > 99) {
			t.Errorf("%+v", s)
		}
	})
}

func FuzzParseDiscovery(f *testing.F) {
	f.Add(discoveryOf(7))
	f.Add(discoveryOf(7)[:49])
	f.Fuzz(func(t *testing.T, page []byte) {
		if parseDiscovery(page) && len(page) <= discoveryHeader+4 {
			t.Error("a list without a feature is locked")
		}
	})
}
