// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// tellTruth tells what the machine itself went through.
func (r *record) tellTruth(machine string, add func(at time.Time, format string, args ...any)) {
	for _, v := range r.power[machine] {
		add(v.at, "truth  power %s", v.object)
	}
	for drive, h := range r.drives[machine] {
		for _, v := range h {
			add(v.at, "truth  %s holds %q", drive, v.object)
		}
	}
	for _, e := range r.erases[machine] {
		add(e.At, "truth  erase of %s begun, which holds %q", e.Drive, e.Contents)
	}
	for _, b := range r.boots[machine] {
		add(b.At, "truth  boots %s %s %s entry %d, drives %v", b.Kind, b.Configuration, b.Image, b.Entry, b.drives)
	}
}

// slice tells what is known of a machine in the order of time, at most so many lines, the newest.
func (r *record) slice(machine string, writes []emulator.Write, most int) []string {
	type line struct {
		at   time.Time
		text string
	}
	var all []line
	add := func(at time.Time, format string, args ...any) {
		all = append(all, line{at, fmt.Sprintf(format, args...)})
	}
	for _, d := range r.deeds {
		if d.machine == "" || d.machine == machine {
			add(d.at, "did    %s", d.text)
		}
	}
	for _, w := range writes {
		add(w.Time, "BMC    %s %s %s -> %d executed=%t power=%s uuid=%s %v",
			w.Method, w.Path, w.Body, w.Status, w.Executed, w.Power, w.SystemUUID, w.Faults)
	}
	r.tellTruth(machine, add)
	for _, name := range r.serversOf(machine) {
		before := ""
		for _, v := range r.servers[name] {
			text := "gone"
			if !v.gone {
				text = describeServer(v.object)
			}
			if text != before {
				add(v.at, "server %s %s", name, text)
			}
			before = text
		}
	}
	r.tellMaintenances(machine, add)
	for _, v := range r.control {
		if v.gone {
			add(v.at, "fleet  control is gone")
			continue
		}
		add(v.at, "fleet  freezes %d, budgets %d, tripped=%t", len(v.object.Spec.Freezes), len(v.object.Spec.Budgets), tripped(v.object))
	}
	slices.SortStableFunc(all, func(a, b line) int { return a.at.Compare(b.at) })
	var lines []string
	for _, l := range all[max(0, len(all)-most):] {
		lines = append(lines, l.at.Format("15:04:05.000 ")+l.text)
	}
	return lines
}

// describeServer is a server in one line, as far as rules speak of it.
func describeServer(s *v1alpha1.Server) string {
	text := fmt.Sprintf("%s power=%s uid=%.8s", s.Status.State, s.Status.PowerState, s.UID)
	if l := s.Status.Lifecycle; l != nil {
		text += fmt.Sprintf(" entry=%d rule=%s marks=%v", l.Entry, l.Rule, l.Marks)
		if l.Request != nil {
			text += fmt.Sprintf(" request=%s@%s", l.Request.Action, l.Request.AskedAt.Format("05.000"))
		}
	}
	if ref := s.Spec.ServerClaimRef; ref != nil {
		text += " claim=" + ref.Name
	}
	for _, name := range []string{v1alpha1.ClaimUIDAnnotation, v1alpha1.ReleasedClaimAnnotation,
		v1alpha1.OperationAnnotation, v1alpha1.ConsentAnnotation} {
		if value := s.Annotations[name]; value != "" {
			text += fmt.Sprintf(" %s=%.12s", name[strings.LastIndexByte(name, '/')+1:], value)
		}
	}
	if op := s.Status.Operation; op != nil {
		text += fmt.Sprintf(" op=%s/%s", op.Name, op.State)
	}
	if ref := s.Spec.ServerMaintenanceRef; ref != nil {
		text += " maintenance=" + ref.Name
		if uid := s.Annotations[v1alpha1.MaintenanceUIDAnnotation]; uid != "" {
			text += fmt.Sprintf("(%.8s)", uid)
		}
	}
	if s.Spec.ReclaimPolicy == v1alpha1.ReclaimPolicyRetain {
		text += " Retain"
	}
	for _, c := range s.Status.Conditions {
		switch c.Type {
		case v1alpha1.ConditionPolicyHalted, v1alpha1.ConditionStalled, v1alpha1.ConditionWithheld, v1alpha1.ConditionClaimMissing,
			v1alpha1.ConditionIdentityMismatch:
			if c.Status == "True" {
				text += " " + c.Type + "=" + c.Reason
			}
		}
	}
	if !s.DeletionTimestamp.IsZero() {
		text += " deleting"
	}
	return text
}

// tellMaintenances tells what maintenances of a machine's server said.
func (r *record) tellMaintenances(machine string, add func(at time.Time, format string, args ...any)) {
	for _, h := range r.maintenances {
		for _, v := range h {
			if m := v.object; v.gone {
				continue
			} else if machineOf(m.Spec.ServerRef.Name) == machine {
				add(v.at, "maint  %s (%.8s) %s power=%s boots=%t %s deleted=%t aborted=%t", m.Name, m.UID, m.Spec.Policy, m.Spec.ServerPower,
					m.Spec.ServerBootConfigurationTemplate != nil, m.Status.State, !m.DeletionTimestamp.IsZero(), ends(m))
			}
		}
	}
}
