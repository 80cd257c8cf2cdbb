// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Proof says whether a server without status.lifecycle is proven to hold no claim's data. The zero Proof proves nothing.
type Proof struct {
	// Clean says that it is proven.
	Clean bool
	// Why says by what, or what is missing; empty where nothing was looked up.
	Why string
}

// Pruned says that another operator's CRD may have dropped status.lifecycle of a server, so that ProofOf is worth asking. A
// server without a state lost its whole status, and nothing proves that one clean.
func Pruned(s *v1alpha1.Server, inv *policyv1alpha1.ServerInventory) bool {
	return s.Status.Lifecycle == nil && s.Status.State != "" && lost(s, inv)
}

// ProofOf judges a server whose status.lifecycle was pruned. The server comes with its managed fields, and both objects come
// from the API server, not from a cache.
func ProofOf(s *v1alpha1.Server, inv *policyv1alpha1.ServerInventory) Proof {
	record := cleanRecord(inv)
	doubt := func(format string, args ...any) Proof { return Proof{Why: fmt.Sprintf(format, args...)} }
	switch {
	case record == nil:
		return doubt("its inventory has no record that it is clean")
	case record.Since.IsZero() || record.Cause != policyv1alpha1.CleanWiped && record.Cause != policyv1alpha1.CleanNeverBooted:
		return doubt("the record in its inventory that it is clean is incomplete")
	case KeptDirty(inv) || inv.Custody.LastHolder != nil:
		return doubt("its inventory remembers a holder's data")
	case inv.Custody.DirtiedAt != nil && !inv.Custody.DirtiedAt.Time.Before(record.Since.Time):
		return doubt("it was marked Dirty after it was recorded as clean")
	case record.ServerUID == "" || record.ServerUID != s.UID:
		return doubt("the record that it is clean speaks of another Server object, as after a restore")
	case remembersHolder(s):
		return doubt("the server remembers a claim that held it")
	}
	if why := othersWrote(s.ManagedFields, record.Since.Time); why != "" {
		return doubt("%s", why)
	}
	return Proof{Clean: true, Why: fmt.Sprintf("recorded as clean since %s (%s), and only %s wrote its status",
		record.Since.UTC().Format(time.RFC3339), record.Cause, v1alpha1.FieldManager)}
}

func cleanRecord(inv *policyv1alpha1.ServerInventory) *policyv1alpha1.CleanRecord {
	if inv == nil || inv.Custody == nil {
		return nil
	}
	return inv.Custody.Clean
}

// remembersHolder says that a Server names a claim, or bears what is written on it for one until it is wiped.
func remembersHolder(s *v1alpha1.Server) bool {
	return s.Spec.ServerClaimRef != nil || s.Annotations[v1alpha1.ClaimUIDAnnotation] != "" ||
		s.Annotations[v1alpha1.ReleasedClaimAnnotation] != ""
}

// othersWrote says why managed fields leave open that another manager bound, booted or released the server; empty where they
// do not. An operator that gives a server to a claim writes its state, so that an owner of the state tells of it even after the claim's
// reference is gone. Our entry must own the state: fields that are missing say nothing.
func othersWrote(entries []metav1.ManagedFieldsEntry, since time.Time) string {
	if len(entries) == 0 {
		return "the server has no managed fields"
	}
	ours := false
	for i := range entries {
		e := &entries[i]
		paths, err := pathsOf(e)
		switch {
		case e.Manager == "" || e.Time == nil || e.Time.IsZero():
			return fmt.Sprintf("the entry of manager %q in its managed fields has no name or no time", e.Manager)
		case err != nil:
			return fmt.Sprintf("the entry of manager %q in its managed fields cannot be read", e.Manager)
		}
		if e.Manager == v1alpha1.FieldManager && e.Operation == metav1.ManagedFieldsOperationUpdate {
			ours = ours || slices.ContainsFunc(paths, within("status", "state"))
			continue
		}
		for _, path := range paths {
			switch {
			case telling(path):
				return fmt.Sprintf("manager %q wrote %s", e.Manager, joinedPath(path))
			case !e.Time.Time.Before(since.Truncate(time.Second)): // managed fields count in seconds
				return fmt.Sprintf("manager %q wrote %s after it was recorded as clean", e.Manager, joinedPath(path))
			}
		}
	}
	if !ours {
		return fmt.Sprintf("its managed fields do not name %s for its state", v1alpha1.FieldManager)
	}
	return ""
}

