// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/metalaw/metalaw/redfish/emulator/serve"
	"github.com/metalaw/metalaw/test/bootprovider"
	"github.com/metalaw/metalaw/test/emulated"
	"github.com/metalaw/metalaw/test/guest"
)

// bmcsCommand makes this program the process of the emulated BMCs.
const bmcsCommand = "bmcs"

// bmcSettings is what that process is told on its command line.
type bmcSettings struct {
	Kubeconfig                     string
	Servers                        int
	Network, Control               string
	PowerDelay, BootDelay, Latency time.Duration
	NoToken                        bool
}

func (s bmcSettings) args() []string {
	return []string{
		"--kubeconfig=" + s.Kubeconfig, "--servers=" + strconv.Itoa(s.Servers), "--network=" + s.Network, "--control=" + s.Control,
		"--power-delay=" + s.PowerDelay.String(), "--boot-delay=" + s.BootDelay.String(), "--latency=" + s.Latency.String(),
		"--no-token=" + strconv.FormatBool(s.NoToken),
	}
}

func newBMCsCommand() *cobra.Command {
	var s bmcSettings
	cmd := &cobra.Command{
		Use:    bmcsCommand,
		Short:  "Run the emulated BMCs, what their machines boot, and the boot provider.",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&s.Kubeconfig, "kubeconfig", "", "rights of the boot provider")
	f.IntVar(&s.Servers, "servers", 0, "how many machines")
	f.StringVar(&s.Network, "network", "", "network of the BMCs")
	f.StringVar(&s.Control, "control", "", "address of the control interface")
	f.DurationVar(&s.PowerDelay, "power-delay", 0, "how long a change of power takes")
	f.DurationVar(&s.BootDelay, "boot-delay", 0, "how long the self test takes")
	f.DurationVar(&s.Latency, "latency", 0, "added to every answer")
	f.BoolVar(&s.NoToken, "no-token", false, "agents send no credential")
	return cmd
}

// run serves until ctx ends or either part fails.
func (s bmcSettings) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	listening := make(chan string, 1)
	ended := make(chan error, 2)
	go func() {
		ended <- bootprovider.Run(ctx, config, bootprovider.Options{
			ListenAddress: "127.0.0.1:0", Listening: func(address string) { listening <- address },
		})
	}()
	select {
	case err := <-ended:
		return err
	case address := <-listening:
		guests, err := emulated.NewGuest(guest.Options{ProviderURL: "http://" + address, NoToken: s.NoToken})
		if err != nil {
			return err
		}
		go func() {
			ended <- serve.Run(ctx, serve.Options{Machines: s.Servers, Addresses: s.Network, BasePort: bmcPort, Guest: guests,
				PowerDelay: s.PowerDelay, BootDelay: s.BootDelay, Latency: s.Latency, ControlAddress: s.Control}, io.Discard)
		}()
	}
	err = <-ended
	cancel()
	return errors.Join(err, <-ended)
}
