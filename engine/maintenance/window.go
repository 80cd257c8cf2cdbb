// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"fmt"
	"time"
)

// Window is a time in which maintenances of some servers begin.
type Window struct {
	Name        string
	MatchLabels Selector
	// When narrows the window to some servers and maintenances; nil where it does not.
	When *Expression
	// Opens is a cron expression of five fields in Zone, the name of a time zone.
	Opens, Zone string
	// Lasts is for how long it stays open, also if a clock changes meanwhile.
	Lasts time.Duration
	// Least is how long it must still be open for a maintenance to begin, however short that is.
	Least time.Duration

	opens *opens
	// longest is the longest time for which it is open without a gap; 0 where it never closes.
	longest time.Duration
}

const (
	// MaxLasts bounds how long a window lasts.
	MaxLasts = 7 * day
	// unbounded is how long windows that follow each other without a gap must be open to count as never closed.
	unbounded = 31 * day
	// maxOpenings bounds how many openings are looked at for the longest time.
	maxOpenings = 1000
)

// NewWindow completes a window of which Opens, Zone and Lasts are set.
func NewWindow(w Window) (Window, error) {
	zone, err := time.LoadLocation(w.Zone)
	if err != nil || w.Zone == "Local" {
		return w, fmt.Errorf("there is no time zone %q", w.Zone)
	}
	if w.opens, err = parseOpens(w.Opens, zone); err != nil {
		return w, err
	}
	w.longest = w.opens.longest(w.Lasts)
	return w, nil
}

// longest is the longest time for which windows are open that follow each other without a gap; 0 where they never close.
func (o *opens) longest(lasts time.Duration) time.Duration {
	var began, closes time.Time
	most := lasts
	at := o.spec.Next(reference.Add(-time.Second))
	for range maxOpenings {
		if at.IsZero() {
			break
		}
		if at.After(closes) {
			began = at
		}
		closes = at.Add(lasts)
		if most = max(most, closes.Sub(began)); most > unbounded {
			return 0
		}
		at = o.spec.Next(at)
	}
	return most
}

// Never says that the window is never open for long enough.
func (w *Window) Never(need time.Duration) bool {
	return w.longest > 0 && w.longest < max(need, w.Least)
}

// hours are when a window is open, seen from a moment.
type hours struct {
	open bool
	// closes is when it closes next; zero where it does not within unbounded. opens is when it opens next, after that.
	closes, opens time.Time
}

// at computes when the window is open, seen from now.
func (w *Window) at(now time.Time) hours {
	var h hours
	wall := w.opens.spec.Next(w.opens.wall(now).Add(-w.Lasts - 2*day)) // the clocks of the wall may have been set meanwhile
	for ; !wall.IsZero(); wall = w.opens.spec.Next(wall) {
		opens := w.opens.moment(wall)
		switch {
		case opens.After(now) && (!h.open || opens.After(h.closes)):
			h.opens = opens
			return h
		case opens.Add(w.Lasts).After(now):
			h.open, h.closes = true, opens.Add(w.Lasts)
		}
		if h.closes.Sub(now) > unbounded {
			return hours{open: true}
		}
	}
	return h
}

// Clock is the windows of a policy at one moment. It answers for many servers.
type Clock struct {
	now   time.Time
	list  []Window
	hours []hours
}

// Clock looks at the windows at one moment.
func (p *Policy) Clock(now time.Time) *Clock {
	c := &Clock{now: now, list: p.Windows, hours: make([]hours, len(p.Windows))}
	for i := range p.Windows {
		c.hours[i] = p.Windows[i].at(now)
	}
	return c
}

// Opening is what the windows say to one maintenance.
type Opening struct {
	// Open says that it may begin now.
	Open bool
	// Name is the window that is open, or else opens next; empty where no window covers the server.
	Name string
	// Closes is when that window closes, zero where it does not; Opens is when the next one opens that may be long enough.
	Closes, Opens time.Time
	// TooShort says that a window is open and closes too soon, Never that none is ever long enough.
	TooShort, Never bool
	// Err says why it cannot be told whether a window covers the server; Name is that window. Nothing begins then.
	Err error
}

// Window says whether a maintenance that takes so long may begin on a server now.
func (p *Policy) Window(f *Facts, now time.Time, need time.Duration) Opening {
	return p.Clock(now).Window(f, need)
}

// Window says whether a maintenance that takes so long may begin on a server.
func (c *Clock) Window(f *Facts, need time.Duration) Opening {
	var found Opening
	covered, next := false, -1
	for i := range c.list {
		w := &c.list[i]
		covers, err := w.covers(f)
		if err != nil {
			return Opening{Name: w.Name, Err: err}
		}
		if !covers {
			continue
		}
		if !covered {
			found.Name, found.Never, covered = w.Name, true, true
		}
		if w.Never(need) {
			continue
		}
		found.Never = false
		h := c.hours[i]
		switch {
		case h.open && (h.closes.IsZero() || h.closes.Sub(c.now) >= max(need, w.Least)):
			return Opening{Open: true, Name: w.Name, Closes: h.closes}
		case h.open:
			found.TooShort, found.Closes = true, later(found.Closes, h.closes)
		}
		if !h.opens.IsZero() && (next < 0 || h.opens.Before(c.hours[next].opens)) {
			next = i
		}
	}
	if !covered {
		return Opening{Open: true}
	}
	if next >= 0 {
		found.Name, found.Opens = c.list[next].Name, c.hours[next].opens
	}
	return found
}

func (w *Window) covers(f *Facts) (bool, error) {
	if !w.MatchLabels.Matches(f.Labels) {
		return false, nil
	}
	if w.When == nil {
		return true, nil
	}
	return w.When.Holds(f)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
