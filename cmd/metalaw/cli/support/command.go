// SPDX-License-Identifier: Apache-2.0

// Package support gathers what a person elsewhere needs to judge one server, and makes sure that no secret is in it.
package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// Command is `metalaw support-bundle`.
func Command() *cobra.Command {
	flags := &access.Flags{}
	var file string
	cmd := &cobra.Command{
		Use:   "support-bundle SERVER [--file FILE]",
		Short: "Write what is known of a server into one archive, without secrets",
		Long: "Gathers the Server with its history of decisions, its BMC, Endpoint, claim, boot configurations, inventory, sanitization records " +
			"and Events, FleetControl, and the lines of the managers' logs that name them. Where the manager runs with --log-level=debug, the " +
			"log holds each Redfish request.\n\n" +
			"No Secret or BMCSecret is in the archive. What may be a secret by its key or its form is replaced by [hidden], wherever it stands. Where your rights allow it, the command " +
			"also compares the archive with the values of the server's own Secrets, and writes nothing if one occurs.\n\n" +
			"Exit codes: 0 written. 1 the server could not be read, or a secret was found. 2 the command line makes no sense.",
		Example: "  {{.}} support-bundle rack1-07-system-0",
		Args:    usage.OneArg("name one server"),
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, args []string) error {
			b := &bundle{Client: c, raw: flags.Raw, files: map[string][]byte{}}
			if err := b.gather(ctx, args[0]); err != nil {
				return err
			}
			if err := holdsNone(b.files, b.values); err != nil {
				return err
			}
			if file == "" {
				file = "metalaw-" + args[0] + "-" + t.Now.UTC().Format("20060102-150405") + ".tar.gz"
			}
			if err := b.write(file, t.Now); err != nil {
				return err
			}
			t.Notes(b.notes)
			t.Printf("%s: %d files, %d places hidden. Look through it before you send it.\n", file, len(b.files), b.secrets.Count)
			return nil
		}),
	}
	flags.Register(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "archive to write; one that exists is not replaced; named by server and time where left out")
	return cmd
}

func (b *bundle) write(name string, now time.Time) error {
	if len(b.notes) > 0 {
		b.files["missing.txt"] = []byte(strings.Join(b.notes, "\n") + "\n")
	}
	var archive bytes.Buffer
	if err := pack(&archive, b.files, now); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(archive.Bytes()); err != nil {
		_ = f.Close() // the error of the write is told
		return err
	}
	return f.Close()
}

// pack writes files, sorted by name, as a compressed tar archive.
func pack(w io.Writer, files map[string][]byte, now time.Time) error {
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: "metalaw-support/" + name, Mode: 0o600, Size: int64(len(files[name])), ModTime: now}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, err := archive.Write(files[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}
