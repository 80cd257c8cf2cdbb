// SPDX-License-Identifier: Apache-2.0

// Package fleet holds the commands that hold the whole fleet back and let it go again, and that show what is held back.
package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/freeze"
)

// Bounds of the API.
const (
	maxName    = 63
	maxReason  = 1024
	maxFreezes = 64
)

// freezeRequest is what the command line of freeze asks.
type freezeRequest struct {
	level, selector, reason, until, name string
	lasts                                time.Duration
	// bounded says that lasts was asked for: without it 0 means for ever.
	bounded bool
}

// freeze reads the command line: the freeze that it asks for, without the name of who asks.
func (r *freezeRequest) freeze(now time.Time) (policyv1alpha1.Freeze, error) {
	f := policyv1alpha1.Freeze{Name: r.name, Reason: r.reason}
	switch {
	case strings.TrimSpace(r.reason) == "":
		return f, usage.Errorf("--reason is required: an operator who finds the fleet frozen wants to know why")
	case utf8.RuneCountInString(r.reason) > maxReason:
		return f, usage.Errorf("--reason has %d characters; the API takes %d", utf8.RuneCountInString(r.reason), maxReason)
	case utf8.RuneCountInString(r.name) > maxName:
		return f, usage.Errorf("--name has %d characters; the API takes %d", utf8.RuneCountInString(r.name), maxName)
	case r.bounded && r.lasts <= 0:
		return f, usage.Errorf("--for must be more than 0; leave it out for a freeze without an end")
	case r.bounded && r.until != "":
		return f, usage.Errorf("--for and --until exclude each other")
	}
	level, err := parseLevel(r.level)
	if err != nil {
		return f, err
	}
	f.Level = level
	if r.selector != "" {
		if f.Selector, err = metav1.ParseToLabelSelector(r.selector); err != nil {
			return f, usage.Errorf("-l: %v", err)
		}
	}
	end := now.Add(r.lasts)
	if r.until != "" {
		if end, err = parseTime(r.until, now); err != nil {
			return f, err
		}
	}
	if end.After(now) {
		f.Until = &metav1.Time{Time: end.Truncate(time.Second)}
	}
	return f, nil
}

func parseLevel(word string) (policyv1alpha1.FreezeLevel, error) {
	for _, level := range []policyv1alpha1.FreezeLevel{policyv1alpha1.FreezeMaintenance, policyv1alpha1.FreezeDestructive, policyv1alpha1.FreezeAll} {
		if strings.EqualFold(word, string(level)) {
			return level, nil
		}
	}
	return "", usage.Errorf("--level is %q; write Maintenance, Destructive or All", word)
}

// parseTime reads a moment in the future: RFC 3339; a date and a time here; or a time, which is the next such one.
func parseTime(word string, now time.Time) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, word)
	if err != nil {
		at, err = time.ParseInLocation("2006-01-02 15:04", word, now.Location())
	}
	if err != nil {
		var clock time.Time
		if clock, err = time.Parse("15:04", word); err == nil {
			at = time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, now.Location())
			if !at.After(now) {
				at = at.AddDate(0, 0, 1)
			}
		}
	}
	switch {
	case err != nil:
		return at, usage.Errorf("--until is %q; write 2026-01-31T18:00:00Z, or 2026-01-31 18:00 or 18:00 in the time of this machine", word)
	case !at.After(now):
		return at, usage.Errorf("--until %s is over already", word)
	}
	return at, nil
}

// add puts a freeze into a FleetControl, and takes those off that have ended. A freeze without a name gets one from its
// reason.
func add(c *policyv1alpha1.FleetControl, f policyv1alpha1.Freeze, now time.Time) (added policyv1alpha1.Freeze, ended []string, err error) {
	c.Spec.Freezes = slices.DeleteFunc(c.Spec.Freezes, func(old policyv1alpha1.Freeze) bool {
		over := freeze.Ended(&old, now)
		if over {
			ended = append(ended, old.Name)
		}
		return over
	})
	taken := func(name string) bool { return find(c, name) != nil }
	if f.Name == "" {
		f.Name = freeName(f.Reason, taken)
	}
	if old := find(c, f.Name); old != nil {
		return f, nil, fmt.Errorf("%s stands already; choose another --name, and unfreeze --name %s once the new one holds",
			freeze.Words(old), f.Name)
	}
	if len(c.Spec.Freezes) >= maxFreezes {
		return f, nil, fmt.Errorf("there are %d freezes, and the API takes no more; see metalaw fleet status, and unfreeze some", maxFreezes)
	}
	c.Spec.Freezes = append(c.Spec.Freezes, f)
	return f, ended, nil
}

func find(c *policyv1alpha1.FleetControl, name string) *policyv1alpha1.Freeze {
	return lists.Find(c.Spec.Freezes, func(f *policyv1alpha1.Freeze) bool { return f.Name == name })
}

