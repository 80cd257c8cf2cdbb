// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/hidden"
	"github.com/metalaw/metalaw/policies"
)

// protectionState is what the cluster holds of wipes, and what the revisions ask of them that govern servers.
type protectionState struct {
	inventories []policyv1alpha1.ServerInventory
	// governs are the revisions that govern servers, by name. One that does not compile is missing.
	governs map[string]governing
}

// governing is what a revision asks of a wipe.
type governing struct {
	wipe bundle.Wipe
	// onlyExcused says that a rule asks whether every disk of a wipe was excused.
	onlyExcused bool
}

// governingOf reads the files of a bundle; false where they do not compile.
func governingOf(files bundle.Files) (governing, bool) {
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil || found.HasErrors() {
		return governing{}, false
	}
	return governing{b.Settings.Wipe, strings.Contains(string(files[bundle.LifecycleFile]), "wipe.excusedOnly")}, true
}

// protections reads the inventories, and the revisions that govern servers.
func (r reader) protections(ctx context.Context, servers []metalv1alpha1.Server) (protectionState, error) {
	state := protectionState{governs: map[string]governing{}}
	var inventories policyv1alpha1.ServerInventoryList
	if err := r.List(ctx, &inventories); err != nil {
		return state, err
	}
	state.inventories = inventories.Items
	var revisions policyv1alpha1.PolicyRevisionList
	if err := r.List(ctx, &revisions); err != nil {
		return state, err
	}
	for i := range revisions.Items {
		one := &revisions.Items[i]
		if !slices.ContainsFunc(servers, func(s metalv1alpha1.Server) bool { return revisionOf(&s) == one.Name }) {
			continue
		}
		if files, err := bundle.Unpack(one.Spec.Content); err == nil {
			if g, compiles := governingOf(files); compiles {
				state.governs[one.Name] = g
			}
		}
	}
	return state, nil
}

func revisionOf(s *metalv1alpha1.Server) string {
	if l := s.Status.Lifecycle; l != nil {
		return l.Revision
	}
	return ""
}

// wipeOf is what the revision of a server asks of a wipe.
func (p *protectionState) wipeOf(s *metalv1alpha1.Server) bundle.Wipe {
	return p.governs[revisionOf(s)].wipe
}

// checkHidden says which servers have storage that no disk shows, and of which that is not known.
func checkHidden(v view) finding {
	const check = "hidden storage"
	if err := v.protectionErr(); err != nil {
		return unread(check, err)
	}
	p := &v.protections
	fleet := hidden.FleetOf(v.maintenance.servers, p.inventories, func(s *metalv1alpha1.Server) []string { return p.wipeOf(s).Excused })
	find := hidden.Inventories(p.inventories)
	var doubtful []string
	for i := range v.maintenance.servers {
		s := &v.maintenance.servers[i]
		if names := hidden.Doubtful(find(s)); len(names) > 0 && p.wipeOf(s).Removable != bundle.RemovableErase {
			doubtful = append(doubtful, s.Name+" ("+strings.Join(names, " ")+")")
		}
	}
	var parts []string
	if len(fleet.Stops) > 0 {
		parts = append(parts, fmt.Sprintf("wipe.hidden: Fail stops %d servers: %s", len(fleet.Stops), list(fleet.Stops)))
	}
	if len(fleet.Unknown) > 0 {
		parts = append(parts, fmt.Sprintf("not known of %d servers without a report of the new form: %s", len(fleet.Unknown), list(fleet.Unknown)))
	}
	if len(doubtful) > 0 {
		parts = append(parts, fmt.Sprintf("%d servers have removable disks, and how they are attached is not known: %s",
			len(doubtful), list(doubtful)))
	}
	if len(parts) == 0 {
		return finding{check, Passed, "no agent and no BMC names storage that no disk shows", ""}
	}
	remedy := "inspect those servers again with the agent of this version"
	if len(fleet.Stops)+len(doubtful) > 0 {
		remedy = "see condition StorageHidden of each, and docs/sanitization.md"
	}
	return finding{check, Warned, strings.Join(parts, "; "), remedy}
}

// protection is something that a revision may ask of wipes, and a former one does not.
type protection struct {
	name string
	has  func(governing) bool
	// stops says whether it would stop a server, by what is stored of it; known is false where that cannot be told.
	stops func(*metalv1alpha1.Server, *policyv1alpha1.ServerInventory, governing) (stops, known bool)
}

