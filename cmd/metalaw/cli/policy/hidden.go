// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/hidden"
	"github.com/metalaw/metalaw/policies"
)

// maxStops bounds the servers that are named.
const maxStops = 5

// tellHidden says of a bundle with wipe.hidden: Fail how many servers that would stop, and of how many it is not known.
func tellHidden(ctx context.Context, t *terminal.Terminal, c client.Client, files bundle.Files) {
	wipe, known := wipeOf(files)
	if !known || wipe.Hidden != bundle.HiddenFail {
		return
	}
	var servers v1alpha1.ServerList
	err := access.Explain(c.List(ctx, &servers), "list", access.Servers)
	var inventories policyv1alpha1.ServerInventoryList
	if err == nil {
		err = c.List(ctx, &inventories)
	}
	if err != nil {
		t.Notef("how many servers wipe.hidden: Fail would stop is not known: %v", err)
		return
	}
	t.Notef("%s", hiddenWords(hidden.FleetOf(servers.Items, inventories.Items, func(*v1alpha1.Server) []string { return wipe.Excused })))
}

// wipeOf is what a bundle asks of a wipe; false where it does not compile, which admission says in its own words.
func wipeOf(files bundle.Files) (bundle.Wipe, bool) {
	fill, err := policies.Shipped(policies.DefaultBundle)
	if err != nil || len(files) == 0 {
		return bundle.Wipe{}, false
	}
	b, found, err := bundle.Compile(files.Filled(fill), policies.Vocabulary())
	if err != nil || found.HasErrors() {
		return bundle.Wipe{}, false
	}
	return b.Settings.Wipe, true
}

func hiddenWords(f hidden.Fleet) string {
	words := fmt.Sprintf("wipe.hidden: Fail would stop %s, and of %d it is not known", terminal.Count(len(f.Stops), "server"), len(f.Unknown))
	if len(f.Stops) == 0 {
		return words
	}
	named := strings.Join(f.Stops[:min(len(f.Stops), maxStops)], "; ")
	if more := len(f.Stops) - maxStops; more > 0 {
		named += fmt.Sprintf("; and %d more", more)
	}
	return words + ": " + named
}
