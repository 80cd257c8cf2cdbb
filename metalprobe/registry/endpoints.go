// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/machineid"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/metalprobe"
	"github.com/metalaw/metalaw/metalprobe/registry/hardware"
)

// Reasons of the condition BootStateReceived.
const (
	// ReasonBooted says that the server reported that its operating system is up.
	ReasonBooted = "Booted"
	// ReasonNotBooted says that the server reported that its operating system is not up.
	ReasonNotBooted = "NotBooted"
)

func accepted(status int, changed bool) *answer {
	outcome := OutcomeUnchanged
	if changed {
		outcome = OutcomeAccepted
	}
	return &answer{status: status, outcome: outcome, body: struct{}{}}
}

// register answers POST /register.
func (r *Registry) register(request *http.Request) (*answer, *refusal) {
	allow := r.options.AllowUnauthenticated
	var report metalprobe.Report
	if refused := read(request, allow, &report); refused != nil {
		return nil, refused
	}
	g, refused := r.authorize(request, report.SystemUUID, allow, false)
	if refused != nil {
		return nil, refused
	}
	if err := check(&report); err != nil {
		return nil, invalid(err).about(g.server)
	}
	if refused := r.running(g); refused != nil {
		return nil, refused
	}
	data, err := apiData(report.Data)
	if err != nil {
		return nil, invalid(err).about(g.server)
	}
	for i := range data.Hidden {
		data.Hidden[i].Source, data.Hidden[i].ExcusedBy = policyv1alpha1.HiddenByAgent, ""
	}
	asks, refused := demandsOf(r.options.Demands, g.server, &data)
	if refused != nil {
		return nil, refused
	}
	verdict, refused := machines{r.options}.identify(request.Context(), g, &data)
	if refused != nil {
		return nil, refused.about(g.server)
	}
	reported := machineid.Reported(&data)
	keep := storeReport(g, &report, data, asks, r.options.Now())
	var differences []policyv1alpha1.HardwareDifference
	changed, refused := r.update(request.Context(), g, func(stored *policyv1alpha1.ServerInventory) *refusal {
		before := stored.Differences
		refused := keep(stored)
		if refused == nil {
			storeIdentity(stored, g, reported, verdict, r.options.Now())
		}
		differences = nil
		if !equality.Semantic.DeepEqual(before, stored.Differences) {
			differences = stored.Differences
		}
		return refused
	})
	if refused != nil {
		return nil, refused.about(g.server)
	}
	if changed && len(differences) > 0 {
		tellDifferences(r.options.Recorder, g.server, differences)
	}
	return accepted(http.StatusCreated, changed), nil
}

// tellDifferences tells an operator what became of the parts of a machine.
func tellDifferences(to events.EventRecorder, server *metalv1alpha1.Server, differences []policyv1alpha1.HardwareDifference) {
	if to != nil {
		to.Eventf(server, nil, corev1.EventTypeWarning, ReasonHardwareChanged, "Report",
			"The machine reports other hardware than before: %s. The differences of its ServerInventory list all.", hardware.Words(differences))
	}
}

// system answers GET /systems/{uuid} with the data that the server reported last.
func (r *Registry) system(request *http.Request) (*answer, *refusal) {
	g, refused := r.authorize(request, request.PathValue("uuid"), nil, false)
	if refused != nil {
		return nil, refused
	}
	stored, err := inventory(request.Context(), r.options.Live, g.server.Spec.SystemUUID) // the cache holds less of a report
	if err != nil {
		return nil, failed(err)
	}
	if refused := r.enrolledIn(request.Context(), g, stored); refused != nil {
		return nil, refused
	}
	if stored == nil || stored.Report == nil {
		return nil, notFound("this server has not reported")
	}
	return &answer{status: http.StatusOK, outcome: OutcomeAccepted, body: stored.Report.Data}, nil
}

// remove answers DELETE /delete/{uuid}: it forgets the report. What guards data, the wipe and the custody, stays.
func (r *Registry) remove(request *http.Request) (*answer, *refusal) {
	g, refused := r.authorize(request, request.PathValue("uuid"), nil, false)
	if refused != nil {
		return nil, refused
	}
	if refused := r.running(g); refused != nil {
		return nil, refused
	}
	changed, refused := r.update(request.Context(), g, func(stored *policyv1alpha1.ServerInventory) *refusal {
		if stored.Report == nil {
			return notFound("this server has not reported")
		}
		stored.Report, stored.Previous, stored.Differences = nil, nil, nil
		return nil
	})
	if refused != nil {
		return nil, refused
	}
	return accepted(http.StatusOK, changed), nil
}

