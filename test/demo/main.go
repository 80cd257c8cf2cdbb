// SPDX-License-Identifier: Apache-2.0

// Command demo shows the whole way of a server, from an Endpoint to a claimed, released and cleaned machine: a real
// control plane, the built manager under the rights it ships with, and emulated servers that boot and report.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// options say how the demo runs.
type options struct {
	servers int
	once    bool
	keep    bool
	record  string
	// vm shows virtual machines, which truly boot, instead of emulated ones.
	vm bool
}

const (
	fewestServers = 6
	mostServers   = 1000
)

func parseOptions(args []string) (options, error) {
	o := options{once: os.Getenv("DEMO_ONCE") == "1", vm: os.Getenv("DEMO_VM") == "1"}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.IntVar(&o.servers, "servers", 20, fmt.Sprintf("how many servers to emulate, %d to %d", fewestServers, mostServers))
	flags.BoolVar(&o.once, "once", o.once, "end when the story has ended; DEMO_ONCE=1 asks for the same")
	flags.BoolVar(&o.keep, "keep", false, "leave the logs behind, and stay up after a failure until Ctrl-C")
	flags.BoolVar(&o.vm, "vm", o.vm, "two virtual machines, which truly boot, instead of emulated servers; DEMO_VM=1 asks for the same")
	flags.StringVar(&o.record, "record", "", "file for an animated SVG of the run; prints plain lines")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: the demo takes flags only, see --help", flags.Arg(0))
	}
	if o.vm {
		o.servers = virtualMachines
		return o, nil
	}
	if o.servers < fewestServers || o.servers > mostServers {
		return o, fmt.Errorf("--servers %d: the story needs %d to %d", o.servers, fewestServers, mostServers)
	}
	return o, nil
}

func main() { os.Exit(run()) }

// run is main with an exit code, so that everything deferred happens.
func run() int {
	o, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = show(ctx, o)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "demo: interrupted; everything it started is gone")
		return 130
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
