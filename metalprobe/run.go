// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"
)

// Options are what the command line and the configuration file say.
type Options struct {
	Config Config
	// Interval is the time between two reports.
	Interval time.Duration
}

// ParseOptions reads the command line, and the configuration file that it names. Flags go before the file; a file that
// was not asked for may be missing. root resolves the file. Usage is written to output.
func ParseOptions(args []string, root fs.FS, output io.Writer) (Options, error) {
	var options Options
	flags := flag.NewFlagSet("metalprobe", flag.ContinueOnError)
	flags.SetOutput(output)
	registry := flags.String("registry-url", "", "where the registry is, such as https://registry:10000")
	uuid := flags.String("server-uuid", "", "system UUID of this server")
	file := flags.String("config", ConfigPath, "configuration file; flags go before what it says")
	flags.DurationVar(&options.Interval, "interval", DefaultInterval, "time between two reports")
	if err := flags.Parse(args); err != nil {
		return Options{}, err
	}
	if flags.NArg() > 0 {
		return Options{}, fmt.Errorf("argument %q: none is expected; see --help", flags.Arg(0))
	}
	if options.Interval < time.Second {
		return Options{}, fmt.Errorf("--interval %s: at least 1s", options.Interval)
	}
	options.Config.Purpose = PurposeProbe
	asked := false
	flags.Visit(func(f *flag.Flag) { asked = asked || f.Name == "config" })
	content, err := fs.ReadFile(root, strings.TrimPrefix(*file, "/"))
	switch {
	case err == nil:
		if options.Config, err = ParseConfig(content); err != nil {
			return Options{}, fmt.Errorf("%s: %w", *file, err)
		}
	case asked || !errors.Is(err, fs.ErrNotExist):
		return Options{}, fmt.Errorf("--config: %w", err)
	}
	if *registry != "" {
		options.Config.RegistryURL = *registry
	}
	if *uuid != "" {
		options.Config.ServerUUID = *uuid
	}
	if err := options.Config.Validate(); err != nil {
		return Options{}, fmt.Errorf("give --registry-url and --server-uuid, or --config: %w", err)
	}
	return options, nil
}

// Run is the agent on a real machine: it reports, and wipes where it was booted for that, until ctx ends.
func Run(ctx context.Context, options Options, version string, log *slog.Logger) error {
	config := options.Config
	client, err := NewHTTPClient([]byte(config.CABundle))
	if err != nil {
		return err
	}
	host := &Host{Root: os.DirFS("/"), Addresses: InterfaceAddresses, Sharing: SharingOf, Now: time.Now}
	agent := &Agent{
		Registry: &Client{BaseURL: config.RegistryURL, Token: config.Token, HTTP: client, AgentVersion: version},
		UUID:     config.ServerUUID,
		Purpose:  config.Purpose,
		Collect:  host.Collect,
		Disks:    host.Disks,
		Wipe:     config.Wipe,
		Interval: options.Interval,
		Log:      log,
	}
	return agent.Run(ctx)
}
