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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	err := newCommand().ExecuteContext(ctx)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil:
	case interrupted:
		fmt.Fprintln(os.Stderr, "load: interrupted; everything it started is gone")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:           "load",
		Short:         "Measure a manager of metal.ironcore.dev/v1alpha1 on emulated servers.",
		Long:          longHelp,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			result, err := measure(cmd.Context(), o)
			if err != nil {
				return err
			}
			text, err := json.MarshalIndent(result, "", "  ")
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), string(text))
			return err
		},
	}
	o.register(cmd.Flags())
	cmd.AddCommand(newBMCsCommand())
	cmd.CompletionOptions.DisableDefaultCmd = true
	return cmd
}

// measure runs everything once. When it returns, nothing that it started runs any more.
func measure(ctx context.Context, o *options) (result report, err error) {
	w, err := newWorld(o)
	if err != nil {
		return report{}, err
	}
	defer func() {
		failed := err != nil
		err = errors.Join(err, w.close(failed))
	}()
	if err := w.start(ctx); err != nil {
		return report{}, err
	}
	figures, err := w.drive(ctx)
	if err != nil {
		return report{}, err
	}
	sheets, err := w.inventory(figures)
	if err != nil {
		return report{}, err
	}
	if o.inventory != "" {
		if err := os.WriteFile(o.inventory, []byte(render(sheets)), 0o644); err != nil {
			return report{}, fmt.Errorf("--inventory: %w", err)
		}
	}
	result = summarize(o.settings(), figures, sheets)
	result.Maintenance, err = w.maintenanceCost(figures, sheets)
	return result, err
}
