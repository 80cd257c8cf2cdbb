// SPDX-License-Identifier: Apache-2.0

// Package guest is what runs on emulated machines: it fetches what to boot as firmware does, then an ignition as Ignition does,
// and then is the agent or an operating system, as that says. It speaks with IronCore's boot-operator as with the boot provider of the
// tests. A thousand of them share a few connections.
//
// One thing is invented: an operating system whose boot configuration names no Secret boots without asking for an ignition, where the
// boot provider says so. With boot-operator it asks, gets no answer, and asks again.
package guest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

// Source is where a machine boots from.
type Source string

const (
	// FromNetwork boots what the boot provider's iPXE script says.
	FromNetwork Source = "Network"
	// FromUEFIHTTP boots the UKI that the boot provider has for one of the machine's addresses.
	FromUEFIHTTP Source = "UEFIHTTP"
	// FromDisk boots what was installed last.
	FromDisk Source = "Disk"
)

// Kind is what a machine runs.
type Kind string

const (
	// KindProbe is the agent that describes the machine.
	KindProbe Kind = "Probe"
	// KindWipe is the agent that erases the machine's disks.
	KindWipe Kind = "Wipe"
	// KindImage is an operating system that came over the network and is on the disks from now on.
	KindImage Kind = "Image"
	// KindLive is an operating system that came over the network, runs in memory and leaves the disks as they are.
	KindLive Kind = "Live"
	// KindInstalled is the operating system on the disks.
	KindInstalled Kind = "Installed"
	// KindNothing is a machine that finds nothing to boot on its disks.
	KindNothing Kind = "Nothing"
)

// Live begins the name of an image that runs in memory.
const Live = "live/"

// Boot is one boot of a machine.
type Boot struct {
	UUID string
	Kind Kind
	// Image is what the boot provider named; for KindInstalled what was installed, where that is known.
	Image string
	// Configuration is the boot configuration, as namespace/name.
	Configuration string
	// Entry is the lifecycle entry that the agent was booted for.
	Entry int64
	At    time.Time
}

// Disk is one disk of a machine.
type Disk interface {
	// Info describes the disk.
	Info() policyv1alpha1.BlockDevice
	// Facts are what the kernel would say of how the disk is attached. The agent judges them as it does on real machines.
	Facts() metalprobe.DiskFacts
	// Erase erases the disk, and stops when ctx ends.
	Erase(ctx context.Context) error
	// Erased says whether the disk was erased since something was last written.
	Erased() bool
	// Content says whether the disk holds data, and where.
	Content() (content policyv1alpha1.DiskContent, found string)
}

// Writer is a Disk that can hold data; an operating system that boots from the network writes to it.
type Writer interface {
	Write(contents string)
}

// Machine is what a guest runs on.
type Machine struct {
	UUID string
	// Data is what the agent finds. Its Storage is filled from Disks where it is empty.
	Data  metalprobe.Data
	Disks []Disk
}

// BootState makes operating systems report that they are up.
type BootState struct {
	// RegistryURL and CABundle say where to report, and whom to trust there.
	RegistryURL string
	CABundle    []byte
	// Delay is how long an operating system takes to be up.
	Delay time.Duration
}

// Options say how guests behave.
type Options struct {
	// ProviderURL is where the boot provider is: IronCore's boot-operator, or the one of the tests.
	ProviderURL string
	// HTTP asks the boot provider. Nil means one client that all guests share.
	HTTP *http.Client
	// FirmwareDelay is the time from power-on to the first question, AgentDelay from the answer to the first report.
	FirmwareDelay, AgentDelay time.Duration
	// Retry bounds the pause between questions that were not answered; zero means 100 ms to 5 s.
	Retry Retry
	// Interval is the time between two reports of an agent; zero means metalprobe.DefaultInterval.
	Interval time.Duration
	// NoToken makes agents send no credential, as those do that were given none.
	NoToken bool
	// BootState makes operating systems report; nil means that they are silent.
	BootState *BootState
	// OnBoot is told of each boot, before anything is reported; nil tells nobody. It must not block.
	OnBoot func(Boot)
	// Log receives one line for each decision of an agent; nil discards.
	Log *slog.Logger
}

// Retry bounds a growing pause.
type Retry struct{ First, Max time.Duration }

// Guests runs what emulated machines boot. It is safe for concurrent use.
type Guests struct {
	options Options
	up      *metalprobe.Client

	mu        sync.Mutex
	clients   map[string]*http.Client
	last      map[string]Boot
	installed map[string]string
}

