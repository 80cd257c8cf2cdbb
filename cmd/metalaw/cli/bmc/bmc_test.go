// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/redfish"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// spareServer may be exercised.
func spareServer() metalv1alpha1.Server {
	s := metalv1alpha1.Server{}
	s.Name, s.Spec.Unclaimable = "s0", true
	s.Status.State, s.Status.PowerState = metalv1alpha1.StateAvailable, metalv1alpha1.PowerStateOff
	s.Status.Lifecycle = &metalv1alpha1.LifecycleStatus{}
	return s
}

func TestOnlyASpareMachineIsExercised(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*metalv1alpha1.Server)
		want   string
	}{
		"spare": {func(*metalv1alpha1.Server) {}, ""},
		"claimed": {func(s *metalv1alpha1.Server) {
			s.Spec.ServerClaimRef = &metalv1alpha1.ObjectReference{Namespace: "ns", Name: "c"}
		}, "Server s0 is claimed by ns/c"},
		"not cordoned": {func(s *metalv1alpha1.Server) { s.Spec.Unclaimable = false },
			"Server s0 is not cordoned; cordon it: metalaw server cordon s0"},
		"dirty": {func(s *metalv1alpha1.Server) { s.Status.Lifecycle.Marks = []string{"Dirty"} }, "Server s0 may hold data (mark Dirty)"},
		"being wiped": {func(s *metalv1alpha1.Server) { s.Status.State = metalv1alpha1.StateCleanup },
			"Server s0 is Cleanup, not Available"},
		"without a lifecycle": {func(s *metalv1alpha1.Server) { s.Status.Lifecycle = nil }, "Server s0 has no lifecycle yet, so it may hold data"},
		"running":             {func(s *metalv1alpha1.Server) { s.Status.PowerState = metalv1alpha1.PowerStateOn }, "Server s0 is not Off (On)"},
		"of unknown power":    {func(s *metalv1alpha1.Server) { s.Status.PowerState = "" }, "Server s0 is not Off ()"},
		"handed over to maintenance": {func(s *metalv1alpha1.Server) {
			s.Spec.ServerMaintenanceRef = &metalv1alpha1.ObjectReference{Namespace: "ns", Name: "m"}
		}, "Server s0 is handed to maintenance ns/m"},
	} {
		t.Run(name, func(t *testing.T) {
			s := spareServer()
			c.change(&s)
			if got := strings.Join(refusals([]metalv1alpha1.Server{s}), "; "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := refusals(nil); len(got) != 1 {
		t.Errorf("a BMC without a Server: %q", got)
	}
}

// machine is an emulated machine and how its BMC is reached.
func machine(t *testing.T, profile string) (*emulator.Machine, redfish.Endpoint, redfish.Credentials) {
	t.Helper()
	fleet := emulator.New(emulator.Options{Delays: emulator.Delays{Power: -1, Boot: -1, BMCReset: 100 * time.Millisecond}})
	m := fleet.Add(emulator.MachineSpec{Profile: profile})
	if err := fleet.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fleet.Close)
	user, password := m.Credentials()
	endpoint := redfish.Endpoint{Address: m.Address(), Port: m.Port(), Scheme: "http"}
	if strings.HasPrefix(m.URL(), "https") {
		endpoint.Scheme, endpoint.InsecureSkipVerify = "https", true
	}
	return m, endpoint, redfish.Credentials{Username: user, Password: password}
}

// exercised runs the steps on an emulated machine.
func exercised(t *testing.T, m *emulator.Machine, endpoint redfish.Endpoint, credentials redfish.Credentials, allowed func() error) *Report {
	t.Helper()
	pool := redfish.NewPool(redfish.PoolOptions{BreakerBase: time.Millisecond, BreakerMax: time.Millisecond, ShowPause: time.Millisecond})
	t.Cleanup(func() { _ = pool.Close(context.Background()) })
	b := pool.Get("a", endpoint, credentials)
	manager, err := b.Manager(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.System(t.Context(), manager.SystemURIs[0])
	if err != nil {
		t.Fatal(err)
	}
	at := redfish.SystemAt{URI: s.URI, Identity: s.Identity}
	sessions := 0
	e := &exercise{
		bmc: b, at: at, know: redfish.ManagerIdentity{UUID: manager.UUID, SerialNumber: manager.SerialNumber, Systems: []redfish.SystemAt{at}},
		open: func() redfish.BMC {
			sessions++
			return pool.Get(fmt.Sprintf("b%d", sessions), endpoint, credentials)
		},
		limits: limits{Power: time.Second, POST: time.Second, Restart: 5 * time.Second, Poll: 5 * time.Millisecond},
		media:  "http://192.0.2.1/probe.iso",
		report: &Report{}, now: time.Now, said: func(Step) {},
		allowed: func(context.Context) error { return allowed() },
	}
	e.run(t.Context())
	if strings.Contains(fmt.Sprint(m.Media()), "192.0.2.1") {
		t.Errorf("the image is left in: %v", m.Media())
	}
	if m.Power() != emulator.PowerOff {
		t.Errorf("the machine is left %s", m.Power())
	}
	return e.report
}

func TestAnExerciseOfAnEmulatedMachine(t *testing.T) {
	m, endpoint, credentials := machine(t, emulator.ProfileGeneric)
	report := exercised(t, m, endpoint, credentials, func() error { return nil })
	got := map[string]Result{}
	for _, s := range report.Steps {
		got[s.Name] = s.Result
		if s.Result != Passed {
			t.Logf("%s: %s", s.Name, s.Detail)
		}
	}
	want := map[string]Result{
		"power on once from Pxe": Passed, "override used, or kept until cleared": Passed, "override cleared": Passed, "force off": Passed,
		"virtual media in and out": Passed, "BMC restart": Passed, "ten sessions, one after the other": Passed,
	}
	if diff := cmp.Diff(want, got); diff != "" || !report.passed() {
		t.Error(diff)
	}
}

func TestAMachineThatIsSpareNoMoreIsNotSwitchedOn(t *testing.T) {
	m, endpoint, credentials := machine(t, emulator.ProfileOpenBMC)
	report := exercised(t, m, endpoint, credentials, func() error { return errors.New("Server s0 is claimed by ns/c") })
	if m.Boots() != 0 || len(m.Resets()) != 0 || report.passed() {
		t.Errorf("%d boots, resets %v, %+v", m.Boots(), m.Resets(), report.Steps)
	}
}

func TestACapturedMachineIsServedAgain(t *testing.T) {
	_, endpoint, credentials := machine(t, emulator.ProfileDell)
	file := filepath.Join(t.TempDir(), "bmc.tar.gz")
	var out bytes.Buffer
	if err := captured(t.Context(), &terminal.Terminal{Out: &out, Err: &out}, endpoint, credentials, written{file: file}); err != nil {
		t.Fatal(err)
	}
	if _, err := emulator.ReadTree(file); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestAReportIsNamedByModelAndFirmware(t *testing.T) {
	r := Report{Manufacturer: "Dell Inc.", Model: "PowerEdge R750", BMCFirmware: "6.00.30"}
	if got := r.objectName(); got != "qualification-dell-inc-poweredge-r750-6-00-30" {
		t.Error(got)
	}
}
