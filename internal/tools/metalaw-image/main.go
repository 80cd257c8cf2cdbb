// SPDX-License-Identifier: Apache-2.0

// Command metalaw-image builds the images of metalaw: what machines boot, and the container images. The Makefile calls it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/metalaw/metalaw/internal/tools/metalaw-image/build"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "metalaw-image:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{Use: "metalaw-image", Short: "Build boot images and container images.", SilenceUsage: true, SilenceErrors: true}
	var cache, lock, version string
	flags := root.PersistentFlags()
	flags.StringVar(&cache, "cache", defaultCache(), "folder that keeps Debian packages")
	flags.StringVar(&lock, "lock", "config/image/lock.yaml", "file that names the Debian packages")
	flags.StringVar(&version, "version", "dev", "version of the programs, and tag of the images")
	archive := func() *build.Archive { return &build.Archive{Folder: cache, Log: os.Stderr} }

	var probe build.ProbeOptions
	probeCommand := &cobra.Command{Use: "probe", Short: "Build what machines boot to be discovered and erased.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			probe.Archive, probe.Lock, probe.Version, probe.Log = archive(), lock, version, os.Stderr
			return build.Probe(cmd.Context(), probe)
		}}
	flags = probeCommand.Flags()
	flags.StringVar(&probe.Out, "out", "bin/image", "folder for the images")
	flags.StringSliceVar(&probe.Images, "images", build.Kinds(), "images to build")
	flags.StringVar(&probe.SignKey, "sign-key", "", "key that signs for Secure Boot")
	flags.StringVar(&probe.SignCert, "sign-cert", "", "certificate of that key")
	flags.StringVar(&probe.CA, "ca", "", "PEM file of the authority that the agent trusts")
	flags.StringVar(&probe.Firmware, "firmware", "", "folder that becomes /lib/firmware")
	flags.StringVar(&probe.Cmdline, "cmdline", "", "words to add to the kernel command line of the UKI")

	var images build.ImageOptions
	imagesCommand := &cobra.Command{Use: "images", Short: "Write container images as OCI layouts, and push them.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			images.Version, images.Names = version, os.Stdout
			return build.Images(cmd.Context(), images)
		}}
	flags = imagesCommand.Flags()
	flags.StringVar(&images.Out, "out", "bin/images", "folder for the layouts")
	flags.StringVar(&images.Probe, "probe", "bin/image/oci", "layout of the boot artefact")
	flags.StringSliceVar(&images.Arches, "arches", []string{"amd64"}, "architectures of the container images")
	flags.StringVar(&images.Certificates, "certificates", "/etc/ssl/certs/ca-certificates.crt", "PEM file of trusted authorities")
	flags.StringVar(&images.Push, "push", "", "registry and prefix to push to")

	root.AddCommand(probeCommand, imagesCommand, &cobra.Command{Use: "lock", Short: "Renew the lock file.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return build.RenewLock(cmd.Context(), lock, archive()) }})
	return root
}

// defaultCache is where the packages of all clones are kept, beside the control plane of the tests.
func defaultCache() string {
	folder, err := os.UserCacheDir()
	if err != nil {
		return "bin/debian"
	}
	return filepath.Join(folder, "metalaw", "debian")
}
