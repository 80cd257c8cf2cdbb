// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/maintenance"
)

// maintenanceState is what the cluster holds of maintenances.
type maintenanceState struct {
	// Consented is when a manager ran first with --maintenance=on; zero where none did.
	Consented time.Time

	maintenances []metalv1alpha1.ServerMaintenance
	servers      []metalv1alpha1.Server
	claims       []metalv1alpha1.ServerClaim
}

// sorts are maintenances, as namespace/name, by what a manager with --maintenance=on makes of them.
type sorts struct {
	// act are granted as soon as the policy lets them, holds have their servers already.
	act, holds []string
	// adopt are older than the manager's consent, and wait until a user adopts them. Of those stale say that they hold a server which
	// does not name them, as another manager left them.
	adopt, stale []string
	// over are aborted or failed and hold nothing.
	over []string
	// reasons count those that wait, by the reason that the manager gave last.
	reasons map[string]int
}

// sort says what a manager with --maintenance=on makes of each maintenance.
func (s *maintenanceState) sort() sorts {
	out := sorts{reasons: map[string]int{}}
	held := map[string]bool{}
	for i := range s.servers {
		if uid := s.servers[i].Annotations[metalv1alpha1.MaintenanceUIDAnnotation]; uid != "" {
			held[uid] = true
		}
	}
	for i := range s.maintenances {
		m := &s.maintenances[i]
		name := m.Namespace + "/" + m.Name
		old := s.old(m)
		switch {
		case held[string(m.UID)]:
			out.holds = append(out.holds, name)
		case m.DeletionTimestamp != nil || m.Annotations[metalv1alpha1.AbortAnnotation] != "":
			out.over = append(out.over, name)
		case old && m.Status.State != "" && m.Status.State != metalv1alpha1.ServerMaintenanceStatePending:
			out.stale = append(out.stale, name)
		case old:
			out.adopt = append(out.adopt, name)
		case m.Status.State == metalv1alpha1.ServerMaintenanceStateFailed:
			out.over = append(out.over, name)
		default:
			out.act = append(out.act, name)
			if c := meta.FindStatusCondition(m.Status.Conditions, metalv1alpha1.ConditionGranted); c != nil {
				out.reasons[c.Reason]++
			}
		}
	}
	return out
}

// old says that a maintenance is older than the manager's consent, and was not adopted.
func (s *maintenanceState) old(m *metalv1alpha1.ServerMaintenance) bool {
	older := s.Consented.IsZero() || m.CreationTimestamp.Time.Before(s.Consented)
	return older && m.Annotations[metalv1alpha1.AdoptAnnotation] != "true"
}

// words count each sort, and name its maintenances.
func (s sorts) words() string {
	var words []string
	for _, sort := range []struct {
		names []string
		text  string
	}{{s.holds, "have their servers"}, {s.act, "wait for their servers"}, {s.adopt, "are older than the consent and wait for adoption"},
		{s.stale, "were left in another state by another manager and wait for adoption"}, {s.over, "end or are over"}} {
		if len(sort.names) > 0 {
			slices.Sort(sort.names)
			words = append(words, fmt.Sprintf("%d %s (%s)", len(sort.names), sort.text, list(sort.names)))
		}
	}
	return strings.Join(words, "; ")
}

// why counts the reasons for which maintenances wait.
func (s sorts) why() string {
	reasons := make([]string, 0, len(s.reasons))
	for reason, n := range s.reasons {
		reasons = append(reasons, fmt.Sprintf("%s %d", reason, n))
	}
	slices.Sort(reasons)
	return strings.Join(reasons, ", ")
}

