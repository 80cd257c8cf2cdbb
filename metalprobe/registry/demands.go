// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/drives"
	"github.com/metalaw/metalaw/internal/hidden"
)

// Demands is what the policy that governs a server asks of the end of a wipe.
type Demands struct {
	// FailHidden fails a wipe for storage that no disk shows and that nothing excuses.
	FailHidden bool
	// EraseRemovable asks for removable media that are not the BMC's as for fixed disks.
	EraseRemovable bool
	// Excused are the names in wipe.excused.
	Excused []string
}

const (
	// withheldPatience is how long it waits for a BMC that listed drives before and does not now, where hidden storage
	// fails a wipe.
	withheldPatience = 20 * time.Minute
	// listRetry is when an agent reports the end of a wipe again that waits for the BMC.
	listRetry = 5 * time.Second
)

// demands asks the policy. An error means that it cannot be asked now.
func demands(ask func(*metalv1alpha1.Server) (Demands, error), server *metalv1alpha1.Server) (Demands, *refusal) {
	if ask == nil {
		return Demands{}, nil
	}
	asked, err := ask(server)
	if err != nil {
		f := policyUnknown(err).about(server)
		f.message = "the policy that governs this server cannot be asked what it demands of a wipe"
		return Demands{}, f
	}
	return asked, nil
}

// demandsOf asks the policy for what a report needs. Where it cannot be asked, hidden storage is taken to count; only
// a report of a removable medium has to come again, because the medium is remembered or not.
func demandsOf(
	ask func(*metalv1alpha1.Server) (Demands, error), server *metalv1alpha1.Server, data *policyv1alpha1.ProbeData,
) (Demands, *refusal) {
	asks, refused := demands(ask, server)
	medium := func(d policyv1alpha1.BlockDevice) bool { return d.RemovableMedium() }
	switch {
	case refused == nil:
		return asks, nil
	case slices.ContainsFunc(data.Storage, medium):
		return Demands{}, refused
	}
	return Demands{FailHidden: true}, nil
}

func hasBMC(server *metalv1alpha1.Server) bool {
	return server.Spec.BMCRef != nil || server.Spec.BMC != nil
}

// awaitsBMC is the answer to the end of a wipe that waits for the drives that the BMC lists. Each wipe gets it, so it
// is worth no Event.
func awaitsBMC() *refusal {
	return &refusal{
		status: http.StatusServiceUnavailable, outcome: OutcomeAwaitsBMC, retryAfter: listRetry,
		message: "the end of this wipe waits until the manager has read which drives the BMC lists",
		remedy:  "report the end of the wipe again; if it stays so, see the server's condition BMCReachable",
	}
}

// listed says how the list of the BMC stands when the end of a wipe is judged.
type listed int

const (
	// listKnown is read anew, or there is none to read.
	listKnown listed = iota
	// listAwaited is being read.
	listAwaited
	// listUnknown could not be read in time.
	listUnknown
	// listWithheld could not be read although the BMC listed drives before, and the policy asks for it.
	listWithheld
)

// bmcList says whether the end of a wipe has to wait for the BMC. The reading that counts is of this entry, and was
// begun after the registry first heard of the end.
func bmcList(stored *policyv1alpha1.ServerInventory, g grant, asks Demands, now time.Time) listed {
	if !hasBMC(g.server) {
		return listKnown
	}
	if !wanted(stored, g) {
		return listAwaited
	}
	since := now.Sub(stored.BMCStorageWanted.Time)
	withheld := asks.FailHidden && drives.Withheld(stored.BMCStorage) != ""
	switch {
	case drives.Settled(stored.BMCStorage, g.entry, stored.BMCStorageWanted) && !withheld:
		return listKnown
	case withheld && since >= withheldPatience:
		return listWithheld
	case withheld, since < hidden.ListPatience:
		return listAwaited
	}
	return listUnknown
}

