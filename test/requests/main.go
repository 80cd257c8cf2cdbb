// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// mostServers bounds how many servers are brought through the phases, which takes half a minute for each.
const mostServers = 100

// options are the flags.
type options struct {
	servers  int
	webhooks bool
	counts   string
	against  string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "requests:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "requests",
		Short: "List what the manager asks for one server, by phase and with reasons.",
		Long: `List every write, Event, uncached read and BMC request that the manager makes for one server, by phase and with reasons.

A first server is brought through the phases without being counted: it takes what comes once in the life of a manager.
The tables go to stdout in Markdown. docs/load.md explains them.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := o.run(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.servers, "servers", 3, "how many servers are counted, one after the other")
	f.BoolVar(&o.webhooks, "webhooks", true, "let the API server call the manager's webhooks; false removes them")
	f.StringVar(&o.counts, "counts", "", "file for the counts, as JSON")
	f.StringVar(&o.against, "against", "", "counts of another build, to which these are compared")
	return cmd
}

// run counts, and returns the tables. When it returns, nothing that it started runs any more.
func (o *options) run(ctx context.Context) (text string, err error) {
	if o.servers < 1 || o.servers > mostServers {
		return "", fmt.Errorf("--servers %d: from 1 to %d", o.servers, mostServers)
	}
	var before []row
	if o.against != "" {
		if before, err = read(o.against); err != nil {
			return "", fmt.Errorf("--against: %w", err)
		}
	}
	w, err := newWorld(ctx, o.webhooks)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	var servers [][]phase
	for n := range o.servers + 1 {
		fmt.Fprintf(os.Stderr, "server %d of %d\n", n, o.servers)
		phases, err := w.tell(ctx, n)
		if err != nil {
			return "", err
		}
		if n > 0 {
			servers = append(servers, phases)
		}
	}
	after := count(servers)
	if o.counts != "" {
		if err := write(o.counts, after); err != nil {
			return "", fmt.Errorf("--counts: %w", err)
		}
	}
	text = render(servers)
	if o.against != "" {
		text += renderDifferences(compare(before, after))
	}
	return text, nil
}

func read(path string) ([]row, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(text)
}

func write(path string, rows []row) error {
	text, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
