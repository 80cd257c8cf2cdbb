// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "testing"

func TestDiskIdentifies(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       bool
	}{
		{"nothing", "", false},
		{"spaces", "   ", false},
		{"a serial number", "S3Z8NB0K123456", true},
		{"a short serial number", "D1", true},
		{"a serial number of zeros", "00000000", false},
		{"a serial number of zeros and dashes", "0000-0000", false},
		{"a serial number that ends in zeros", "W1000000", true},
		{"a serial number of one digit, many times", "11111111", false},
		{"a serial number of Fs", "FFFFFFFF", false},
		{"a row of digits", "0123456789ABCDEF", false},
		{"a row of digits from one", "1234567890", false},
		{"a row of digits that goes on differently", "1234567891", true},
		{"a placeholder", "To Be Filled By O.E.M.", false},
		{"an unknown serial number", "unknown", false},
		{"a world wide name", "naa.5000c500a1b2c3d4", true},
		{"a world wide name as udev writes it", "0x5000c500a1b2c3d4", true},
		{"a world wide name of zeros", "naa.0000000000000000", false},
		{"a world wide name of zeros as udev writes it", "0x0000000000000000", false},
		{"a world wide name of Fs", "naa.ffffffffffffffff", false},
		{"a world wide name without a maker, as a bridge makes it up", "naa.5000000000000001", false},
		{"an NVMe drive with an EUI", "eui.0025388b01b2c3d4", true},
		{"an NVMe drive with an NGUID", "eui.00000001000000005cd2e4b8a1b2c3d4", true},
		{"an NVMe drive with an EUI of zeros", "eui.0000000000000000", false},
		{"an NVMe drive with an EUI without a maker", "eui.0000000000000001", false},
		{"an NVMe drive with a UUID", "uuid.5e1a2b3c-0000-0000-0000-000000000001", true},
		{"an NVMe drive with a UUID of zeros", "uuid.00000000-0000-0000-0000-000000000000", false},
		{"an NVMe drive that is named by its serial number", "nvme.1b36-5741592d4e564d45-51454d55204e564d65204374726c-00000001", true},
		{"an NVMe drive that is named by a serial number of zeros", "nvme.1b36-30303030-51454d55-00000001", false},
		{"an NVMe drive that is named without a serial number", "nvme.1b36--51454d55-00000001", false},
		{"a name of vendor, model and serial number", "t10.ATA     QEMU HARDDISK                           QM00001", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := DiskIdentifies(test.text); got != test.want {
				t.Errorf("DiskIdentifies(%q) = %t, want %t", test.text, got, test.want)
			}
		})
	}
}

func FuzzDiskIdentifies(f *testing.F) {
	for _, text := range []string{"", "naa.", "eui.0", "nvme.1b36--51-1", "uuid.-", "t10.", "é"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if DiskIdentifies(text) && DiskIdentifies("") {
			t.Errorf("%q", text)
		}
	})
}