// New checks the options.
func New(options Options) (*Guests, error) {
	if options.ProviderURL == "" {
		return nil, errors.New("guests: ProviderURL is empty; say where the boot provider listens")
	}
	if options.Retry.First <= 0 {
		options.Retry.First = 100 * time.Millisecond
	}
	if options.Retry.Max < options.Retry.First {
		options.Retry.Max = max(options.Retry.First, 5*time.Second)
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	g := &Guests{
		options: options, clients: map[string]*http.Client{}, last: map[string]Boot{}, installed: map[string]string{},
	}
	if g.options.HTTP == nil {
		shared, err := g.client("")
		if err != nil {
			return nil, err
		}
		g.options.HTTP = shared
	}
	if state := options.BootState; state != nil {
		trusting, err := g.client(string(state.CABundle))
		if err != nil {
			return nil, err
		}
		g.up = &metalprobe.Client{BaseURL: state.RegistryURL, HTTP: trusting}
	}
	return g, nil
}

// Last is the latest boot of a machine; false where it has not booted.
func (g *Guests) Last(uuid string) (Boot, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	boot, known := g.last[uuid]
	return boot, known
}

// PoweredOn runs a machine until it is powered off, which is when ctx ends; call it in a goroutine of its own.
// A machine whose boot data cannot be had keeps asking. A repeated call is another power-on.
func (g *Guests) PoweredOn(ctx context.Context, machine Machine, from Source) {
	if !metalprobe.Wait(ctx, g.options.FirmwareDelay) {
		return
	}
	if from == FromDisk {
		g.fromDisk(ctx, machine)
		return
	}
	data, err := g.fetch(ctx, machine, from)
	if err != nil {
		return // powered off before there was an answer
	}
	text, err := g.ignite(ctx, machine, data)
	if ctx.Err() != nil {
		return
	}
	var config metalprobe.Config
	if err == nil && data.IgnitionURL != "" {
		config, err = agentConfig(text)
	}
	switch {
	case errors.Is(err, metalprobe.ErrNoConfig), err == nil && data.IgnitionURL == "":
		g.runImage(ctx, machine, data)
	case err != nil:
		g.options.Log.Error("boot data cannot be used", "server", machine.UUID, "configuration", data.SBC, "error", err)
	default:
		g.runAgent(ctx, machine, data, config)
	}
}

// record notes a boot; nothing is noted once the machine is off.
func (g *Guests) record(ctx context.Context, boot Boot) {
	if ctx.Err() != nil {
		return
	}
	boot.At = time.Now()
	g.mu.Lock()
	g.last[boot.UUID] = boot
	if boot.Kind == KindImage {
		g.installed[boot.UUID] = boot.Image
	}
	if boot.Kind == KindNothing {
		delete(g.installed, boot.UUID)
	}
	g.mu.Unlock()
	if g.options.OnBoot != nil {
		g.options.OnBoot(boot)
	}
}

func (g *Guests) fromDisk(ctx context.Context, machine Machine) {
	kind := KindNothing
	for _, disk := range machine.Disks {
		if !disk.Erased() {
			kind = KindInstalled
		}
	}
	g.mu.Lock()
	image := g.installed[machine.UUID]
	g.mu.Unlock()
	if kind == KindNothing {
		image = ""
	}
	g.record(ctx, Boot{UUID: machine.UUID, Kind: kind, Image: image})
	if kind == KindInstalled {
		g.reportUp(ctx, machine.UUID)
	}
}

func (g *Guests) runImage(ctx context.Context, machine Machine, data bootData) {
	kind := KindImage
	if strings.HasPrefix(data.Image, Live) {
		kind = KindLive
	}
	g.record(ctx, Boot{UUID: machine.UUID, Kind: kind, Image: data.Image, Configuration: data.SBC})
	for _, disk := range machine.Disks {
		if writer, can := disk.(Writer); can && kind == KindImage && ctx.Err() == nil {
			writer.Write("written by " + data.Image)
		}
	}
	g.reportUp(ctx, machine.UUID)
}

// reportUp says that the operating system is up, where guests were told to.
func (g *Guests) reportUp(ctx context.Context, uuid string) {
	if g.up == nil || !metalprobe.Wait(ctx, g.options.BootState.Delay) {
		return
	}
	if err := g.up.BootState(ctx, uuid, true); err != nil && ctx.Err() == nil {
		g.options.Log.Warn("boot state not reported", "server", uuid, "error", err)
	}
}

// client gives the one HTTP client for a CA bundle, so that all guests share its connections.
func (g *Guests) client(bundle string) (*http.Client, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if known := g.clients[bundle]; known != nil {
		return known, nil
	}
	fresh, err := metalprobe.NewHTTPClient([]byte(bundle))
	if err != nil {
		return nil, err
	}
	g.clients[bundle] = fresh
	return fresh, nil
}
