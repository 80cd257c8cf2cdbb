// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// ata is a drive whose IDENTIFY DEVICE holds these words of ACS-4: 59 (sanitize), 89 and 90 (times), 128 (security status).
func ata(t *testing.T, disk *fakeDisk, words map[int]uint16) *fakeDrive {
	t.Helper()
	f := &fakeDrive{t: t, disk: disk, ataPage: make([]byte, 512), erases: clear8(disk)}
	for word, value := range words {
		binary.LittleEndian.PutUint16(f.ataPage[2*word:], value)
	}
	return f
}

// sanitizing are the registers of SANITIZE STATUS EXT: half done, then done without error.
var sanitizing = []ATAResult{{Count: sanitizeInProgress, LBA: 0x8000}, {Count: sanitizeCompletedOK}}

func TestEraseByATACommands(t *testing.T) {
	const security, enhanced, frozen = 1 << 0, 1 << 5, 1 << 3
	const rest = "secure-discard Unsupported, discard Unsupported, zero Succeeded"
	const noSanitize = "ata-sanitize-crypto Unsupported, ata-sanitize-block Unsupported, "
	for name, c := range map[string]struct {
		words  map[int]uint16
		change func(*fakeDrive)
		media  policyv1alpha1.MediaType
		accept bool
		log    string
		steps  string
		term   policyv1alpha1.SanitizationTerm
		err    string
	}{
		"a crypto scramble": {
			words: map[int]uint16{59: 1<<12 | 1<<13 | 1<<15}, accept: true,
			change: func(f *fakeDrive) { f.statuses, f.erases = sanitizing, scramble(f.disk) },
			log:    "ata sanitize 0x11 0x43727970", steps: "ata-sanitize-crypto Succeeded", term: "Purge",
		},
		"a block erase": {
			words: map[int]uint16{59: 1<<12 | 1<<15}, change: func(f *fakeDrive) { f.statuses = sanitizing },
			log: "ata sanitize 0x12 0x426b4572", steps: "ata-sanitize-crypto Unsupported, ata-sanitize-block Succeeded, zero Succeeded", term: "Purge",
		},
		"a block erase that does not say that it completed": {
			words: map[int]uint16{59: 1<<12 | 1<<15}, change: func(f *fakeDrive) { f.statuses = []ATAResult{{Count: 0}} },
			log: "ata sanitize 0x12 0x426b4572", term: "Clear",
			steps: "ata-sanitize-crypto Unsupported, ata-sanitize-block Failed, ata-security-erase-enhanced Unsupported, ata-security-erase Unsupported, " + rest,
		},
		"an enhanced erase of a hard disk": {
			words: map[int]uint16{90: 30, 128: security | enhanced}, media: policyv1alpha1.MediaHDD,
			log:   "announced, set metalaw, prepare, erase metalaw mode=2 within 2h0m0s",
			steps: noSanitize + "ata-security-erase-enhanced Succeeded, zero Succeeded", term: "Purge",
		},
		"an enhanced erase of flash": {
			words: map[int]uint16{90: 1, 128: security | enhanced}, media: policyv1alpha1.MediaSSD,
			log:   "announced, set metalaw, prepare, erase metalaw mode=2 within 5m0s",
			steps: noSanitize + "ata-security-erase-enhanced Succeeded, zero Succeeded", term: "Clear",
		},
		"a plain erase, whose time is in the extended format": {
			words: map[int]uint16{89: 0x8000 | 300, 128: security}, media: policyv1alpha1.MediaHDD,
			log:   "announced, set metalaw, prepare, erase metalaw mode=0 within 20h0m0s",
			steps: noSanitize + "ata-security-erase-enhanced Unsupported, ata-security-erase Succeeded, zero Succeeded", term: "Clear",
		},
		"a frozen drive gets no password": {
			words: map[int]uint16{128: security | enhanced | frozen},
			steps: noSanitize + "ata-security-erase-enhanced Unsupported, ata-security-erase Unsupported, " + rest, term: "Clear",
		},
		"an erase that the drive aborts leaves no password": {
			words: map[int]uint16{128: security}, change: func(f *fakeDrive) { f.refuseErase = true },
			log:   "announced, set metalaw, prepare, erase metalaw mode=0 within 5m0s, disable metalaw",
			steps: noSanitize + "ata-security-erase-enhanced Unsupported, ata-security-erase Failed, " + rest, term: "Clear",
		},
		"no password is set whose report failed": {
			words: map[int]uint16{128: security}, change: func(f *fakeDrive) { f.note("unreported") },
			log:   "unreported, announced",
			steps: noSanitize + "ata-security-erase-enhanced Unsupported, ata-security-erase Failed, " + rest, term: "Clear",
		},
		"a drive that an erase of ours left locked is unlocked": {
			words: map[int]uint16{128: security | 1<<1 | 1<<2}, change: func(f *fakeDrive) { f.password = ATAPassword },
			log:   "unlock metalaw, disable metalaw, announced, set metalaw, prepare, erase metalaw mode=0 within 5m0s",
			steps: "ata-security-unlock Succeeded, " + noSanitize + "ata-security-erase-enhanced Unsupported, ata-security-erase Succeeded, zero Succeeded",
			term:  "Clear",
		},
		"a drive that its tenant locked": {
			words: map[int]uint16{128: security | 1<<1 | 1<<2}, change: func(f *fakeDrive) { f.password = "theirs" },
			log: "unlock metalaw", steps: "ata-security-unlock Failed", err: "DriveLocked: an ATA security password",
		},
		"a drive with the tenant's password, which does not lock it now": {
			words: map[int]uint16{59: 1<<12 | 1<<15, 128: security | 1<<1}, change: func(f *fakeDrive) { f.password, f.statuses = "theirs", sanitizing },
			log:   "announced, set metalaw, disable metalaw, ata sanitize 0x12 0x426b4572",
			steps: "ata-security-unlock Succeeded, ata-sanitize-crypto Unsupported, ata-sanitize-block Succeeded, zero Succeeded", term: "Purge",
		},
		"a drive with the tenant's password, frozen before it locks": {
			words: map[int]uint16{128: security | 1<<1 | frozen}, change: func(f *fakeDrive) { f.password = "theirs" },
			steps: "ata-security-unlock Failed", err: "DriveLocked: an ATA security password",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := fullDisk(4 << 20)
				drive := ata(t, disk, c.words)
				if c.change != nil {
					c.change(drive)
				}
				order := Order{AcceptDriveErase: c.accept, Announce: func(_ context.Context, message string) error {
					drive.note("announced")
					if !strings.Contains(message, ATAPassword) {
						t.Errorf("the password is not in %q", message)
					}
					if drive.log[0] == "unreported" {
						return errors.New("no registry")
					}
					return nil
				}}
				got, err := Erase(t.Context(), Target{Medium: disk, Media: c.media, Protocol: ATA, Commands: drive}, order)
				if (err == nil) != (c.err == "") || (err != nil && !strings.HasPrefix(err.Error(), c.err)) {
					t.Fatalf("got %v, want %q", err, c.err)
				}
				if steps := strings.Join(summary(got.Steps), ", "); steps != c.steps {
					t.Errorf("steps\ngot  %s\nwant %s", steps, c.steps)
				}
				if log := strings.Join(drive.log, ", "); log != c.log {
					t.Errorf("commands\ngot  %s\nwant %s", log, c.log)
				}
				if got.Term != c.term || (err == nil && drive.password != "") {
					t.Errorf("term %q, password %q", got.Term, drive.password)
				}
			})
		})
	}
}

