// SPDX-License-Identifier: Apache-2.0

// Command redfish-emulator serves a fleet of Redfish BMCs that behave like hardware.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/metalprobe/emulated"
	"github.com/metalaw/metalaw/metalprobe/guest"
	"github.com/metalaw/metalaw/redfish/emulator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand(newGuest).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "redfish-emulator:", err)
	}
	os.Exit(usage.ExitCode(err))
}

// newGuest makes machines boot what the boot provider says and report as the agent does.
func newGuest(bootProvider string) (emulator.Guest, error) {
	return emulated.NewGuest(guest.Options{ProviderURL: bootProvider})
}
