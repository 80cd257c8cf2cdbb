// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// nvme is a drive as the NVM Express base specification 2.0 describes it: figure 275 (Identify Controller: CMIC in byte 76, OACS in
// 256, SANICAP in 328, FNA in 524), figure 97 of the NVM command set (Identify Namespace: FLBAS in 26, DPS in 29), figure 291 of
// sanitize status (SPROG, SSTAT, SCDW10, estimates).
func nvme(t *testing.T, disk *fakeDisk, sanicap uint32, oacs uint16, fna byte) *fakeDrive {
	t.Helper()
	f := &fakeDrive{t: t, disk: disk, controller: make([]byte, 4096), namespace: make([]byte, 4096), active: make([]byte, 4096)}
	binary.LittleEndian.PutUint32(f.controller[328:], sanicap)
	binary.LittleEndian.PutUint16(f.controller[256:], oacs)
	f.controller[524] = fna
	f.active[0] = 1
	return f
}

// sanitizeStatusPage is a log page: its estimates are 20 s for block erase and none for crypto.
func sanitizeStatusPage(progress, status uint16, cdw10 uint32) []byte {
	page := make([]byte, 512)
	binary.LittleEndian.PutUint16(page, progress)
	binary.LittleEndian.PutUint16(page[2:], status)
	binary.LittleEndian.PutUint32(page[4:], cdw10)
	binary.LittleEndian.PutUint32(page[12:], 20)
	binary.LittleEndian.PutUint32(page[16:], 0xffffffff)
	return page
}

func scramble(d *fakeDisk) func() {
	return func() {
		for i := range d.data {
			d.data[i] ^= byte(i*7 + 0x5b)
		}
	}
}

func clear8(d *fakeDisk) func() { return func() { clear(d.data) } }

func TestEraseByNVMeCommands(t *testing.T) {
	const block, crypto, format, management = 2, 1, 1 << 1, 1 << 3
	done := func(cdw10 uint32) [][]byte {
		return [][]byte{sanitizeStatusPage(0, 0, 0), sanitizeStatusPage(0x8000, 2, cdw10), sanitizeStatusPage(0xffff, 1, cdw10)}
	}
	for name, c := range map[string]struct {
		change  func(*fakeDrive)
		sanicap uint32
		oacs    uint16
		fna     byte
		accept  bool
		log     string
		steps   string
		kind    policyv1alpha1.VerificationKind
		term    policyv1alpha1.SanitizationTerm
	}{
		"a block sanitize that the policy accepts": {
			change: func(f *fakeDrive) { f.sanitizeLogs, f.formats = done(0xa), clear8(f.disk) }, sanicap: block | crypto, accept: true,
			log: "nvme 0x84 nsid=0x0 cdw10=0xa", steps: "nvme-sanitize-block Succeeded", kind: "Zeros", term: "Purge",
		},
		"a crypto sanitize leaves what is no zero, and an overwrite follows": {
			change: func(f *fakeDrive) { f.sanitizeLogs, f.formats = done(0xc), scramble(f.disk) }, sanicap: crypto,
			log:   "nvme 0x84 nsid=0x0 cdw10=0xc",
			steps: "nvme-sanitize-block Unsupported, nvme-sanitize-crypto Succeeded, zero Succeeded", kind: "Zeros", term: "Purge",
		},
		"a crypto sanitize that the policy accepts": {
			change: func(f *fakeDrive) { f.sanitizeLogs, f.formats = done(0xc), scramble(f.disk) }, sanicap: crypto, accept: true,
			log:   "nvme 0x84 nsid=0x0 cdw10=0xc",
			steps: "nvme-sanitize-block Unsupported, nvme-sanitize-crypto Succeeded", kind: "SamplesGone", term: "Purge",
		},
		"a sanitize that reports success and does nothing": {
			change: func(f *fakeDrive) { f.sanitizeLogs = done(0xa) }, sanicap: block, accept: true,
			log: "nvme 0x84 nsid=0x0 cdw10=0xa",
			steps: "nvme-sanitize-block Failed, nvme-sanitize-crypto Unsupported, nvme-format-crypto Unsupported, nvme-format Unsupported, " +
				"secure-discard Unsupported, discard Unsupported, zero Succeeded", kind: "Zeros", term: "Clear",
		},
		"a sanitize that fails, which is left by the exit action": {
			change: func(f *fakeDrive) {
				f.sanitizeLogs = [][]byte{sanitizeStatusPage(0, 0, 0), sanitizeStatusPage(0, 3, 0xa)}
			}, sanicap: block,
			log: "nvme 0x84 nsid=0x0 cdw10=0xa, nvme 0x84 nsid=0x0 cdw10=0x1",
			steps: "nvme-sanitize-block Failed, nvme-sanitize-crypto Unsupported, nvme-format-crypto Unsupported, nvme-format Unsupported, " +
				"secure-discard Unsupported, discard Unsupported, zero Succeeded", kind: "Zeros", term: "Clear",
		},
		"no sanitize while there is another namespace": {
			change: func(f *fakeDrive) { f.active[4] = 2 }, sanicap: block | crypto, oacs: format, fna: 1,
			steps: "nvme-sanitize-block Unsupported, nvme-sanitize-crypto Unsupported, nvme-format-crypto Unsupported, nvme-format Unsupported, " +
				"secure-discard Unsupported, discard Unsupported, zero Succeeded", kind: "Zeros", term: "Clear",
		},
		"no sanitize while a namespace is detached": {
			change: func(f *fakeDrive) { f.allocated = slices.Concat(f.active[:4], []byte{2, 0, 0, 0}, make([]byte, 4088)) }, sanicap: block, oacs: management,
			steps: "nvme-sanitize-block Unsupported, nvme-sanitize-crypto Unsupported, nvme-format-crypto Unsupported, nvme-format Unsupported, " +
				"secure-discard Unsupported, discard Unsupported, zero Succeeded", kind: "Zeros", term: "Clear",
		},
		"a cryptographic format": {
			change: func(f *fakeDrive) { f.formats = scramble(f.disk) }, oacs: format, fna: 4, accept: true,
			log:   "nvme 0x80 nsid=0x1 cdw10=0x400",
			steps: "nvme-sanitize-block Unsupported, nvme-sanitize-crypto Unsupported, nvme-format-crypto Succeeded", kind: "SamplesGone", term: "Purge",
		},
		"a format of the user data keeps the LBA format and the protection": {
			change: func(f *fakeDrive) {
				f.namespace[26], f.namespace[29] = 0x31, 0x0a // format 17, metadata at the end of the data, protection type 2, first
				f.formats = clear8(f.disk)
			}, oacs: format,
			log:   "nvme 0x80 nsid=0x1 cdw10=0x1351",
			steps: "nvme-sanitize-block Unsupported, nvme-sanitize-crypto Unsupported, nvme-format-crypto Unsupported, nvme-format Succeeded, zero Succeeded",
			kind:  "Zeros", term: "Clear",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := fullDisk(8 << 20)
				drive := nvme(t, disk, c.sanicap, c.oacs, c.fna)
				c.change(drive)
				target := Target{Medium: disk, Media: policyv1alpha1.MediaNVMe, Protocol: NVMe, Commands: drive}
				got, err := Erase(t.Context(), target, Order{AcceptDriveErase: c.accept})
				if err != nil {
					t.Fatal(err)
				}
				if steps := strings.Join(summary(got.Steps), ", "); steps != c.steps {
					t.Errorf("steps\ngot  %s\nwant %s", steps, c.steps)
				}
				if log := strings.Join(drive.log, ", "); log != c.log {
					t.Errorf("commands: got %s, want %s", log, c.log)
				}
				if got.Verification == nil || !got.Verification.Passed || got.Verification.Kind != c.kind || got.Term != c.term {
					t.Errorf("got %q, %+v, want %s, %s", got.Term, got.Verification, c.kind, c.term)
				}
				if !c.accept && !disk.empty() {
					t.Error("the disk is not empty")
				}
			})
		})
	}
}

func TestASanitizeThatDoesNotEndIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fullDisk(1 << 20)
		drive := nvme(t, disk, 2, 0, 0)
		drive.sanitizeLogs = [][]byte{sanitizeStatusPage(0, 2, 0xa)}
		begun := time.Now()
		got, err := Erase(t.Context(), Target{Medium: disk, Protocol: NVMe, Commands: drive}, Order{Floor: time.Second})
		if err != nil || got.Steps[0].Result != policyv1alpha1.EraseFailed || !strings.Contains(got.Steps[0].Answer, "did not end") {
			t.Errorf("%+v, %v", got, err)
		}
		if took := time.Since(begun); took != 40*time.Second { // twice the drive's estimate
			t.Errorf("given up after %s", took)
		}
	})
}

func FuzzParseNVMe(f *testing.F) {
	f.Add(make([]byte, 4096), make([]byte, 4096), make([]byte, 4096), []byte{1, 0, 0, 0}, uint32(1))
	f.Add([]byte{}, []byte{}, []byte{}, []byte(nil), uint32(0))
	f.Fuzz(func(t *testing.T, controller, namespace, active, allocated []byte, nsid uint32) {
		facts, err := parseNVMe(controller, namespace, active, allocated, nsid)
		if err == nil && facts.keep&^0x31ff != 0 {
			t.Errorf("CDW10 %#x sets other bits than those of the format", facts.keep)
		}
		if facts.alone && nsid == 0 {
			t.Error("no namespace is alone")
		}
	})
}

func FuzzParseSanitizeLog(f *testing.F) {
	f.Add(sanitizeStatusPage(0x8000, 2, 0xa), uint32(0xa))
	f.Add([]byte{1}, uint32(0))
	f.Fuzz(func(t *testing.T, page []byte, cdw10 uint32) {
		status, err := parseSanitizeLog(page)
		if err == nil && (status.percent < 0 || status.percent > 100 || status.block < 0 || status.crypto < 0) {
			t.Errorf("%+v", status)
		}
		if ended, err := status.ended(cdw10); ended && (err != nil || status.scdw10 != cdw10) {
			t.Errorf("%+v ended", status)
		}
	})
}
