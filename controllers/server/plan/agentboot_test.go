// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/server/identity"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/metalprobe"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// token is the credential of an agent in an entry.
func token(purpose v1alpha1.ProbePurpose, entry int64) *v1alpha1.ProbeCredential {
	return &v1alpha1.ProbeCredential{Purpose: purpose, Entry: entry, TokenHash: "hash"}
}

func credential(purpose v1alpha1.ProbePurpose, entry int64) func(*Seen) {
	return lifecycle(func(l *v1alpha1.LifecycleStatus) { l.Credential = token(purpose, entry) })
}

// minted has this process remember the credential of a boot of the present entry.
func minted(purpose v1alpha1.ProbePurpose) func(*Seen) {
	return func(s *Seen) { s.Memory.Mint(s.Server, *token(purpose, 7)) }
}

// names has the server name a boot configuration.
func names(namespace, name string) func(*Seen) {
	return func(s *Seen) {
		s.Server.Spec.BootConfigurationRef = &v1alpha1.ObjectReference{Namespace: namespace, Name: name}
	}
}

func refers(namespace, name string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Spec.BootConfigurationRef = &v1alpha1.ObjectReference{Namespace: namespace, Name: name}
	}
}

func noInterfaces(s *Seen) { s.Server.Status.NetworkInterfaces = nil }

// identified is what the BMC shows of its machine.
func identified(in identity.Input) func(*Seen) {
	return func(s *Seen) {
		in.UUID, in.Now = machineUUID, noon
		s.Identity = &in
	}
}

func rival(s *Seen) {
	s.Server.Spec.BMCRef = nil
	s.Rivals = []policyv1alpha1.RivalBMC{{Name: "rack8"}}
}

func TestAnAgentIsBootedFromANewIgnitionAndConfiguration(t *testing.T) {
	writes := []string{"confirm setting", "ignition of a for " + string(metalprobe.PurposeProbe) + " in entry 7", "boot a", "set"}
	reading := hardware.Reading[identity.Shown]{Tried: true, At: noon, Value: identity.Shown{Serials: []string{"S1"}}}
	stored := &policyv1alpha1.BMCIdentity{Serials: []string{"S1"}, ReadAt: micro(0)}
	const probe = v1alpha1.ProbePurposeProbe
	for name, c := range map[string]struct {
		seen Seen
		want want
	}{
		"after a look past the cache, the ignition before the configuration, the reference last": {seenIn(v1alpha1.StateDiscovery),
			want{acts: writes, records: refers("metalaw-system", "a")}},
		"also in place of one of a former entry": {seenIn(v1alpha1.StateDiscovery, booting(v1alpha1.BootPurposeProbe), credential(probe, 6)),
			want{acts: writes, records: refers("metalaw-system", "a")}},
		"also beside one of another purpose": {seenIn(v1alpha1.StateDiscovery, booting(v1alpha1.BootPurposeWipe), credential(v1alpha1.ProbePurposeWipe, 7)),
			want{acts: writes, records: refers("metalaw-system", "a")}},
		"nothing once it stands": {seenIn(v1alpha1.StateDiscovery, booting(v1alpha1.BootPurposeProbe), credential(probe, 7), minted(probe)), want{}},
		"one that another process wrote is looked at": {seenIn(v1alpha1.StateDiscovery, booting(v1alpha1.BootPurposeProbe), credential(probe, 7)),
			want{acts: []string{"mend the ignition of a"}}},
		"the token of one whose write was deferred": {seenIn(v1alpha1.StateDiscovery, booting(v1alpha1.BootPurposeProbe), minted(probe)),
			want{acts: []string{"set"}, records: func(s *v1alpha1.Server) { s.Status.Lifecycle.Credential = token(probe, 7) }}},
		"not on an old reading": {seenIn(v1alpha1.StateDiscovery, stale), want{acts: []string{"refresh"}, then: "waits WaitsForReading"}},
		"not before the interfaces are known": {seenIn(v1alpha1.StateDiscovery, noInterfaces, func(s *Seen) {
			s.BMC.System.NICs = []redfish.NIC{{Name: "1", MACAddress: "02:00:00:00:00:02"}}
		}), want{acts: []string{"set"}, then: "waits InterfacesRecorded 1ms", records: func(s *v1alpha1.Server) {
			s.Status.NetworkInterfaces = []v1alpha1.NetworkInterface{{Name: "1", MACAddress: "02:00:00:00:00:02"}}
		}}},
		"nor while some may be missing": {seenIn(v1alpha1.StateDiscovery, noInterfaces, lifecycle(func(l *v1alpha1.LifecycleStatus) {
			l.EnteredAt = micro(30 * time.Second)
		}), func(s *Seen) { s.BMC.System.NICsIncomplete = true }), want{acts: []string{"poll 0s"}, then: "waits WaitsForReading 10s"}},
		"nor while another machine answers": {seenIn(v1alpha1.StateDiscovery, noInterfaces, other), want{then: "waits WaitsForReading"}},
		"nor without any where the boot service needs them": {seenIn(v1alpha1.StateDiscovery, noInterfaces, func(s *Seen) { s.BootTarget = "UefiHttp" }),
			want{acts: []string{"poll 0s"}, then: "waits " + v1alpha1.ReasonInterfacesUnreported + " 15s"}},
		"a PXE boot needs none":                     {seenIn(v1alpha1.StateDiscovery, noInterfaces), want{acts: writes, records: refers("metalaw-system", "a")}},
		"not while another BMC shows the same UUID": {seenIn(v1alpha1.StateDiscovery, rival), want{acts: []string{"poll 0s"}, then: "waits RivalBMC 15s"}},
		"one that runs already waits for no rival":  {seenIn(v1alpha1.StateDiscovery, rival, on, booting(v1alpha1.BootPurposeProbe), credential(probe, 7), minted(probe)), want{}},
		"what the BMC shows of the machine is kept first": {seenIn(v1alpha1.StateDiscovery, identified(identity.Input{Reading: reading, Fresh: true})), want{
			acts: append([]string{"confirm record", "keep"}, writes...), records: refers("metalaw-system", "a"),
			keeps: func(i *policyv1alpha1.ServerInventory) { i.Identity = &policyv1alpha1.MachineIdentity{BMC: stored} }}},
		"and not again while it stays the same": {seenIn(v1alpha1.StateDiscovery, identified(identity.Input{Reading: reading, Fresh: true, Stored: stored})),
			want{acts: writes, records: refers("metalaw-system", "a")}},
		"and is asked for where it is old": {seenIn(v1alpha1.StateDiscovery, identified(identity.Input{Reading: reading})),
			want{acts: []string{"refresh identity", "poll 0s"}, then: "waits WaitsForReading 15s"}},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.seen, effect(policies.EffectBootProbe), c.want) })
	}
}

