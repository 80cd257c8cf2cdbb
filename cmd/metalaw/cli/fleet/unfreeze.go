// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/freeze"
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// unfreezeRequest is what the command line of unfreeze asks: exactly one of its fields.
type unfreezeRequest struct {
	names        []string
	all, breaker bool
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
		return terminal.Usagef("say which: --name NAME, --all, or --breaker; metalaw fleet status shows what there is")
	case ways > 1:
		return terminal.Usagef("--name, --all and --breaker exclude each other")
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
		goes := r.all || slices.Contains(r.names, f.Name)
		if goes {
			lifted = append(lifted, freeze.Words(&f))
		}
		return goes
	})
	return lifted, nil
}

// closeBreaker acknowledges a trip. The acknowledgement is never before the trip, whatever this machine's clock says.
func closeBreaker(c *policyv1alpha1.FleetControl, now time.Time) []string {
	if !freeze.Tripped(c) {
		return nil
	}
	at := now
	if trip := c.Status.Trip.At.Time; trip.After(at) {
		at = trip
	}
	c.Spec.Breaker.AcknowledgedAt = new(metav1.NewMicroTime(at.Truncate(time.Microsecond)))
	return []string{fmt.Sprintf("the breaker, which tripped at %s over %d of %d servers",
		c.Status.Trip.At.UTC().Format(time.RFC3339), c.Status.Trip.Servers, c.Status.Trip.Of)}
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