func checkMaintenances(v view) finding {
	const check = "maintenances"
	if v.maintenanceErr != nil {
		return unread(check, v.maintenanceErr)
	}
	mode := v.manager.Maintenance
	runs := "the manager runs with --maintenance=" + mode
	if v.managerErr != nil || mode == "" {
		runs = "how the manager runs is not known"
	}
	sorted := v.maintenance.sort()
	words := sorted.words()
	const adopt = "annotate those that shall be granted with " + metalv1alpha1.AdoptAnnotation + "=true, and delete the others"
	switch old := len(sorted.adopt) + len(sorted.stale); {
	case words == "":
		return finding{check, Passed, runs + "; there is no ServerMaintenance", ""}
	case mode == string(maintenance.On) && old > 0:
		return finding{check, Warned, runs + "; " + words, adopt}
	case mode == string(maintenance.On):
		if why := sorted.why(); why != "" {
			words += "; why they wait: " + why
		}
		return finding{check, Passed, runs + "; " + words, ""}
	case old > 0:
		return finding{check, Warned, fmt.Sprintf("%s and grants nothing. With on: %s", runs, words), adopt}
	default:
		return finding{check, Warned, fmt.Sprintf("%s and grants nothing. With on: %s", runs, words),
			"delete those that shall not be granted before you set --maintenance=on"}
	}
}

func checkForeignMaintenances(v view) finding {
	const check = "foreign maintenances"
	if v.maintenanceErr != nil {
		return unread(check, v.maintenanceErr)
	}
	var foreign, gone []string
	for i := range v.maintenance.servers {
		s := &v.maintenance.servers[i]
		ref := s.Spec.ServerMaintenanceRef
		if ref == nil || s.Annotations[metalv1alpha1.MaintenanceUIDAnnotation] != "" {
			continue
		}
		words := fmt.Sprintf("%s (%s/%s)", s.Name, ref.Namespace, ref.Name)
		exists := slices.ContainsFunc(v.maintenance.maintenances, func(m metalv1alpha1.ServerMaintenance) bool {
			return m.Namespace == ref.Namespace && m.Name == ref.Name
		})
		if exists {
			foreign = append(foreign, words)
		} else {
			gone = append(gone, words)
		}
	}
	var parts []string
	if len(foreign) > 0 {
		parts = append(parts, fmt.Sprintf("%d servers name a maintenance that the manager did not grant: %s", len(foreign), list(foreign)))
	}
	if len(gone) > 0 {
		parts = append(parts, fmt.Sprintf("%d servers name a ServerMaintenance of this API group that does not exist: %s", len(gone), list(gone)))
	}
	if len(parts) == 0 {
		return finding{check, Passed, "no server names a maintenance that the manager did not grant", ""}
	}
	return finding{check, Warned, strings.Join(parts, "; "),
		"the manager never clears such a reference; the program or user who wrote spec.serverMaintenanceRef clears it"}
}

func checkMaintenanceLabels(v view) finding {
	const check = "maintenance labels"
	if v.maintenanceErr != nil {
		return unread(check, v.maintenanceErr)
	}
	wanted := map[string]bool{}
	for i := range v.maintenance.maintenances {
		wanted[v.maintenance.maintenances[i].Spec.ServerRef.Name] = true
	}
	for i := range v.maintenance.servers {
		if _, leaves := v.maintenance.servers[i].Annotations[metalv1alpha1.DecommissionAnnotation]; leaves {
			wanted[v.maintenance.servers[i].Name] = true
		}
	}
	var idle []string
	for i := range v.maintenance.claims {
		c := &v.maintenance.claims[i]
		if c.Labels[metalv1alpha1.MaintenanceNeededLabel] == "" || c.Spec.ServerRef != nil && wanted[c.Spec.ServerRef.Name] {
			continue
		}
		idle = append(idle, c.Namespace+"/"+c.Name)
	}
	if len(idle) == 0 {
		return finding{check, Passed, "every claim that is asked for its server is asked for a maintenance or a decommission", ""}
	}
	slices.Sort(idle)
	return finding{check, Warned, fmt.Sprintf("%d claims have label %s, and no maintenance wants their servers: %s", len(idle),
		metalv1alpha1.MaintenanceNeededLabel, list(idle)),
		"take the label away: kubectl label serverclaim -n NAMESPACE NAME " + metalv1alpha1.MaintenanceNeededLabel + "-"}
}
