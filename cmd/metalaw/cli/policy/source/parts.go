// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"slices"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

// parts are the ConfigMaps of a stream that hold files for a head.
type parts []*configMap

// of is the part of a head by its name, as the manager would find it: in the head's namespace, and under its bundle.
func (p parts) of(head *configMap) func(name string) *configMap {
	return func(name string) *configMap { return p.find(head, name, true) }
}

// find finds a part in the namespace of its head, or in another; nil where there is none. What says no namespace is applied to that which
// kubectl happens to use, and may be in either. Of several the last counts, as it does when they are applied.
func (p parts) find(head *configMap, name string, together bool) *configMap {
	for _, c := range slices.Backward(p) {
		apart := c.namespace != head.namespace && c.namespace != "" && head.namespace != ""
		if c.name == name && c.labels[partLabel] == head.labels[bundleLabel] && apart != together {
			return c
		}
	}
	return nil
}

// tellApart says of parts that are missing in which other namespace they are.
func (p parts) tellApart(head *configMap, found diag.List) {
	listed := bundle.Parts(string(head.files[bundle.PartsFile]))
	for i, d := range found {
		at := slices.IndexFunc(listed, func(l bundle.Part) bool { return l.Name == d.Rule })
		if d.Code != bundle.CodePartMissing || at < 0 || p.find(head, listed[at].ConfigMap, true) != nil {
			continue
		}
		if c := p.find(head, listed[at].ConfigMap, false); c != nil {
			found[i].Message = fmt.Sprintf("%s: the one here is in namespace %s, and the bundle in %s", d.Message, c.namespace, head.namespace)
		}
	}
}
