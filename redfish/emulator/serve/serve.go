// SPDX-License-Identifier: Apache-2.0

// Package serve is what the program redfish-emulator does: a fleet on real addresses, a table of what is where,
// and an HTTP interface to look into the fleet and to let things go wrong.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// Options say what is served.
type Options struct {
	// Machines is how many machines to emulate.
	Machines int
	// Listen is the address that all BMCs share, at ports counted from BasePort (0: any).
	Listen   string
	BasePort int
	// Addresses is a network of which every BMC gets an address of its own, all with port BasePort.
	Addresses string
	TLS       bool
	// Specs are machines of their own kind, such as virtual ones, instead of Machines alike.
	Specs []emulator.MachineSpec
	// Profiles are given to the machines in turn.
	Profiles []string
	// Trees are captured trees, given to the machines in turn instead of profiles. A tree with several hosts makes a machine
	// of each, behind one BMC.
	Trees []*emulator.Tree
	Seed  uint64
	// PowerDelay and BootDelay: 0 means at once.
	PowerDelay, BootDelay time.Duration
	// Latency is added to every answer of a BMC.
	Latency time.Duration
	// Faults are at work from the beginning.
	Faults         []emulator.Fault
	ControlAddress string
	EndpointsOut   string
	CAOut          string
	// Guest runs on every machine; nil: nothing does.
	Guest emulator.Guest
}

// Run serves until ctx ends. It prints the table of machines to out once every address is taken.
func Run(ctx context.Context, opts Options, out io.Writer) error {
	fleet := build(opts)
	defer fleet.Close()
	control, err := listen(ctx, opts.ControlAddress)
	if err != nil {
		return err
	}
	if control != nil {
		defer func() { _ = control.Close() }() // the server has closed it, unless there never was one
	}
	if err := fleet.Start(ctx); err != nil {
		return err
	}
	if err := writeFiles(fleet, opts); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, table(fleet)+inventions(fleet)); err != nil {
		return err
	}
	if control == nil {
		<-ctx.Done()
		return nil
	}
	if _, err := fmt.Fprintf(out, "control interface: http://%s/machines\n", control.Addr()); err != nil {
		return err
	}
	server := &http.Server{Handler: Control(fleet), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // the end of the program needs no error
	defer stop()
	if err := server.Serve(control); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("control interface: %w", err)
	}
	return nil
}

// listen takes the address of the control interface; nil where there is none.
func listen(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // No address is no listener and no error.
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("control interface: %w: choose another --control-addr", err)
	}
	return listener, nil
}

// build makes the fleet that the options describe, faults included.
func build(opts Options) *emulator.Fleet {
	fleet := emulator.New(emulator.Options{
		Seed: opts.Seed, TLS: opts.TLS, Host: opts.Listen, Network: opts.Addresses, Port: opts.BasePort, Guest: opts.Guest,
		Delays: emulator.Delays{Power: orAtOnce(opts.PowerDelay), Boot: orAtOnce(opts.BootDelay)},
	})
	if opts.Latency > 0 {
		fleet.Inject(emulator.Fault{Name: "latency", Action: emulator.Action{Delay: opts.Latency}})
	}
	for _, f := range opts.Faults {
		fleet.Inject(f)
	}
	for _, spec := range opts.Specs {
		fleet.Add(spec)
	}
	for i := range opts.Machines {
		spec := emulator.MachineSpec{}
		if n := len(opts.Trees); n > 0 {
			spec.Tree = opts.Trees[i%n]
			fleet.AddTree(spec)
			continue
		}
		if n := len(opts.Profiles); n > 0 {
			spec.Profile = opts.Profiles[i%n]
		}
		fleet.Add(spec)
	}
	return fleet
}

// orAtOnce turns the flag's zero into the emulator's word for at once.
func orAtOnce(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

func writeFiles(fleet *emulator.Fleet, opts Options) error {
	if opts.EndpointsOut != "" {
		if err := os.WriteFile(opts.EndpointsOut, []byte(endpoints(fleet)), 0o644); err != nil { //nolint:gosec // Manifests are no secret.
			return fmt.Errorf("--endpoints-out: %w", err)
		}
	}
	if opts.CAOut != "" {
		if err := os.WriteFile(opts.CAOut, fleet.CA(), 0o644); err != nil { //nolint:gosec // A CA certificate is no secret.
			return fmt.Errorf("--ca-out: %w", err)
		}
	}
	return nil
}
