// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
	"github.com/metalaw/metalaw/engine/maintenance"
)

// The words of maintenance.unclaimed and maintenance.approval.
const (
	UnclaimedGrant         = "Grant"
	UnclaimedAfterRelease  = "AfterRelease"
	ApprovalPerMaintenance = "PerMaintenance"
	ApprovalPerClaim       = "PerClaim"
)

const (
	// maxRows bounds each list of maintenance.
	maxRows = 50
	// mostExpected is how long a maintenance can be expected to take.
	mostExpected = 7 * 24 * time.Hour
	// mostNotice is the longest notice, and the longest time of a pause and of a check.
	mostNotice = 31 * 24 * time.Hour
	leastTime  = time.Minute
	maxServers = 1000000
)

// readMaintenance reads the setting maintenance; what it leaves out has the default.
func (s *Settings) readMaintenance(f *yamlpos.File, k yamlpos.Field) {
	p := s.Maintenance
	unclaimed, approval := UnclaimedGrant, ApprovalPerMaintenance
	readKeys(f, k.Value, k.Name,
		key{"unclaimed", word(&unclaimed, UnclaimedGrant, UnclaimedAfterRelease)},
		key{"approval", word(&approval, ApprovalPerMaintenance, ApprovalPerClaim)},
		key{"enforcedNotice", within(&p.EnforcedNotice, 0, mostNotice)},
		key{"expected", within(&p.Expected, leastTime, mostExpected)},
		key{"windows", rows(&p.Windows, readWindow)},
		key{"limits", rows(&p.Limits, readLimit)},
		key{"waves", rows(&p.Waves, readWave)},
		key{"checks", mapping(key{"pre", rows(&p.Pre, readCheck)}, key{"post", rows(&p.Post, readCheck)})},
		key{"stop", mapping(key{"failed", whole(&p.Stop.Failed, 0, maxServers)}, key{"overdue", whole(&p.Stop.Overdue, 0, maxServers)})})
	p.AfterRelease, p.PerClaim = unclaimed == UnclaimedAfterRelease, approval == ApprovalPerClaim
	s.warnOfShortWindows(f, k)
}

// warnOfShortWindows tells of windows that no maintenance fits which does not say how long it takes.
func (s *Settings) warnOfShortWindows(f *yamlpos.File, k yamlpos.Field) {
	for i := range s.Maintenance.Windows {
		w := &s.Maintenance.Windows[i]
		if !w.Never(s.Maintenance.Expected) || k.Value.Kind != yaml.MappingNode {
			continue
		}
		f.Warnf(k.Key, "setting-duration", "", "let the window last longer, or lower expected or least",
			"the window %s is never open for %s, so that it is for maintenances alone that say that they take less", w.Name,
			yamlpos.LengthText(max(s.Maintenance.Expected, w.Least)))
	}
}

// within reads a length of time within bounds.
func within(to *time.Duration, least, most time.Duration) func(*yamlpos.File, yamlpos.Field) {
	return func(f *yamlpos.File, k yamlpos.Field) {
		span(to, "1h")(f, k)
		if !f.Told(k.Value) && (*to < least || *to > most) {
			f.Errorf(k.Value, "setting-duration", "",
				fmt.Sprintf("write a duration from %s to %s", yamlpos.LengthText(least), yamlpos.LengthText(most)),
				"%s cannot be %s", k.Name, yamlpos.LengthText(*to))
		}
	}
}

// rows reads a list of mappings, each of which has a name of its own. A row that is wrong is left out.
func rows[T any](to *[]T, read func(f *yamlpos.File, row *yaml.Node, what string, name key) (T, bool)) func(*yamlpos.File, yamlpos.Field) {
	return func(f *yamlpos.File, k yamlpos.Field) {
		*to = []T{}
		items := f.Items(k.Value, k.Name)
		if len(items) > maxRows {
			f.Errorf(k.Value, "setting-number", "", fmt.Sprintf("write %d rows at most", maxRows), "%s has %d rows", k.Name, len(items))
			return
		}
		var names []string
		for _, item := range items {
			found := len(f.Found)
			name := ""
			row, ok := read(f, item, "a row of "+k.Name, key{"name", func(f *yamlpos.File, k yamlpos.Field) {
				if name = f.Text(k.Value, k.Name); !namespaceName.MatchString(name) && !f.Told(k.Value) {
					f.Errorf(k.Value, "setting-word", "", "use lower-case letters, digits and dashes, at most 63", "name cannot be %q", name)
				}
			}})
			switch {
			case len(f.Found) > found || item.Kind != yaml.MappingNode:
				continue
			case name == "":
				f.Errorf(item, "setting-word", "", "add name:", "a row of %s has no name", k.Name)
				continue
			case slices.Contains(names, name):
				f.Errorf(item, "setting-word", "", "give each row a name of its own", "%s has the name %q twice", k.Name, name)
				continue
			}
			if names = append(names, name); ok {
				*to = append(*to, row)
			}
		}
	}
}

