// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/identity"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/metalprobe"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

func (s *Seen) probe() boots.Agent { return boots.Probe(s.Server, s.Namespace, s.ProbeImage) }

func (s *Seen) wipe() boots.Agent { return boots.Wipe(s.Server, s.Namespace, s.WipeImage) }

func bootProbe(d *draft, _ engine.Effect) loop.Progress { return agentBoot(d, d.probe()) }

func bootWipe(d *draft, _ engine.Effect) loop.Progress { return agentBoot(d, d.wipe()) }

// agentBoot writes the ignition with a token for this server, purpose and entry, then the boot configuration, then the
// reference. The executor looks each one up before it writes, so that a crash between two of them costs nothing.
func agentBoot(d *draft, a boots.Agent) loop.Progress {
	if p, held := rivalHolds(d); held {
		return p
	}
	if p, ok := interfacesKnown(d); !ok {
		return p
	}
	if a.Stands(d.Server, d.Boot) {
		if d.Memory.Credential(d.Server, d.Server.Status.Lifecycle.Credential.Purpose) == nil {
			d.do(MendIgnition{Agent: a})
		}
		return loop.Holds()
	}
	if minted := d.Memory.Credential(d.Server, v1alpha1.ProbePurpose(a.Token)); minted != nil && a.Is(d.Boot) {
		d.set(func(s *v1alpha1.Server) { s.Status.Lifecycle.Credential = minted }) // its write was deferred
		return loop.Holds()
	}
	if p, ok := d.powerKnown(); !ok { // a person may have switched it on since it was last read
		return p
	}
	if p, ok := identityKept(d); !ok {
		return p
	}
	d.do(Confirm{Action: a.Action}, Ignition{Agent: a, Config: ignitionOf(d, a)}, AgentBoot{Agent: a})
	d.set(func(s *v1alpha1.Server) {
		s.Spec.BootConfigurationRef = &v1alpha1.ObjectReference{Namespace: a.Namespace, Name: a.Name}
	})
	return loop.Holds()
}

// ignitionOf is what the agent of this entry boots with, but for its token.
func ignitionOf(d *draft, a boots.Agent) metalprobe.Config {
	config := metalprobe.Config{RegistryURL: d.RegistryURL, ServerUUID: d.Server.Spec.SystemUUID, Purpose: a.Program,
		Entry: d.Server.Status.Lifecycle.Entry}
	if a.Program == metalprobe.PurposeWipe {
		config.Wipe = boots.WipePolicy(d.Settings.Wipe, d.Inventory)
	}
	return config
}

// rivalHolds waits while another BMC shows the UUID of the server and nothing proves its machine. A machine that runs
// is not booted.
func rivalHolds(d *draft) (loop.Progress, bool) {
	why := gates.RivalHolds(identity.BMCOf(d.Server), d.Inventory, d.Rivals)
	if why == "" || d.Shows(redfish.PowerOn) {
		return loop.Progress{}, false
	}
	return loop.Waiting(gates.RivalBMC, why, d.poll()), true
}

// identityKept keeps in the inventory what the BMC shows of the machine now, before an agent is booted that will name
// itself. It never takes it from a report, nor from the status, which reports fill.
func identityKept(d *draft) (loop.Progress, bool) {
	if d.Identity == nil {
		return loop.Progress{}, true
	}
	if !d.Identity.Fresh {
		d.do(RefreshIdentity{})
	}
	out := identity.Decide(*d.Identity)
	if out.Waits != "" {
		return loop.Waiting(power.WaitsForReading, out.Waits, d.poll()), false
	}
	if out.Store != nil {
		d.do(Confirm{Action: fleet.Record}, Keep{To: func(i *policyv1alpha1.ServerInventory) { identity.Of(i).BMC = out.Store }})
	}
	return loop.Progress{}, true
}

// interfacesKnown sees to status.networkInterfaces before a boot configuration is written, because boot services find the
// machine by them and do not watch servers. A PXE boot needs none: it is matched by UUID.
func interfacesKnown(d *draft) (loop.Progress, bool) {
	if len(d.Server.Status.NetworkInterfaces) > 0 {
		return loop.Progress{}, true
	}
	if !d.same() {
		return loop.Waiting(power.WaitsForReading, "the BMC to name the network interfaces", 0), false
	}
	if d.BMC.System.NICsIncomplete && d.Now.Sub(d.Server.Status.Lifecycle.EnteredAt.Time) < d.PowerGrace {
		return loop.Waiting(power.WaitsForReading, "the BMC to name all network interfaces", d.poll()), false
	}
	nics := status.KnownInterfaces(nil, status.InterfacesOf(d.BMC.System.NICs), d.BMC.Stated.Stated)
	switch {
	case len(nics) > 0:
		d.set(func(s *v1alpha1.Server) { s.Status.NetworkInterfaces = nics })
		return loop.Waiting("InterfacesRecorded", "the network interfaces are recorded first", time.Millisecond), false
	case d.BootTarget == status.TargetHTTP: // it would boot what the service serves to machines that it does not know
		return loop.Waiting(v1alpha1.ReasonInterfacesUnreported, "a MAC address of the machine; the condition "+
			v1alpha1.ConditionInterfacesUnknown+" says how to give one", d.poll()), false
	}
	return loop.Progress{}, true
}

// clearBoot takes away the boot configurations that are ours, and their tokens. A machine that is not ours keeps a
// reference to what is not ours either.
func clearBoot(d *draft, _ engine.Effect) loop.Progress { return clearBoots(d) }

func clearBoots(d *draft) loop.Progress {
	if d.Server.Spec.BootConfigurationRef != nil {
		d.permit(fleet.Setting)
	}
	clears := d.Facts.Operation.Consented || slices.Contains(d.Facts.Lifecycle.Marks, policies.MarkManaged)
	for _, a := range []boots.Agent{d.probe(), d.wipe()} {
		named := a.Named(d.Server)
		clears = clears || named
		d.do(DropAgentBoot{Agent: a, Named: named})
	}
	if clears && d.Server.Spec.BootConfigurationRef != nil || d.Server.Status.Lifecycle.Credential != nil {
		d.set(func(s *v1alpha1.Server) {
			if clears {
				s.Spec.BootConfigurationRef = nil
			}
			s.Status.Lifecycle.Credential = nil
		})
	}
	return ejectMedia(d)
}
