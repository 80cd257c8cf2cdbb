// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/hidden"
	"github.com/metalaw/metalaw/policies"
)

// Answer is a disk, or storage that no disk shows, for which a person answers.
type Answer struct {
	policyv1alpha1.AttestedDisk
	// Hidden is that storage; nil where the person answers for a disk.
	Hidden *policyv1alpha1.AttestedHidden
}

// Write puts an answer into custody, once however often it is tried.
func (a Answer) Write(c *policyv1alpha1.Custody) {
	if a.Hidden == nil {
		if len(c.Unattested([]policyv1alpha1.CustodyDisk{a.CustodyDisk})) > 0 {
			c.Attested = append(c.Attested, a.AttestedDisk)
		}
		return
	}
	same := func(other policyv1alpha1.AttestedHidden) bool { return hidden.Answers(&other, storageOf(a.Hidden)) }
	if !slices.ContainsFunc(c.AttestedHidden, same) {
		c.AttestedHidden = append(c.AttestedHidden, *a.Hidden)
	}
}

// words say for what the person answers; empty for no answer.
func (a *Answer) words() string {
	if a == nil {
		return ""
	}
	if a.Hidden == nil {
		return fmt.Sprintf("disk %s (%s) is attested", a.Key().Value, a.Method)
	}
	return fmt.Sprintf("hidden storage %s (%s) is attested", hidden.Word(storageOf(a.Hidden)), a.Method)
}

func storageOf(a *policyv1alpha1.AttestedHidden) policyv1alpha1.HiddenStorage {
	return policyv1alpha1.HiddenStorage{Address: a.Address, PCIID: a.PCIID, Slot: a.Slot, Name: a.Name, Serial: a.Serial}
}

// Attestation is what operation attest-disk has the inventory remember. The second return says why it has not; empty
// where it has.
func Attestation(in Input) (Answer, string) {
	notes, inv := in.Server.Annotations, in.Inventory
	a := Answer{AttestedDisk: policyv1alpha1.AttestedDisk{Method: policyv1alpha1.AttestMethod(notes[v1alpha1.AttestMethodAnnotation]),
		At: metav1.NewMicroTime(in.Now), By: notes[v1alpha1.OperationByAnnotation], Reason: notes[v1alpha1.OperationReasonAnnotation]}}
	named := notes[v1alpha1.AttestDiskAnnotation]
	if lacks := a.lacks(named); lacks != "" {
		return a, lacks
	}
	known := disksOf(inv)
	found := slices.DeleteFunc(slices.Clone(known), func(d policyv1alpha1.CustodyDisk) bool {
		return d.WWID != named && d.Serial != named && d.Name != named
	})
	unseen := hidden.Last(inv, nil).All
	storage := slices.DeleteFunc(slices.Clone(unseen), func(h policyv1alpha1.HiddenStorage) bool { return !hidden.Named(h, named) })
	switch {
	case len(found)+len(storage) == 0 && len(unseen) > 0:
		return a, fmt.Sprintf("ServerInventory %s lists no disk %q; it lists %s, and hidden %s", in.Server.Spec.SystemUUID, named,
			namesOf(known), hidden.Words(unseen))
	case len(found)+len(storage) == 0 && dirty(in):
		return a, fmt.Sprintf("ServerInventory %s lists no disk %q; it lists %s", in.Server.Spec.SystemUUID, named, namesOf(known))
	case len(found) > 1:
		return a, fmt.Sprintf("%d disks are named %q: %s; name the disk by its wwid or serial number", len(found), named, namesOf(found))
	case len(found)+len(storage) > 1:
		return a, fmt.Sprintf("%q names more than one: %s; %s", named, namesOf(found), hidden.Words(storage))
	case len(storage) == 1:
		return hiddenAnswer(a, storage[0])
	case !dirty(in):
		return a, "the server is not marked Dirty, so that no wipe asks for its disks"
	case len(inv.Custody.Unattested(found)) == 0:
		return a, fmt.Sprintf("disk %q is attested already; the custody of ServerInventory %s says by whom", named, inv.Name)
	}
	a.CustodyDisk = found[0]
	return a, ""
}

// lacks says what a request does not say; empty where it says all.
func (a *Answer) lacks(named string) string {
	switch {
	case a.Method != policyv1alpha1.AttestDestroy && a.Method != policyv1alpha1.AttestRemoved:
		return fmt.Sprintf("%q is no method; annotation %s is %s or %s", a.Method, v1alpha1.AttestMethodAnnotation,
			policyv1alpha1.AttestDestroy, policyv1alpha1.AttestRemoved)
	case named == "":
		return "name the disk by its wwid, serial number or name, in annotation " + v1alpha1.AttestDiskAnnotation
	case strings.TrimSpace(a.Reason) == "":
		return "say why, in annotation " + v1alpha1.OperationReasonAnnotation
	case a.By == "":
		return "who asks is not known, because the admission webhook was not asked"
	}
	return ""
}

// hiddenAnswer is an answer for storage that no disk shows. It needs no mark: it may come before the policy asks for
// it.
func hiddenAnswer(a Answer, h policyv1alpha1.HiddenStorage) (Answer, string) {
	if h.ExcusedBy != "" {
		return a, fmt.Sprintf("hidden storage %s is attested already, by %s", hidden.Word(h), h.ExcusedBy)
	}
	a.Hidden = &policyv1alpha1.AttestedHidden{Address: h.Address, PCIID: h.PCIID, Slot: h.Slot, Serial: h.Serial,
		Name: h.Name, Method: a.Method, By: a.By, Reason: a.Reason, At: a.At}
	return a, ""
}

func dirty(in Input) bool {
	return slices.Contains(in.Server.Status.Lifecycle.Marks, policies.MarkDirty)
}

// proved says for which machine a person answers; empty where the inventory keeps no such word.
func proved(m *policyv1alpha1.MachineIdentity) string {
	switch {
	case m == nil:
		return ""
	case m.Settled != nil:
		return "the machine that reports next is the one of the server"
	}
	return "the machine that reported last is the one of the server"
}

// Proof is what operation prove has the inventory remember. The second return says why it has not; empty where it has.
func Proof(in Input) (policyv1alpha1.SettledIdentity, string) {
	notes := in.Server.Annotations
	s := policyv1alpha1.SettledIdentity{By: notes[v1alpha1.OperationByAnnotation],
		Reason: notes[v1alpha1.OperationReasonAnnotation], At: metav1.NewMicroTime(in.Now)}
	switch {
	case strings.TrimSpace(s.Reason) == "":
		return s, "say how the machine is known, in annotation " + v1alpha1.OperationReasonAnnotation
	case s.By == "":
		return s, "who asks is not known, because the admission webhook was not asked"
	}
	return s, ""
}
