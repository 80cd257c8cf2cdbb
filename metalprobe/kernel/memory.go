// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/metalaw/metalaw/metalprobe/smbios"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// Memory reads the modules from the tables of the firmware. Where those name none, as in containers, one entry holds the total.
func (t Tree) Memory() (modules []policyv1alpha1.MemoryDevice, err error) {
	const file = "sys/firmware/dmi/tables/DMI"
	table, err := fs.ReadFile(t.Root, file)
	if err == nil {
		modules, err = smbios.MemoryModules(table)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("/%s: %w", file, err)
	}
	if len(modules) > 0 {
		return modules, err
	}
	total, unknown := t.totalMemory()
	return total, errors.Join(err, unknown)
}

// totalMemory reads the total; kernels count in kibibytes and leave out what they keep for themselves.
func (t Tree) totalMemory() ([]policyv1alpha1.MemoryDevice, error) {
	for line := range strings.Lines(t.Word("proc/meminfo")) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || kib < 0 || kib > 1<<50 {
			return nil, fmt.Errorf("/proc/meminfo: MemTotal %.32q is no size", fields[1])
		}
		return []policyv1alpha1.MemoryDevice{{SizeBytes: kib << 10, DeviceLocator: "total"}}, nil
	}
	return nil, nil
}
