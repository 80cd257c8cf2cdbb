// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
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

// validate lists everything that is wrong with the flags. It reads the fault file and the
// trees into the options, and opens nothing else.
func (o *options) validate() error {
	p := &problems{}
	o.validateTrees(p)
	o.validateMachines(p)
	o.validateAddresses(p)
	o.validateFiles(p)
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"power-delay", o.PowerDelay}, {"boot-delay", o.BootDelay}, {"latency", o.Latency}} {
		p.addIf(d.value < 0, d.flag, d.value, "nothing takes less than no time", "write a duration such as 2s, or 0")
	}
	return p.err()
}

func (o *options) validateMachines(p *problems) {
	p.addIf(o.Machines < 1, "machines", o.Machines, "at least one is needed", "write a number from 1")
	for _, name := range o.Profiles {
		_, found := emulator.LookupProfile(name)
		p.addIf(!found, "profile", name, "there is no such make", "write some of "+strings.Join(emulator.ProfileNames(), ","))
	}
	if o.bootProvider == "" {
		return
	}
	u, err := url.Parse(o.bootProvider)
	p.addIf(err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "", "boot-provider", o.bootProvider,
		"this is no URL that a machine could ask", "write http or https and a host, such as http://127.0.0.1:8082")
}

func (o *options) validateTrees(p *problems) {
	for _, file := range o.treeFiles {
		tree, err := emulator.ReadTree(file)
		if err != nil {
			p.add("tree", file, reading(err), "name a folder or a .tar.gz with <name>/redfish/v1/.../index.json")
			continue
		}
		o.Trees = append(o.Trees, tree)
	}
	if len(o.treeFiles) == 0 || o.given == nil {
		return
	}
	// A second machine of one tree would have the same UUID, serial number and MAC addresses.
	p.addIf(o.given("machines") && o.Machines != len(o.treeFiles), "machines", o.Machines,
		fmt.Sprintf("each of the %d trees is one machine", len(o.treeFiles)), "leave --machines out beside --tree")
	p.addIf(o.given("profile"), "profile", strings.Join(o.Profiles, ","), "a tree takes the place of a make", "write --tree or --profile")
	o.Machines = len(o.treeFiles)
}

func (o *options) validateAddresses(p *problems) {
	if _, err := netip.ParseAddr(o.Listen); err != nil && o.Addresses == "" && o.Listen != "" && o.Listen != "localhost" {
		p.add("listen", o.Listen, "this is no address", "write an address of this host, such as 127.0.0.1")
	}
	last := o.BasePort
	if o.Addresses == "" && o.BasePort != 0 {
		last += max(0, o.Machines-1)
	}
	p.addIf(o.BasePort < 0 || last > 65535, "base-port", o.BasePort,
		fmt.Sprintf("the ports of %d machines would be %d to %d", o.Machines, o.BasePort, last),
		"write a lower port, 0 for any free ones, or give --addresses")
	o.validateNetwork(p)
	if o.ControlAddress == "" {
		return
	}
	host, port, err := net.SplitHostPort(o.ControlAddress)
	if n, wrong := strconv.Atoi(port); err != nil || wrong != nil || n < 0 || n > 65535 || strings.ContainsAny(host, "/ ") {
		p.add("control-addr", o.ControlAddress, "this is no address to listen on", "write host:port, such as 127.0.0.1:9000")
	}
}

func (o *options) validateNetwork(p *problems) {
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

func (o *options) validateFiles(p *problems) {
	p.addIf(o.EndpointsOut != "" && o.Addresses == "", "endpoints-out", o.EndpointsOut, "an Endpoint names an address and no port",
		"it needs --addresses, such as 127.0.1.0/24")
	p.addIf(o.CAOut != "" && !o.TLS, "ca-out", o.CAOut, "without TLS there is no CA", "it needs --tls")
	for _, out := range []struct{ flag, file string }{{"endpoints-out", o.EndpointsOut}, {"ca-out", o.CAOut}} {
		if out.file == "" {
			continue
		}
		in, err := os.Stat(filepath.Dir(out.file))
		p.addIf(err != nil || !in.IsDir(), out.flag, out.file, "its folder does not exist", "name a file in a folder that does")
	}
	if err := o.readFaults(); err != nil {
		p.add("faults", o.faultFile, reading(err), "docs/emulator.md shows the form of the file")
	}
}

// readFaults reads the fault file; without one there are none.
func (o *options) readFaults() error {
	if o.faultFile == "" {
		return nil
	}
	data, err := os.ReadFile(o.faultFile)
	if err != nil {
		return err
	}
	o.Faults, err = emulator.ParseFaults(data)
	return err
}