func readWindow(f *yamlpos.File, n *yaml.Node, what string, name key) (maintenance.Window, bool) {
	w := maintenance.Window{Zone: "UTC"}
	var zone, opens *yaml.Node
	given := readKeys(f, n, what, named(name, &w.Name), matchLabels(&w.MatchLabels),
		key{"when", condition(&w.When)},
		key{"opens", func(f *yamlpos.File, k yamlpos.Field) { w.Opens, opens = f.Text(k.Value, k.Name), k.Value }},
		key{"zone", func(f *yamlpos.File, k yamlpos.Field) { w.Zone, zone = f.Text(k.Value, k.Name), k.Value }},
		key{"lasts", within(&w.Lasts, leastTime, maintenance.MaxLasts)},
		key{"least", within(&w.Least, 0, maintenance.MaxLasts)})
	if !gives(f, n, what, given, "opens", "lasts") {
		return w, false
	}
	if at := zone; at != nil {
		if _, err := time.LoadLocation(w.Zone); err != nil || w.Zone == "Local" || w.Zone == "" {
			f.Errorf(at, "setting-word", "", "write the name of an IANA time zone, such as Europe/Berlin",
				"zone cannot be %q, which is no time zone", w.Zone)
			return w, false
		}
	}
	complete, err := maintenance.NewWindow(w)
	if err != nil {
		f.Errorf(opens, "setting-word", "", `write minute, hour, day of the month, month and day of the week, such as "0 22 * * 1-5"`,
			"opens cannot be %q: %v", w.Opens, err)
		return w, false
	}
	return complete, true
}

// named is the key name of a row, of which the row keeps the value too.
func named(name key, to *string) key {
	return key{name.name, func(f *yamlpos.File, k yamlpos.Field) {
		name.read(f, k)
		*to = k.Value.Value
	}}
}

// gives says that a row has all keys that it needs.
func gives(f *yamlpos.File, n *yaml.Node, what string, given []string, needs ...string) bool {
	ok := n.Kind == yaml.MappingNode
	for _, need := range needs {
		if ok && !slices.Contains(given, need) {
			f.Errorf(n, "setting-word", "", "add "+need+":", "%s does not say %s", what, need)
			return false
		}
	}
	return ok
}

func matchLabels(to *maintenance.Selector) key {
	return key{"matchLabels", func(f *yamlpos.File, k yamlpos.Field) {
		*to = maintenance.Selector{}
		for _, label := range f.Fields(k.Value, k.Name) {
			if !labelName.MatchString(label.Name) {
				f.Errorf(label.Key, "setting-word", "", "write the key of a label, such as topology.kubernetes.io/zone",
					"%q is no key of a label", label.Name)
			}
			(*to)[label.Name] = f.Text(label.Value, label.Name)
		}
	}}
}

func condition(to **maintenance.Expression) func(*yamlpos.File, yamlpos.Field) {
	return func(f *yamlpos.File, k yamlpos.Field) { *to = maintenance.Compile(f, k.Name, k.Value) }
}

func readLimit(f *yamlpos.File, n *yaml.Node, what string, name key) (maintenance.Limit, bool) {
	var l maintenance.Limit
	given := readKeys(f, n, what, named(name, &l.Name), matchLabels(&l.MatchLabels),
		key{"per", func(f *yamlpos.File, k yamlpos.Field) {
			if l.Per = f.Text(k.Value, k.Name); !labelName.MatchString(l.Per) && !f.Told(k.Value) {
				f.Errorf(k.Value, "setting-word", "", "write rack, zone, region, claim.namespace or the key of a label", "per cannot be %q", l.Per)
			}
		}},
		key{"most", func(f *yamlpos.File, k yamlpos.Field) { l.Most = amount(f, k) }})
	return l, gives(f, n, what, given, "most")
}

// amount reads a number of servers, or a percentage.
func amount(f *yamlpos.File, k yamlpos.Field) maintenance.Amount {
	text := f.Text(k.Value, k.Name)
	digits, percent := strings.CutSuffix(text, "%")
	value, err := strconv.Atoi(digits)
	switch {
	case f.Told(k.Value):
	case err != nil || value < 1 || value > maxServers || percent && value > 100 || strings.HasPrefix(text, "+"):
		f.Errorf(k.Value, "setting-number", "",
			"write a whole number of servers from 1 on, or a percentage such as 2%; a freeze stops all maintenances",
			"%s cannot be %q", k.Name, text)
	case percent:
		return maintenance.Amount{Percent: value}
	default:
		return maintenance.Amount{Number: value}
	}
	return maintenance.Amount{}
}

func readWave(f *yamlpos.File, n *yaml.Node, what string, name key) (maintenance.Wave, bool) {
	var w maintenance.Wave
	readKeys(f, n, what, named(name, &w.Name), matchLabels(&w.MatchLabels), key{"pause", within(&w.Pause, 0, mostNotice)})
	return w, n.Kind == yaml.MappingNode
}

func readCheck(f *yamlpos.File, n *yaml.Node, what string, name key) (maintenance.Check, bool) {
	var c maintenance.Check
	given := readKeys(f, n, what, named(name, &c.Name), key{"must", condition(&c.Must)}, key{"within", within(&c.Within, 0, mostNotice)})
	return c, gives(f, n, what, given, "must")
}
