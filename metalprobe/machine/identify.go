// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/metalprobe"
)

// identitySource names problems with the identity of the machine in a report.
const identitySource = "identity"

// FirmwareUUID reads the system UUID that the firmware shows, in lower case. It is empty where there is none, or where the
// firmware was never given one of its own.
func FirmwareUUID(root fs.FS) string {
	text, err := fs.ReadFile(root, "sys/class/dmi/id/product_uuid")
	uuid, wrong := metalprobe.NormalizeUUID(strings.TrimSpace(string(text)))
	if err != nil || wrong != nil {
		table, err := fs.ReadFile(root, "sys/firmware/dmi/tables/DMI")
		if err != nil {
			return ""
		}
		uuid = tableUUID(table)
	}
	if uuids.Shared(uuid) {
		return ""
	}
	return uuid
}

// tableUUID finds the UUID in the SMBIOS structures of a machine, in the byte order of SMBIOS 2.6 and later. It is empty where
// there is none.
func tableUUID(table []byte) string {
	const header, system, end, uuidAt, uuidSize = 4, 1, 127, 8, 16
	for len(table) >= header {
		kind, size := table[0], int(table[1])
		if size < header || size > len(table) || kind == end {
			return ""
		}
		if kind == system && size >= uuidAt+uuidSize {
			u := table[uuidAt : uuidAt+uuidSize]
			return fmt.Sprintf("%08x-%04x-%04x-%x-%x", binary.LittleEndian.Uint32(u), binary.LittleEndian.Uint16(u[4:]),
				binary.LittleEndian.Uint16(u[6:]), u[8:10], u[10:])
		}
		// The texts of a structure follow it, and end with two zero bytes.
		_, rest, found := strings.Cut(string(table[size:]), "\x00\x00")
		if !found {
			return ""
		}
		table = []byte(rest)
	}
	return ""
}

// Identify settles which server this is. The configuration goes before shown, the UUID that the firmware shows, empty where it
// shows none. A wipe that names another machine is refused; a probe says so in its report.
func (o *Options) Identify(shown string) error {
	config := &o.Config
	switch {
	case config.ServerUUID == "" && shown == "":
		return errors.New("the firmware shows no system UUID of its own, and the configuration names none; give --server-uuid")
	case config.ServerUUID == "":
		config.ServerUUID = shown
	case shown == "" || uuids.Same(shown, config.ServerUUID):
	case config.Purpose == metalprobe.PurposeWipe:
		return fmt.Errorf("the configuration is for server %.64s, but the firmware of this machine shows %s: nothing is erased; see which"+
			" machine booted it, and correct spec.systemUUID of the Server", config.ServerUUID, shown)
	default:
		before := o.Problems
		other := policyv1alpha1.ProbeProblem{Source: identitySource, Message: fmt.Sprintf(
			"the configuration is for server %.64s, but the firmware shows %s", config.ServerUUID, shown)}
		o.Problems = func() []policyv1alpha1.ProbeProblem {
			if before == nil {
				return []policyv1alpha1.ProbeProblem{other}
			}
			return append(before(), other)
		}
	}
	return nil
}

// keyFile holds the key of this boot: /run is empty after a boot.
const keyFile = "/run/metalprobe/key"

// BootKey reads the key of this boot from a file, or makes it, so that an agent that is started again shows the same one. Where
// the file cannot be kept the key is that of this process.
func BootKey(file string) string {
	text, err := os.ReadFile(file)
	if key := strings.TrimSpace(string(text)); err == nil && metalprobe.ValidKey(key) {
		return key
	}
	key := metalprobe.NewKey()
	if os.MkdirAll(filepath.Dir(file), 0o700) == nil {
		_ = os.WriteFile(file, []byte(key+"\n"), 0o600) // then an agent that is started again has another key
	}
	return key
}
