// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// wave is how far one wave of the policy has come.
type wave struct {
	// unfinished says that maintenances of it wait, run or failed; highest is the highest priority among them.
	unfinished bool
	highest    int32
	// ended is when its last maintenance ended.
	ended time.Time
}

func (x *pass) countWaves(list []server) {
	x.waves = make([]wave, len(x.policy.Waves))
	if len(x.waves) == 0 {
		return
	}
	for i := range list {
		if s := &list[i]; s.wave < len(x.waves) && s.EndedAt.After(x.waves[s.wave].ended) {
			x.waves[s.wave].ended = s.EndedAt
		}
	}
	for i := range x.Maintenances {
		m := &x.Maintenances[i]
		on := x.servers[m.Server]
		if on == nil || on.wave >= len(x.waves) || (on.holder != m && (m.Ends || x.hopeless(m))) {
			continue
		}
		w := &x.waves[on.wave]
		if !w.unfinished || m.Priority > w.highest {
			w.unfinished, w.highest = true, m.Priority
		}
	}
}

// wave says which earlier wave a maintenance waits for. A wave holds back what has the same or a lower priority only, so that an
// emergency does not wait for what is routine.
func (x *pass) wave(c *candidate) (Answer, time.Time) {
	for i := range min(c.on.wave, len(x.waves)) {
		w, of := &x.waves[i], &x.policy.Waves[i]
		if w.unfinished && w.highest >= c.Priority {
			return answer(v1alpha1.ReasonWaveWaits, "Wave %s is not over. This maintenance waits until the last one of that wave has ended%s.",
				of.Name, pause(of.Pause)), time.Time{}
		}
		if over := w.ended.Add(of.Pause); !w.ended.IsZero() && over.After(x.Now) {
			return answer(v1alpha1.ReasonWaveWaits, "Wave %s is over, and its pause lasts until %s.", of.Name, moment(over)), over
		}
	}
	return Answer{}, time.Time{}
}

func pause(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return ", and " + length(d) + " more"
}

// hopeless says that a maintenance that waits cannot be granted whatever happens, so that nothing waits for it.
func (x *pass) hopeless(m *Maintenance) bool {
	return m.Refused.Reason != "" || (m.Group != "" && x.groups[m.Group].broken != "")
}

// waveName is the wave of a server; empty for the last one, which no wave selects.
func (x *pass) waveName(s *server) string {
	if s.wave < len(x.policy.Waves) {
		return x.policy.Waves[s.wave].Name
	}
	return ""
}

// stop says why nothing at all is granted.
func (x *pass) stop() Answer {
	failed, overdue := 0, 0
	for i := range x.Maintenances {
		m := &x.Maintenances[i]
		switch {
		case m.Ends:
		case m.Failed:
			failed++
		case x.overdue(m):
			overdue++
		}
	}
	switch stop := x.policy.Stop; {
	case stop.Failed > 0 && failed >= stop.Failed:
		return answer(v1alpha1.ReasonStopped, "At least %d maintenances failed, so the policy stops new ones. Delete those that failed.", stop.Failed)
	case stop.Overdue > 0 && overdue >= stop.Overdue:
		return answer(v1alpha1.ReasonStopped, "At least %d maintenances take longer than expected, so the policy stops new ones until they end.",
			stop.Overdue)
	}
	return Answer{}
}

// overdue says that a maintenance holds its server for longer than was expected.
func (x *pass) overdue(m *Maintenance) bool {
	return !m.GrantedAt.IsZero() && x.holds(m) && m.GrantedAt.Add(x.policy.Takes(m.Expected)).Before(x.Now)
}
