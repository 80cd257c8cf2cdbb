// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/machineid"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/internal/uuids"
)

// OutcomeAnotherMachine came from a machine that is not the one of the server, although it shows the UUID and the
// token.
const OutcomeAnotherMachine Outcome = "AnotherMachine"

// OutcomeIdentityUnproven came from a machine of which nothing proves that it is the one of the server, and the
// policy asks for proof.
const OutcomeIdentityUnproven Outcome = "IdentityUnproven"

// howToProve says what settles the identity of a machine.
const howToProve = "see that its BMC shows a serial number or an address of the machine, or answer for it: " +
	"metalaw server prove NAME"

// machines judges whether an agent runs on the machine that it names.
type machines struct{ Options }

// judged holds what an agent reports against what is known of the machine. The others are looked up in the cache.
func (m machines) judged(
	ctx context.Context, uuid string, identity *policyv1alpha1.MachineIdentity, report policyv1alpha1.ReportedIdentity,
) (machineid.Verdict, error) {
	others, err := m.others(ctx, uuid, report)
	if err != nil {
		return machineid.Verdict{}, err
	}
	others = append(others, machineid.Rivals(identity)...)
	return machineid.Judge(machineid.Input{Identity: identity, Report: report, Others: others}), nil
}

// others are the machines with a Server that share a serial number or an address with a report.
func (m machines) others(
	ctx context.Context, uuid string, report policyv1alpha1.ReportedIdentity,
) ([]machineid.Other, error) {
	var found []machineid.Other
	seen := map[string]bool{}
	for _, key := range machineid.Keys(report) {
		var list policyv1alpha1.ServerInventoryList
		by := client.MatchingFields{fieldindex.InventoryByMachine: key}
		err := m.Reader.List(ctx, &list, by, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("finding the machines with %s: %w", key, err)
		}
		for i := range list.Items {
			other := &list.Items[i]
			if seen[other.Name] || uuids.Same(other.Spec.SystemUUID, uuid) {
				continue
			}
			seen[other.Name] = true
			name, err := m.serverOf(ctx, other.Spec.SystemUUID)
			if err != nil {
				return nil, err
			}
			if name != "" {
				found = append(found, machineid.OtherOf("Server "+name, other))
			}
		}
	}
	return found, nil
}

// serverOf names a Server of a machine; empty where there is none.
func (m machines) serverOf(ctx context.Context, uuid string) (string, error) {
	for _, form := range uuids.Spellings(uuid) {
		var list metalv1alpha1.ServerList
		by := client.MatchingFields{fieldindex.ServerBySystemUUID: form}
		if err := m.Reader.List(ctx, &list, by, client.UnsafeDisableDeepCopy); err != nil {
			return "", fmt.Errorf("finding the server with system UUID %s: %w", form, err)
		}
		if len(list.Items) > 0 {
			return list.Items[0].Name, nil
		}
	}
	return "", nil
}

// identify refuses a report that contradicts what is known of the machine, before anything of it is stored. Nothing
// of another machine may fill the inventory under any policy.
func (m machines) identify(ctx context.Context, g grant, data *policyv1alpha1.ProbeData) (machineid.Verdict, *refusal) {
	report := machineid.Reported(data)
	var stored *policyv1alpha1.ServerInventory
	var verdict machineid.Verdict
	if len(machineid.Keys(report)) == 0 {
		return machineid.Judge(machineid.Input{Report: report}), nil // it can neither agree nor contradict
	}
	for _, from := range []client.Reader{m.Reader, m.Live} { // the cache may not show what the BMC showed yet
		var err error
		if stored, err = inventory(ctx, from, g.server.Spec.SystemUUID); err != nil {
			return verdict, failed(err)
		}
		if verdict, err = m.judged(ctx, g.server.Spec.SystemUUID, identityOf(stored), report); err != nil {
			return verdict, failed(err)
		}
		if verdict.Proves() {
			return verdict, nil
		}
	}
	if verdict.Kind != machineid.Contradicts {
		return verdict, nil
	}
	if err := m.noteRefused(ctx, g, stored, report, verdict.Reason); err != nil {
		return verdict, failed(err)
	}
	return verdict, anotherMachine(verdict.Reason).about(g.server)
}

func identityOf(stored *policyv1alpha1.ServerInventory) *policyv1alpha1.MachineIdentity {
	if stored == nil {
		return nil
	}
	return stored.Identity
}

func anotherMachine(why string) *refusal {
	return &refusal{status: http.StatusForbidden, outcome: OutcomeAnotherMachine,
		message: "this is another machine than that of the server: " + why,
		remedy:  "erase nothing. If hardware of the server was replaced, answer for it: metalaw server prove NAME"}
}

