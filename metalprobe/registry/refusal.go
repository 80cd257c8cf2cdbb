// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// Outcome is how a request ended: the label of the metric and the cause in the Event.
type Outcome string

const (
	// OutcomeAccepted was stored, or answered.
	OutcomeAccepted Outcome = "Accepted"
	// OutcomeUnchanged said nothing new and was not stored again.
	OutcomeUnchanged Outcome = "Unchanged"
	// OutcomeUnauthorized showed no token, or one that is not this server's of this entry.
	OutcomeUnauthorized Outcome = "Unauthorized"
	// OutcomeWrongPurpose showed a token that was minted for another purpose.
	OutcomeWrongPurpose Outcome = "WrongPurpose"
	// OutcomeOldEntry showed a token of an entry that the server has left.
	OutcomeOldEntry Outcome = "OldEntry"
	// OutcomeNotExpected does not fit what is recorded of the server.
	OutcomeNotExpected Outcome = "NotExpected"
	// OutcomeNotFound asked for what is not there.
	OutcomeNotFound Outcome = "NotFound"
	// OutcomeTooLarge sent more than the registry reads.
	OutcomeTooLarge Outcome = "TooLarge"
	// OutcomeInvalid sent what cannot be understood or is out of bounds.
	OutcomeInvalid Outcome = "Invalid"
	// OutcomeLimited came from a source that sends too much, or at a time when too much was going on.
	OutcomeLimited Outcome = "Limited"
	// OutcomeHeld may not be done for now: a freeze, the breaker or observe-only holds the wipe back.
	OutcomeHeld Outcome = "Held"
	// OutcomeNotYetShownOn came for a machine that its BMC has not shown on since its entry began, as at many a boot.
	OutcomeNotYetShownOn Outcome = "NotYetShownOn"
	// OutcomeNotShownOn came for such a machine, for which reports have come for minutes.
	OutcomeNotShownOn Outcome = "NotShownOn"
	// OutcomePolicyUnknown showed no token, while the policy that governs the server cannot be asked whether it needs one.
	OutcomePolicyUnknown Outcome = "PolicyUnknown"
	// OutcomeKeyConflict showed another key than the agent to whose key the entry is bound.
	OutcomeKeyConflict Outcome = "KeyConflict"
	// OutcomeVoided belongs to an entry that such a conflict voided.
	OutcomeVoided Outcome = "Voided"
	// OutcomeNotRecorded ended a wipe whose record cannot be kept now.
	OutcomeNotRecorded Outcome = "NotRecorded"
	// OutcomeAwaitsBMC ended a wipe that waits for the drives that the BMC lists.
	OutcomeAwaitsBMC Outcome = "AwaitsBMC"
	// OutcomeFailed could not be served for a reason of ours.
	OutcomeFailed Outcome = "Failed"
)

// refusal is an answer that is not what was asked for. It is an error only on the registry's own side.
type refusal struct {
	status  int
	outcome Outcome
	message string
	remedy  string
	// retryAfter is when to ask again; zero where the answer does not say.
	retryAfter time.Duration
	// server is whom it concerns, where that is known; it gets an Event.
	server *metalv1alpha1.Server
	// err is the cause on our side, logged and not told.
	err error
}

// about names the server that a refusal concerns.
func (f *refusal) about(server *metalv1alpha1.Server) *refusal {
	if f != nil && f.server == nil {
		f.server = server
	}
	return f
}

// unauthorized is the same in every case, so that it does not tell whether a server exists.
func unauthorized(server *metalv1alpha1.Server) *refusal {
	return &refusal{
		status: http.StatusUnauthorized, outcome: OutcomeUnauthorized, server: server,
		message: "no valid credential for this server",
		remedy:  "use the token of the server's present boot configuration; if it was booted long ago, let the manager boot it again",
	}
}

func oldEntry(server *metalv1alpha1.Server) *refusal {
	return &refusal{
		status: http.StatusConflict, outcome: OutcomeOldEntry, server: server,
		message: "the credential belongs to an earlier entry of this server's lifecycle",
		remedy:  "stop; the manager boots the server again when it wants a new report",
	}
}

func notExpected(message, remedy string) *refusal {
	return &refusal{status: http.StatusConflict, outcome: OutcomeNotExpected, message: message, remedy: remedy}
}

// shownRetry is when to ask again whether the machine was seen on: about as often as the manager looks.
const shownRetry = 5 * time.Second

func notShownOn(outcome Outcome) *refusal {
	return &refusal{
		status: http.StatusServiceUnavailable, outcome: outcome, retryAfter: shownRetry,
		message: "the BMC has not shown this machine on since the present entry of its lifecycle began",
		remedy:  "ask again; if the machine runs and it stays so, see what its BMC says of its power, and whether a manager leads",
	}
}

// policyRetry is when to ask again whether the policy that governs a server can be asked: a test of it takes seconds.
const policyRetry = 10 * time.Second

func policyUnknown(err error) *refusal {
	return &refusal{
		status: http.StatusServiceUnavailable, outcome: OutcomePolicyUnknown, retryAfter: policyRetry, err: err,
		message: "the policy that governs this server cannot be asked whether it takes a report without a token",
		remedy:  "ask again; if it stays so, see the server's status.lifecycle.revision and that PolicyRevision",
	}
}

func invalid(err error) *refusal {
	return &refusal{
		status: http.StatusUnprocessableEntity, outcome: OutcomeInvalid,
		message: err.Error(), remedy: "send what the contract of the probe registry describes",
	}
}

func notFound(message string) *refusal {
	return &refusal{status: http.StatusNotFound, outcome: OutcomeNotFound, message: message}
}

func failed(err error) *refusal {
	return &refusal{
		status: http.StatusInternalServerError, outcome: OutcomeFailed, err: err,
		message: "the registry could not store or read it", remedy: "try again; the manager's log has the cause",
	}
}

const (
	// eventPause is how long the same cause on the same server is told only once.
	eventPause = 5 * time.Minute
	// maxEventKeys bounds what is remembered of Events.
	maxEventKeys = 8192
	// maxFormer bounds how many tokens are remembered that were good.
	maxFormer = 8192
)

// recordEvent tells each cause on each server once in a while.
func (r *Registry) recordEvent(f *refusal, endpoint string) {
	if r.options.Recorder == nil || f.server == nil || !r.refused.Due(f.server.Name+"/"+string(f.outcome), r.options.Now()) {
		return
	}
	message := f.message
	if len(message) > 512 {
		message = message[:512] + "..."
	}
	if f.outcome == OutcomeKeyConflict {
		r.options.Recorder.Eventf(f.server, nil, corev1.EventTypeWarning, ReasonAgentKeyConflict, "Report",
			"%s: %s. No agent is believed in this entry any more. Find out who else has its credential, then retry the server.", endpoint, message)
		return
	}
	r.options.Recorder.Eventf(f.server, nil, corev1.EventTypeWarning, ReasonReportRefused, "Report",
		"%s %s: %s. Nothing was changed.", f.outcome, endpoint, message)
}