func TestAWipeIsBootedWithWhatThePolicyAndTheHolderAskOfIt(t *testing.T) {
	s := seenIn(v1alpha1.StateCleanup, custody(policyv1alpha1.Custody{MinimumTerm: policyv1alpha1.TermPurge}),
		func(s *Seen) { s.Settings.Wipe = bundle.Wipe{AcceptDriveErase: true} })
	check(t, s, effect(policies.EffectBootWipe), want{
		acts:    []string{"confirm wipe", "ignition of a-wipe for " + string(metalprobe.PurposeWipe) + " in entry 7", "boot a-wipe", "set"},
		records: refers("metalaw-system", "a-wipe")})
	for _, a := range Effect(s, effectOf(policies.EffectBootWipe)).Acts {
		i, is := a.(Ignition)
		if !is {
			continue
		}
		wipe := &metalprobe.WipePolicy{AcceptDriveErase: true, MinimumTerm: policyv1alpha1.TermPurge}
		want := metalprobe.Config{RegistryURL: "https://registry", ServerUUID: machineUUID, Purpose: metalprobe.PurposeWipe, Entry: 7, Wipe: wipe}
		if diff := diffOf(want, i.Config); diff != "" {
			t.Errorf("the ignition (-want +got)\n%s", diff)
		}
	}
}

