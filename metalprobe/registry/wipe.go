// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
	"github.com/metalaw/metalaw/metalprobe/registry/record"
)

// wipeStatus answers GET /wipe/{uuid}: may the agent go on?
func (r *Registry) wipeStatus(request *http.Request) (*answer, *refusal) {
	g, refused := r.authorizeWipe(request, request.PathValue("uuid"))
	if refused != nil {
		return nil, refused
	}
	stored, err := inventory(request.Context(), r.options.Live, g.server.Spec.SystemUUID)
	if err != nil {
		return nil, failed(err)
	}
	if refused := r.enrolledIn(request.Context(), g, stored); refused != nil {
		return nil, refused
	}
	if stored != nil && settled(stored.Wipe, g.entry) {
		return nil, notExpected(fmt.Sprintf("the wipe of this entry is %s already", stored.Wipe.State), "erase nothing more").about(g.server)
	}
	if refused := r.held(request.Context(), g.server); refused != nil {
		return nil, refused
	}
	if refused := redone(request.Context(), r, g, stored); refused != nil {
		return nil, refused
	}
	status := metalprobe.WipeStatus{Current: true, Entry: g.entry}
	disk, asked, refused := askedDisk(request.URL.Query())
	switch {
	case refused != nil:
		return nil, refused.about(g.server)
	case !asked:
		status.Proved = proved(g, stored)
	default:
		if refused := proveMachine(request.Context(), r, g, stored); refused != nil {
			return nil, refused.about(g.server)
		}
		if status.RefusedDisk, err = r.ofAnother(request.Context(), g, disk); err != nil {
			return nil, failed(err)
		}
	}
	return &answer{status: http.StatusOK, outcome: OutcomeAccepted, body: status}, nil
}

// wipe answers POST /wipe.
func (r *Registry) wipe(request *http.Request) (*answer, *refusal) {
	var report metalprobe.WipeReport
	if refused := read(request, nil, &report); refused != nil {
		return nil, refused
	}
	g, refused := r.authorizeWipe(request, report.SystemUUID)
	if refused != nil {
		return nil, refused
	}
	if err := report.Validate(); err != nil {
		return nil, invalid(err).about(g.server)
	}
	var live basis
	if report.State == policyv1alpha1.WipeVerified { // a machine without disks asked for none
		stored, err := inventory(request.Context(), r.options.Live, g.server.Spec.SystemUUID)
		if err != nil {
			return nil, failed(err).about(g.server)
		}
		if stored != nil && !settled(stored.Wipe, g.entry) {
			if refused := proveMachine(request.Context(), r, g, stored); refused != nil {
				return nil, refused.about(g.server)
			}
		}
		live.read = stored
	}
	var changed bool
	if report.State == policyv1alpha1.WipeRunning {
		changed, refused = r.update(request.Context(), g, storeWipe(g, &report, Demands{}, r.options.Now()))
	} else {
		asks, unknown := demands(r.options.Demands, g.server)
		if unknown != nil {
			return nil, unknown
		}
		changed, refused = r.settle(request.Context(), g, storeWipe(g, &report, asks, r.options.Now()), live)
	}
	switch {
	case refused != nil && refused.outcome == OutcomeAwaitsBMC:
		return nil, refused
	case refused != nil:
		return nil, refused.about(g.server)
	}
	return accepted(http.StatusOK, changed), nil
}

// settled says that a wipe of this entry has ended. The outcome stays: a report that was under way when the outcome
// arrived must not undo it.
func settled(wipe *policyv1alpha1.WipeReport, entry int64) bool {
	return wipe != nil && wipe.Entry == entry && wipe.State != policyv1alpha1.WipeRunning
}

// storeWipe puts a wipe report into an inventory, or leaves it alone where it says nothing new. A running wipe is stored
// again though it says nothing new, because others take a silent one for ended.
func storeWipe(g grant, report *metalprobe.WipeReport, asks Demands, now time.Time) func(*policyv1alpha1.ServerInventory) *refusal {
	wipe := &policyv1alpha1.WipeReport{
		Entry:     g.entry,
		State:     report.State,
		StartedAt: metav1.NewMicroTime(now),
		UpdatedAt: metav1.NewMicroTime(now),
		Disks:     report.Disks,
		Skipped:   report.Skipped,
		Hidden:    report.Hidden,
		Message:   report.Message,

		HiddenKnown: report.HiddenKnown,
	}
	for i := range wipe.Hidden {
		wipe.Hidden[i].Source, wipe.Hidden[i].ExcusedBy = policyv1alpha1.HiddenByAgent, ""
	}
	return func(stored *policyv1alpha1.ServerInventory) *refusal {
		wipe := wipe.DeepCopy()
		for i := range wipe.Disks { // the term follows from the methods, whatever the agent says
			wipe.Disks[i].Term = record.Medium(wipe.Disks[i], stored.Report, g.entry).Term
		}
		former := stored.Wipe
		if former != nil && former.Entry != g.entry {
			former = nil
		}
		if settled(former, g.entry) && says(former, wipe) {
			return nil // said again, whatever is remembered of the machine since
		}
		if wipe.State != policyv1alpha1.WipeRunning {
			if refused := prove(stored, g, wipe, asks, now); refused != nil {
				return refused
			}
		}
		if former != nil {
			wipe.StartedAt = former.StartedAt
			switch age := now.Sub(former.UpdatedAt.Time); {
			case settled(former, g.entry) && says(former, wipe), says(former, wipe) && age >= 0 && age < wipeRefreshAfter:
				return nil
			case settled(former, g.entry):
				return notExpected(fmt.Sprintf("the wipe of this entry is %s already", former.State), "erase nothing more")
			}
		}
		stored.Wipe = wipe
		return nil
	}
}

// says is true where two reports differ in their times at most.
func says(former, wipe *policyv1alpha1.WipeReport) bool {
	return former.State == wipe.State && former.Message == wipe.Message &&
		equality.Semantic.DeepEqual(former.Disks, wipe.Disks) && equality.Semantic.DeepEqual(former.Skipped, wipe.Skipped)
}
