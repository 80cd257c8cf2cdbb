// SPDX-License-Identifier: Apache-2.0

// Command metalprobe describes the server that it runs on to the registry, and erases the server's disks when it was
// booted for that. It may be a container, a unit, or the /init of an initramfs.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/metalaw/metalaw/metalprobe/machine"
	"github.com/metalaw/metalaw/metalprobe/pid1"
)

// version and built are set at build time; built is in RFC 3339.
var (
	version = "dev"
	built   = ""
)

func main() {
	if pid1.Main(version, built) {
		return
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	options, err := machine.ParseOptions(os.Args[1:], os.DirFS("/"), os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		log.Error("cannot start", "error", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = machine.Run(ctx, options, version, log)
	stop()
	if err != nil {
		log.Error("stopped", "error", err)
		os.Exit(1)
	}
}
