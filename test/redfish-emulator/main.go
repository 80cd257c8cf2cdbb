// SPDX-License-Identifier: Apache-2.0

// Command redfish-emulator serves a fleet of Redfish BMCs that behave like hardware.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/redfish/emulator/serve"
	"github.com/metalaw/metalaw/test/emulated"
	"github.com/metalaw/metalaw/test/guest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand(newGuest).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "redfish-emulator:", err)
	}
	os.Exit(exitCode(err))
}

// newGuest makes machines boot what the boot provider says and report as the agent does.
func newGuest(bootProvider string) (emulator.Guest, error) {
	return emulated.NewGuest(guest.Options{ProviderURL: bootProvider})
}

// guestMaker makes what runs on the machines, given the URL of the boot provider that tells a machine what to boot.
type guestMaker func(bootProvider string) (emulator.Guest, error)

// options are the flags: what is served, and what is made of it before.
type options struct {
	serve.Options
	// faultFile holds the faults to begin with; empty for none.
	faultFile string
	// given reports that a flag stands on the command line; nil for none.
	given func(flag string) bool
	// treeFiles are the captured trees; empty for none.
	treeFiles []string
	// bootProvider is the URL that machines ask what to boot; empty for machines that run nothing.
	bootProvider string
}

func newCommand(makeGuest guestMaker) *cobra.Command {
	var opts options
	cmd := &cobra.Command{
		Use:   "redfish-emulator",
		Short: "A fleet of Redfish BMCs that behave like hardware",
		Example: `  redfish-emulator --machines 20 --addresses 127.0.1.0/24 --base-port 8443 --tls --endpoints-out endpoints.yaml
  redfish-emulator --machines 7 --profile dell,hpe,openbmc --control-addr 127.0.0.1:9000
  redfish-emulator --tree captures/server.tar.gz --base-port 0`,
		Long: "A fleet of Redfish BMCs that behave like hardware. It serves until it is interrupted, and exits with 2 before anything is " +
			"started when flags cannot be used; it names all of them.",
		Args:          noArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.given = cmd.Flags().Changed
			if err := opts.validate(); err != nil {
				return err
			}
			if opts.bootProvider != "" {
				guest, err := makeGuest(opts.bootProvider)
				if err != nil {
					return err
				}
				opts.Guest = guest
			}
			return serve.Run(cmd.Context(), opts.Options, cmd.OutOrStdout())
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w; see --help", err) })
	flags := cmd.Flags()
	flags.IntVar(&opts.Machines, "machines", 1, "how many machines to emulate; with --tree one for each tree")
	flags.StringVar(&opts.Listen, "listen", "127.0.0.1", "address that all BMCs share")
	flags.IntVar(&opts.BasePort, "base-port", 8000, "first port; with --addresses the port of every BMC; 0 for any free ones")
	flags.StringVar(&opts.Addresses, "addresses", "", "network of which every BMC gets an address of its own, such as 127.0.1.0/24")
	flags.BoolVar(&opts.TLS, "tls", false, "serve https, with certificates of a CA made at start")
	flags.StringSliceVar(&opts.Profiles, "profile", []string{emulator.ProfileGeneric}, "makes, given to the machines in turn")
	flags.StringSliceVar(&opts.treeFiles, "tree", nil,
		"captured Redfish trees, folders or .tar.gz, given to the machines in turn instead of makes")
	flags.Uint64Var(&opts.Seed, "seed", 0, "decides every identity; the same seed gives the same fleet")
	flags.DurationVar(&opts.PowerDelay, "power-delay", 2*time.Second, "how long powering on and off takes")
	flags.DurationVar(&opts.BootDelay, "boot-delay", 5*time.Second, "how long the self test takes, from power-on to boot")
	flags.DurationVar(&opts.Latency, "latency", 0, "added to every answer; a fault named latency, which ends with the others")
	flags.StringVar(&opts.faultFile, "faults", "", "YAML file of faults to begin with")
	flags.StringVar(&opts.ControlAddress, "control-addr", "", "address of the control interface, without credentials: keep it local")
	flags.StringVar(&opts.EndpointsOut, "endpoints-out", "", "file for Endpoint manifests; needs --addresses")
	flags.StringVar(&opts.CAOut, "ca-out", "", "file for the PEM certificate of the CA; needs --tls")
	flags.StringVar(&opts.bootProvider, "boot-provider", "",
		"URL of the boot operator that tells the machines what to boot, such as IronCore's boot-operator")
	return cmd
}
