// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

func kernel(dep, alias, soft, builtin string) fstest.MapFS {
	return fstest.MapFS{
		"modules.dep":     {Data: []byte(dep)},
		"modules.alias":   {Data: []byte(alias)},
		"modules.softdep": {Data: []byte(soft)},
		"modules.builtin": {Data: []byte(builtin)},
	}
}

const (
	depLines = `kernel/drivers/scsi/sd_mod.ko: kernel/block/t10-pi.ko kernel/lib/crc-t10dif.ko kernel/scsi/scsi_common.ko
kernel/block/t10-pi.ko: kernel/lib/crc-t10dif.ko
kernel/lib/crc-t10dif.ko:
kernel/scsi/scsi_common.ko:
kernel/fs/btrfs.ko.xz: kernel/lib/xor.ko.zst
kernel/lib/xor.ko.zst:
kernel/crypto/fast-crc.ko:
kernel/net/late.ko:
kernel/a.ko: kernel/b.ko
kernel/b.ko: kernel/a.ko
`
	aliasLines = `# Aliases extracted from modules themselves.
alias scsi:t-0x00* sd_mod
alias scsi:t-0x07* sd_mod
alias pci:v00008086d0000[15]00[0-9A]sv*sd*bc*sc*i* xor
alias crypto-crc32c fast_crc
alias fs-btrfs btrfs
alias virtio:d00000001v* built_in
`
	softLines    = "softdep btrfs pre: crypto-crc32c missing post: late\n"
	builtinLines = "kernel/drivers/built-in.ko\n"
)

