// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// execute runs a command line that is expected to fail, and returns what it printed.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newCommand(func(string) (emulator.Guest, error) { return nil, nil })
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(t.Context())
	if err == nil {
		t.Fatal("it is accepted")
	}
	return out.String(), err
}

func TestAFlagThatCannotBeUsedIsToldBeforeAnythingIsPrinted(t *testing.T) {
	dir := t.TempDir()
	faults := filepath.Join(dir, "faults.yaml")
	if err := os.WriteFile(faults, []byte("faults:\n- use: Nonsense\n- status: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(dir, "tree")
	for path, text := range map[string]string{
		"":           `{"Systems":{"@odata.id":"/redfish/v1/Systems"}}`,
		"/Systems":   `{"Members":[{"@odata.id":"/redfish/v1/Systems/A"}]}`,
		"/Systems/A": `{"PowerState":"Off","Actions":{"#ComputerSystem.Reset":{"target":"/redfish/v1/Systems/A/Actions/ComputerSystem.Reset"}}}`,
	} {
		folder := filepath.Join(tree, "redfish", "v1", path)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "index.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const head = "these flags cannot be used, and nothing was started:\n  "
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no machines":                    {[]string{"--machines=0"}, head + "--machines=0: at least one is needed; write a number from 1"},
		"a delay back in time":           {[]string{"--power-delay=-2s"}, head + "--power-delay=-2s: nothing takes less than no time; write a duration such as 2s, or 0"},
		"a boot provider that is none":   {[]string{"--boot-provider=nonsense"}, head + `--boot-provider="nonsense": this is no URL that a machine could ask; write http or https and a host, such as http://127.0.0.1:8082`},
		"a control address that is none": {[]string{"--control-addr=nonsense"}, head + `--control-addr="nonsense": this is no address to listen on; write host:port, such as 127.0.0.1:9000`},
		"a make that does not exist":     {[]string{"--profile=dell,nokia"}, head + `--profile="nokia": there is no such make; write some of ` + strings.Join(emulator.ProfileNames(), ",")},
		"an address that is none":        {[]string{"--listen=here"}, head + `--listen="here": this is no address; write an address of this host, such as 127.0.0.1`},
		"too many ports":                 {[]string{"--machines=3", "--base-port=65534"}, head + "--base-port=65534: the ports of 3 machines would be 65534 to 65536; write a lower port, 0 for any free ones, or give --addresses"},
		"a network that is none":         {[]string{"--addresses=127.0.1.0"}, head + `--addresses="127.0.1.0": this is no network; write one such as 127.0.1.0/24`},
		"a network that is too small":    {[]string{"--machines=4", "--addresses=127.0.1.0/30"}, head + `--addresses="127.0.1.0/30": it has no address for each of 4 machines; write a wider network`},
		"manifests without addresses":    {[]string{"--endpoints-out=x"}, head + `--endpoints-out="x": an Endpoint names an address and no port; it needs --addresses, such as 127.0.1.0/24`},
		"a CA without TLS":               {[]string{"--ca-out=x"}, head + `--ca-out="x": without TLS there is no CA; it needs --tls`},
		"a file in no folder":            {[]string{"--tls", "--ca-out=/nonexistent/x"}, head + `--ca-out="/nonexistent/x": its folder does not exist; name a file in a folder that does`},
		"a tree that is not there":       {[]string{"--tree=/nonexistent"}, head + `--tree="/nonexistent": no such file or directory; name a folder or a .tar.gz with <name>/redfish/v1/.../index.json`},
		"a tree for two machines":        {[]string{"--tree=" + tree, "--machines=2"}, head + "--machines=2: each of the 1 trees is one machine; leave --machines out beside --tree"},
		"a tree and a make":              {[]string{"--tree=" + tree, "--profile=dell"}, head + `--profile="dell": a tree takes the place of a make; write --tree or --profile`},
		"a fault file that is not there": {[]string{"--faults=/nonexistent"}, head + `--faults="/nonexistent": no such file or directory; docs/emulator.md shows the form of the file`},
		"an argument":                    {[]string{"now"}, `redfish-emulator takes no arguments, and "now" was given; see --help`},
		"a number that is none":          {[]string{"--machines=many"}, `invalid argument "many" for "--machines" flag: strconv.ParseInt: parsing "many": invalid syntax; see --help`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := execute(t, c.args...)
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
			if out != "" || exitCode(err) != 2 {
				t.Errorf("exit code %d, printed %q", exitCode(err), out)
			}
		})
	}
}

func TestAllFlagsThatCannotBeUsedAreToldAtOnce(t *testing.T) {
	_, err := execute(t, "--power-delay=-2s", "--boot-provider=nonsense", "--control-addr=nonsense")
	for _, want := range []string{"--power-delay=", "--boot-provider=", "--control-addr="} {
		if !strings.Contains(err.Error(), "\n  "+want) {
			t.Errorf("%s is missing:\n%v", want, err)
		}
	}
}

func TestAnAddressInUseIsNoFaultOfTheCommandLine(t *testing.T) {
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	out, err := execute(t, "--base-port=0", "--control-addr="+taken.Addr().String())
	if !strings.Contains(err.Error(), "choose another --control-addr") || exitCode(err) != 1 || out != "" {
		t.Errorf("got %v, exit code %d, printed %q", err, exitCode(err), out)
	}
}
