// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/freeze"
	"github.com/metalaw/metalaw/internal/uuids"
)

// frozen is a freeze that was stored, and what it does not cut off.
type frozen struct {
	policyv1alpha1.Freeze
	// Acknowledged says that the manager begins nothing any more that the freeze holds back.
	Acknowledged bool `json:"acknowledged"`
	// InFlight is what had begun on the servers by then.
	InFlight []flight `json:"inFlight"`
}

// flight is something that has begun on a server and has not ended.
type flight struct {
	Server string    `json:"server"`
	What   string    `json:"what"`
	Since  time.Time `json:"since"`
}

// addFreeze stores a freeze, waits until the manager has acknowledged it, and shows what is in flight.
func addFreeze(ctx context.Context, c client.Client, t *terminal.Terminal, f policyv1alpha1.Freeze, timeout time.Duration,
	output terminal.Output) error {
	var over []string
	var stored *policyv1alpha1.FleetControl
	wanted := f // each attempt finds its own free name
	err := edit(ctx, c, func(control *policyv1alpha1.FleetControl) (bool, error) {
		added, ended, err := add(control, wanted, time.Now())
		if err != nil {
			return false, err
		}
		f, over, stored = added, ended, control
		return true, nil
	})
	if err != nil {
		return err
	}
	acknowledged, err := awaitAcknowledgement(ctx, c, stored, timeout)
	done := frozen{Freeze: f, Acknowledged: acknowledged, InFlight: []flight{}}
	words := freeze.Words(&f)
	// Who may freeze and not read servers is not told how many there are.
	var list v1alpha1.ServerList
	if err := c.List(ctx, &list); err == nil {
		var inventories policyv1alpha1.ServerInventoryList
		_ = c.List(ctx, &inventories) // without the right to read them, erases are not listed
		words += fmt.Sprintf("; it covers %d of %d servers", covered(&f, list.Items), len(list.Items))
		done.InFlight = inFlight(&f, list.Items, inventories.Items, time.Now())
	}
	if acknowledged {
		words += "; the manager has acknowledged it"
	}
	if len(over) > 0 {
		words += fmt.Sprintf("; taken off, because it had ended: %s", strings.Join(over, ", "))
	}
	output.Show(t, done, func() {
		t.Printf("%s\n", terminal.Plain(words))
		if len(done.InFlight) > 0 {
			t.Printf("In flight, and not cut off:\n")
			t.Table([]string{"  SERVER", "WHAT", "BEGAN"}, lists.Map(done.InFlight, func(f *flight) []string {
				return []string{"  " + f.Server, f.What, t.Ago(f.Since) + " ago"}
			}))
		}
	})
	return err
}

// look is the time between two looks at whether the manager has acknowledged a freeze.
const look = 250 * time.Millisecond

// awaitAcknowledgement waits until the manager says that it goes by what is stored. With a timeout of 0 it does not wait.
func awaitAcknowledgement(ctx context.Context, c client.Reader, stored *policyv1alpha1.FleetControl, timeout time.Duration) (bool, error) {
	if timeout == 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		now, err := read(ctx, c)
		switch {
		case ctx.Err() != nil: // told below
		case apierrors.IsForbidden(err):
			return false, fmt.Errorf("the freeze is stored; whether the manager has acknowledged it cannot be read: %w", err)
		case err != nil: // it may pass
		case now.UID != stored.UID:
			return false, fmt.Errorf("FleetControl %s was removed meanwhile, and the freeze with it", stored.Name)
		case now.Status.ObservedGeneration >= stored.Generation:
			return true, nil
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return false, errors.New("the freeze is stored, but no manager has acknowledged it yet: what it is to hold back may still " +
				"begin; see metalaw fleet status, and whether a manager runs")
		}
	}
}

// notAcknowledged says that the manager may still go by a former FleetControl.
func notAcknowledged(c *policyv1alpha1.FleetControl) bool {
	return c.Status.ObservedGeneration < c.Generation
}

// inFlight is what has begun on the servers that a freeze covers, sorted by server.
func inFlight(f *policyv1alpha1.Freeze, servers []v1alpha1.Server, inventories []policyv1alpha1.ServerInventory, now time.Time) []flight {
	selector, all, wipes := freeze.Selector(f.Selector), []flight{}, map[string]*policyv1alpha1.WipeReport{}
	for i := range inventories {
		wipes[inventories[i].Name] = inventories[i].Wipe
	}
	for i := range servers {
		s := &servers[i]
		if !selector.Matches(labels.Set(s.Labels)) {
			continue
		}
		if l := s.Status.Lifecycle; l != nil && l.Request != nil && l.Request.ShownAt == nil && l.Request.RefusedAt == nil {
			all = append(all, flight{s.Name, "power request " + string(l.Request.Action), l.Request.AskedAt.UTC()})
		}
		if op := s.Status.Operation; op != nil && op.State == v1alpha1.OperationInProgress && op.BegunAt != nil {
			all = append(all, flight{s.Name, "operation " + op.Name, op.BegunAt.UTC()})
		}
		for _, name := range uuids.Spellings(s.Spec.SystemUUID) {
			if w := wipes[name]; w != nil && w.State == policyv1alpha1.WipeRunning && now.Before(w.UpdatedAt.Add(policyv1alpha1.WipeSilence)) {
				all = append(all, flight{s.Name, "erase of the disks that are begun", w.StartedAt.UTC()})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b flight) int { return strings.Compare(a.Server, b.Server) })
	return all
}