// bootState answers POST /bootstate.
func (r *Registry) bootState(request *http.Request) (*answer, *refusal) {
	allow := r.options.AllowUnauthenticatedBootState
	var report metalprobe.BootStateReport
	if refused := read(request, allow, &report); refused != nil {
		return nil, refused
	}
	g, refused := r.authorize(request, report.SystemUUID, allow, false)
	if refused != nil {
		return nil, refused
	}
	if refused := r.running(g); refused != nil {
		return nil, refused
	}
	changed, refused := r.setBooted(request.Context(), g.server, report.Booted)
	if refused != nil && refused.outcome == OutcomeNotExpected {
		// So a cache says, and the one who asked would take it for the last word.
		fresh := []metalv1alpha1.Server{*g.server}
		if err := r.refresh(request.Context(), fresh); err != nil {
			return nil, failed(err)
		}
		if l := fresh[0].Status.Lifecycle; l == nil || l.Entry != g.entry {
			return nil, oldEntry(g.server)
		}
		changed, refused = r.setBooted(request.Context(), &fresh[0], report.Booted)
	}
	if refused != nil {
		return nil, refused.about(g.server)
	}
	return accepted(http.StatusOK, changed), nil
}

// setBooted sets the one condition and leaves everything else of the status as it is: the patch carries the version
// that was read, so that a condition which somebody else set meanwhile is not lost. What a cache does not show yet is looked for once
// more in the API server before it is refused.
func (r *Registry) setBooted(ctx context.Context, server *metalv1alpha1.Server, booted bool) (changed bool, refused *refusal) {
	ref := server.Spec.BootConfigurationRef
	if ref == nil {
		return false, notExpected("no boot configuration is in force for this server", "wait for the manager to write one")
	}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	reader := r.options.Reader
	var last error
	for attempt := range writeAttempts {
		config, refused := bootConfigurationOf(ctx, reader, key, server.Name)
		if refused != nil && attempt == 0 {
			reader = r.options.Live
			config, refused = bootConfigurationOf(ctx, reader, key, server.Name)
		}
		if refused != nil {
			return false, refused
		}
		before := config.DeepCopy()
		if !meta.SetStatusCondition(&config.Status.Conditions, bootCondition(config.Generation, booted)) {
			return false, nil
		}
		err := r.options.Writer.Status().Patch(ctx, config, mergepatch.Locked(before))
		if err == nil {
			return true, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return false, failed(fmt.Errorf("writing the status of boot configuration %s: %w", key, err))
		}
		last, reader = err, r.options.Live
	}
	return false, failed(fmt.Errorf("writing the status of boot configuration %s: %w", key, last))
}

// bootConfigurationOf reads the boot configuration of a server.
func bootConfigurationOf(
	ctx context.Context, reader client.Reader, key client.ObjectKey, server string,
) (*metalv1alpha1.ServerBootConfiguration, *refusal) {
	var config metalv1alpha1.ServerBootConfiguration
	if err := reader.Get(ctx, key, &config); apierrors.IsNotFound(err) {
		return nil, notExpected(fmt.Sprintf("boot configuration %s does not exist", key), "wait for the manager to write one")
	} else if err != nil {
		return nil, failed(fmt.Errorf("reading boot configuration %s: %w", key, err))
	}
	if config.Spec.ServerRef.Name != server {
		return nil, notExpected(fmt.Sprintf("boot configuration %s belongs to another server", key), "wait for the manager to write one")
	}
	return &config, nil
}

func bootCondition(generation int64, booted bool) metav1.Condition {
	condition := metav1.Condition{
		Type: metalv1alpha1.ConditionBootStateReceived, Status: metav1.ConditionTrue, Reason: ReasonBooted,
		Message: "The server reported that its operating system is up.", ObservedGeneration: generation,
	}
	if !booted {
		condition.Status, condition.Reason = metav1.ConditionFalse, ReasonNotBooted
		condition.Message = "The server reported that its operating system is not up."
	}
	return condition
}
