// SPDX-License-Identifier: Apache-2.0

package library

import (
	"fmt"
	"strconv"

	"github.com/metalaw/metalaw/engine/bundle"
)

// Warnings say why the policy does not do in a bundle what it says: where every namespace may ask for the priority that it keeps
// something for.
func (p Policy) Warnings(files bundle.Files, claims bundle.Claims) ([]string, error) {
	if p.Priority == "" {
		return nil, nil
	}
	spans, err := p.spans(files[p.Main()])
	if err != nil {
		return nil, err
	}
	at, there := spans[p.Priority]
	if !there {
		return nil, nil
	}
	priority, err := strconv.ParseInt(at.rule.Head.Value.String(), 10, 64)
	if err != nil || claims.Priority.Max < priority {
		return nil, nil //nolint:nilerr // The tests of the policy tell of a priority that is no whole number.
	}
	return []string{fmt.Sprintf("%s keeps something for claims of priority %d, and those of every namespace may ask for up to %d: in %s, "+
		"set settings.claims.priority.max below %d, and in settings.claims.priority.namespaces who may ask for more",
		p.Name, priority, claims.Priority.Max, bundle.BundleFile, priority)}, nil
}
