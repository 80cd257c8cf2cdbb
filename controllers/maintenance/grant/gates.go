// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"slices"
	"strings"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/maintenance"
)

// gate holds a candidate back; its answer has no reason where it does not. The time is when the clock alone may change that.
type gate func(*pass, *candidate) (Answer, time.Time)

// lasting are the gates before anybody is asked for the server: a tenant is not made to drain what will not begin soon.
var lasting = []gate{(*pass).ready, (*pass).frozen, (*pass).wave}

// timed are the gates after that which a clock opens.
var timed = []gate{(*pass).grace, (*pass).window}

// passing are all gates after that, from what lasts longest to what changes most often.
var passing = slices.Concat(timed, []gate{(*pass).checks, (*pass).limits})

// judge answers one candidate by the first gate that holds it back.
func (x *pass) judge(c *candidate) {
	if why := x.never(c); why.Reason != "" {
		c.wait(why, time.Time{})
		return
	}
	x.facts = c.on.Facts
	x.facts.Labels = c.on.Labels
	x.facts.Maintenance.Labels, x.facts.Maintenance.Annotations = c.Labels, c.Annotations
	x.facts.Maintenance.Priority, x.facts.Maintenance.Policy = c.Priority, c.policyWord()
	why, after := x.ask(c)
	if held := x.queued(c); held.Reason != "" {
		why, after = held, time.Time{}
	}
	for i := 0; why.Reason == "" && i < len(passing); i++ {
		why, after = passing[i](x, c)
	}
	if why.Reason != "" {
		c.wait(why, after)
		if x.whole {
			c.grant.Obstacles = x.obstacles(c)
		}
		return
	}
	x.give(c)
}

func (m *Maintenance) policyWord() string {
	if m.Enforced {
		return string(v1alpha1.ServerMaintenancePolicyEnforced)
	}
	return string(v1alpha1.ServerMaintenancePolicyOwnerApproval)
}

// never is why a candidate is not granted whatever the policy says.
func (x *pass) never(c *candidate) Answer {
	switch {
	case c.on == nil:
		return answer(v1alpha1.ReasonServerNotReady, "There is no server %s. The maintenance waits until there is, or until it is deleted.", c.Server)
	case c.Refused.Reason != "":
		return c.Refused
	case c.group != nil && c.group.broken != "":
		return answer(v1alpha1.ReasonGroupWaits, "Group %s cannot be granted whole: %s.", c.Group, c.group.broken)
	}
	return Answer{}
}

// queued is who is before a candidate on its server.
func (x *pass) queued(c *candidate) Answer {
	switch s := c.on; {
	case s.Holder != nil && s.HolderUID == "" && *s.Holder == c.NamespacedName:
		return answer(v1alpha1.ReasonServerHeld, "Another program handed the server to this maintenance. Once its work is done, clear "+
			"spec.serverMaintenanceRef of the server to have it granted anew.")
	case s.Holder != nil && s.HolderUID == "":
		return answer(v1alpha1.ReasonServerHeld, "Another program holds the server for %s. The maintenance waits until it is given back.", s.Holder)
	case s.Holder != nil && s.holder == nil:
		return answer(v1alpha1.ReasonServerHeld, "Maintenance %s held the server and is gone. This one waits until the server is taken back.",
			s.Holder)
	case s.Holder != nil && !s.holder.Ends:
		return answer(v1alpha1.ReasonServerHeld, "Maintenance %s holds the server. This one waits until it ends.", s.Holder)
	case s.head != c:
		return answer(v1alpha1.ReasonMaintenanceAhead, "Maintenance %s of the same server goes first.", s.head.NamespacedName)
	}
	return Answer{}
}

// ask is the consent of the claim's holder, who is asked once nothing lasting is in the way.
func (x *pass) ask(c *candidate) (Answer, time.Time) {
	if s := c.on; s.Holder != nil && s.HolderUID == "" {
		return Answer{}, time.Time{}
	}
	if x.stopped.Reason != "" {
		return x.stopped, time.Time{}
	}
	for _, closed := range lasting {
		if why, after := closed(x, c); why.Reason != "" {
			return why, after
		}
	}
	consent := Consent(c.Maintenance, c.on.Claim, x.policy, x.Now)
	c.grant.Asks = consent.Asks
	return consent.Answer, consent.After
}