// noteRefused keeps why a report was refused, for the condition of the server. It takes the entry from the key of the
// agent that was refused: the machine of the server shows another one. If another program wrote meanwhile, the next
// report is noted again.
func (m machines) noteRefused(
	ctx context.Context, g grant, stored *policyv1alpha1.ServerInventory, report policyv1alpha1.ReportedIdentity,
	why string,
) error {
	if stored == nil {
		return nil // nothing is known that it could contradict, but what other machines show
	}
	before := stored.DeepCopy()
	noteContradiction(stored, g, report, why, m.Now())
	if equality.Semantic.DeepEqual(before, stored) {
		return nil
	}
	err := m.Writer.Patch(ctx, stored, mergepatch.Locked(before))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func noteContradiction(
	stored *policyv1alpha1.ServerInventory, g grant, report policyv1alpha1.ReportedIdentity, why string, now time.Time,
) {
	if stored.Identity == nil {
		stored.Identity = &policyv1alpha1.MachineIdentity{}
	}
	why = fmt.Sprintf("%.1000s", why)
	if former := stored.Identity.Refused; former == nil || former.Entry != g.entry || former.Reason != why {
		stored.Identity.Refused = &policyv1alpha1.RefusedIdentity{ReportedIdentity: report, Entry: g.entry, Reason: why,
			At: metav1.NewMicroTime(now)}
	}
	if e := stored.Enrolment; e != nil && e.Entry == g.entry && !e.Voided && !g.unauthenticated && e.KeyHash == g.keyHash &&
		!reportedIn(stored, g) {
		stored.Enrolment = nil
	}
}

// reportedIn says that a report of the entry is stored, which showed a token.
func reportedIn(stored *policyv1alpha1.ServerInventory, g grant) bool {
	return stored != nil && stored.Report != nil && stored.Report.Entry == g.entry && !stored.Report.Unauthenticated
}

// showedKey says that the agent which reported in the entry is the one that asks.
func showedKey(stored *policyv1alpha1.ServerInventory, g grant) bool {
	e := stored.Enrolment
	return e == nil || e.Entry != g.entry || e.KeyHash == g.keyHash
}

// storeIdentity stores what a report proves beside the report.
func storeIdentity(
	stored *policyv1alpha1.ServerInventory, g grant, report policyv1alpha1.ReportedIdentity, verdict machineid.Verdict,
	now time.Time,
) {
	if stored.Report == nil || stored.Report.Entry != g.entry {
		return
	}
	stored.Report.Identity = judgement(verdict)
	if !verdict.Proves() && (stored.Identity == nil || stored.Identity.BMC == nil) {
		stored.Report.Identity = nil // nothing is known that it could be held against
	}
	if !verdict.Proves() || g.unauthenticated {
		return
	}
	stored.Identity = machineid.Passed(stored.Identity, report, verdict, now)
}

func judgement(verdict machineid.Verdict) *policyv1alpha1.JudgedIdentity {
	judged := &policyv1alpha1.JudgedIdentity{Verdict: policyv1alpha1.IdentityUnproven,
		Reason: fmt.Sprintf("%.1000s", verdict.Reason)}
	if verdict.Proves() {
		judged.Verdict = policyv1alpha1.IdentityProved
	}
	return judged
}

// mayErase judges the machine that asks for a disk by its report of this entry. A contradiction is refused whatever
// the policy says. Unproven says why nothing proves the machine, where the policy asks for proof.
func (m machines) mayErase(
	ctx context.Context, g grant, stored *policyv1alpha1.ServerInventory,
) (unproven string, _ *refusal) {
	verdict := machineid.Verdict{Reason: "the agent has not reported its machine in this entry"}
	if reportedIn(stored, g) && showedKey(stored, g) {
		report := machineid.Reported(&stored.Report.Data)
		var err error
		if verdict, err = m.judged(ctx, g.server.Spec.SystemUUID, stored.Identity, report); err != nil {
			return "", failed(err)
		}
		if verdict.Kind == machineid.Contradicts {
			if err := m.noteRefused(ctx, g, stored, report, verdict.Reason); err != nil {
				return "", failed(err)
			}
			return "", anotherMachine(verdict.Reason)
		}
	}
	if verdict.Proves() || m.IdentityRequired == nil {
		return "", nil
	}
	required, err := m.IdentityRequired(g.server)
	switch {
	case err != nil:
		return "", policyUnknown(err)
	case !required:
		return "", nil
	}
	return verdict.Reason, nil
}

// proveMachine refuses a machine that is not that of the server, or of which nothing proves it where the policy asks
// for proof; then the wipe has failed.
func proveMachine(ctx context.Context, r *Registry, g grant, stored *policyv1alpha1.ServerInventory) *refusal {
	unproven, refused := machines{r.options}.mayErase(ctx, g, stored)
	if refused != nil || unproven == "" {
		return refused
	}
	if _, refused = r.settle(ctx, g, unprovenWipe(g, unproven, r.options.Now()), basis{read: stored}); refused != nil {
		return refused
	}
	return notProved(unproven)
}

// unprovenWipe ends the wipe of a machine that is not proved, so that its server says what to do. No disk of it was
// permitted.
func unprovenWipe(g grant, why string, now time.Time) func(*policyv1alpha1.ServerInventory) *refusal {
	return func(stored *policyv1alpha1.ServerInventory) *refusal {
		if settled(stored.Wipe, g.entry) {
			return nil
		}
		at := metav1.NewMicroTime(now)
		if stored.Wipe == nil || stored.Wipe.Entry != g.entry {
			stored.Wipe = &policyv1alpha1.WipeReport{Entry: g.entry, StartedAt: at}
		}
		stored.Wipe.State, stored.Wipe.UpdatedAt = policyv1alpha1.WipeFailed, at
		stored.Wipe.Message = fmt.Sprintf("IdentityUnproven: %.700s. No disk was erased: %s, and retry", why, howToProve)
		for i := range stored.Wipe.Disks {
			if d := &stored.Wipe.Disks[i]; d.State != policyv1alpha1.DiskVerified {
				d.State, d.Message = policyv1alpha1.DiskFailed, "not erased: the machine is not proved"
			}
		}
		return nil
	}
}

func notProved(why string) *refusal {
	return &refusal{status: http.StatusForbidden, outcome: OutcomeIdentityUnproven, message: why, remedy: howToProve}
}

// IdentityRequired says whether the policy that governs a server refuses disks of a machine that is not proved.
type IdentityRequired func(server *metalv1alpha1.Server) (bool, error)
