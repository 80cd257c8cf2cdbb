// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
	agent "github.com/metalaw/metalaw/metalprobe/machine"
)

const (
	// settleQuiet is how long no new device must have come before the hardware is read, and settleLimit how long that may take.
	settleQuiet, settleLimit = 3 * time.Second, 2 * time.Minute
	// networkLimit is how long the first look for a configuration in the network waits for an address.
	networkLimit = 30 * time.Second
)

// Main does what belongs to the first process of a machine and to its child, and returns false in any other process. As the first
// process it never returns. built is when the program was built, in RFC 3339; empty where that is not known.
func Main(version, built string) bool {
	switch {
	case isInit():
		supervise(version)
	case filepath.Base(os.Args[0]) == childName:
		ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
		day, _ := time.Parse(time.RFC3339, built) // then the clock is not corrected
		(&machine{console: newConsole(uptime, consoles()...), version: version, built: day}).run(ctx)
		stop()
		return true
	case os.Args[0] == helper:
		if err := help(os.Args); err != nil {
			os.Exit(1)
		}
		return true
	}
	return false
}

// machine is the child of the first process: it makes the machine ready and is the agent.
type machine struct {
	console *console
	version string
	built   time.Time
}

// run ends only when ctx does: the manager switches the machine off through its BMC.
func (m *machine) run(ctx context.Context) {
	if err := m.work(ctx); err != nil && ctx.Err() == nil {
		m.console.say("agent", "%v", err)
	}
	if ctx.Err() == nil {
		m.console.say("agent", "nothing more to do; waiting for power-off")
	}
	<-ctx.Done()
	m.console.say("agent", "stopped")
	m.console.flush()
}

func (m *machine) work(ctx context.Context) error {
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		m.console.say("init", "kernel command line: %v", err)
	}
	args := arguments(string(line))
	if err := offerHelper(selfPath()); err != nil {
		m.console.say("modules", "the kernel cannot load modules itself: %v", err)
	}
	if err := mountVariables(); err != nil {
		m.console.say("init", "%v", err)
	}
	// The network begins while modules are still being loaded.
	n := newNetwork(m.console, bootInterface(args[bootInterfaceArgument]))
	go n.run(ctx)
	problems := m.loadModules(ctx)
	m.waitForNetwork(ctx, n, args[ignitionArgument] != "")
	setClock(ctx, m.console, m.built, n.timeServers())
	options, ok := m.configure(ctx, args[ignitionArgument], n, problems)
	if !ok {
		return ctx.Err()
	}
	return agent.Run(ctx, options, m.version, slog.New(m.console))
}

// selfPath is where this program lies: the child is started by way of /proc, which leads elsewhere in another process.
func selfPath() string {
	path, err := os.Executable()
	if err != nil {
		return "/init"
	}
	return path
}

// loadModules loads the modules of the devices of this machine until no new device came for some time. The returned function says
// what is not loaded at the time of its call.
func (m *machine) loadModules(ctx context.Context) func() []policyv1alpha1.ProbeProblem {
	fail := func(err error) func() []policyv1alpha1.ProbeProblem {
		m.console.say("modules", "%v", err)
		return func() []policyv1alpha1.ProbeProblem {
			return []policyv1alpha1.ProbeProblem{problem("%v; devices may be missing in this report", err)}
		}
	}
	dir := modulesDir()
	indexes, err := readModules(os.DirFS(dir))
	if err != nil {
		return fail(fmt.Errorf("%s: %w", dir, err))
	}
	events, err := listen(ctx)
	if err != nil {
		return fail(err)
	}
	l := newLoader(indexes, inserter(dir))
	s := &settling{loader: l, events: events, quiet: settleQuiet, limit: settleLimit,
		aliases: func() []string { return deviceAliases(os.DirFS("/sys")) }}
	if !s.settle(ctx) {
		m.console.say("modules", "devices still come after %s; going on", settleLimit)
	}
	go s.follow(ctx)
	for _, p := range l.problems() {
		m.console.say("modules", "%s", p.Message)
	}
	m.console.say("modules", "%d loaded", l.count())
	return l.problems
}

// waitForNetwork waits for an address, so that the first look for a configuration is not in vain. The network goes on in the
// background in any case.
func (m *machine) waitForNetwork(ctx context.Context, n *network, needed bool) {
	limit := networkLimit
	if !needed {
		limit = time.Second // a configuration in the image or on a medium is found without
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-n.first:
	case <-timer.C:
		m.console.say("network", "no interface has an address after %s; going on", limit)
	case <-ctx.Done():
	}
}

// configure waits for a configuration that can be used on this machine.
func (m *machine) configure(
	ctx context.Context, address string, n *network, problems func() []policyv1alpha1.ProbeProblem,
) (agent.Options, bool) {
	root := os.DirFS("/")
	s := &sources{root: root, media: media(address == ""), url: address, fetch: fetcher(root)}
	say := func(format string, args ...any) { m.console.say("config", format, args...) }
	for {
		config, ok := s.wait(ctx, say, func() { n.prefer(ctx, hostPort(address)) })
		if !ok {
			return agent.Options{}, false
		}
		options := agent.Options{Config: config, Problems: problems, OnPhase: m.phase}
		if err := options.Identify(agent.FirmwareUUID(root)); err != nil {
			say("%v", err)
			if !metalprobe.Wait(ctx, sayAgain) {
				return options, false
			}
			continue
		}
		n.prefer(ctx, hostPort(config.RegistryURL))
		options.Network = n.named()
		return options, true
	}
}

// phase prints what the agent does.
func (m *machine) phase(phase, detail string, percent int32) {
	switch {
	case percent > 0:
		m.console.say(phase, "%s %d%%", detail, percent)
	case detail != "":
		m.console.say(phase, "%s", detail)
	default:
		m.console.say(phase, "begins")
	}
}

// hostPort is where a URL leads.
func hostPort(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
