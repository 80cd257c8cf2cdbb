// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/smbios"
)

// memory reads the modules from the tables of the firmware. Where those name none, as in containers, one entry holds the total.
func (h *Host) memory(data *Data) error {
	const file = "sys/firmware/dmi/tables/DMI"
	table, err := fs.ReadFile(h.Root, file)
	if err == nil {
		data.Memory, err = smbios.MemoryModules(table)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("/%s: %w", file, err)
	}
	if len(data.Memory) > 0 {
		return err
	}
	return errors.Join(err, h.totalMemory(data))
}

// totalMemory reads the total; kernels count in kibibytes and leave out what they keep for themselves.
func (h *Host) totalMemory(data *Data) error {
	for line := range strings.Lines(h.word("proc/meminfo")) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || kib < 0 || kib > 1<<50 {
			return fmt.Errorf("/proc/meminfo: MemTotal %.32q is no size", fields[1])
		}
		data.Memory = []policyv1alpha1.MemoryDevice{{SizeBytes: kib << 10, DeviceLocator: "total"}}
	}
	return nil
}