// wanted says that a reading was asked for since the wipe of this entry began.
func wanted(stored *policyv1alpha1.ServerInventory, g grant) bool {
	w := stored.Wipe
	return stored.BMCStorageWanted != nil && w != nil && w.Entry == g.entry && !stored.BMCStorageWanted.Before(&w.StartedAt)
}

// want asks for a reading once in the wipe of an entry, and keeps the wipe from looking silent.
func want(g grant, now time.Time) func(*policyv1alpha1.ServerInventory) *refusal {
	return func(stored *policyv1alpha1.ServerInventory) *refusal {
		at := metav1.NewMicroTime(now)
		switch w := stored.Wipe; {
		case w == nil || w.Entry != g.entry:
			stored.Wipe = &policyv1alpha1.WipeReport{Entry: g.entry, State: policyv1alpha1.WipeRunning, StartedAt: at, UpdatedAt: at}
		case w.State == policyv1alpha1.WipeRunning:
			w.UpdatedAt = at
		}
		if !wanted(stored, g) {
			stored.BMCStorageWanted = &at
		}
		return nil
	}
}

// findings is the hidden storage of a machine whose wipe ended: what its agent says, and what the BMC lists besides.
func findings(stored *policyv1alpha1.ServerInventory, wipe *policyv1alpha1.WipeReport, asks Demands) hidden.Findings {
	in := hidden.Input{Agent: wipe.Hidden, Excused: asks.Excused}
	if report := stored.Report; report != nil && report.Entry == wipe.Entry {
		for i := range report.Data.Storage {
			in.Disks = append(in.Disks, report.Data.Storage[i].RememberedDisk())
		}
	}
	in.Disks = append(in.Disks, policyv1alpha1.Besides(asRemembered(wipe.Disks), in.Disks)...)
	in.Disks = append(in.Disks, policyv1alpha1.Besides(leftAlone(wipe.Skipped), in.Disks)...)
	if stored.BMCStorage != nil && stored.BMCStorage.Entry == wipe.Entry {
		in.Storage = stored.BMCStorage
	}
	if stored.Custody != nil {
		in.Attested = stored.Custody.AttestedHidden
	}
	return hidden.Judge(in)
}

// leftAlone are the disks that a wipe saw and did not erase.
func leftAlone(skipped []policyv1alpha1.SkippedDisk) []policyv1alpha1.CustodyDisk {
	disks := make([]policyv1alpha1.CustodyDisk, len(skipped))
	for i := range skipped {
		disks[i] = policyv1alpha1.CustodyDisk{Name: skipped[i].Name, Serial: skipped[i].Serial, WWID: skipped[i].WWID}
	}
	return disks
}

// tellHidden puts what is known of hidden storage into the end of a wipe, for its record.
func tellHidden(stored *policyv1alpha1.ServerInventory, g grant, wipe *policyv1alpha1.WipeReport, found hidden.Findings, list listed) {
	wipe.Hidden, wipe.UnseenDrives = found.All, found.Covered
	if !hasBMC(g.server) {
		return
	}
	wipe.BMCStorage = policyv1alpha1.BMCStorageUnread
	if list == listKnown {
		wipe.BMCStorage = stored.BMCStorage.State
	}
}

// failHidden has a wipe fail for hidden storage, where the policy asks for that.
func failHidden(stored *policyv1alpha1.ServerInventory, wipe *policyv1alpha1.WipeReport, open []policyv1alpha1.HiddenStorage, list listed) {
	switch {
	case len(open) > 0:
		wipe.Message = hidden.Failure(open)
	case list == listWithheld:
		wipe.Message = drives.Withheld(stored.BMCStorage)
	default:
		return
	}
	wipe.State, wipe.FailedForHidden = policyv1alpha1.WipeFailed, true
}

// excusedOnly says that a verified wipe saw disks, and that the policy excuses each of them: it erased nothing.
func excusedOnly(wipe *policyv1alpha1.WipeReport) bool {
	return len(wipe.Disks) == 0 && slices.ContainsFunc(wipe.Skipped, func(d policyv1alpha1.SkippedDisk) bool { return d.Excused })
}
