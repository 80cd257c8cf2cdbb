// SPDX-License-Identifier: Apache-2.0

// Package bmc holds the verbs on BMCs that speak to the BMC itself, from the machine on which the command runs.
package bmc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/redfish"
	"github.com/metalaw/metalaw/redfish/capture"
)

// Command is `metalaw bmc` with its verbs; program is how the user calls this program.
func Command(program string) *cobra.Command {
	flags := &access.Flags{}
	group := terminal.Group(&cobra.Command{
		Use:   "bmc",
		Short: "Look at a BMC itself: capture its Redfish tree, qualify its model",
		Long: "The verbs speak Redfish to the BMC from this machine, with the address, the trust and the credentials of the BMC object. " +
			"You need the right to read its BMCSecret.",
	}, "verb", program+" bmc --help")
	flags.Register(group)
	group.AddCommand(captureCommand(flags), qualifyCommand(flags))
	return group
}

func captureCommand(flags *access.Flags) *cobra.Command {
	var how trust
	var file string
	var plain bool
	cmd := &cobra.Command{
		Use:   "capture NAME [--file FILE]",
		Short: "Write the Redfish tree of a BMC into an archive, without what identifies its owner",
		Long: "Reads every resource of the BMC that can be reached by links, and changes nothing. Logs, sessions, accounts and schemas are " +
			"left out. Serial numbers, UUIDs, MAC and IP addresses, names of hosts and users become others of the same form, and secrets " +
			"go. The emulator serves the archive as a machine. Look through it before you send it, because a BMC may " +
			"show a name in an unusual place.\n\n" +
			"Exit codes: 0 written. 1 the BMC could not be read. 2 the command line makes no sense.",
		Example: "  {{.}} bmc capture rack1-07",
		Args:    usage.OneArg("name one BMC"),
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, args []string) error {
			_, target, err := how.target(ctx, c, args[0])
			if err != nil {
				return err
			}
			if file == "" {
				file = "bmc-" + t.Now.UTC().Format("20060102-150405") + ".tar.gz"
			}
			return captured(ctx, t, target.Endpoint, target.Credentials, file, plain)
		}),
	}
	how.register(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "archive to write; one that exists is not replaced; named by the time where left out")
	cmd.Flags().BoolVar(&plain, "keep-identity", false, "keep serial numbers and addresses, for your own tests; secrets go all the same; never send such an archive")
	return cmd
}

// captured reads the tree of a BMC and writes it.
func captured(ctx context.Context, t *terminal.Terminal, endpoint redfish.Endpoint, credentials redfish.Credentials, file string, plain bool) error {
	pool := redfish.NewPool(redfish.PoolOptions{})
	defer func() { _ = pool.Close(context.WithoutCancel(ctx)) }() // the BMC ends the session by itself
	reader, _ := pool.Get("capture", endpoint, credentials).(redfish.RawReader)
	tree, problems, err := capture.Crawl(ctx, reader.Raw, capture.Options{Progress: func(_ string, read int) {
		if read%100 == 0 {
			t.Notef("%d resources read", read)
		}
	}})
	if err != nil {
		return err
	}
	if plain {
		tree, err = tree.WithoutSecrets()
	} else {
		salt := make([]byte, 32)
		_, _ = rand.Read(salt) // does not fail
		tree, err = tree.Redact(salt)
	}
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(tree.Pack(f, "bmc"), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	t.Notes(problems)
	t.Printf("%s: %d resources, %d could not be read\n", file, len(tree), len(problems))
	return nil
}
