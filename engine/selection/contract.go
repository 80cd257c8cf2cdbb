// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"fmt"
	"slices"
)

// ClaimSpec is the part of a claim that the hard contract looks at.
type ClaimSpec struct {
	// ServerRef is empty when the claim names no server; Selector is nil when it has none.
	ServerRef   string
	Selector    *Selector
	Tolerations []Toleration
}

// ServerState is the part of a server that the hard contract looks at.
type ServerState struct {
	Name   string
	Labels map[string]string
	// State is status.state and Power is status.powerState, both as the API has them; empty is unknown, not Off.
	State, Power string
	Taints       []Taint
	// Claimed: spec.serverClaimRef is set, by whomever and whether or not that claim exists.
	Claimed bool
	// Unclaimable is spec.unclaimable.
	Unclaimable bool
	// InService: spec.serverMaintenanceRef is set, whether or not that maintenance exists.
	InService bool
	// Parking: the server is to be parked, or is being parked.
	Parking bool
	// Dirty: a data-guarding mark says that data of an earlier holder may be there.
	Dirty bool
	// Deleting: the object has a deletion timestamp.
	Deleting bool
}

// StateAvailable is the state in which a server can be claimed.
const StateAvailable = "Available"

const (
	powerOff       = "Off"
	effectNoBind   = "NoBind"
	operatorExists = "Exists"
	operatorEqual  = "Equal"
)

// Eligible says whether a claim may have a server at all. The first check that fails gives code and message; the order
// is from what the claim asked for to what will pass by itself, so that the counts of a waiting claim say most: a cordon and a
// maintenance are named before the state that may follow from them. Messages name no other tenant.
func Eligible(claim ClaimSpec, server ServerState) (ok bool, code, message string) {
	switch {
	case claim.ServerRef != "" && claim.ServerRef != server.Name:
		return false, CodeServerRef, "the claim names another server"
	case !claim.Selector.Matches(server.Labels):
		return false, CodeSelector, "the claim's selector does not match its labels"
	case server.Deleting:
		return false, CodeDeleting, "it is being deleted"
	case server.Claimed:
		return false, CodeClaimed, "another claim has it"
	case server.Unclaimable:
		return false, CodeUnclaimable, "it is cordoned (spec.unclaimable)"
	case server.InService:
		return false, CodeMaintenance, "it is handed to a maintenance (spec.serverMaintenanceRef)"
	case server.Parking && server.State == StateAvailable:
		return false, CodeState, "it is to be parked"
	case server.State != StateAvailable:
		return false, CodeState, "its state is " + cmp.Or(server.State, "unknown") + " and not Available"
	case server.Dirty:
		return false, CodeDirty, "it holds data of an earlier holder"
	case server.Power != powerOff:
		return false, CodePower, "its power state is " + cmp.Or(server.Power, "unknown") + " and not Off"
	}
	if taint, found := Untolerated(server.Taints, claim.Tolerations); found {
		return false, CodeTaint, fmt.Sprintf("the claim does not tolerate its taint %s", taint)
	}
	return true, "", ""
}

// Objection is a check of the hard contract that a server fails, in the words of Eligible.
type Objection struct{ Code, Message string }

// Behind are the checks that a server which a claim asks for fails beside the one that Eligible names, and that pass neither with that one
// nor by themselves: a cordon and a taint, in their order.
func Behind(first string, tolerations []Toleration, server ServerState) []Objection {
	free := ServerState{State: StateAvailable, Power: powerOff}
	cordoned, tainted := free, free
	cordoned.Unclaimable, tainted.Taints = server.Unclaimable, server.Taints
	var behind []Objection
	for _, state := range []ServerState{cordoned, tainted} {
		if ok, code, message := Eligible(ClaimSpec{Tolerations: tolerations}, state); !ok && code != first {
			behind = append(behind, Objection{code, message})
		}
	}
	return behind
}

// Feasible says whether a claim could ever have a server: it is Eligible without what passes by itself, such as another
// claim, a state, a cordon or data that is to be wiped. The codes are those of Eligible.
func Feasible(claim ClaimSpec, server ServerState) (ok bool, code, message string) {
	return Eligible(claim, ServerState{Name: server.Name, Labels: server.Labels, Taints: server.Taints, State: StateAvailable, Power: powerOff})
}

// Free says whether a server could be claimed now, taints and labels left aside. One that is on its way to being off counts: it
// is free for the next claim.
func Free(server ServerState) bool {
	server.Power = powerOff
	ok, _, _ := Eligible(ClaimSpec{Tolerations: []Toleration{{Operator: operatorExists}}}, server)
	return ok
}

// Untolerated returns the first taint with effect NoBind that no toleration matches. A taint without effect counts as
// NoBind, which is the API's default. Taints with effect Evict keep no claim from binding: they concern claims that are
// bound already.
func Untolerated(taints []Taint, tolerations []Toleration) (Taint, bool) {
	for _, taint := range taints {
		if cmp.Or(taint.Effect, effectNoBind) != effectNoBind {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(t Toleration) bool { return t.Tolerates(taint) }) {
			return taint, true
		}
	}
	return Taint{}, false
}

// Tolerates: Exists compares the key, and with an empty key matches every taint; Equal (also when the operator is empty)
// compares key and value; an empty effect matches every effect. Any other operator matches nothing.
func (t Toleration) Tolerates(taint Taint) bool {
	if t.Effect != "" && t.Effect != cmp.Or(taint.Effect, effectNoBind) {
		return false
	}
	switch t.Operator {
	case operatorExists:
		return t.Key == "" || t.Key == taint.Key
	case operatorEqual, "":
		return t.Key != "" && t.Key == taint.Key && t.Value == taint.Value
	}
	return false
}

// String is the form that kubectl uses: key=value:effect.
func (t Taint) String() string {
	effect := cmp.Or(t.Effect, effectNoBind)
	if t.Value == "" {
		return t.Key + ":" + effect
	}
	return t.Key + "=" + t.Value + ":" + effect
}
