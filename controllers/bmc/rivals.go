// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rivals"
	"github.com/metalaw/metalaw/internal/machineid"
	"github.com/metalaw/metalaw/internal/stored"
	"github.com/metalaw/metalaw/internal/uuids"
)

// sightings knows which systems each BMC showed this process when it answered last, by UUID in either byte order.
type sightings struct {
	mu sync.Mutex
	of map[string][]string // the UUIDs, by BMC
	by index               // the BMCs, by UUID
}

// seen is what the controller of servers is told of a reading.
func seen(r *Reading) rivals.Seen {
	all := rivals.Seen{UUID: r.Manager.UUID, Serial: r.Manager.SerialNumber}
	for _, s := range r.Systems {
		if s.Err != "" || s.Identity.UUID == "" {
			all.Partial = true
		} else {
			all.Systems = append(all.Systems, rivals.System{UUID: s.Identity.UUID,
				Serials: machineid.ShownSerials(s.Identity.Manufacturer, s.Identity.SerialNumber, s.Identity.SKU)})
		}
	}
	return all
}

func oneSpelling(uuid string) string {
	uuid = strings.ToLower(uuid)
	return min(uuid, uuids.Swap(uuid))
}

func (s *sightings) note(bmc string, systems []System) {
	shown := []string{}
	for _, system := range systems {
		if system.Err == "" && system.Identity.UUID != "" {
			shown = append(shown, oneSpelling(system.Identity.UUID))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(bmc)
	s.of[bmc] = shown
	for _, uuid := range shown {
		s.by.add(uuid, bmc)
	}
}

func (s *sightings) forget(bmc string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(bmc)
}

func (s *sightings) remove(bmc string) {
	for _, uuid := range s.of[bmc] {
		s.by.remove(uuid, bmc)
	}
	delete(s.of, bmc)
}

// has says that the BMC was read by this process.
func (s *sightings) has(bmc string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[bmc] != nil
}

// showing lists the BMCs that show a system.
func (s *sightings) showing(uuid string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[oneSpelling(uuid)].UnsortedList()
}

// rivals lists the other BMCs that show a system as well, sorted. One that has given no answer for as long as it takes to
// lose its Servers is none.
func (v *scope) rivals(ctx context.Context, uuid string) ([]string, error) {
	names := v.sightings.showing(uuid)
	undecided, err := v.undecided(ctx)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, name := range append(names, undecided...) {
		if name == v.bmc.Name || slices.Contains(list, name) {
			continue
		}
		other, err := stored.One[v1alpha1.BMC](ctx, v.Client, "", name)
		if err != nil {
			return nil, fmt.Errorf("get BMC %s: %w", name, err)
		}
		if other != nil && v.lostFor(other, v.now) < v.TakeOverAfter {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, nil
}

// undecided lists the BMCs that another process refused a system to as it did this one, and that this process has not read
// yet: a restart must not make an incumbent of the one that is read first.
func (v *scope) undecided(ctx context.Context) ([]string, error) {
	if !inConflict(v.bmc) {
		return nil, nil
	}
	var list v1alpha1.BMCList
	if err := v.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list the BMCs: %w", err)
	}
	var names []string
	for i := range list.Items {
		if inConflict(&list.Items[i]) && !v.sightings.has(list.Items[i].Name) {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, nil
}

func inConflict(b *v1alpha1.BMC) bool {
	c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionSystemsAccepted)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonSystemConflict
}
