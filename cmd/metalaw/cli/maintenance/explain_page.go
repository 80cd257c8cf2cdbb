// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"fmt"
	"strings"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

func (e *explanation) text(t *terminal.Terminal) {
	colour := terminal.Wary
	if e.holds && (e.Served == nil || e.Served.Status == "True") {
		colour = terminal.Good
	}
	head := fmt.Sprintf("Maintenance %s/%s is %s since %s", terminal.Plain(e.Namespace), terminal.Plain(e.Name),
		t.Paint(colour, e.stateWords(), 0), t.Ago(e.Since))
	if e.Reason != "" {
		head += " (" + terminal.Plain(e.Reason) + ")"
	}
	t.Printf("%s\n\n", head)
	t.Field("Asks for", e.asksWords())
	t.Field("Because", e.Asks.Reason)
	t.Field("Granted", e.Granted.words(t))
	obstaclesText(t, e.Obstacles)
	t.Field("Served", e.Served.words(t))
	if e.Overdue != nil && e.Overdue.Status == "True" {
		t.Field("Overdue", e.Overdue.words(t))
	}
	t.Field("Server", e.serverWords())
	if e.Holder != nil {
		t.Field("Held by", e.Holder.Words(t))
	}
	for i := range e.Others {
		o := &e.Others[i]
		t.Field("Beside it", fmt.Sprintf("%s (%s, priority %d)", o.Words(), o.Policy, o.Priority))
	}
	e.consentText(t)
	e.rightsText(t)
	t.Field("Window", e.Window.words())
	if e.Boot != nil {
		t.Field("Boot", e.Boot.words())
	}
	t.Field("Aborted", e.Aborted)
	t.Field("Force off", e.ForceOff)
	t.Field("Ends", e.Ends)
	t.Notes(e.Notes)
}

// obstaclesText names everything in the way, where the condition does not say it all.
func obstaclesText(t *terminal.Terminal, all []obstacle) {
	for i := range all {
		o := &all[i]
		if len(all) > 1 || len(o.Servers) > 0 {
			t.Field("In the way", o.words())
		}
		if len(o.Servers) > 0 {
			t.Field("Filled by", strings.Join(o.Servers, ", "))
		}
	}
}

// stateWords is the state, or that the manager has not given it one.
func (e *Entry) stateWords() string {
	if e.State == "-" {
		return "not answered"
	}
	return e.State
}

// asksWords are what the maintenance asks for, in one line.
func (e *explanation) asksWords() string {
	words := []string{fmt.Sprintf("server %s, policy %s, priority %d", e.Server, e.Policy, e.Priority)}
	if e.Asks.Boots {
		image := "boot"
		if e.Asks.Image != "" {
			image += " of " + e.Asks.Image
		}
		if e.Asks.Ignition != "" {
			image += " with Ignition of Secret " + e.Asks.Ignition
		}
		words = append(words, image)
	}
	if e.Asks.Power != "" {
		words = append(words, "power "+e.Asks.Power)
	}
	if e.Asks.LocatorLED != "" {
		words = append(words, "light "+e.Asks.LocatorLED)
	}
	if e.Asks.Expected != "" {
		words = append(words, "for about "+e.Asks.Expected)
	}
	if e.Asks.PlanOnly {
		words = append(words, "a plan only")
	}
	return strings.Join(words, "; ")
}

// status are the words for the status of a condition.
var status = map[string]string{"True": "yes", "False": "no"}

func (s *said) words(t *terminal.Terminal) string {
	if s == nil {
		return ""
	}
	is := status[s.Status]
	if is == "" {
		is = "unknown"
	}
	return strings.TrimSuffix(fmt.Sprintf("%s, since %s (%s): %s", is, t.Ago(s.Since), s.Reason, s.Message), ": ")
}

func (e *explanation) serverWords() string {
	if e.Machine == nil {
		return ""
	}
	state := e.Machine.State
	if state == "" {
		state = "in no state yet"
	}
	words := fmt.Sprintf("%s is %s", e.Server, state)
	if e.Machine.Power != "" {
		words += ", power " + e.Machine.Power
	}
	if e.Machine.LED != "" {
		words += ", light " + e.Machine.LED
	}
	return words
}

func (e *explanation) consentText(t *terminal.Terminal) {
	switch c := e.Consent; {
	case c == nil && e.Machine != nil:
		t.Field("Consent", "no claim holds the server")
	case c != nil:
		t.Field("Claim", c.Claim+" holds the server")
		t.Field("Consent", c.words(t))
		if c.DrainRequired {
			t.Field("Drain", "the claim has "+v1alpha1.DrainRequiredAnnotation+"=true: a drainer approves, also where the policy is Enforced")
		}
	}
}

func (c *consent) words(t *terminal.Terminal) string {
	words := "its holder was not asked yet"
	switch {
	case c.AskedAt != nil:
		words = "its holder was asked " + t.Ago(*c.AskedAt) + " ago"
	case c.Former:
		words = "the holder of another claim was asked, and that of this one was not yet"
	}
	switch {
	case c.Approval == "":
		words += "; it has not approved"
	case c.AskedAt == nil:
		words += "; it bears " + c.Approval + ", which does not cover this maintenance unless the policy has approval: PerClaim"
	default:
		words += "; it approves by " + c.Approval
	}
	return words
}

func (e *explanation) rightsText(t *terminal.Terminal) {
	maker := e.Maker
	if maker == "" {
		maker = "not recorded by admission, so it counts as OwnerApproval"
	}
	if len(e.Rights) > 0 {
		verbs := lists.Map(e.Rights, func(r *right) string { return r.Verb })
		roles := lists.Map(e.Rights, func(r *right) string { return r.Role })
		maker += fmt.Sprintf("; it takes %s on servers (ClusterRole %s)", strings.Join(verbs, ", "), strings.Join(roles, ", "))
	}
	t.Field("Maker", maker)
}

func (w *window) words() string {
	switch {
	case w == nil:
		return ""
	case w.Problem != "":
		return w.Name + ": " + w.Problem
	case w.Name == "":
		return "none of policy " + w.Revision + " covers the server, so it is always open"
	case w.Never:
		return fmt.Sprintf("%s: never open for the %s that it takes", w.Name, w.Expected)
	case w.Open:
		words := w.Name + " is open"
		if w.Closes != nil {
			words += " until " + w.Closes.Format(time.RFC3339)
		}
		return words
	}
	words := w.Name + " is closed"
	if w.Closes != nil {
		words = fmt.Sprintf("%s closes at %s, before the %s that it takes are over", w.Name, w.Closes.Format(time.RFC3339), w.Expected)
	}
	if w.Opens != nil {
		words += "; it opens at " + w.Opens.Format(time.RFC3339)
	}
	return words
}

func (b *boot) words() string {
	state := b.State
	if state == "" {
		state = "not answered by the boot operator yet"
	}
	words := "configuration " + b.Name + " is " + state
	if b.Foreign {
		words += "; another object owns it, and the manager never changes it"
	}
	return words
}
