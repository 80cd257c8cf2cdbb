// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// Exit codes of the program.
const (
	exitFailed = 1
	// exitUsage: the command line makes no sense; nothing was started.
	exitUsage = 2
)

// usageError is a command line that makes no sense.
type usageError struct{ error }

// ExitCode is the exit code that an error of Command stands for: 2 for a command line that makes no sense, after which
// nothing was started, 1 for every other error, and 0 for none.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(usageError)):
		return exitUsage
	default:
		return exitFailed
	}
}

// problems are the flags that cannot be used, one line each.
type problems []string

func (p *problems) add(flag string, value any, cause, remedy string) {
	if text, is := value.(string); is {
		value = strconv.Quote(text)
	}
	*p = append(*p, fmt.Sprintf("--%s=%v: %s; %s", flag, value, cause, remedy))
}

// validate lists everything that is wrong with the flags. It reads the fault file, and opens nothing else.
func (o *Options) validate() error {
	p := &problems{}
	o.validateMachines(p)
	o.validateAddresses(p)
	o.validateFiles(p)
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"power-delay", o.PowerDelay}, {"boot-delay", o.BootDelay}, {"latency", o.Latency}} {
		if d.value < 0 {
			p.add(d.flag, d.value, "nothing takes less than no time", "write a duration such as 2s, or 0")
		}
	}
	if len(*p) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("these flags cannot be used, and nothing was started:\n  %s", strings.Join(*p, "\n  "))}
}

func (o *Options) validateMachines(p *problems) {
	if o.Machines < 1 {
		p.add("machines", o.Machines, "at least one is needed", "write a number from 1")
	}
	for _, name := range o.Profiles {
		if _, found := emulator.LookupProfile(name); !found {
			p.add("profile", name, "there is no such make", "write some of "+strings.Join(emulator.ProfileNames(), ","))
		}
	}
	if o.BootProvider == "" {
		return
	}
	u, err := url.Parse(o.BootProvider)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		p.add("boot-provider", o.BootProvider, "this is no URL that a machine could ask",
			"write http or https and a host, such as http://127.0.0.1:8082")
	}
}

func (o *Options) validateAddresses(p *problems) {
	if _, err := netip.ParseAddr(o.Listen); err != nil && o.Addresses == "" && o.Listen != "" && o.Listen != "localhost" {
		p.add("listen", o.Listen, "this is no address", "write an address of this host, such as 127.0.0.1")
	}
	last := o.BasePort
	if o.Addresses == "" && o.BasePort != 0 {
		last += max(0, o.Machines-1)
	}
	if o.BasePort < 0 || last > 65535 {
		p.add("base-port", o.BasePort, fmt.Sprintf("the ports of %d machines would be %d to %d", o.Machines, o.BasePort, last),
			"write a lower port, 0 for any free ones, or give --addresses")
	}
	o.validateNetwork(p)
	if o.ControlAddress == "" {
		return
	}
	host, port, err := net.SplitHostPort(o.ControlAddress)
	if n, wrong := strconv.Atoi(port); err != nil || wrong != nil || n < 0 || n > 65535 || strings.ContainsAny(host, "/ ") {
		p.add("control-addr", o.ControlAddress, "this is no address to listen on", "write host:port, such as 127.0.0.1:9000")
	}
}

func (o *Options) validateNetwork(p *problems) {
	const remedy = "write one such as 127.0.1.0/24"
	if o.Addresses == "" {
		return
	}
	prefix, err := netip.ParsePrefix(o.Addresses)
	if err != nil {
		p.add("addresses", o.Addresses, "this is no network", remedy)
		return
	}
	// The network's own address is left out.
	if bits := prefix.Addr().BitLen() - prefix.Bits(); bits < 31 && o.Machines > 1<<bits-1 {
		p.add("addresses", o.Addresses, fmt.Sprintf("it has no address for each of %d machines", o.Machines), "write a wider network")
	}
}

func (o *Options) validateFiles(p *problems) {
	if o.EndpointsOut != "" && o.Addresses == "" {
		p.add("endpoints-out", o.EndpointsOut, "an Endpoint names an address and no port", "it needs --addresses, such as 127.0.1.0/24")
	}
	if o.CAOut != "" && !o.TLS {
		p.add("ca-out", o.CAOut, "without TLS there is no CA", "it needs --tls")
	}
	for _, out := range []struct{ flag, file string }{{"endpoints-out", o.EndpointsOut}, {"ca-out", o.CAOut}} {
		if out.file == "" {
			continue
		}
		if in, err := os.Stat(filepath.Dir(out.file)); err != nil || !in.IsDir() {
			p.add(out.flag, out.file, "its folder does not exist", "name a file in a folder that does")
		}
	}
	if _, err := o.faults(); err != nil {
		p.add("faults", o.FaultFile, reading(err), "docs/emulator.md shows the form of the file")
	}
}

// faults reads the fault file; without one there are none.
func (o *Options) faults() ([]emulator.Fault, error) {
	if o.FaultFile == "" {
		return nil, nil
	}
	data, err := os.ReadFile(o.FaultFile)
	if err != nil {
		return nil, err
	}
	return emulator.ParseFaults(data)
}

// reading says on one line why a file could not be read, without its name, which the flag tells.
func reading(err error) string {
	if path := new(fs.PathError); errors.As(err, &path) {
		err = path.Err
	}
	return strings.ReplaceAll(err.Error(), "\n", ", ")
}
