// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"maps"
	"testing"
)

func TestArguments(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want map[string]string
	}{
		"as boot operators write it": {
			"initrd=initrd ip=any ignition.firstboot=1 ignition.config.url=http://h/ignition/x?a=b console=ttyS0,115200 console=tty0\n",
			map[string]string{"initrd": "initrd", "ip": "any", "ignition.firstboot": "1", "ignition.config.url": "http://h/ignition/x?a=b",
				"console": "tty0"}},
		"a word without a value":     {"quiet", map[string]string{"quiet": ""}},
		"quotes keep spaces":         {`a="b c" "d=e f" g`, map[string]string{"a": "b c", "d": "e f", "g": ""}},
		"a quote that does not end":  {`a="b c`, map[string]string{"a": "b c"}},
		"nothing":                    {"  \n", map[string]string{}},
		"a value without a name":     {"=x", map[string]string{}},
		"the last of two counts":     {"a=1 a=2", map[string]string{"a": "2"}},
		"the mark of init's own":     {"-- a=1", map[string]string{"--": "", "a": "1"}},
		"a zero byte is a separator": {"a=1\x00b=2\x00", map[string]string{"a": "1", "b": "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := arguments(c.line); !maps.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestBootInterface(t *testing.T) {
	for value, want := range map[string]string{
		"01-52-54-00-12-34-56": "52:54:00:12:34:56",
		"01-52-54-00-AB-CD-EF": "52:54:00:ab:cd:ef",
		"52:54:00:12:34:56":    "52:54:00:12:34:56",
		"":                     "",
		"eth0":                 "",
		"01-52-54":             "",
	} {
		if got := bootInterface(value).String(); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

func TestParseUevent(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		want    uevent
		ok      bool
	}{
		"a device with an alias": {"add@/devices/pci/virtio0\x00ACTION=add\x00DEVPATH=/devices/pci/virtio0\x00SUBSYSTEM=virtio\x00MODALIAS=virtio:d1v2\x00SEQNUM=9\x00",
			uevent{"add", "/devices/pci/virtio0", "virtio", "virtio:d1v2"}, true},
		"a disk without one":  {"change@/devices/x/block/sda\x00SUBSYSTEM=block\x00", uevent{"change", "/devices/x/block/sda", "block", ""}, true},
		"a message of udev":   {"libudev\x00\xfe\xed\xca\xfe", uevent{}, false},
		"no end of its head":  {"add@/devices", uevent{}, false},
		"no path":             {"add@\x00", uevent{}, false},
		"nothing":             {"", uevent{}, false},
		"a key without value": {"add@/d\x00MODALIAS\x00", uevent{action: "add", path: "/d"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := parseUevent([]byte(c.message)); got != c.want || ok != c.ok {
				t.Errorf("got %+v, %t", got, ok)
			}
		})
	}
}

func TestLabelled(t *testing.T) {
	at := func(offset int) []byte {
		head := make([]byte, 34<<10)
		copy(head[offset:], "METALPROBE ")
		return head
	}
	for name, c := range map[string]struct {
		head []byte
		want bool
	}{
		"ISO 9660":     {at(32808), true},
		"FAT16":        {at(43), true},
		"FAT32":        {at(71), true},
		"elsewhere":    {at(100), false},
		"a short disk": {[]byte("METALPROBE"), false},
		"nothing":      {nil, false},
	} {
		if got := labelled(c.head); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func FuzzArguments(f *testing.F) {
	f.Add(`BOOTIF=01-52-54-00-12-34-56 ignition.config.url="http://x y" --`)
	f.Fuzz(func(t *testing.T, line string) {
		for name, value := range arguments(line) {
			if name == "" {
				t.Error("an argument without a name")
			}
			if a := bootInterface(value); a != nil && len(a) != 6 {
				t.Errorf("address %s", a)
			}
		}
	})
}

func FuzzParseUevent(f *testing.F) {
	f.Add([]byte("add@/devices/x\x00MODALIAS=y\x00"))
	f.Fuzz(func(t *testing.T, message []byte) {
		if event, ok := parseUevent(message); ok && (event.action == "" || event.path == "") {
			t.Errorf("%+v is no event", event)
		}
	})
}
