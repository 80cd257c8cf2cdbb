// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
)

// maintenanceCost is what the maintenances cost; docs/load.md says what each key means.
type maintenanceCost struct {
	Maintenances     int        `json:"maintenances"`
	AtOnce           int        `json:"at_once"`
	GivenBackSeconds float64    `json:"given_back_seconds"`
	Unclaimed        *visitCost `json:"unclaimed"`
	Claimed          *visitCost `json:"claimed"`
	OtherWrites      int        `json:"other_writes"`
	EventsEach       float64    `json:"events_each"`
	SchedulerPasses  *float64   `json:"scheduler_passes"`
	SchedulerSeconds *float64   `json:"scheduler_seconds"`
}

// visitCost is what the manager wrote for each server of one sort.
type visitCost struct {
	Maintenances  int                `json:"maintenances"`
	WritesEach    float64            `json:"writes_each"`
	WritesMost    int                `json:"writes_most"`
	Writes        map[string]float64 `json:"writes"`
	FollowingEach float64            `json:"following_writes_each"`
	Following     map[string]float64 `json:"following_writes"`
}

// tally is the writes for one visit: until its end, and what followed.
type tally struct{ during, after map[string]int }

// maintenanceCost counts the writes of each visit; nil where there were none.
func (w *world) maintenanceCost(f figures, sheets []sheet) (*maintenanceCost, error) {
	i := slices.IndexFunc(sheets, func(s sheet) bool { return s.phase.name == phaseMaintenance })
	if i < 0 {
		return nil, nil
	}
	s := &sheets[i]
	file, err := os.Open(w.auditLog())
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	tallies, err := readVisits(file, w.managerUser().Name, w.options.namespace, interval{s.phase.before.at, s.phase.after.at}, f.visits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.auditLog(), err)
	}
	c := costOf(f, s, tallies)
	c.AtOnce = w.options.atOnce
	return c, nil
}

// readVisits counts the manager's writes to the objects of each visit.
func readVisits(r io.Reader, manager, namespace string, phase interval, all []*visit) ([]tally, error) {
	found, byName := make([][]visitWrite, len(all)), map[string]int{}
	for i, one := range all {
		for _, name := range one.names(namespace) {
			byName[name] = i
		}
	}
	err := eachAuditLine(r, func(l *auditLine) {
		i, ok := byName[(&reference{l.ObjectRef.Namespace, l.ObjectRef.Name}).key()]
		w := l.audited(nil)
		if ok && phase.holds(l.Received) && w.User == manager && w.class() == classWrite {
			found[i] = append(found[i], visitWrite{w, l.Received})
		}
	})
	tallies := make([]tally, len(all))
	for i, one := range all {
		tallies[i] = one.tally(found[i])
	}
	return tallies, err
}

// tally sorts the writes for a visit.
func (v *visit) tally(writes []visitWrite) tally {
	t, left := tally{map[string]int{}, map[string]int{}}, v.leaves(writes)
	for i := range writes {
		if w := &writes[i]; v.holds(w, left) {
			t.during[w.what()]++
		} else {
			t.after[w.what()]++
		}
	}
	return t
}

// what names a write for the report.
func (a *audited) what() string {
	text := a.Verb + " " + a.Resource
	if a.Subresource != "" {
		text += "/" + a.Subresource
	}
	if a.conflict() {
		text += " (Conflict)"
	}
	return text
}

func costOf(f figures, s *sheet, tallies []tally) *maintenanceCost {
	n := len(f.visits)
	c := &maintenanceCost{Maintenances: n, GivenBackSeconds: rounded(f.givenBack.Seconds()),
		EventsEach: rounded(float64(s.of(classEvent)) / float64(n)), OtherWrites: s.of(classWrite)}
	sorts := map[string]**visitCost{"unclaimed": &c.Unclaimed, "claimed": &c.Claimed}
	for i, one := range f.visits {
		into := sorts[one.kind()]
		if *into == nil {
			*into = &visitCost{Writes: map[string]float64{}, Following: map[string]float64{}}
		}
		c.OtherWrites -= (*into).take(tallies[i])
	}
	for _, into := range sorts {
		if *into != nil {
			(*into).share()
		}
	}
	if f.passes.count > 0 {
		count, seconds := rounded(f.passes.count), rounded(f.passes.seconds)
		c.SchedulerPasses, c.SchedulerSeconds = &count, &seconds
	}
	return c
}

// take adds the writes of one visit and returns how many there were.
func (c *visitCost) take(t tally) int {
	during, after := 0, 0
	for what, n := range t.during {
		during += n
		c.Writes[what] += float64(n)
	}
	for what, n := range t.after {
		after += n
		c.Following[what] += float64(n)
	}
	c.Maintenances++
	c.WritesEach += float64(during)
	c.FollowingEach += float64(after)
	c.WritesMost = max(c.WritesMost, during)
	return during + after
}

// share divides what was added up by the number of maintenances.
func (c *visitCost) share() {
	each := func(sum float64) float64 { return rounded(sum / float64(c.Maintenances)) }
	c.WritesEach, c.FollowingEach = each(c.WritesEach), each(c.FollowingEach)
	for _, of := range []map[string]float64{c.Writes, c.Following} {
		for what, sum := range of {
			of[what] = each(sum)
		}
	}
}
