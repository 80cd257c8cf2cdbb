// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/stored"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/policies"
)

// readFacts adds the Servers that the systems of f are, and the BMCs that hold them.
func (v *scope) readFacts(ctx context.Context, f facts) (facts, error) {
	for _, system := range f.systems {
		uuid := strings.ToLower(system.Identity.UUID)
		if uuid == "" || f.byUUID[uuid] != nil {
			continue
		}
		if err := v.readSystem(ctx, &f, uuid); err != nil {
			return f, err
		}
		if system.Assignment.UUID == "" {
			continue
		}
		if err := v.readInventory(ctx, &f, uuid); err != nil {
			return f, err
		}
	}
	return f, nil
}

// readSystem finds the Servers of a system, their BMCs, and the rivals that show it as well.
func (v *scope) readSystem(ctx context.Context, f *facts, uuid string) error {
	known, err := serversOf(ctx, v.Client, uuid)
	if err != nil {
		return err
	}
	f.byUUID[uuid] = known
	settled := false
	for _, s := range known {
		if err := v.readIncumbent(ctx, f, s.bmc); err != nil {
			return err
		}
		settled = settled || s.bmc == v.bmc.Name
	}
	if settled {
		return nil // it has its incumbent
	}
	f.rivals[uuid], err = v.rivals(ctx, uuid)
	return err
}

// readInventory adds what the inventory of a machine knows to its Servers, or notes it where there is none. It is read for
// assigned UUIDs alone, which nothing but the annotation ties to a machine.
func (v *scope) readInventory(ctx context.Context, f *facts, uuid string) error {
	for _, name := range uuids.Spellings(uuid) {
		inventory, err := stored.One[policyv1alpha1.ServerInventory](ctx, v.Client, "", name)
		if err != nil {
			return fmt.Errorf("get ServerInventory %s: %w", name, err)
		}
		if inventory == nil {
			continue
		}
		recorded, holds := policies.OnRecord(nil, inventory), policies.MayHoldData(nil, inventory)
		known := f.byUUID[uuid]
		for i := range known {
			known[i].holds = known[i].holds || holds
			known[i].hardware.SerialNumbers = append(known[i].hardware.SerialNumbers, recorded.SerialNumbers...)
			known[i].hardware.MACs = append(known[i].hardware.MACs, recorded.MACs...)
		}
		if len(known) == 0 {
			f.remembered[uuid] = server{bmc: v.bmc.Name, holds: holds, hardware: recorded}
		}
	}
	return nil
}

func (v *scope) readIncumbent(ctx context.Context, f *facts, name string) error {
	if name == "" || name == v.bmc.Name {
		return nil
	}
	other, err := stored.One[v1alpha1.BMC](ctx, v.Client, "", name)
	if err != nil {
		return fmt.Errorf("get BMC %s: %w", name, err)
	}
	f.incumbents[name] = incumbent{gone: other == nil}
	if other != nil {
		f.incumbents[name] = incumbent{lost: v.lostFor(other, v.now)}
	}
	return nil
}

// serversOf lists the servers with a UUID, in either byte order.
func serversOf(ctx context.Context, r client.Reader, uuid string) ([]server, error) {
	var known []server
	for _, spelling := range uuids.Spellings(uuid) {
		var list v1alpha1.ServerList
		if err := r.List(ctx, &list, client.MatchingFields{fieldindex.ServerBySystemUUID: spelling}); err != nil {
			return nil, fmt.Errorf("list the Servers with UUID %s: %w", spelling, err)
		}
		for i := range list.Items {
			known = append(known, asServer(&list.Items[i]))
		}
	}
	return known, nil
}

func asServer(s *v1alpha1.Server) server {
	found := server{
		name: s.Name, uuid: s.Spec.SystemUUID, uri: s.Spec.SystemURI, serial: s.Status.SerialNumber, inline: s.Spec.BMC != nil,
		holds: policies.MayHoldData(s, nil), hardware: policies.OnRecord(s, nil),
	}
	if s.Spec.BMCRef != nil {
		found.bmc = s.Spec.BMCRef.Name
	}
	return found
}

// lostFor is how long a BMC has been seen to give no answer; 0 where it answers, or the manager does not ask it. The time in which no
// manager was running does not count, and what another process saw has to be seen by this one before it counts in full.
func (s *subject) lostFor(b *v1alpha1.BMC, now time.Time) time.Duration {
	c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionUnreachable)
	if c == nil || c.Status != metav1.ConditionTrue || v1alpha1.Ignored(b) {
		return 0
	}
	since := c.LastTransitionTime.Time
	lost := now.Sub(since) - s.Absent(since, now)
	if !s.silent.get(b.Name) {
		lost = min(lost, s.TakeOverAfter-unconfirmed)
	}
	return max(lost, 1)
}

// unconfirmed is how soon to look again at a BMC that this process has not asked yet.
const unconfirmed = time.Second
