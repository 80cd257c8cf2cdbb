// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/metalaw/metalaw/cmd/internal/usage"
)

// occupied is an address that somebody listens on until the test ends.
func occupied(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// listening runs the check of the addresses for a command line; what it does not name takes any free port.
func listening(t *testing.T, args ...string) error {
	t.Helper()
	o := &options{}
	cmd := newManagerCommand()
	cmd.ResetFlags()
	o.register(cmd.Flags())
	free := []string{"--registry-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0", "--webhook-port=0"}
	if err := cmd.ParseFlags(append(free, args...)); err != nil {
		t.Fatal(err)
	}
	return o.checkPlaces(t.Context())
}

func TestAnAddressInUseIsToldBeforeAnythingStarts(t *testing.T) {
	address := occupied(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		flag string
	}{
		"the registry's":  {[]string{"--registry-bind-address=" + address}, "registry-bind-address"},
		"that of metrics": {[]string{"--metrics-bind-address=" + address}, "metrics-bind-address"},
		"that of pprof":   {[]string{"--pprof-bind-address=" + address}, "pprof-bind-address"},
		"that of health":  {[]string{"--health-probe-bind-address=" + address}, "health-probe-bind-address"},
		"the webhooks'":   {[]string{"--webhook-host=" + host, "--webhook-port=" + port}, "webhook-port"},
	} {
		t.Run(name, func(t *testing.T) {
			err := listening(t, c.args...)
			want := "nothing was started: --" + c.flag + ": cannot listen on " + address + ": address already in use; " +
				"end what listens there, or choose another port"
			if err == nil || err.Error() != want || usage.ExitCode(err) != 1 {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestTwoFlagsWithOnePortAreToldOfEachOther(t *testing.T) {
	inUse := fmt.Errorf("listen tcp 127.0.0.1:8081: %w", os.NewSyscallError("bind", syscall.EADDRINUSE))
	for name, c := range map[string]struct {
		taken map[string]string
		want  string
	}{
		"another flag has the port": {map[string]string{"8080": "metrics-bind-address", "8081": "registry-bind-address"},
			"--registry-bind-address has this port already; give each a port of its own"},
		"another flag has another port": {map[string]string{"8080": "metrics-bind-address"},
			"address already in use; end what listens there, or choose another port"},
	} {
		t.Run(name, func(t *testing.T) {
			got := place{"health-probe-bind-address", "127.0.0.1:8081"}.words(inUse, c.taken)
			if want := "--health-probe-bind-address: cannot listen on 127.0.0.1:8081: " + c.want; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// The flag that comes first has the same port of another loopback address: the test holds the one that clashes.
func TestAPortThatAFlagTookIsKnownToTheNextOne(t *testing.T) {
	address := occupied(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	other := "127.0.0.2:" + port
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:0")
	if err != nil {
		t.Skipf("this host has one loopback address only: %v", err)
	}
	_ = listener.Close()
	err = listening(t, "--registry-bind-address="+other, "--health-probe-bind-address="+address)
	want := "nothing was started: --health-probe-bind-address: cannot listen on " + address +
		": --registry-bind-address has this port already; give each a port of its own"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestEveryAddressInUseIsToldAtOnce(t *testing.T) {
	err := listening(t, "--registry-bind-address="+occupied(t), "--metrics-bind-address="+occupied(t))
	if err == nil || !strings.Contains(err.Error(), "--registry-bind-address") || !strings.Contains(err.Error(), "--metrics-bind-address") {
		t.Errorf("got %v", err)
	}
}

func TestAddressesThatAreFreeOrNotServedAreFree(t *testing.T) {
	address := occupied(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"any free ports":           nil,
		"no metrics and no health": {"--metrics-bind-address=0", "--health-probe-bind-address=0"},
		"webhooks left out":        {"--webhooks=false", "--webhook-host=" + host, "--webhook-port=" + port},
	} {
		t.Run(name, func(t *testing.T) {
			if err := listening(t, args...); err != nil {
				t.Error(err)
			}
		})
	}
}
