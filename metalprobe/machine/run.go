// SPDX-License-Identifier: Apache-2.0

// Package machine is the agent on a real machine: its command line, the identity of the machine, and what it tells on the way.
package machine

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

// Options are what the command line and the configuration file say, and what the start of the machine found out.
type Options struct {
	Config metalprobe.Config
	// Interval is the time between two looks at the hardware; zero means DefaultInterval.
	Interval time.Duration
	// Key is the key of this boot, as NewKey makes it; empty makes or reads it.
	Key string
	// Problems are what went wrong before the agent began; each report holds them.
	Problems func() []policyv1alpha1.ProbeProblem
	// Network says which interface has which address, where the agent brought the network up itself.
	Network string
	// OnPhase is told what the agent does. Nil is told nothing; the registry always is.
	OnPhase func(phase, detail string, percent int32)
}

// flagged are the flags of the command line.
type flagged struct {
	registry, uuid, token, ca, purpose, file string
	interval                                 time.Duration
	// asked says that a configuration file was named.
	asked bool
}

func parseFlags(args []string, output io.Writer) (flagged, error) {
	var f flagged
	flags := flag.NewFlagSet("metalprobe", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&f.registry, "registry-url", "", "where the registry is, such as https://registry:10000")
	flags.StringVar(&f.uuid, "server-uuid", "", "system UUID of this server; empty reads it from the firmware")
	flags.StringVar(&f.token, "token", "", "bearer token, or nonce, of this server, purpose and entry")
	flags.StringVar(&f.ca, "ca", "", "file with the PEM certificates that vouch for the registry")
	flags.StringVar(&f.purpose, "purpose", "", "probe or wipe; empty means probe")
	flags.StringVar(&f.file, "config", metalprobe.ConfigPath, "configuration file; flags go before what it says")
	flags.DurationVar(&f.interval, "interval", metalprobe.DefaultInterval, "time between two looks at the hardware")
	if err := flags.Parse(args); err != nil {
		return f, err
	}
	flags.Visit(func(given *flag.Flag) { f.asked = f.asked || given.Name == "config" })
	if flags.NArg() > 0 {
		return f, fmt.Errorf("argument %q: none is expected; see --help", flags.Arg(0))
	}
	if f.interval < time.Second {
		return f, fmt.Errorf("--interval %s: at least 1s", f.interval)
	}
	return f, nil
}

// ParseOptions reads the command line, the configuration file that it names, and the UUID that the firmware shows. Flags go before
// the file; a file that was not asked for may be missing. root resolves all files. Usage is written to output.
func ParseOptions(args []string, root fs.FS, output io.Writer) (Options, error) {
	f, err := parseFlags(args, output)
	if err != nil {
		return Options{}, err
	}
	options := Options{Config: metalprobe.Config{Purpose: metalprobe.PurposeProbe}, Interval: f.interval}
	config := &options.Config
	source := "the flags"
	content, err := fs.ReadFile(root, strings.TrimPrefix(f.file, "/"))
	switch {
	case err == nil:
		source = f.file
		// What is missing may be among the flags.
		if *config, err = metalprobe.DecodeConfig(content); err != nil {
			return Options{}, fmt.Errorf("%s: %w", f.file, err)
		}
	case f.asked || !errors.Is(err, fs.ErrNotExist):
		return Options{}, fmt.Errorf("--config: %w", err)
	}
	config.RegistryURL = cmp.Or(f.registry, config.RegistryURL)
	config.ServerUUID = cmp.Or(f.uuid, config.ServerUUID)
	config.Token = cmp.Or(f.token, config.Token)
	config.Purpose = cmp.Or(metalprobe.Purpose(f.purpose), config.Purpose)
	if f.ca != "" {
		bundle, err := fs.ReadFile(root, strings.TrimPrefix(f.ca, "/"))
		if err != nil {
			return Options{}, fmt.Errorf("--ca: %w", err)
		}
		config.CABundle = string(bundle)
	}
	if err := config.ValidateUnnamed(); err != nil {
		return Options{}, fmt.Errorf("%s: %w; give --registry-url, or --config", source, err)
	}
	if err := options.Identify(FirmwareUUID(root)); err != nil {
		return Options{}, fmt.Errorf("%s: %w", source, err)
	}
	return options, nil
}

// Run is the agent on a real machine: it reports, and wipes where it was booted for that, until ctx ends.
func Run(ctx context.Context, options Options, version string, log *slog.Logger) error {
	config := options.Config
	httpClient, err := metalprobe.NewHTTPClient([]byte(config.CABundle))
	if err != nil {
		return err
	}
	key := options.Key
	if key == "" {
		key = BootKey(keyFile)
	}
	client := &metalprobe.Client{BaseURL: config.RegistryURL, Token: config.Token, Key: key, HTTP: httpClient, AgentVersion: version}
	told := newTeller(client, config.ServerUUID, log)
	defer told.run(ctx)()
	host := metalprobe.NewHost(ctx, config.Wipe)
	host.Problems = options.Problems
	onPhase := func(_ context.Context, phase, detail string, percent int32) {
		told.tell(phase, detail, percent)
		if options.OnPhase != nil {
			options.OnPhase(phase, detail, percent)
		}
	}
	agent := &metalprobe.Agent{
		Registry: client,
		UUID:     config.ServerUUID,
		Purpose:  config.Purpose,
		Collect:  host.Collect,
		Disks:    host.Disks,
		Hidden:   host.Hidden,
		Wipe:     config.Wipe,
		Interval: options.Interval,
		Refresh:  metalprobe.DefaultRefresh,
		OnPhase:  onPhase,
		Log:      log,
	}
	if options.Network != "" {
		told.tell(metalprobe.NetworkPhase, options.Network, 0)
	}
	if config.Purpose == metalprobe.PurposeProbe {
		awaitNeighbors(ctx, host, func() { onPhase(ctx, metalprobe.CollectPhase, "LLDP neighbours", 0) })
	}
	return agent.Run(ctx)
}