// generatedName is the longest name that is made from a reason.
const generatedName = 40

// freeName makes a name from the words of a reason, with a number where that is taken.
func freeName(reason string, taken func(string) bool) string {
	words := strings.FieldsFunc(strings.ToLower(reason), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name := ""
	for _, word := range words {
		if len(name)+1+len(word) > generatedName {
			break
		}
		name = strings.TrimPrefix(name+"-"+word, "-")
	}
	if name == "" {
		name = "freeze"
	}
	for free, n := name, 2; ; n++ {
		if !taken(free) {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}

// unfreezeRequest is what the command line of unfreeze asks: exactly one of names, all and breaker.
type unfreezeRequest struct {
	names        []string
	all, breaker bool
	// yes says that nobody has to confirm all.
	yes bool
	// shown are the freezes that stood when all of them were asked for; no other goes with them.
	shown []policyv1alpha1.Freeze
}

func (r *unfreezeRequest) check() error {
	ways := 0
	for _, given := range []bool{len(r.names) > 0, r.all, r.breaker} {
		if given {
			ways++
		}
	}
	switch {
	case ways == 0:
		return usage.Errorf("say which: --name NAME, --all, or --breaker; metalaw fleet status shows what there is")
	case ways > 1:
		return usage.Errorf("--name, --all and --breaker exclude each other")
	}
	return nil
}

// lift takes freezes off a FleetControl, or closes its breaker, and says in words what it did; nothing where nothing was
// to be done.
func (r *unfreezeRequest) lift(c *policyv1alpha1.FleetControl, now time.Time) ([]string, error) {
	if r.breaker {
		return closeBreaker(c, now), nil
	}
	for _, name := range r.names {
		if find(c, name) == nil {
			return nil, fmt.Errorf("there is no freeze %q; there are: %s", name, namesOf(c))
		}
	}
	var lifted []string
	c.Spec.Freezes = slices.DeleteFunc(c.Spec.Freezes, func(f policyv1alpha1.Freeze) bool {
		goes := slices.Contains(r.names, f.Name) || r.isShown(&f)
		if goes {
			lifted = append(lifted, freeze.Words(&f))
		}
		return goes
	})
	return lifted, nil
}

// isShown says that a freeze is one of those that were shown, and the same still.
func (r *unfreezeRequest) isShown(f *policyv1alpha1.Freeze) bool {
	return slices.ContainsFunc(r.shown, func(s policyv1alpha1.Freeze) bool { return equality.Semantic.DeepEqual(&s, f) })
}

// confirm shows every freeze that stands and wants a yes, where nobody has said so on the command line. What it has shown
// is what all means from then on.
func (r *unfreezeRequest) confirm(ctx context.Context, t *terminal.Terminal, c *policyv1alpha1.FleetControl) error {
	r.shown = c.Spec.Freezes
	if len(r.shown) == 0 || r.yes {
		return nil
	}
	if !t.Asks {
		return usage.Errorf("unfreeze of %s needs a confirmation, and no user is at this terminal to give it: add --yes, "+
			"or look with metalaw fleet status", terminal.Count(len(r.shown), "freeze"))
	}
	rows := lists.Map(r.shown, func(f *policyv1alpha1.Freeze) []string { return []string{f.Name, string(f.Level), f.By, f.Reason} })
	return t.Consent(ctx, fmt.Sprintf("unfreeze: %s?", terminal.Count(len(r.shown), "freeze")), []string{"NAME", "LEVEL", "BY", "REASON"}, rows)
}

// leftOver says which freezes stand after all of them were to go.
func (r *unfreezeRequest) leftOver(left []string) error {
	if !r.all || len(left) == 0 {
		return nil
	}
	return fmt.Errorf("these were added or changed meanwhile and stay; look at them again: %s", terminal.Plain(strings.Join(left, "; ")))
}

// closeBreaker acknowledges a trip. The acknowledgement is never before the trip, whatever this machine's clock says.
func closeBreaker(c *policyv1alpha1.FleetControl, now time.Time) []string {
	if !freeze.Tripped(c) {
		return nil
	}
	trip, at := c.Status.Trip, now
	if trip.At.After(at) {
		at = trip.At.Time
	}
	c.Spec.Breaker.AcknowledgedAt = new(metav1.NewMicroTime(at.Truncate(time.Microsecond)))
	return []string{fmt.Sprintf("the breaker, which tripped at %s over %d of %d servers", trip.At.UTC().Format(time.RFC3339), trip.Servers, trip.Of)}
}

func namesOf(c *policyv1alpha1.FleetControl) string {
	if len(c.Spec.Freezes) == 0 {
		return "none"
	}
	return strings.Join(lists.Map(c.Spec.Freezes, func(f *policyv1alpha1.Freeze) string { return f.Name }), ", ")
}
