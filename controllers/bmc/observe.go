// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/policies"
)

// scope is one BMC in one reconcile.
type scope struct {
	*subject
	bmc       *v1alpha1.BMC
	now       time.Time
	location  access.Location
	target    hardware.Target
	targetErr *access.Error
	// name is what the cache knows the BMC by.
	name    string
	reading hardware.Reading[Reading]
	facts   facts
	plan    plan
	// owned are the Servers behind the BMC.
	owned []v1alpha1.Server
	wake  time.Duration

	// retriedLately says why the credentials are not tried again; empty where nothing is to be said.
	retriedLately string
	// certificate is what becomes of the trust in the BMC's certificate.
	certificate certificate
	// consumed says that the accept annotation was taken away.
	consumed    bool
	askedReset  *resetRequest
	failedReset error
}

// resetRequest is a reset that is recorded before it is done.
type resetRequest struct {
	message string
	at      time.Time
}

// Observe implements loop.Subject.
func (s *subject) Observe(ctx context.Context, b *v1alpha1.BMC) (loop.Scope[decision], error) {
	v := &scope{subject: s, bmc: b, now: s.now()}
	if !b.DeletionTimestamp.IsZero() {
		return v, nil
	}
	if err := v.resolve(ctx); err != nil {
		return nil, err
	}
	if err := v.readOwned(ctx); err != nil {
		return nil, err
	}
	v.readHardware()
	if err := v.readCertificate(ctx); err != nil {
		return nil, err
	}
	if err := v.readServers(ctx); err != nil {
		return nil, err
	}
	return v, nil
}

func (v *scope) resolve(ctx context.Context) error {
	location, err := access.Locate(ctx, v.Client, v.bmc)
	if err == nil {
		v.location = location
		v.target, err = access.Resolve(ctx, v.Client, v.bmc, v.Bundles.Active().Settings, access.WithCABundle(v.CABundle))
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
		v.subjects.drop(v.cache, v.bmc.Name)
		return
	}
	way := wayTo(v.target)
	v.name = v.bmc.Name + "/" + hex.EncodeToString(way[:8])
	v.subjects.become(v.cache, v.bmc.Name, v.name)
	maxAge, due := v.pollInterval(), due(v.owned)
	if !v.unreadSince().IsZero() {
		maxAge = 0
		v.reader.forget(v.target.Key)
	}
	if !due.IsZero() && v.cache.Reading(v.name).Begun.Before(due) && !v.now.Before(due) {
		maxAge = 0
		v.reader.forget(v.target.Key)
	}
	reading, fresh := v.cache.Refresh(v.name, v.target, maxAge)
	v.reading = reading
	v.reading.Value.Systems = assign(reading.Value.Systems, v.bmc.Annotations[v1alpha1.SystemUUIDsAnnotation])
	if !fresh {
		v.wake = v.cache.NextTry(v.name) // 0 while a read is under way, whose end wakes the BMC
		return
	}
	v.wake = max(maxAge-v.now.Sub(reading.At), time.Millisecond)
	if due.After(v.now) {
		v.wake = min(v.wake, due.Sub(v.now))
	}
}

// noteReading tells the other BMCs' visits what this one shows.
func (v *scope) noteReading() {
	if silent, known := v.silence(); known {
		v.silences.note(v.bmc.Name, silent)
	}
	if v.usable() {
		v.sightings.note(v.bmc.Name, v.reading.Value.Systems)
	}
}

// readServers finds the servers that the systems behind the BMC are, and the BMCs that hold them.
func (v *scope) readServers(ctx context.Context) error {
	v.facts = facts{
		bmc:    v.bmc.Name,
		byUUID: map[string][]server{}, remembered: map[string]server{},
		incumbents: map[string]incumbent{}, rivals: map[string][]string{}, takeOverAfter: v.TakeOverAfter,
	}
	if v.acceptanceCounts() {
		v.facts.accepted = acceptedText(v.bmc)
	}
	for i := range v.owned {
		v.facts.owned = append(v.facts.owned, asServer(&v.owned[i]))
	}
	if !v.usable() {
		return nil // what was read before an outage is not acted upon
	}
	v.facts.systems = v.reading.Value.Systems
	for _, system := range v.facts.systems {
		if uuid := strings.ToLower(system.Identity.UUID); uuid != "" && v.facts.byUUID[uuid] == nil {
			if err := v.readSystem(ctx, uuid); err != nil {
				return err
			}
			if system.Assignment.UUID == "" {
				continue
			}
			if err := v.readInventory(ctx, uuid); err != nil {
				return err
			}
		}
	}
	return nil
}

// readSystem finds who else has to do with a system.
func (v *scope) readSystem(ctx context.Context, uuid string) error {
	known, err := serversOf(ctx, v.Client, uuid)
	if err != nil {
		return err
	}
	v.facts.byUUID[uuid] = known
	settled := false
	for _, s := range known {
		if err := v.readIncumbent(ctx, s.bmc); err != nil {
			return err
		}
		settled = settled || s.bmc == v.bmc.Name
	}
	if settled {
		return nil // it has its incumbent
	}
	v.facts.rivals[uuid], err = v.rivals(ctx, uuid)
	return err
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

func (v *scope) readIncumbent(ctx context.Context, name string) error {
	if name == "" || name == v.bmc.Name {
		return nil
	}
	other := &v1alpha1.BMC{}
	err := v.Client.Get(ctx, types.NamespacedName{Name: name}, other)
	if apierrors.IsNotFound(err) {
		v.facts.incumbents[name] = incumbent{gone: true}
		return nil
	}
	if err != nil {
		return fmt.Errorf("get BMC %s: %w", name, err)
	}
	v.facts.incumbents[name] = incumbent{lost: v.lostFor(other, v.now)}
	return nil
}
