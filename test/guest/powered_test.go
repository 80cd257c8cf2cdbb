// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalaw/metalaw/metalprobe"
)

func TestAMachineRunsWhatItBoots(t *testing.T) {
	const (
		other                    = `{"ignition":{"version":"3.4.0"}}`
		asksScript, asksIgnition = "GET /ipxe/" + uuid, "GET /ignition/" + uuid
	)
	compressed := gzipped(t, `{"registryURL":"https://registry","serverUUID":"`+uuid+`","purpose":"probe"}`)
	probe, wipe := written(t, metalprobe.PurposeProbe), written(t, metalprobe.PurposeWipe)
	for name, c := range map[string]*struct {
		world  world
		from   Source
		disk   memoryDisk
		change func(*Options)
		boot   Boot
		log    []string
		holds  string
	}{
		"the probe, which reports each half minute": {
			world: world{boot: script("probe:1", ""), ignition: answers(probe)}, from: FromNetwork, disk: memoryDisk{contents: "tenant"},
			boot:  Boot{UUID: uuid, Kind: KindProbe, Image: "probe:1", Configuration: "ns/name", Entry: 7},
			log:   []string{asksScript, asksIgnition, "POST /register", "POST /register"},
			holds: "tenant",
		},
		"the wipe": {
			world: world{boot: script("probe:1", ""), ignition: answers(wipe)}, from: FromNetwork, disk: memoryDisk{contents: "tenant"},
			boot: Boot{UUID: uuid, Kind: KindWipe, Image: "probe:1", Configuration: "ns/name", Entry: 7},
			log: []string{asksScript, asksIgnition, "POST /register", "GET /wipe/" + uuid, "POST /wipe Running", "GET /wipe/" + uuid, "POST /wipe Verified",
				"POST /register"},
		},
		"a wipe of a disk that cannot be erased": {
			world: world{boot: script("probe:1", ""), ignition: answers(wipe)}, from: FromNetwork, disk: memoryDisk{contents: "tenant", fails: errors.New("stuck")},
			boot: Boot{UUID: uuid, Kind: KindWipe, Image: "probe:1", Configuration: "ns/name", Entry: 7},
			log: []string{asksScript, asksIgnition, "POST /register", "GET /wipe/" + uuid, "POST /wipe Running", "GET /wipe/" + uuid, "POST /wipe Failed",
				"POST /register"},
			holds: "tenant",
		},
		"a wipe of a remote disk, which it names in no question": {
			world: world{boot: script("probe:1", ""), ignition: answers(wipe)}, from: FromNetwork,
			disk:  memoryDisk{contents: "another machine's", facts: &metalprobe.DiskFacts{Name: "sda", Device: "devices/platform/host1/session1/target1:0:0/1:0:0:0/block/sda"}},
			boot:  Boot{UUID: uuid, Kind: KindWipe, Image: "probe:1", Configuration: "ns/name", Entry: 7},
			log:   []string{asksScript, asksIgnition, "POST /register", "GET /wipe/" + uuid, "POST /wipe Failed", "POST /register"},
			holds: "another machine's",
		},
		"a wipe that is refused erases nothing": {
			world: world{boot: script("probe:1", ""), ignition: answers(wipe), refuses: true}, from: FromNetwork, disk: memoryDisk{contents: "tenant"},
			boot:  Boot{UUID: uuid, Kind: KindWipe, Image: "probe:1", Configuration: "ns/name", Entry: 7},
			log:   []string{asksScript, asksIgnition, "POST /register"},
			holds: "tenant",
		},
		"an operating system with an ignition of its own": {
			world: world{boot: script("linux:5", ""), ignition: answers(other)}, from: FromNetwork,
			boot:  Boot{UUID: uuid, Kind: KindImage, Image: "linux:5", Configuration: "ns/name"},
			log:   []string{asksScript, asksIgnition},
			holds: "written by linux:5",
		},
		"an operating system without an ignition, which says that it is up": {
			world: world{boot: script("linux:5", " without ignition")}, from: FromNetwork,
			change: func(o *Options) { o.BootState = &BootState{RegistryURL: "https://registry", Delay: time.Second} },
			boot:   Boot{UUID: uuid, Kind: KindImage, Image: "linux:5", Configuration: "ns/name"},
			log:    []string{asksScript, "POST /bootstate"},
			holds:  "written by linux:5",
		},
		"an operating system that runs in memory": {
			world: world{boot: script("live/rescue:5", " without ignition")}, from: FromNetwork, disk: memoryDisk{contents: "tenant"},
			boot: Boot{UUID: uuid, Kind: KindLive, Image: "live/rescue:5", Configuration: "ns/name"}, log: []string{asksScript}, holds: "tenant",
		},
		"what is on its disk": {
			from: FromDisk, disk: memoryDisk{contents: "tenant"},
			boot: Boot{UUID: uuid, Kind: KindInstalled}, holds: "tenant",
		},
		"nothing, from an erased disk": {from: FromDisk, boot: Boot{UUID: uuid, Kind: KindNothing}},
		"the agent, once the boot provider is ready": {
			world: world{boot: func(call int) (int, string) {
				if call < 3 {
					return http.StatusInternalServerError, "none matches"
				}
				return script("probe:1", "")(call)
			}, ignition: answers(probe)}, from: FromNetwork,
			boot: Boot{UUID: uuid, Kind: KindProbe, Image: "probe:1", Configuration: "ns/name", Entry: 7},
			log:  []string{asksScript, asksScript, asksScript, asksIgnition, "POST /register", "POST /register"},
		},
		"the agent, started by flags in an ignition of another language": {
			world: world{boot: script("probe:1", ""), ignition: answers(starting(
				"docker run --registry-url=http://registry --server-uuid=" + uuid + " probe:1"))},
			from: FromNetwork,
			boot: Boot{UUID: uuid, Kind: KindProbe, Image: "probe:1", Configuration: "ns/name"},
			log:  []string{asksScript, asksIgnition, "POST /register", "POST /register"},
		},
		"the agent, whose configuration is compressed": {
			world: world{boot: script("probe:1", ""), ignition: answers(compressed)}, from: FromNetwork,
			boot: Boot{UUID: uuid, Kind: KindProbe, Image: "probe:1", Configuration: "ns/name"},
			log:  []string{asksScript, asksIgnition, "POST /register", "POST /register"},
		},
		"the agent, once its ignition is no error any more": {
			world: world{boot: script("probe:1", ""), ignition: func(call int) (int, string) {
				if call < 3 {
					return http.StatusInternalServerError, "format is fcos, and the text is no Butane"
				}
				return http.StatusOK, probe
			}}, from: FromNetwork,
			boot: Boot{UUID: uuid, Kind: KindProbe, Image: "probe:1", Configuration: "ns/name", Entry: 7},
			log:  []string{asksScript, asksIgnition, asksIgnition, asksIgnition, "POST /register", "POST /register"},
		},
		"nothing, while its ignition is gone": {
			world: world{boot: script("probe:1", ""), ignition: func(int) (int, string) { return http.StatusNotFound, "" }}, from: FromNetwork,
			log: []string{asksScript, asksIgnition},
		},
		"nothing, when Ignition refuses the text": {
			world: world{boot: script("linux:5", ""), ignition: answers("{}")}, from: FromNetwork,
			log: []string{asksScript, asksIgnition},
		},
		"the agent from a UKI": {
			world: world{boot: answers(`{"ClientIPs":"x","UKIURL":"http://provider/image?imageName=probe&version=1","SystemUUID":"` + uuid + `"}`),
				ignition: answers(probe)}, from: FromUEFIHTTP,
			boot: Boot{UUID: uuid, Kind: KindProbe, Image: "probe:1", Entry: 7},
			log:  []string{"GET /httpboot for 02:4d:4c:00:00:01", asksIgnition, "POST /register", "POST /register"},
		},
		"nothing, from the default UKI": {
			world: world{boot: func(call int) (int, string) {
				if call > 1 {
					return http.StatusInternalServerError, "none matches"
				}
				return http.StatusOK, `{"ClientIPs":"x","UKIURL":"http://provider/default-uki"}`
			}}, from: FromUEFIHTTP, change: func(o *Options) { o.Retry = Retry{First: 40 * time.Second, Max: time.Minute} },
			log: []string{"GET /httpboot for 02:4d:4c:00:00:01", "GET /httpboot for 02:4d:4c:00:00:01"},
		},
		"nothing, when the agent's flags are broken": {
			world: world{boot: script("probe:1", ""), ignition: answers(starting(
				"probe --registry-url=registry --server-uuid=" + uuid))}, from: FromNetwork,
			log: []string{asksScript, asksIgnition},
		},
		"nothing, when its boot data is broken": {
			world: world{boot: script("probe:1", ""), ignition: answers(strings.Replace(probe, "base64,", "base64,!", 1))}, from: FromNetwork,
			log: []string{asksScript, asksIgnition},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := guests(t, &c.world, c.change)
				if got := powered(t, g, c.from, Machine{Disks: []Disk{&c.disk}, Data: ported}, 45*time.Second); got != c.boot {
					t.Errorf("booted %+v, want %+v", got, c.boot)
				}
				if got := c.world.happened(); !slices.Equal(got, c.log) {
					t.Errorf("got  %q\nwant %q", got, c.log)
				}
				if c.disk.contents != c.holds {
					t.Errorf("the disk holds %q, want %q", c.disk.contents, c.holds)
				}
			})
		})
	}
}

func TestAnInstalledImageIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &memoryDisk{}
		g := guests(t, &world{boot: script("linux:5", " without ignition")}, nil)
		powered(t, g, FromNetwork, Machine{Disks: []Disk{disk}}, time.Second)
		if got := powered(t, g, FromDisk, Machine{Disks: []Disk{disk}}, time.Second); got.Kind != KindInstalled || got.Image != "linux:5" {
			t.Errorf("booted %+v", got)
		}
		disk.Write("")
		if got := powered(t, g, FromDisk, Machine{Disks: []Disk{disk}}, time.Second); got.Kind != KindNothing || got.Image != "" {
			t.Errorf("booted %+v", got)
		}
	})
}

func TestAThousandMachinesStopWithTheirPower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{boot: func(int) (int, string) { return http.StatusNotFound, "unknown" }}
		g := guests(t, w, func(o *Options) { o.FirmwareDelay = time.Second })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var running sync.WaitGroup
		for range 1000 {
			running.Go(func() { g.PoweredOn(ctx, Machine{UUID: uuid}, FromNetwork) })
		}
		running.Wait()
		if calls := len(w.happened()); calls > 1000*20 {
			t.Errorf("%d questions in 20 s; the pauses do not grow", calls)
		}
	})
}

func TestNewNeedsABootProvider(t *testing.T) {
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "ProviderURL") {
		t.Errorf("got %v", err)
	}
	if _, err := New(Options{ProviderURL: "http://p", BootState: &BootState{CABundle: []byte("x")}}); err == nil {
		t.Error("a bundle without certificates was accepted")
	}
}

func TestAnAgentSendsItsTokenUnlessToldNotTo(t *testing.T) {
	for name, c := range map[string]struct {
		noToken bool
		want    string
	}{
		"its own":              {false, "Bearer secret"},
		"none, where told not": {true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{boot: script("probe:1", ""), ignition: answers(written(t, metalprobe.PurposeProbe))}
				powered(t, guests(t, w, func(o *Options) { o.NoToken = c.noToken }), FromNetwork, Machine{}, time.Second)
				if w.credential != c.want {
					t.Errorf("sent %q, want %q", w.credential, c.want)
				}
			})
		})
	}
}