func read(t *testing.T, tree fstest.MapFS) *modules {
	t.Helper()
	m, err := readModules(tree)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestResolve(t *testing.T) {
	m := read(t, kernel(depLines, aliasLines, softLines, builtinLines))
	for name, c := range map[string]struct {
		alias string
		want  []string
	}{
		"a device of a bus":                  {"scsi:t-0x00", []string{"sd_mod"}},
		"a class of letters":                 {"pci:v00008086d0000100Asv00001AF4sd00001100bc02sc00i00", []string{"xor"}},
		"a letter outside of the class":      {"pci:v00008086d0000100Fsv00001AF4sd00001100bc02sc00i00", nil},
		"another bus":                        {"usb:t-0x00", nil},
		"a name":                             {"t10-pi", []string{"t10_pi"}},
		"a name with underscores":            {"t10_pi", []string{"t10_pi"}},
		"a name that an alias stands for":    {"crypto-crc32c", []string{"fast_crc"}},
		"what is built in is not loaded":     {"virtio:d00000001v00001AF4", nil},
		"nothing":                            {"", nil},
		"a name that is no pattern of files": {"../../etc/passwd", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := m.resolve(c.alias); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestOrderPutsWhatIsNeededFirst(t *testing.T) {
	m := read(t, kernel(depLines, aliasLines, softLines, builtinLines))
	for name, c := range map[string]struct{ module, want string }{
		"by what depmod found":                    {"sd_mod", "scsi_common crc_t10dif t10_pi sd_mod"},
		"soft ones before and after, if they are": {"btrfs", "fast_crc? xor btrfs late?"},
		"a circle ends":                           {"a", "b a"},
		"a module alone":                          {"late", "late"},
		"one that is built in":                    {"built_in", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range m.order(c.module) {
				if s.soft {
					s.name += "?"
				}
				got = append(got, s.name)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAKernelWithoutIndexIsAnError(t *testing.T) {
	if _, err := readModules(fstest.MapFS{}); err == nil || !strings.Contains(err.Error(), "modules.dep") {
		t.Errorf("got %v", err)
	}
	if _, err := readModules(fstest.MapFS{"modules.dep": {}}); err != nil {
		t.Errorf("the other indexes may be missing: %v", err)
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, word string
		want          bool
	}{
		{"pci:v*d*", "pci:v1d2", true},
		{"pci:v*d*", "pci:v1", false},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"[0-9]x", "7x", true},
		{"[!0-9]x", "7x", false},
		{"[!0-9]x", "ax", true},
		{"*", "", true},
		{"", "", true},
		{"", "a", false},
		{"a[", "a[", true},
		{"*a*b*", "xxaxxbxx", true},
		{"*a*b*", "xxbxxaxx", false},
		{"dmi*:svnDell/*:", "dmi:bvn:svnDell/EMC:", true},
	} {
		if got := matches(c.pattern, c.word); got != c.want {
			t.Errorf("%q with %q: %t, want %t", c.pattern, c.word, got, c.want)
		}
	}
}

func TestLoaderLoadsEachModuleOnce(t *testing.T) {
	var inserted []string
	failing := map[string]error{"kernel/lib/xor.ko.zst": errors.New("bad signature"), "kernel/net/late.ko": errors.New("no such symbol"),
		"kernel/crypto/fast-crc.ko": errAbsent}
	tree := kernel(depLines+"kernel/net/nic.ko: kernel/lib/gone.ko\n", aliasLines, softLines, builtinLines)
	l := newLoader(read(t, tree), func(file string) error {
		inserted = append(inserted, file)
		return failing[file]
	})
	for _, alias := range []string{"scsi:t-0x00", "scsi:t-0x07", "fs-btrfs", "nic", "unknown:device"} {
		l.load(t.Context(), alias)
	}
	l.finish(t.Context())
	want := []string{"kernel/scsi/scsi_common.ko", "kernel/lib/crc-t10dif.ko", "kernel/block/t10-pi.ko", "kernel/drivers/scsi/sd_mod.ko",
		"kernel/crypto/fast-crc.ko", "kernel/lib/xor.ko.zst", "kernel/fs/btrfs.ko.xz", "kernel/net/late.ko", "kernel/net/nic.ko"}
	if !slices.Equal(inserted, want) {
		t.Errorf("inserted %q\nwant     %q", inserted, want)
	}
	var told []string
	for _, p := range l.problems() {
		told = append(told, p.Source+": "+p.Message)
	}
	wantTold := []string{"module: gone: it is not in this image; its devices are not in this report",
		"module: xor: bad signature; its devices are not in this report"}
	if !slices.Equal(told, wantTold) {
		t.Errorf("told %q\nwant %q", told, wantTold)
	}
}

func TestAModuleThatHangsHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var inserted []string
		l := newLoader(read(t, kernel("hangs.ko:\nother.ko:\n", "", "", "")), func(file string) error {
			inserted = append(inserted, file)
			if file == "hangs.ko" {
				<-release
			}
			return nil
		})
		l.load(t.Context(), "hangs")
		l.load(t.Context(), "other")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		l.finish(ctx)
		if !slices.Equal(inserted, []string{"hangs.ko", "other.ko"}) {
			t.Errorf("inserted %q", inserted)
		}
		if p := l.problems(); len(p) != 1 || !strings.Contains(p[0].Message, "hangs: still being loaded") {
			t.Errorf("problems %+v", p)
		}
		close(release)
		synctest.Wait()
		if p := l.problems(); len(p) != 0 {
			t.Errorf("problems %+v after it came", p)
		}
	})
}

func TestManyProblemsAreCounted(t *testing.T) {
	var dep strings.Builder
	for i := range 50 {
		fmt.Fprintf(&dep, "m%02d.ko:\n", i)
	}
	l := newLoader(read(t, kernel(dep.String(), "", "", "")), func(string) error { return errors.New("no") })
	for i := range 50 {
		l.load(t.Context(), fmt.Sprintf("m%02d", i))
	}
	if p := l.problems(); len(p) != 33 || p[32].Message != "18 more modules could not be loaded" {
		t.Errorf("%d problems, the last %+v", len(p), p[len(p)-1])
	}
}

func TestSettleWaitsForDevicesThatCome(t *testing.T) {
	for name, c := range map[string]struct {
		events  []time.Duration // when each device comes
		settled bool
		took    time.Duration
	}{
		"no device comes":                     {nil, true, 3 * time.Second},
		"one comes late":                      {[]time.Duration{2 * time.Second}, true, 5 * time.Second},
		"one comes after all seemed quiet":    {[]time.Duration{4 * time.Second}, true, 3 * time.Second},
		"devices come without an end":         {slices.Repeat([]time.Duration{time.Second}, 100), false, 20 * time.Second},
		"what an event did not tell is found": {nil, true, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events := make(chan uevent)
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					for _, pause := range c.events {
						timer := time.NewTimer(pause)
						select {
						case <-timer.C:
						case <-ctx.Done():
							return
						}
						select {
						case events <- uevent{action: "add", modalias: "late"}:
						case <-ctx.Done():
							return
						}
					}
				}()
				looks := 0
				s := &settling{events: events, quiet: 3 * time.Second, limit: 20 * time.Second,
					loader: newLoader(read(t, kernel("late.ko:\nhidden.ko:\n", "", "", "")), func(string) error { return nil }),
					aliases: func() []string {
						if looks++; looks == 2 && strings.Contains(name, "did not tell") {
							return []string{"hidden"}
						}
						return nil
					}}
				began := time.Now()
				if got := s.settle(ctx); got != c.settled || time.Since(began) != c.took {
					t.Errorf("settled %t after %s, want %t after %s", got, time.Since(began), c.settled, c.took)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

func TestDeviceAliases(t *testing.T) {
	sys := fstest.MapFS{
		"devices/pci0000:00/0000:00:01.0/modalias":         {Data: []byte("pci:v1\n")},
		"devices/pci0000:00/0000:00:01.0/virtio0/modalias": {Data: []byte("virtio:d1\n")},
		"devices/pci0000:00/0000:00:02.0/modalias":         {Data: []byte("pci:v1\n")},
		"devices/platform/empty/modalias":                  {Data: []byte("\n")},
		"devices/platform/other/uevent":                    {Data: []byte("MODALIAS=x\n")},
		"bus/pci/devices/x/modalias":                       {Data: []byte("elsewhere\n")},
	}
	if got := deviceAliases(sys); !slices.Equal(got, []string{"pci:v1", "virtio:d1"}) {
		t.Errorf("got %q", got)
	}
	if got := deviceAliases(fstest.MapFS{}); got != nil {
		t.Errorf("got %q where /sys is empty", got)
	}
}

func FuzzModules(f *testing.F) {
	f.Add(depLines, aliasLines, softLines, builtinLines, "pci:v00008086d0000100Asv1sd1bc02sc00i00")
	f.Add("a.ko: b.ko\nb.ko: a.ko\n", "alias [ a\nalias x[a-]y b\n", "softdep a pre: b\nsoftdep b post: a", "", "[")
	f.Fuzz(func(t *testing.T, dep, alias, soft, builtin, device string) {
		m, err := readModules(kernel(dep, alias, soft, builtin))
		if err != nil {
			return
		}
		for _, name := range m.resolve(device) {
			seen := map[string]bool{}
			for _, s := range m.order(name) {
				if seen[s.name] {
					t.Errorf("%s is loaded twice for %s", s.name, name)
				}
				seen[s.name] = true
			}
		}
	})
}

func FuzzMatches(f *testing.F) {
	f.Add("pci:v*d*", "pci:v1d2")
	f.Add("[!a-", "b")
	f.Fuzz(func(t *testing.T, pattern, word string) {
		matches(pattern, word)
		if !strings.ContainsAny(word, "*?[") && !matches(word, word) {
			t.Errorf("%q does not match itself", word)
		}
	})
}
