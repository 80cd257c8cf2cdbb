// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// visit is one maintenance of one server. claim is the one that holds the server; empty where none does.
type visit struct {
	maintenance, server, uuid, claim string
	// in says that the server was seen in state Maintenance. left is when it was seen in another state afterwards, decided when the
	// manager chose that as it says itself, gone when the maintenance was seen no more.
	in                  bool
	decided, left, gone time.Time
	// approved and deleted say what the driver has done.
	approved, deleted bool
}

func (v *visit) over() bool { return !v.left.IsZero() && !v.gone.IsZero() }

// holds says that a write belongs to the maintenance itself: to its object and to the labels of the claim until the maintenance is gone,
// and to anything else until the server has left state Maintenance. Later ones inspect the server, or say that the claim has it again.
func (v *visit) holds(w *visitWrite, left time.Time) bool {
	switch w.Resource {
	case groupOf(kindMaintenance), groupOf(kindClaim):
		if w.Subresource == "" {
			return !w.at.After(v.gone)
		}
	}
	return !w.at.After(left)
}

// leaves is when the write came by which the server left state Maintenance. Where that is not known, it is when the server was seen.
func (v *visit) leaves(writes []visitWrite) time.Time {
	left := v.left
	for i := range writes {
		w := &writes[i]
		status := w.Resource == groupOf(kindServer) && w.Subresource == "status" && w.Code < 300
		if status && !v.decided.IsZero() && w.at.After(v.decided) && w.at.Before(left) {
			left = w.at
		}
	}
	return left
}

// visitWrite is a write for a visit, and when it came.
type visitWrite struct {
	audited
	at time.Time
}

func groupOf(k kind) string { return string(k) + ".metal.ironcore.dev" }

// kind is the name of the sort of server in the report.
func (v *visit) kind() string {
	if v.claim == "" {
		return "unclaimed"
	}
	return "claimed"
}

// names are the objects that the manager may write for the server, as namespace/name, or name where there is no namespace.
func (v *visit) names(managerNamespace string) []string {
	all := []string{v.maintenance, v.server, v.uuid}
	if v.claim != "" {
		all = append(all, v.claim)
	}
	for _, suffix := range []string{"", "-wipe"} {
		all = append(all, managerNamespace+"/"+v.server+suffix)
	}
	return all
}

// visits are told of every change that the API server shows, so that a stay counts however short it was.
type visits struct {
	all                     []*visit
	byServer, byMaintenance map[string]*visit
}

func newVisits(all []*visit) *visits {
	v := &visits{all: all, byServer: map[string]*visit{}, byMaintenance: map[string]*visit{}}
	for _, one := range all {
		v.byServer[one.server], v.byMaintenance[one.maintenance] = one, one
	}
	return v
}

// serverIs notes the state of a server, and since when it has it as the manager says.
func (v *visits) serverIs(server, state string, since, at time.Time) {
	switch one := v.byServer[server]; {
	case one == nil:
	case state == inMaintenance:
		one.in, one.left = true, time.Time{}
	case one.in && one.left.IsZero():
		one.decided, one.left = since, at
	}
}

// maintenanceGone notes that a maintenance is there no more.
func (v *visits) maintenanceGone(maintenance string, at time.Time) {
	if one := v.byMaintenance[maintenance]; one != nil && one.gone.IsZero() {
		one.gone = at
	}
}

// due are the visits whose claim asks for an approval, or whose maintenance has its server; each is returned once.
func (v *visits) due(claims, maintenances map[string]object) (approve, remove []*visit) {
	for _, one := range v.all {
		if claim, ok := claims[one.claim]; ok && !one.approved && claim.Metadata.Labels[neededLabel] != "" {
			one.approved = true
			approve = append(approve, one)
		}
		if m, ok := maintenances[one.maintenance]; ok && !one.deleted && m.Status.State == stateServed {
			one.deleted = true
			remove = append(remove, one)
		}
	}
	return approve, remove
}

// standing is how many visits are over, and how the maintenances of the others stand.
func (v *visits) standing(maintenances map[string]object) standing {
	s := standing{want: len(v.all), says: "maintenances over"}
	for _, one := range v.all {
		if one.over() {
			s.have++
		} else if m, ok := maintenances[one.maintenance]; ok {
			s.missing = append(s.missing, m)
		}
	}
	return s
}

// lastLeft is when the last server had left state Maintenance.
func (v *visits) lastLeft() time.Time {
	return slices.MaxFunc(v.all, func(a, b *visit) int { return a.left.Compare(b.left) }).left
}

// plan chooses which servers are visited: half of them claimed as far as there are so many, a claimed one and one that is not in turn.
func plan(n int, servers map[string]object) []*visit {
	var claimed, free []*visit
	for name, o := range servers {
		one := &visit{server: name, uuid: strings.ToLower(o.Spec.SystemUUID), claim: o.Spec.ServerClaimRef.key()}
		if one.claim != "" {
			claimed = append(claimed, one)
		} else {
			free = append(free, one)
		}
	}
	byServer := func(a, b *visit) int { return cmp.Compare(a.server, b.server) }
	slices.SortFunc(claimed, byServer)
	slices.SortFunc(free, byServer)
	var all []*visit
	for i := 0; len(all) < n && (i < len(claimed) || i < len(free)); i++ {
		for _, of := range [][]*visit{free, claimed} {
			if i < len(of) && len(all) < n {
				of[i].maintenance = tenant + "/" + maintenanceName(len(all))
				all = append(all, of[i])
			}
		}
	}
	return all
}
