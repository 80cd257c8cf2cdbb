// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/uuids"
)

var systemUUIDPath = field.NewPath("spec", "systemUUID")

// serverFacts is what was looked up for a Server.
type serverFacts struct {
	// rival is another Server with this system UUID.
	rival *rival
	// known says that there is a ServerInventory by this system UUID; looked up where the text is no UUID.
	known bool
	// data says why the server is taken to hold somebody's data; empty where it is not, or where nobody asked.
	data string
	// operation is what a request for an operation is held against.
	operation operationFacts
	// sanitization is what becomes of data that is given up, by the policy in force.
	sanitization string
}

// checkServer holds the object itself, without its status, against the rules.
func checkServer(c change[v1alpha1.Server], f serverFacts) findings {
	var found findings
	if c.deleted() {
		checkProtected(c.old, "Server", &found)
		checkDeletion(c.old, f.data, &found)
		return found
	}
	if f.rival != nil {
		found.deny(duplicate(systemUUIDPath, c.new.Spec.SystemUUID, "Server", f.rival))
	}
	if c.byManager && !c.created() && uuidChanges(c) && f.data != "" {
		found.deny(field.Forbidden(systemUUIDPath, fmt.Sprintf(
			"the server stands for machine %s, and %s; it cannot stand for another", c.old.Spec.SystemUUID, f.data)))
	}
	if c.byManager {
		return found
	}
	checkMachine(c, &found)
	checkRetention(c, f.sanitization, &found)
	checkAnswers(c, &found)
	checkProtection(c.old, c.new, &found)
	checkSystemUUID(c, f.known, &found)
	checkReach(c, &found)
	checkTaints(c, &found)
	checkBootOrder(c, &found)
	checkAnnotations(c, &found)
	checkOperation(c, f.operation, &found)
	if losesFinalizer(c) && f.data != "" && !mayLoseData(c.new) {
		found.deny(field.Forbidden(field.NewPath("metadata", "finalizers"), fmt.Sprintf(
			"%s keeps what is known of the server's data, and %s; %s", v1alpha1.FinalizerServer, f.data, deleteDataRemedy)))
	}
	return found
}

// uuidChanges: another spelling, in the other byte order as well, is no change.
func uuidChanges(c change[v1alpha1.Server]) bool {
	return !c.deleted() && (c.created() || !sameMachine(c.old.Spec.SystemUUID, c.new.Spec.SystemUUID))
}

// sameMachine compares text that is no UUID as well, so that a Server without one is like another without one.
func sameMachine(a, b string) bool { return strings.EqualFold(a, b) || uuids.Same(a, b) }

// standIns names the Servers that stand for a machine as far as the cache knows, in whatever spelling of its UUID.
func (l *lookup) standIns(ctx context.Context, uuid string) ([]string, error) {
	var all []string
	for _, form := range uuids.Spellings(uuid) {
		found, err := names(ctx, l.cache, &v1alpha1.ServerList{}, fieldindex.ServerBySystemUUID, form)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// judgeServer looks up what checkServer and checkStatus need. The bundle's rules get to know holdsData where the request
// makes it a question.
func (l *serverRules) judgeServer(ctx context.Context, c change[v1alpha1.Server]) (findings, map[string]any, error) {
	if c.status {
		return l.judgeStatus(c), nil, nil
	}
	f := serverFacts{sanitization: l.bundles.Active().Settings.Sanitization}
	var err error
	if uuidChanges(c) {
		uuid := c.new.Spec.SystemUUID
		if f.known, err = l.inventoried(ctx, uuid); err != nil {
			return findings{}, nil, err
		}
		cached, err := l.standIns(ctx, uuid)
		if err != nil {
			return findings{}, nil, err
		}
		f.rival, err = reserve(ctx, l.lookup, c, question[v1alpha1.Server]{key: machineKey(uuid), self: c.new.Name, cached: cached,
			has: func(s *v1alpha1.Server) bool { return sameMachine(s.Spec.SystemUUID, uuid) }})
		if err != nil {
			return findings{}, nil, err
		}
	}
	if f.operation, err = l.operation(ctx, c); err != nil {
		return findings{}, nil, err
	}
	facts := map[string]any{}
	if c.deleted() || (!c.created() && (uuidChanges(c) || losesFinalizer(c))) {
		if f.data, err = l.dataOf(ctx, c.old); err != nil {
			return findings{}, nil, err
		}
		facts["holdsData"] = f.data != ""
	}
	return checkServer(c, f), facts, nil
}

// inventoried says that a machine which no UUID tells is known by its text all the same.
func (l *lookup) inventoried(ctx context.Context, text string) (bool, error) {
	if text == "" || uuidForm.MatchString(text) {
		return false, nil
	}
	inventory, err := get[policyv1alpha1.ServerInventory](ctx, l, text)
	return inventory != nil, err
}

// machineKey is the same for every spelling of a UUID.
func machineKey(uuid string) string {
	if spellings := uuids.Spellings(uuid); len(spellings) > 0 {
		return "server/uuid/" + slices.Min(spellings)
	}
	return "server/uuid/"
}

// dataOf says why a stored server is taken to hold somebody's data. What its inventory remembers counts as well, because
// a status can be lost.
func (l *lookup) dataOf(ctx context.Context, s *v1alpha1.Server) (string, error) {
	if why := holdsData(s, nil); why != "" {
		return why, nil
	}
	for _, name := range uuids.Spellings(s.Spec.SystemUUID) {
		holds, err := l.inventoryHoldsData(ctx, s, name)
		if err != nil {
			return "", fmt.Errorf("the inventory of machine %s cannot be read: %w", s.Spec.SystemUUID, err)
		}
		if holds {
			return inventoryHoldsData, nil
		}
	}
	return "", nil
}

// inventoryHoldsData asks the cache, and confirms past it only what would deny the deletion.
func (l *lookup) inventoryHoldsData(ctx context.Context, s *v1alpha1.Server, name string) (bool, error) {
	for _, from := range []client.Reader{l.cache, l.reader} {
		inventory := &policyv1alpha1.ServerInventory{}
		if err := from.Get(ctx, client.ObjectKey{Name: name}, inventory); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if holdsData(s, inventory) == "" {
			return false, nil
		}
	}
	return true, nil
}