// pathsOf lists the names of fields, at most two deep, that an entry owns. An entry that owns none is an error: it says nothing.
func pathsOf(e *metav1.ManagedFieldsEntry) ([][]string, error) {
	if e.FieldsType != "FieldsV1" || e.FieldsV1 == nil {
		return nil, fmt.Errorf("fields of type %q", e.FieldsType)
	}
	var set fieldpath.Set
	if err := set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
		return nil, err
	}
	var all [][]string
	nameless := false
	set.Iterate(func(p fieldpath.Path) {
		var names []string
		for _, element := range p[:min(2, len(p))] {
			if element.FieldName == nil {
				break
			}
			names = append(names, *element.FieldName)
		}
		nameless = nameless || len(names) == 0
		if !slices.ContainsFunc(all, func(known []string) bool { return slices.Equal(known, names) }) {
			all = append(all, names)
		}
	})
	if len(all) == 0 || nameless {
		return nil, fmt.Errorf("no field is named")
	}
	return all, nil
}

func within(names ...string) func([]string) bool {
	return func(path []string) bool { return len(path) >= len(names) && slices.Equal(path[:len(names)], names) }
}

// telling are the fields that an operator writes which gives a server to a claim, or boots it.
func telling(path []string) bool {
	return within("status")(path) || within("spec", "serverClaimRef")(path) || within("spec", "power")(path)
}

func joinedPath(path []string) string {
	text := path[0]
	for _, name := range path[1:] {
		text += "." + name
	}
	return text
}

// NextCleanRecord is the record that a server earns which is at rest without the mark Dirty and without a claim; nil where it
// has one already, or earns none. A wipe must have been verified in the entry right before this one: a waiver clears Dirty as well, and an
// older wipe says nothing. That no claim booted the machine is told by a lifecycle that began without a past.
func NextCleanRecord(s *v1alpha1.Server, inv *policyv1alpha1.ServerInventory, now time.Time) *policyv1alpha1.CleanRecord {
	l := s.Status.Lifecycle
	if l == nil || s.UID == "" || s.Spec.ServerClaimRef != nil || slices.Contains(l.Marks, MarkDirty) {
		return nil
	}
	former := cleanRecord(inv)
	if former != nil && former.ServerUID == s.UID && !KeptDirty(inv) {
		return nil
	}
	record := &policyv1alpha1.CleanRecord{Since: metav1.NewMicroTime(now), ServerUID: s.UID}
	switch {
	case wipedIn(inv, l.Entry-1):
		record.Cause = policyv1alpha1.CleanWiped
	case !beganWithoutPast(l) || KeptDirty(inv):
		return nil
	case former != nil: // the machine's former Server was clean, and this one began without a fear of data
		record.Cause = former.Cause
	case neverDirty(inv):
		record.Cause = policyv1alpha1.CleanNeverBooted
	default:
		return nil
	}
	return record
}

// wipedIn says that a wipe was verified in an entry.
func wipedIn(inv *policyv1alpha1.ServerInventory, entry int64) bool {
	return inv != nil && inv.Wipe != nil && inv.Wipe.State == policyv1alpha1.WipeVerified && inv.Wipe.Entry == entry && !EntryVoided(inv, entry)
}

// neverDirty says that custody tells of no claim and of no fear of data, ever.
func neverDirty(inv *policyv1alpha1.ServerInventory) bool {
	if inv == nil || inv.Custody == nil {
		return true
	}
	c := inv.Custody
	return c.DirtiedAt == nil && c.LastHolder == nil && c.TimesClaimed == 0
}

// beganWithoutPast says that the whole history of a lifecycle is known, that it began with the first look at the machine, and that the
// server came to rest by inspection alone.
func beganWithoutPast(l *v1alpha1.LifecycleStatus) bool {
	for i, m := range l.History {
		switch {
		case (i == 0) != (m.From == ""): // an adoption begins from "" as well
			return false
		case m.Rule == v1alpha1.RuleAdopted || m.Rule == v1alpha1.RuleForced:
			return false
		}
		switch m.To {
		case v1alpha1.StateInitial, v1alpha1.StateDiscovery, v1alpha1.StateError, v1alpha1.StateAvailable, v1alpha1.StateDecommissioned:
		default:
			return false
		}
	}
	return len(l.History) > 0
}