// protections are in the order in which they are named. Each has what it would stop beside it.
var protections = []protection{
	{"wipe.hidden: Fail", func(g governing) bool { return g.wipe.Hidden == bundle.HiddenFail },
		func(_ *metalv1alpha1.Server, inv *policyv1alpha1.ServerInventory, g governing) (bool, bool) {
			stops := len(hidden.Last(inv, g.wipe.Excused).Open()) > 0
			return stops, stops || hidden.Known(inv)
		}},
	{"wipe.removable: Erase", func(g governing) bool { return g.wipe.Removable == bundle.RemovableErase },
		func(_ *metalv1alpha1.Server, inv *policyv1alpha1.ServerInventory, _ governing) (bool, bool) {
			return stopsRemovable(inv), hidden.Known(inv)
		}},
	{"wipe.identity: Proved", func(g governing) bool { return g.wipe.Identity == bundle.IdentityProved },
		func(s *metalv1alpha1.Server, inv *policyv1alpha1.ServerInventory, _ governing) (bool, bool) {
			reason, _ := identityOf(s, map[string]*policyv1alpha1.ServerInventory{s.Spec.SystemUUID: inv})
			return reason == metalv1alpha1.ReasonMachineUnproven, reason != notKnown
		}},
	{"a rule for wipe.excusedOnly", func(g governing) bool { return g.onlyExcused },
		func(_ *metalv1alpha1.Server, inv *policyv1alpha1.ServerInventory, _ governing) (bool, bool) {
			return inv != nil && inv.Wipe != nil && inv.Wipe.State == policyv1alpha1.WipeVerified && excusedOnly(inv.Wipe), true
		}},
}

// stopsRemovable says that a machine has a removable medium with data, or one that would be refused.
func stopsRemovable(inv *policyv1alpha1.ServerInventory) bool {
	if inv == nil || inv.Report == nil {
		return false
	}
	return len(hidden.Doubtful(inv)) > 0 || slices.ContainsFunc(inv.Report.Data.Storage, func(d policyv1alpha1.BlockDevice) bool {
		return d.RemovableMedium() && d.Content != policyv1alpha1.ContentBlank
	})
}

// excusedOnly also knows a wipe of a former build, which did not mark it.
func excusedOnly(w *policyv1alpha1.WipeReport) bool {
	return len(w.Disks) == 0 && slices.ContainsFunc(w.Skipped, func(d policyv1alpha1.SkippedDisk) bool { return d.Excused })
}

// checkProtections says which protections the revisions lack that govern servers, and whom each would stop.
func checkProtections(v view) finding {
	const check = "protections"
	if err := v.protectionErr(); err != nil {
		return unread(check, err)
	}
	p := &v.protections
	find := hidden.Inventories(p.inventories)
	var parts, unknownRevisions []string
	for _, one := range protections {
		var without int
		var stops, unknown []string
		for i := range v.maintenance.servers {
			s := &v.maintenance.servers[i]
			g, compiled := p.governs[revisionOf(s)]
			switch {
			case !compiled && revisionOf(s) != "":
				unknownRevisions = append(unknownRevisions, revisionOf(s))
				continue
			case !compiled, one.has(g):
				continue
			}
			without++
			switch stop, known := one.stops(s, find(s), g); {
			case stop:
				stops = append(stops, s.Name)
			case !known:
				unknown = append(unknown, s.Name)
			}
		}
		if without > 0 {
			parts = append(parts, fmt.Sprintf("%s is not asked for %d servers, and would stop %s (not known: %d)", one.name, without,
				counted(stops), len(unknown)))
		}
	}
	slices.Sort(unknownRevisions)
	if unknownRevisions = slices.Compact(unknownRevisions); len(unknownRevisions) > 0 {
		parts = append(parts, "not known of revisions that do not compile here: "+list(unknownRevisions))
	}
	if len(parts) == 0 {
		return finding{check, Passed, "each revision that governs servers asks for all of them", ""}
	}
	return finding{check, Warned, strings.Join(parts, "; "), "promote the bundle of this version: docs/operations.md"}
}

func counted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d: %s", len(names), list(names))
}

// protectionErr is why the protections cannot be judged.
func (v *view) protectionErr() error {
	if v.maintenanceErr != nil {
		return v.maintenanceErr
	}
	return v.protectionsErr
}