func TestWhatIsOursOfABootIsTakenAway(t *testing.T) {
	drops := []string{"drop a, named false", "drop a-wipe, named false"}
	gone := func(s *v1alpha1.Server) { s.Spec.BootConfigurationRef, s.Status.Lifecycle.Credential = nil, nil }
	refused := power.Job{Err: errors.New("busy"), Words: "busy", EndedAt: noon.Add(-time.Minute)}
	for name, c := range map[string]struct {
		seen Seen
		want want
	}{
		"of a machine that has none": {seenIn(v1alpha1.StateAvailable, marks("Managed")), want{acts: drops}},
		"with the reference and the token": {seenIn(v1alpha1.StateAvailable, marks("Managed"), names("metalaw-system", "a"), credential(v1alpha1.ProbePurposeProbe, 7)), want{
			acts: []string{"permit setting", "drop a, named true", "drop a-wipe, named false", "set"}, records: gone}},
		"with a claim's reference on a machine that is ours": {seenIn(v1alpha1.StateAvailable, marks("Managed"), names("shop", "web")), want{
			acts: append(append([]string{"permit setting"}, drops...), "set"), records: gone}},
		"but not on one that is not ours": {seenIn(v1alpha1.StateInitial, names("shop", "web")), want{acts: append([]string{"permit setting"}, drops...)}},
		"of which the token goes all the same": {seenIn(v1alpha1.StateInitial, names("shop", "web"), credential(v1alpha1.ProbePurposeProbe, 6)), want{
			acts: append(append([]string{"permit setting"}, drops...), "set"), records: func(s *v1alpha1.Server) { s.Status.Lifecycle.Credential = nil }}},
		"an image is ejected last": {seenIn(v1alpha1.StateAvailable, inserted), want{
			acts: append(append([]string{}, drops...), "permit setting", "ask 7/eject-media call.Eject{Service:} as setting", "poll 0s"),
			then: "waits WaitsForEject 15s"}},
		"and forgotten once that succeeded": {seenIn(v1alpha1.StateAvailable, inserted, job("7/eject-media", power.Job{EndedAt: noon.Add(-time.Minute)})), want{
			acts: append(append([]string{}, drops...), "forget 7/eject-media", "set"), records: func(s *v1alpha1.Server) { s.Annotations = map[string]string{} }}},
		"one that stays is told after a while, and asked for again": {seenIn(v1alpha1.StateAvailable, inserted, job("7/eject-media", failed(time.Hour))), want{
			acts: append(append([]string{}, drops...), "tell MediaStays", "forget 7/eject-media", "permit setting", "ask 7/eject-media call.Eject{Service:} as setting", "poll 0s"),
			then: "waits WaitsForEject 15s"}},
		"and rests until then": {seenIn(v1alpha1.StateAvailable, inserted, job("7/eject-media", refused)), want{
			acts: append(append([]string{}, drops...), "wake 9m0s"), then: "fails WaitsForEject 10m0s"}},
		"not of a machine that may still boot from it": {seenIn(v1alpha1.StateAvailable, inserted, on), want{acts: append(append([]string{}, drops...), "remember")}},
		"but of one that booted from it": {seenIn(v1alpha1.StateAvailable, inserted, on, reported), want{
			acts: append(append([]string{}, drops...), "remember", "permit setting", "ask 7/eject-media call.Eject{Service:} as setting", "poll 0s"),
			then: "waits WaitsForEject 15s"}},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.seen, effect(policies.EffectClearBoot), c.want) })
	}
}

func TestABootConfigurationIsOursByItsEntryOrItsClaim(t *testing.T) {
	s := seenIn(v1alpha1.StateReserved, claimed(v1alpha1.PowerOn))
	owned := func(kind string, of metav1.Object, change ...func(*v1alpha1.ServerBootConfiguration)) *v1alpha1.ServerBootConfiguration {
		b := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: "a",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(of, v1alpha1.GroupVersion.WithKind(kind))},
			Annotations:     map[string]string{v1alpha1.BootPurposeAnnotation: v1alpha1.BootPurposeProbe, v1alpha1.BootEntryAnnotation: "7"}}}
		for _, c := range change {
			c(b)
		}
		return b
	}
	for name, c := range map[string]struct {
		boot *v1alpha1.ServerBootConfiguration
		ours bool
	}{
		"of this entry":        {owned("Server", s.Server), true},
		"of the claim":         {owned("ServerClaim", s.Claim, func(b *v1alpha1.ServerBootConfiguration) { b.Annotations = nil }), true},
		"of a former entry":    {owned("Server", s.Server, func(b *v1alpha1.ServerBootConfiguration) { b.Annotations[v1alpha1.BootEntryAnnotation] = "6" }), false},
		"of another purpose":   {owned("Server", s.Server, func(b *v1alpha1.ServerBootConfiguration) { b.Annotations[v1alpha1.BootPurposeAnnotation] = "Claim" }), false},
		"in another namespace": {owned("Server", s.Server, func(b *v1alpha1.ServerBootConfiguration) { b.Namespace = "shop" }), false},
		"of another server":    {owned("Server", &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{UID: "b"}}), false},
		"of another claim":     {owned("ServerClaim", &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{UID: "b"}}), false},
	} {
		if ours := s.Ours(c.boot); ours != c.ours {
			t.Errorf("one %s is ours: %t", name, ours)
		}
	}
}
