// SPDX-License-Identifier: Apache-2.0

// Package status decides what the status of a BMC says.
package status

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/bmc/reset"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/redfish"
)

// Input is what one reconcile knows of a BMC.
type Input struct {
	Former     v1alpha1.BMCStatus
	Generation int64
	Now        time.Time
	// IP and MACAddress are where the BMC is.
	IP, MACAddress string
	Answer         Answer
	// TakeOverAfter is how long a BMC must be unreachable before another may take its Servers over.
	TakeOverAfter time.Duration
	// Systems is what the condition SystemsAccepted says of a usable BMC.
	Systems Systems
	Reset   Reset
}

// Answer is what the BMC answered when it was asked last.
type Answer struct {
	// Settled says that the BMC was asked, or cannot be asked; else the former status stands.
	Settled bool
	// Usable says that it answered and is the one that is meant; Trouble says why not.
	Usable  bool
	Trouble Trouble
	// Silent says that it gave no answer of any kind, where SilenceKnown.
	Silent, SilenceKnown bool
	// Refused is the certificate that was refused; nil for none. PinnedOrOwned says that one was pinned, or that the BMC has
	// Servers.
	Refused       *redfish.CertificateError
	PinnedOrOwned bool
	Manager       redfish.ManagerSnapshot
}

// Trouble is why a BMC cannot be used. It is no News where the BMC was not even asked.
type Trouble struct {
	Reason, Message string
	News            bool
}

// Systems is what the condition SystemsAccepted says.
type Systems struct {
	Accepted        bool
	Reason, Message string
	// Refused says that a Server could not be made or changed, so that the BMC is not Ready although it answers.
	Refused bool
}

// Reset is what this reconcile adds to the condition Reset, and what may end a reset.
type Reset struct {
	// RequestedAt is when a new reset is recorded, and Failed why one failed; empty for none.
	RequestedAt time.Time
	Failed      string
	// Current is what may end the reset under way; its Since is that of the condition.
	Current reset.Current
}

// draft is a status that is being written.
type draft struct {
	v1alpha1.BMCStatus
	in Input
}

// Decide returns the status that a BMC is to have.
func Decide(in Input) v1alpha1.BMCStatus {
	d := &draft{BMCStatus: *in.Former.DeepCopy(), in: in}
	if in.Answer.Settled {
		d.ObservedGeneration = in.Generation
		d.IP, d.MACAddress = in.IP, in.MACAddress
		d.ready()
		d.unreachable()
		d.certificate()
		if in.Answer.Usable {
			d.manager()
			d.set(v1alpha1.ConditionSystemsAccepted, in.Systems.Accepted, in.Systems.Reason, in.Systems.Message)
		}
	}
	d.reset()
	return d.BMCStatus
}

// ready says whether the BMC can be used. Where it was not even asked, the former message says more.
func (d *draft) ready() {
	if d.in.Answer.Usable {
		d.State = v1alpha1.BMCStateEnabled
		if d.in.Systems.Refused {
			d.set(v1alpha1.ConditionReady, false, d.in.Systems.Reason, d.in.Systems.Message)
			return
		}
		d.set(v1alpha1.ConditionReady, true, v1alpha1.ReasonConnected,
			fmt.Sprintf("the BMC at %s answers and accepts the credentials", d.in.IP))
		return
	}
	d.State = v1alpha1.BMCStateError
	trouble := d.in.Answer.Trouble
	message := trouble.Message + certificateAdvice(d.in.Answer.Refused)
	was := meta.FindStatusCondition(d.Conditions, v1alpha1.ConditionReady)
	if !trouble.News && was != nil && was.Status == metav1.ConditionFalse && was.Reason == trouble.Reason {
		message = was.Message
	}
	d.set(v1alpha1.ConditionReady, false, trouble.Reason, message)
}

// certificateAdvice says how to trust the certificate that was refused.
func certificateAdvice(refused *redfish.CertificateError) string {
	if refused == nil || refused.Shown == "" {
		return ""
	}
	return "; if that certificate is the BMC's own, set the annotation " + v1alpha1.AcceptCertificateAnnotation + " to its fingerprint"
}