func (x *pass) ready(c *candidate) (Answer, time.Time) {
	if c.on.Unready == "" {
		return Answer{}, time.Time{}
	}
	return answer(v1alpha1.ReasonServerNotReady, "No maintenance begins on the server now: %s.", strings.TrimSuffix(c.on.Unready, ".")), time.Time{}
}

func (x *pass) frozen(c *candidate) (Answer, time.Time) {
	if c.on.Frozen == "" {
		return Answer{}, time.Time{}
	}
	return answer(v1alpha1.ReasonFrozen, "Held back by %s.", strings.TrimSuffix(c.on.Frozen, ".")), time.Time{}
}

// grace leaves a server that was just released to claims that wait.
func (x *pass) grace(c *candidate) (Answer, time.Time) {
	over := c.on.ReleasedAt.Add(x.policy.ReleaseGrace)
	if !x.policy.AfterRelease || c.on.Claim != nil || c.on.Holder != nil || !x.ClaimsWait || c.on.ReleasedAt.IsZero() || !over.After(x.Now) {
		return Answer{}, time.Time{}
	}
	return answer(v1alpha1.ReasonReleaseGrace, "The server was just released and claims wait for one. It may begin at %s.", moment(over)), over
}

func (x *pass) window(c *candidate) (Answer, time.Time) {
	takes := x.policy.Takes(c.Expected)
	w := x.clock.Window(&x.facts, takes)
	switch {
	case w.Err != nil:
		return answer(v1alpha1.ReasonCheckFails, "Whether window %s covers the server cannot be told: %v. Correct its expression.", w.Name, w.Err),
			time.Time{}
	case w.Never:
		return answer(v1alpha1.ReasonWindowTooShort, "Window %s is never open for the %s that the maintenance takes. It never begins: expect less, "+
			"or let the window last longer.", w.Name, length(takes)), time.Time{}
	case w.TooShort:
		return answer(v1alpha1.ReasonWindowTooShort, "The open window closes at %s, and the maintenance takes %s. Window %s opens at %s.",
			moment(w.Closes), length(takes), w.Name, moment(w.Opens)), w.Opens
	case !w.Open:
		return answer(v1alpha1.ReasonWindowClosed, "Window %s is closed and opens at %s.", w.Name, moment(w.Opens)), w.Opens
	}
	c.grant.Window, c.closes = w.Name, w.Closes
	return Answer{}, time.Time{}
}

func (x *pass) checks(c *candidate) (Answer, time.Time) {
	failing := x.policy.FailingPre(&x.facts)
	if len(failing) == 0 {
		return Answer{}, time.Time{}
	}
	for _, f := range failing {
		if f.Within > 0 && (c.grant.FailsAfter == 0 || f.Within < c.grant.FailsAfter) {
			c.grant.FailsAfter = f.Within
		}
	}
	return fails(failing[0]), time.Time{}
}

func fails(check maintenance.Failing) Answer {
	return answer(v1alpha1.ReasonCheckFails, "Check %s. The maintenance begins once it holds.", check)
}

func (x *pass) limits(c *candidate) (Answer, time.Time) {
	if full := x.full(c.on, 1); len(full) > 0 {
		return full[0].Answer, time.Time{}
	}
	return Answer{}, time.Time{}
}

// give grants a candidate its server.
func (x *pass) give(c *candidate) {
	g := &c.grant
	g.Granted, g.Wave = true, x.waveName(c.on)
	parts := []string{"The server may be handed over"}
	switch {
	case g.Window != "" && c.closes.IsZero():
		parts = append(parts, "window "+g.Window+" is open")
	case g.Window != "":
		parts = append(parts, "window "+g.Window+" is open until "+moment(c.closes))
	}
	if g.Wave != "" {
		parts = append(parts, "wave "+g.Wave)
	}
	if holder := c.on.Claim; holder != nil {
		g.Claim = holder.UID
		parts = append(parts, Consent(c.Maintenance, holder, x.policy, x.Now).By)
	}
	if c.on.holder != nil {
		g.Follows = c.on.holder.UID
		parts = append(parts, "it follows "+c.on.holder.String())
	}
	g.Answer = answer(v1alpha1.ReasonMaintenanceGranted, "%s.", strings.Join(parts, "; "))
}
