// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/pflag"
)

// longHelp is what --help says before the flags.
const longHelp = `Measure a manager of metal.ironcore.dev/v1alpha1 on emulated servers.

The phases: one Endpoint for each BMC is created, until all servers are Available and off; nothing happens for --idle;
claims are created, until all are Bound and their servers Reserved and on; --maintenances are created, each approved where
its claim asks for that and deleted once it has its server, until all servers are as they were before; the claims are deleted, until all servers are
Available and off again. On and off are checked on the machines as well. One JSON object goes to stdout, progress to
stderr. docs/load.md explains every key.

The idle figure is what was counted in the window, scaled to an hour. It says something only when the window is longer
than the manager's longest poll period, and is exact when it is a whole multiple of it: metalaw polls each BMC every 3 to
3.3 minutes, so 200 s catches one poll of each.

The manager command is one program with its arguments, which a shell expands and executes (exec). It gets in its
environment:
  KUBECONFIG         with the rights of --manager-rights
  NAMESPACE          the manager's namespace
  REGISTRY_URL       where agents report, as they see it; REGISTRY_ADDRESS host:port, REGISTRY_PORT the port alone
  REGISTRY_PLAINTEXT true where --registry-tls=false
  MAINTENANCE        on where there are --maintenances, else off
  CERT_DIR           tls.crt, tls.key and ca.crt, good for the registry and the webhooks
  WEBHOOKS           true or false; WEBHOOK_PORT where the API server calls 127.0.0.1
  HEALTH_ADDRESS     host:port where /readyz has to be served; METRICS_ADDRESS for metrics over http
  MAC_PREFIXES       a MAC prefix database with the row of the emulated BMCs, for managers that read one from a file
  ROOT               the folder of this repository`

// defaultManager runs the manager that was built here.
const defaultManager = `"$ROOT"/bin/metalaw manager --kubeconfig="$KUBECONFIG" --namespace="$NAMESPACE"` +
	` --webhooks="$WEBHOOKS" --webhook-host=127.0.0.1 --webhook-port="$WEBHOOK_PORT" --webhook-cert-dir="$CERT_DIR"` +
	` --webhook-cert-rotation=false --registry-url="$REGISTRY_URL" --registry-bind-address="$REGISTRY_ADDRESS"` +
	` --registry-plaintext="$REGISTRY_PLAINTEXT" --health-probe-bind-address="$HEALTH_ADDRESS"` +
	` --metrics-bind-address="$METRICS_ADDRESS" --metrics-secure=false --no-release-grace --maintenance="$MAINTENANCE"`

// mostServers is what one loopback network of the emulator is kept to.
const mostServers = 20_000

// rights says what the manager may do.
type rights string

const (
	// rightsShipped are those of the service account in config/rbac.
	rightsShipped rights = "shipped"
	// rightsAdmin are all there are, for a manager whose roles are not in the manifests.
	rightsAdmin rights = "admin"
)

// options are the flags.
type options struct {
	servers, claims                int
	maintenances, atOnce           int
	powerDelay, bootDelay, latency time.Duration
	idle, timeout                  time.Duration
	webhooks                       bool
	registryTLS, agentToken        bool
	managerCommand                 string
	managerRights                  string
	manifests                      []string
	namespace, memoryLimit         string
	inventory                      string
	keep                           bool
}

func (o *options) register(f *pflag.FlagSet) {
	f.IntVar(&o.servers, "servers", 100, "how many servers to emulate")
	f.IntVar(&o.claims, "claims", -1, "how many claims to make; below 0 is half as many as servers")
	f.IntVar(&o.maintenances, "maintenances", 0, "how many maintenances to make, half of them of claimed servers where there are so many")
	f.IntVar(&o.atOnce, "at-once", 50, "how many servers may be down at a time while there are maintenances")
	f.DurationVar(&o.powerDelay, "power-delay", 50*time.Millisecond, "how long a change of power takes")
	f.DurationVar(&o.bootDelay, "boot-delay", 0, "how long the self test takes, from power-on to boot")
	f.DurationVar(&o.latency, "latency", 0, "added to every answer of a BMC")
	f.DurationVar(&o.idle, "idle", 200*time.Second, "how long to watch servers at rest; 0 leaves the phase out")
	f.DurationVar(&o.timeout, "timeout", 15*time.Minute, "the time that a phase is given before it counts as stalled")
	f.BoolVar(&o.webhooks, "webhooks", true, "let the API server call the manager's webhooks; false removes them")
	f.BoolVar(&o.registryTLS, "registry-tls", true, "agents report over https; false is plain http")
	f.BoolVar(&o.agentToken, "agent-token", true, "agents send the credential that they were given; false sends none")
	f.StringVar(&o.managerCommand, "manager-cmd", defaultManager, "shell command that runs the manager to measure")
	f.StringVar(&o.managerRights, "manager-rights", string(rightsShipped), "shipped: those of the service account in config/rbac; admin: all")
	f.StringSliceVar(&o.manifests, "manifests", []string{"config/default"}, "kustomizations to apply first, with the CRDs that the manager needs")
	f.StringVar(&o.namespace, "namespace", "metalaw-system", "the manager's namespace")
	f.StringVar(&o.memoryLimit, "memory-limit", "", "GOMEMLIMIT of the manager, such as the 460MiB that the shipped Deployment sets; empty sets none")
	f.StringVar(&o.inventory, "inventory", "", "file for tables of every request, by phase, in Markdown")
	f.BoolVar(&o.keep, "keep", false, "leave the logs behind after a good run too; after a failure they always stay")
}

// complete fills what follows from other flags, and says what is wrong.
func (o *options) complete() error {
	if o.claims < 0 {
		o.claims = o.servers / 2
	}
	switch {
	case o.servers < 1 || o.servers > mostServers:
		return fmt.Errorf("--servers %d: from 1 to %d", o.servers, mostServers)
	case o.claims > o.servers:
		return fmt.Errorf("--claims %d: there are only %d servers to claim", o.claims, o.servers)
	case o.maintenances < 0 || o.maintenances > o.servers:
		return fmt.Errorf("--maintenances %d: from 0 to %d, the number of servers", o.maintenances, o.servers)
	case o.maintenances > 0 && o.atOnce < 1:
		return fmt.Errorf("--at-once %d: at least 1", o.atOnce)
	case o.managerCommand == "":
		return fmt.Errorf("--manager-cmd is empty: leave it out for the manager that `make build` builds")
	case o.managerRights != string(rightsShipped) && o.managerRights != string(rightsAdmin):
		return fmt.Errorf("--manager-rights %q: write %s or %s", o.managerRights, rightsShipped, rightsAdmin)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %s: must be above 0", o.timeout)
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"power-delay", o.powerDelay}, {"boot-delay", o.bootDelay}, {"latency", o.latency}, {"idle", o.idle}} {
		if d.value < 0 {
			return fmt.Errorf("--%s %s: not below 0", d.flag, d.value)
		}
	}
	return nil
}

// settings is what a reader of the figures has to know.
func (o *options) settings() settings {
	s := settings{
		Servers: o.servers, Claims: o.claims, Maintenances: o.maintenances, Webhooks: o.webhooks,
		PowerDelay: o.powerDelay.Seconds(), BootDelay: o.bootDelay.Seconds(), Latency: o.latency.Seconds(),
		RegistryTLS: o.registryTLS, AgentToken: o.agentToken, Manager: "metalaw", Cores: runtime.NumCPU(), MemoryLimit: o.memoryLimit,
	}
	if o.managerCommand != defaultManager {
		s.Manager = o.managerCommand
	}
	return s
}
