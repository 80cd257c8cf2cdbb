// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/freeze"
)

// unfreezeRequest is what the command line of unfreeze asks: exactly one of names, all and breaker.
type unfreezeRequest struct {
	names        []string
	all, breaker bool
	// yes says that nobody has to confirm all.
	yes bool
	// shown are the freezes that stood when all of them were asked for; no other goes with them.
	shown []policyv1alpha1.Freeze
}

// check says what is wrong with the command line.
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
		return usage.Errorf("unfreeze of %s wants a confirmation, and nobody is at this terminal to give one: add --yes, "+
			"or look with metalaw fleet status", terminal.Count(len(r.shown), "freeze"))
	}
	rows := make([][]string, len(r.shown))
	for i := range r.shown {
		f := &r.shown[i]
		rows[i] = []string{f.Name, string(f.Level), f.By, f.Reason}
	}
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
	names := make([]string, len(c.Spec.Freezes))
	for i := range c.Spec.Freezes {
		names[i] = c.Spec.Freezes[i].Name
	}
	return strings.Join(names, ", ")
}