// unreachable keeps the moment since when the BMC has given no answer, whatever else was wrong with it before. The
// condition Ready cannot: it is False for other reasons as well, and keeps the time of the first.
func (d *draft) unreachable() {
	switch {
	case !d.in.Answer.SilenceKnown:
	case d.in.Answer.Silent:
		d.set(v1alpha1.ConditionUnreachable, true, v1alpha1.ReasonConnectionFailed, fmt.Sprintf("the BMC gives no answer of any kind; "+
			"once that has lasted %s, another BMC that shows its systems may take its Servers over", d.in.TakeOverAfter))
	default:
		meta.RemoveStatusCondition(&d.Conditions, v1alpha1.ConditionUnreachable)
	}
}

// certificate says that a BMC which was reached before shows another certificate. A BMC that was never reached has none
// to change, and its condition Ready says what to do.
func (d *draft) certificate() {
	refused := d.in.Answer.Refused
	switch {
	case refused != nil && (refused.Trusted != "" || d.in.Answer.PinnedOrOwned || ReachedBefore(d.BMCStatus)):
		shown := refused.Shown
		if shown == "" {
			shown = "none"
		}
		d.set(v1alpha1.ConditionCertificateChanged, true, v1alpha1.ReasonOtherCertificate, fmt.Sprintf(
			"the BMC shows a certificate that is not trusted, SHA-256 %s; no password is sent; check who answers there, "+
				"then set the annotation %s to that fingerprint", shown, v1alpha1.AcceptCertificateAnnotation))
	case d.in.Answer.Usable && meta.FindStatusCondition(d.Conditions, v1alpha1.ConditionCertificateChanged) != nil:
		d.set(v1alpha1.ConditionCertificateChanged, false, v1alpha1.ReasonTrustedCertificate, "the BMC shows a trusted certificate")
	}
}

// ReachedBefore says that a status shows that the BMC was reached. It asks every field that can show it: a pin that was
// lost must not make the next certificate the first.
func ReachedBefore(s v1alpha1.BMCStatus) bool {
	return s.FirmwareVersion != "" || s.Manufacturer != "" || s.Model != "" || s.SerialNumber != "" ||
		s.State == v1alpha1.BMCStateEnabled || meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady)
}

func (d *draft) manager() {
	m := d.in.Answer.Manager
	d.Manufacturer, d.Model, d.SKU = m.Manufacturer, m.Model, m.SKU
	d.SerialNumber, d.FirmwareVersion = m.SerialNumber, m.FirmwareVersion
	d.PowerState = v1alpha1.BMCPowerState(m.Power)
	d.LastResetTime = nil
	if !m.LastResetTime.IsZero() {
		at := metav1.NewTime(m.LastResetTime.Truncate(time.Second))
		d.LastResetTime = &at
	}
}

// reset records a new reset or its failure, and ends one once the BMC answers again.
func (d *draft) reset() {
	r := d.in.Reset
	if !r.RequestedAt.IsZero() {
		d.setReset(true, v1alpha1.ReasonUserRequested, reset.Requested, r.RequestedAt)
	}
	if r.Failed != "" {
		d.setReset(false, v1alpha1.ReasonResetFailed, r.Failed, d.in.Now)
	}
	underWay := reset.UnderWay(d.Conditions)
	if underWay == nil {
		return
	}
	current := r.Current
	current.Since = underWay.LastTransitionTime.Time
	reason, message := reset.End(current)
	if reason == "" {
		d.State = v1alpha1.BMCStatePending
		return
	}
	d.setReset(false, reason, message, d.in.Now)
}

func (d *draft) setReset(holds bool, reason, message string, at time.Time) {
	d.put(holds, at.Truncate(time.Second), metav1.Condition{Type: v1alpha1.ConditionReset, Reason: reason, Message: message})
}

func (d *draft) set(kind string, holds bool, reason, message string) {
	d.put(holds, d.in.Now, metav1.Condition{Type: kind, Reason: reason, Message: loop.Shortened(message, loop.MaxMessage)})
}

// put stores a condition. The time counts where the status of the condition changes; without one, meta reads the clock.
func (d *draft) put(holds bool, at time.Time, c metav1.Condition) {
	c.Status, c.ObservedGeneration, c.LastTransitionTime = metav1.ConditionFalse, d.in.Generation, metav1.NewTime(at)
	if holds {
		c.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&d.Conditions, c)
}
