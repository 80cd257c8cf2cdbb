// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

const uuid = "4c4c4544-0042-3510-8054-b7c04f4d4d32"

// world is the boot provider and the registry in one transport: it writes down what it is asked.
type world struct {
	mu  sync.Mutex
	log []string
	// boot answers the call for a script, and ignition the call for an ignition, where what is asked for is more than its text.
	boot     func(call int) (status int, body string)
	ignition func(call int) (status int, body string)
	asked    int
	refuses  bool
	fetches  int
	// credential is what the last report came with.
	credential string
}

func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var text []byte
	if r.Body != nil {
		text, _ = io.ReadAll(r.Body)
	}
	line := r.Method + " " + r.URL.Path
	status, body := http.StatusOK, `{"current":true}`
	switch {
	case strings.HasPrefix(r.URL.Path, "/ipxe/"), r.URL.Path == "/httpboot":
		w.fetches++
		status, body = w.boot(w.fetches)
		if forwarded := r.Header.Get("X-Forwarded-For"); forwarded != "" {
			line += " for " + forwarded
		}
	case strings.HasPrefix(r.URL.Path, "/ignition/"):
		w.asked++
		status, body = w.ignition(w.asked)
	case r.URL.Path == "/register":
		w.credential = r.Header.Get("Authorization")
		if w.refuses {
			status, body = http.StatusUnauthorized, `{"error":"no"}`
		}
	case w.refuses:
		status, body = http.StatusUnauthorized, `{"error":"no"}`
	case r.URL.Path == "/wipe":
		var report metalprobe.WipeReport
		if err := json.Unmarshal(text, &report); err != nil {
			return nil, err
		}
		line += " " + string(report.State)
	}
	w.log = append(w.log, line)
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (w *world) happened() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

// memoryDisk is a disk in memory.
type memoryDisk struct {
	mu       sync.Mutex
	contents string
	fails    error
	// facts replaces those of a SATA disk.
	facts *metalprobe.DiskFacts
}

func (d *memoryDisk) Info() policyv1alpha1.BlockDevice {
	return policyv1alpha1.BlockDevice{Path: "/dev/vda", Serial: "S"}
}

func (d *memoryDisk) Facts() metalprobe.DiskFacts {
	if d.facts != nil {
		return *d.facts
	}
	return metalprobe.DiskFacts{Name: "vda", Device: "devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/vda"}
}

func (d *memoryDisk) Write(contents string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.contents = contents
}

func (d *memoryDisk) Erased() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.contents == ""
}

func (d *memoryDisk) Content() (content policyv1alpha1.DiskContent, found string) {
	if d.Erased() {
		return policyv1alpha1.ContentBlank, ""
	}
	return policyv1alpha1.ContentData, "data at byte 0"
}

func (d *memoryDisk) Erase(context.Context) error {
	if d.fails == nil {
		d.Write("")
	}
	return d.fails
}

// script is the script for an image; note says more of its boot configuration.
func script(image, note string) func(int) (int, string) {
	name, version, _ := strings.Cut(image, ":")
	return func(int) (int, string) {
		return http.StatusOK, "#!ipxe\n# boot configuration ns/name" + note + "\nset svc http://provider\necho Loading\nkernel ${svc}/image?imageName=" + name +
			"&version=" + version + " initrd=initrd ignition.config.url=${svc}/ignition/${uuid} console=tty0\nboot\n"
	}
}

// answers gives the same text at every call.
func answers(text string) func(int) (int, string) {
	return func(int) (int, string) { return http.StatusOK, text }
}

func written(t *testing.T, purpose metalprobe.Purpose) string {
	t.Helper()
	text, err := metalprobe.BuildIgnition(metalprobe.Config{
		RegistryURL: "https://registry", ServerUUID: uuid, Token: "secret", Purpose: purpose, Entry: 7,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// gzipped is an ignition with the agent's file as Butane compresses it.
func gzipped(t *testing.T, config string) string {
	t.Helper()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write([]byte(config)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return `{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/metalprobe/config.json","contents":{"compression":"gzip","source":"data:;base64,` +
		base64.StdEncoding.EncodeToString(packed.Bytes()) + `"}}]}}`
}

// starting is an ignition of somebody else, with one unit.
func starting(command string) string {
	return `{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":"a.service","contents":"[Service]\nExecStart=` + command + `\n"}]}}`
}

func guests(t *testing.T, w *world, change func(*Options)) *Guests {
	t.Helper()
	options := Options{ProviderURL: "http://provider", HTTP: &http.Client{Transport: w}}
	if change != nil {
		change(&options)
	}
	g, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	g.clients[""] = options.HTTP
	if g.up != nil {
		g.up.HTTP = options.HTTP
	}
	return g
}

// ported is what the agent finds on a machine with one network interface.
var ported = metalprobe.Data{NetworkInterfaces: []policyv1alpha1.ProbeNetworkInterface{{Name: "eth0", MACAddress: "02:4d:4c:00:00:01"}}}

// powered runs a machine for a while.
func powered(t *testing.T, g *Guests, from Source, machine Machine, howLong time.Duration) Boot {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), howLong)
	defer cancel()
	machine.UUID = uuid
	g.PoweredOn(ctx, machine, from)
	boot, _ := g.Last(uuid)
	boot.At = time.Time{}
	return boot
}

func TestAMachineSaysWhichOfItsOwnDisksHoldData(t *testing.T) {
	remote := &metalprobe.DiskFacts{Name: "sda", Device: "devices/platform/host1/session1/target1:0:0/1:0:0:0/block/sda"}
	for name, c := range map[string]struct {
		disk *memoryDisk
		want policyv1alpha1.DiskContent
	}{
		"a disk with data":    {&memoryDisk{contents: "tenant"}, policyv1alpha1.ContentData},
		"a disk without":      {&memoryDisk{}, policyv1alpha1.ContentBlank},
		"a disk of elsewhere": {&memoryDisk{contents: "another machine's", facts: remote}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			data := Machine{Disks: []Disk{c.disk}}.describe(time.Now())
			if got := data.Storage[0].Content; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