func TestTimeOfASecurityErase(t *testing.T) {
	for name, c := range map[string]struct {
		word uint16
		want time.Duration
	}{
		"not said":                         {0, 0},
		"two minutes for each unit":        {30, time.Hour},
		"longer than 508 minutes":          {255, 510 * time.Minute},
		"the high byte without its flag":   {0x1205, 10 * time.Minute},
		"the extended format":              {0x8000 | 1000, 2000 * time.Minute},
		"longer than the format can count": {0xffff, 0x7fff * 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := eraseTime(c.word); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// The bytes are those of SAT-4, tables 185 and 203, as smartctl and hdparm send them.
func TestAnATACommandInsideOfASCSIOne(t *testing.T) {
	for name, c := range map[string]struct {
		command ATACommand
		want    string
	}{
		"IDENTIFY DEVICE":     {ATACommand{Command: ataIdentify, Count: 1, In: make([]byte, 512)}, "85 08 0e 00 00 00 01 00 00 00 00 00 00 00 ec 00"},
		"SECURITY ERASE UNIT": {ATACommand{Command: ataEraseUnit, Count: 1, Out: make([]byte, 512)}, "85 0a 06 00 00 00 01 00 00 00 00 00 00 00 f4 00"},
		"BLOCK ERASE EXT": {ATACommand{Command: ataSanitize, Extended: true, Feature: blockEraseExt, Count: failureModeAllowed, LBA: blockEraseKey},
			"85 07 20 00 12 00 10 42 72 00 45 00 6b 40 b4 00"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hex(ataCDB(c.command)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestRegistersAfterAnATACommand(t *testing.T) {
	// A check condition that the command asked for: RECOVERED ERROR, ATA PASS THROUGH INFORMATION AVAILABLE.
	done := []byte{0x72, 1, 0, 0x1d, 0, 0, 0, 14, 0x09, 12, 1, 0, 0xc0, 0x01, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x40, 0x50}
	status := errors.New("SCSI status 0x02")
	got, err := ataAnswer(ATACommand{}, done, status)
	if want := (ATAResult{Status: 0x50, Count: 0xc001, LBA: 0x553311664422}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	failed := append([]byte(nil), done...)
	failed[21], failed[11] = 0x51, 0x04
	if _, err := ataAnswer(ATACommand{}, failed, status); err == nil || err.Error() != "ATA status 0x51, error 0x04" {
		t.Errorf("an aborted command: %v", err)
	}
	if _, err := ataAnswer(ATACommand{}, nil, nil); err == nil {
		t.Error("a command without data that brought no registers succeeded")
	}
	if _, err := ataAnswer(ATACommand{In: make([]byte, 512)}, nil, status); err == nil {
		t.Error("a command that the adapter refused succeeded")
	}
}

func FuzzParseATA(f *testing.F) {
	f.Add(make([]byte, 512))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, page []byte) {
		facts, err := parseATA(page)
		if err == nil && (facts.eraseTime < 0 || facts.enhancedTime > 0x7fff*2*time.Minute) {
			t.Errorf("%+v", facts)
		}
	})
}

func FuzzATARegisters(f *testing.F) {
	f.Add([]byte{0x72, 1, 0, 0x1d, 0, 0, 0, 14, 0x09, 12, 1, 0, 0xc0, 0x01, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x40, 0x50})
	f.Add([]byte{0x72, 0, 0, 0, 0, 0, 0, 0, 9, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, found := ataRegisters(data); found && got.LBA >= 1<<48 {
			t.Errorf("%+v", got)
		}
	})
}
