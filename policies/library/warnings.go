// SPDX-License-Identifier: Apache-2.0

package library

import (
	"fmt"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/bundle"
)

// Warnings say why the policy does not do in a bundle what it says: where every namespace may ask for the priority that it keeps
// something for, or none may.
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
	if err != nil {
		return nil, nil //nolint:nilerr // The tests of the policy tell of a priority that is no whole number.
	}
	most := claims.Priority.Max
	for _, own := range claims.Priority.Namespaces {
		most = max(most, own)
	}
	label, labelled := spans[p.Label]
	labelled = labelled && !label.rule.Head.Value.Equal(ast.StringTerm(""))
	switch {
	case claims.Priority.Max >= priority:
		return []string{fmt.Sprintf("%s keeps something for claims of priority %d, and those of every namespace may ask for up to %d. In %s, "+
			"set settings.claims.priority.max below %d, and in settings.claims.priority.namespaces who may ask for more",
			p.Name, priority, claims.Priority.Max, bundle.BundleFile, priority)}, nil
	case most < priority && !labelled:
		return []string{fmt.Sprintf("%s keeps something for claims of priority %d, and those of no namespace may ask for more than %d, so that "+
			"no claim can have it. Lower %s, or in %s, say in settings.claims.priority.namespaces who may ask for %d",
			p.Name, priority, most, p.Priority, bundle.BundleFile, priority)}, nil
	}
	return nil, nil
}
