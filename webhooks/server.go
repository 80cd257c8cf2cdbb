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
	"github.com/metalaw/metalaw/webhooks/deletion"
	"github.com/metalaw/metalaw/webhooks/review"
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
	// mayRestore says that the user holds the verb restore; looked up where doubts says so.
	mayRestore bool
	// operation is what a request for an operation is held against.
	operation operationFacts
	// sanitization is what becomes of data that is given up, by the policy in force.
	sanitization string
}

// checkServer holds the object itself, without its status, against the rules.
func checkServer(c review.Change[v1alpha1.Server], f serverFacts, found *review.Findings) {
	if c.Deleted() {
		checkProtected(c.Old, "Server", found)
		checkDeletedInMaintenance(c.Old, found)
		checkDeletion(c.Old, f.data, found)
		deletion.Server(c.Old, found)
		return
	}
	if f.rival != nil {
		found.Deny(duplicate(systemUUIDPath, c.New.Spec.SystemUUID, "Server", f.rival))
	}
	if c.ByManager && !c.Created() && uuidChanges(c) && f.data != "" {
		found.Deny(field.Forbidden(systemUUIDPath, fmt.Sprintf(
			"the server stands for machine %s, and %s; it cannot stand for another", c.Old.Spec.SystemUUID, f.data)))
	}
	if c.ByManager {
		return
	}
	checkMachine(c, found)
	checkRetention(c, f.sanitization, found)
	checkAnswers(c, found)
	review.CheckYesNo(c.Old, c.New, v1alpha1.ProtectAnnotation, found)
	checkSystemUUID(c, f.known, found)
	checkReach(c, found)
	checkTaints(c, found)
	checkBootOrder(c, found)
	checkAnnotations(c, found)
	checkGrantRecord(c, found)
	checkOperation(c, f.operation, found)
	review.WarnApplied(c.Old, c.New, found)
	checkDoubt(c, f.mayRestore, found)
	if losesFinalizer(c) && f.data != "" && !mayLoseData(c.New) {
		found.Deny(field.Forbidden(field.NewPath("metadata", "finalizers"), fmt.Sprintf(
			"%s keeps what is known of the server's data, and %s; %s", v1alpha1.FinalizerServer, f.data, deleteDataRemedy)))
	}
}

// uuidChanges: another spelling, in the other byte order as well, is no change.
func uuidChanges(c review.Change[v1alpha1.Server]) bool {
	return !c.Deleted() && (c.Created() || !sameMachine(c.Old.Spec.SystemUUID, c.New.Spec.SystemUUID))
}

// sameMachine compares text that is no UUID as well, so that a Server without one is like another without one.
func sameMachine(a, b string) bool { return strings.EqualFold(a, b) || uuids.Same(a, b) }

// standIns are the Servers that stand for a machine as far as the cache knows, in whatever spelling of its UUID.
func (l *lookup) standIns(ctx context.Context, uuid string) ([]*v1alpha1.Server, error) {
	all, err := l.names(ctx, &v1alpha1.ServerList{}, fieldindex.ServerBySystemUUID, uuids.Spellings(uuid)...)
	if err != nil {
		return nil, err
	}
	var servers []*v1alpha1.Server
	for _, name := range all {
		s, err := get[v1alpha1.Server](ctx, l, name)
		if err != nil {
			return nil, err
		}
		if s != nil {
			servers = append(servers, s)
		}
	}
	return servers, nil
}

// judgeServer looks up what checkServer and checkStatus need. The bundle's rules get to know holdsData where the request
// makes it a question.
func (l *serverRules) judgeServer(ctx context.Context, c review.Change[v1alpha1.Server], found *review.Findings, facts map[string]any) (err error) {
	if c.Status {
		l.judgeStatus(c, found)
		return nil
	}
	f := serverFacts{sanitization: l.bundles.Active().Settings.Sanitization}
	if uuidChanges(c) {
		uuid := c.New.Spec.SystemUUID
		if f.known, err = l.inventoried(ctx, uuid); err != nil {
			return err
		}
		cached, err := l.names(ctx, &v1alpha1.ServerList{}, fieldindex.ServerBySystemUUID, uuids.Spellings(uuid)...)
		if err != nil {
			return err
		}
		f.rival, err = reserve(ctx, l.lookup, c, question[v1alpha1.Server]{key: machineKey(uuid), cached: cached,
			has: func(s *v1alpha1.Server) bool { return sameMachine(s.Spec.SystemUUID, uuid) }})
		if err != nil {
			return err
		}
	}
	if f.operation, err = l.operation(ctx, c); err != nil {
		return err
	}
	if f.mayRestore, err = l.mayRestore(ctx, c); err != nil {
		return err
	}
	if c.Deleted() || (!c.Created() && (uuidChanges(c) || losesFinalizer(c))) {
		if f.data, err = l.dataOf(ctx, c.Old); err != nil {
			return err
		}
		facts["holdsData"] = f.data != ""
	}
	checkServer(c, f, found)
	return l.credentials.JudgeServer(ctx, c, found)
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
		return l.unlessAttested(ctx, s, why)
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

// unlessAttested is why a server is taken to hold data, but for one out of service of which a person answers for each disk. What the
// inventory says of that is asked past the cache.
func (l *lookup) unlessAttested(ctx context.Context, s *v1alpha1.Server, why string) (string, error) {
	if s.Status.State != v1alpha1.StateDecommissioned {
		return why, nil
	}
	for _, name := range uuids.Spellings(s.Spec.SystemUUID) {
		inventory := &policyv1alpha1.ServerInventory{}
		switch err := l.reader.Get(ctx, client.ObjectKey{Name: name}, inventory); {
		case client.IgnoreNotFound(err) != nil:
			return "", fmt.Errorf("the inventory of machine %s cannot be read: %w", s.Spec.SystemUUID, err)
		case err == nil && holdsData(s, inventory) == "":
			return "", nil
		}
	}
	return why, nil
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
