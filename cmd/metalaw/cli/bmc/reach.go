// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	controlleraccess "github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/engine/bundle"
)

// trust says by which certificates a BMC is believed that names none itself.
type trust struct {
	caFile   string
	insecure bool
}

func (t *trust) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.caFile, "bmc-ca-file", "", "PEM file with the certificates that the BMC is trusted by; the BMC's own spec.trust goes before it")
	cmd.Flags().BoolVar(&t.insecure, "insecure-skip-tls-verify-bmc", false, "trust any certificate of the BMC")
}

// target reads how a BMC is reached. The connection goes from this machine, with the BMC's own credentials.
func (t *trust) target(ctx context.Context, c client.Client, name string) (*metalv1alpha1.BMC, hardware.Target, error) {
	b := &metalv1alpha1.BMC{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, b); err != nil {
		return nil, hardware.Target{}, access.Explain(err, "get", "bmcs")
	}
	settings := bundle.Settings{BMCTLS: bundle.TLSVerify}
	if t.insecure {
		settings.BMCTLS = bundle.TLSInsecure
	}
	var authorities []byte
	if t.caFile != "" {
		var err error
		if authorities, err = os.ReadFile(t.caFile); err != nil {
			return nil, hardware.Target{}, fmt.Errorf("--bmc-ca-file: %w", err)
		}
	}
	target, err := controlleraccess.Resolve(ctx, c, b, settings, authorities)
	return b, target, err
}
