// SPDX-License-Identifier: Apache-2.0

package uki

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func someModules() fstest.MapFS {
	return fstest.MapFS{
		"modules.dep": {Data: []byte(`kernel/block/t10-pi.ko: kernel/lib/crc64-rocksoft.ko
kernel/lib/crc64-rocksoft.ko: kernel/lib/crc64.ko
kernel/lib/crc64.ko:
kernel/drivers/nvme/host/nvme.ko: kernel/drivers/nvme/host/nvme-core.ko
kernel/drivers/nvme/host/nvme-core.ko: kernel/block/t10-pi.ko kernel/drivers/nvme/common/nvme-common.ko
kernel/drivers/nvme/common/nvme-common.ko:
kernel/drivers/nvme/host/nvme-fc.ko: kernel/drivers/nvme/host/nvme-core.ko
kernel/drivers/ata/ahci.ko.xz: kernel/drivers/ata/libata.ko.xz
kernel/drivers/ata/libata.ko.xz:
kernel/crypto/crct10dif_generic.ko:
kernel/lib/crc-t10dif.ko:
kernel/drivers/gpu/drm/drm.ko:
`)},
		"modules.alias": {Data: []byte(`# Aliases
alias pci:v*d*sv*sd*bc01sc08i02* nvme
alias pci:v*d*sv*sd*bc03* drm
alias crct10dif crct10dif_generic
`)},
		"modules.softdep": {Data: []byte("softdep crc_t10dif pre: crct10dif\nsoftdep drm pre: nothing\n")},
		"modules.builtin": {Data: []byte("kernel/net/packet/af_packet.ko\n")},
	}
}

func TestModulesAreChosenWithAllThatTheyNeed(t *testing.T) {
	for name, c := range map[string]struct {
		patterns []string
		want     []string
	}{
		"a module": {[]string{"drivers/nvme/host/nvme"}, []string{
			"kernel/block/t10-pi.ko", "kernel/drivers/nvme/common/nvme-common.ko", "kernel/drivers/nvme/host/nvme-core.ko",
			"kernel/drivers/nvme/host/nvme.ko", "kernel/lib/crc64-rocksoft.ko", "kernel/lib/crc64.ko",
		}},
		"a folder of compressed modules": {[]string{"drivers/ata/"}, []string{
			"kernel/drivers/ata/ahci.ko.xz", "kernel/drivers/ata/libata.ko.xz",
		}},
		"what is taken out but needed stays": {[]string{"drivers/ata/", "drivers/nvme/", "!drivers/ata/libata", "!drivers/nvme/"}, []string{
			"kernel/drivers/ata/ahci.ko.xz", "kernel/drivers/ata/libata.ko.xz",
		}},
		"a need by alias": {[]string{"lib/crc-t10*"}, []string{
			"kernel/crypto/crct10dif_generic.ko", "kernel/lib/crc-t10dif.ko",
		}},
		"nothing": {[]string{"drivers/other/"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := SelectModules(someModules(), c.patterns)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Files, c.want) {
				t.Errorf("got %q\nwant %q", got.Files, c.want)
			}
		})
	}
}

func TestTheIndexesAreCutToWhatWasChosen(t *testing.T) {
	got, err := SelectModules(someModules(), []string{"lib/crc-t10dif", "drivers/nvme/common/"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"modules.dep":     "kernel/drivers/nvme/common/nvme-common.ko:\nkernel/crypto/crct10dif_generic.ko:\nkernel/lib/crc-t10dif.ko:\n",
		"modules.alias":   "alias crct10dif crct10dif_generic\n",
		"modules.softdep": "softdep crc_t10dif pre: crct10dif\n",
		"modules.builtin": "kernel/net/packet/af_packet.ko\n",
	}
	have := maps.Collect(func(yield func(string, string) bool) {
		for name, text := range got.Index {
			yield(name, string(text))
		}
	})
	if !reflect.DeepEqual(have, want) {
		t.Errorf("got %q\nwant %q", have, want)
	}
	for module, want := range map[string]bool{"nvme-common": true, "nvme_common": true, "af_packet": true, "nvme": false} {
		if got.Has(module) != want {
			t.Errorf("Has(%s) is %t", module, !want)
		}
	}
}

func TestWhatIsNoModulesDep(t *testing.T) {
	for text, want := range map[string]string{
		"kernel/a.ko":                 "line 1: want 'PATH: PATHS'",
		"/kernel/a.ko:":               "line 1: want 'PATH: PATHS'",
		"kernel/a.ko: ../../passwd":   "no path of a module",
		"\n# text\nkernel/a.ko: b.ko": "kernel/a.ko needs b.ko, which has no line",
	} {
		if _, err := ParseModulesDep(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %q", text, err, want)
		}
	}
	if _, err := SelectModules(fstest.MapFS{}, nil); err == nil || !strings.Contains(err.Error(), "run depmod") {
		t.Errorf("without indexes: %v", err)
	}
	if _, err := SelectModules(someModules(), []string{"["}); err == nil {
		t.Error("a bad pattern is taken")
	}
}

func FuzzParseModulesDep(f *testing.F) {
	f.Add("kernel/a.ko: kernel/b.ko.xz\nkernel/b.ko.xz:\n")
	f.Add(": :")
	f.Fuzz(func(t *testing.T, text string) {
		needs, err := ParseModulesDep(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, file := range closure(map[string]bool{}, needs, nil) {
			t.Errorf("%s was not chosen", file)
		}
		version := someModules()
		version["modules.dep"] = &fstest.MapFile{Data: []byte(text)}
		all, err := SelectModules(version, []string{"*", "*/", "kernel/", "a"})
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range all.Files {
			if _, there := needs[file]; !there {
				t.Errorf("%s came from nowhere", file)
			}
		}
	})
}
