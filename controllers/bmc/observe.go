// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/bmc/reset"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/internal/fieldindex"
)

// Observe implements loop.Subject.
func (s *subject) Observe(ctx context.Context, b *v1alpha1.BMC) (loop.Scope[decision], error) {
	v := &scope{subject: s, observed: observed{bmc: b, now: s.now()}}
	if !b.DeletionTimestamp.IsZero() {
		return v, nil
	}
	if underWay := reset.UnderWay(b.Status.Conditions); underWay != nil {
		v.sent = s.resets.get(string(b.UID), reset.ID(underWay.LastTransitionTime.Time))
	}
	if err := v.resolve(ctx); err != nil {
		return nil, err
	}
	if err := v.readOwned(ctx); err != nil {
		return nil, err
	}
	v.readHardware()
	var err error
	if v.certificate, err = v.readCertificate(ctx); err != nil {
		return nil, err
	}
	if v.facts, err = v.readFacts(ctx, v.knownFacts()); err != nil {
		return nil, err
	}
	return v, nil
}

func (v *scope) resolve(ctx context.Context) error {
	location, err := access.Locate(ctx, v.Client, v.bmc)
	if err == nil {
		v.location = location
		v.target, err = access.Resolve(ctx, v.Client, v.bmc, v.Bundles.Active().Settings, v.CABundle)
	}
	if err != nil && !errors.As(err, &v.targetErr) {
		return err
	}
	return nil
}

// readOwned finds the Servers behind the BMC.
func (v *scope) readOwned(ctx context.Context) error {
	var list v1alpha1.ServerList
	if err := v.Client.List(ctx, &list, client.MatchingFields{fieldindex.ServerByBMC: v.bmc.Name}); err != nil {
		return fmt.Errorf("list the Servers of BMC %s: %w", v.bmc.Name, err)
	}
	v.owned = list.Items
	return nil
}

// readHardware asks the cache, which answers at once. A BMC that is reached in another way than before is another
// subject: nothing that was read the old way is taken for the new.
func (v *scope) readHardware() {
	defer v.noteReading()
	if v.targetErr != nil {
		v.rename(v.bmc.Name, "")
		return
	}
	way := wayTo(v.target)
	v.name = v.bmc.Name + "/" + hex.EncodeToString(way[:8])
	v.rename(v.bmc.Name, v.name)
	maxAge, due := v.pollInterval(), due(v.owned)
	begun, accepted := v.cache.Reading(v.name).Begun, v.acceptanceSeen()
	unread := !accepted.IsZero() && !begun.After(accepted) // the acceptance speaks of what is there since
	if unread || !due.IsZero() && begun.Before(due) && !v.now.Before(due) {
		maxAge = 0
		v.systemsRead.forget(v.target.Key)
	}
	reading, fresh := v.cache.Refresh(v.name, v.target, maxAge)
	v.reading = reading
	v.reading.Value.Systems = assign(reading.Value.Systems, v.bmc.Annotations[v1alpha1.SystemUUIDsAnnotation])
	if !fresh {
		v.requeue = v.cache.NextTry(v.name) // 0 while a read is under way, whose end triggers a reconcile
		return
	}
	v.requeue = max(maxAge-v.now.Sub(reading.At), time.Millisecond)
	if due.After(v.now) {
		v.requeue = min(v.requeue, due.Sub(v.now))
	}
}

// noteReading shows the reconciles of other BMCs what this one shows.
func (v *scope) noteReading() {
	if silent, known := v.silence(); known {
		v.silent.put(v.bmc.Name, silent)
	}
	if v.usable() {
		v.sightings.note(v.bmc.Name, v.reading.Value.Systems)
		v.Rivals.Note(v.bmc.Name, seen(&v.reading.Value))
	}
}

// knownFacts are the facts about the systems that this BMC itself shows. A reading from before an outage adds no system.
func (v *scope) knownFacts() facts {
	f := facts{
		bmc:    v.bmc.Name,
		byUUID: map[string][]server{}, remembered: map[string]server{},
		incumbents: map[string]incumbent{}, rivals: map[string][]string{}, takeOverAfter: v.TakeOverAfter,
	}
	if seen := v.acceptanceSeen(); !seen.IsZero() && v.reading.Begun.After(seen) {
		f.accepted = acceptedText(v.bmc)
	}
	for i := range v.owned {
		f.owned = append(f.owned, asServer(&v.owned[i]))
	}
	if v.usable() {
		f.systems = v.reading.Value.Systems
	}
	return f
}

// A BMC is read seldom while the reads of its Servers show that it answers: they come often, each proves as much, and
// together they are to be all that an idle BMC is asked. As soon as one of them shows trouble, the BMC is read itself.

// mostShares bounds by how much more often a BMC with several Servers is read: there a system may be added at any time,
// and each Server bears a share of the requests.
const mostShares = 3

// pollInterval is how old the reading of the BMC may be.
func (v *scope) pollInterval() time.Duration {
	age := v.SteadyPoll
	if n := vouching(v.owned); n > 0 {
		age = max(age, v.MetadataPoll/time.Duration(min(n, mostShares)))
	}
	if anyNameless(assign(v.cache.Reading(v.name).Value.Systems, v.bmc.Annotations[v1alpha1.SystemUUIDsAnnotation])) {
		age = min(age, v.SteadyPoll) // a BMC that has just started may show no UUID for some seconds
	}
	if reset.UnderWay(v.bmc.Status.Conditions) != nil {
		age = min(age, v.TransitionPoll)
	}
	return age
}

// anyNameless says that a system was read which bears no UUID.
func anyNameless(systems []System) bool {
	return slices.ContainsFunc(systems, func(s System) bool { return s.Err == "" && s.Identity.UUID == "" })
}

// vouching counts the Servers whose reads show that their BMC answers; 0 where one of them says otherwise. One that
// the manager does not read says nothing.
func vouching(servers []v1alpha1.Server) int {
	count := 0
	for i := range servers {
		s := &servers[i]
		if v1alpha1.Ignored(s) || !s.DeletionTimestamp.IsZero() {
			continue
		}
		if !meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionBMCReachable) || !troubleSince(s).IsZero() {
			return 0
		}
		count++
	}
	return count
}

// troubleSince is when reads of a Server began to fail, or to show another machine; the zero time where all is well.
func troubleSince(s *v1alpha1.Server) time.Time {
	var since time.Time
	for kind, bad := range map[string]metav1.ConditionStatus{
		v1alpha1.ConditionBMCReachable: metav1.ConditionFalse, v1alpha1.ConditionIdentityMismatch: metav1.ConditionTrue,
	} {
		c := meta.FindStatusCondition(s.Status.Conditions, kind)
		if c != nil && c.Status == bad && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since
}

// due is the moment after which the BMC has to be read once, because of trouble with a Server; the zero time where there
// is none. Conditions have whole seconds, so it is the end of the second.
func due(servers []v1alpha1.Server) time.Time {
	var last time.Time
	for i := range servers {
		if since := troubleSince(&servers[i]); since.After(last) {
			last = since
		}
	}
	if last.IsZero() {
		return last
	}
	return last.Truncate(time.Second).Add(time.Second)
}
