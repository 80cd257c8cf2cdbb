// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/bmc/reset"
	"github.com/metalaw/metalaw/controllers/bmc/status"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/redfish"
)

// observed is what one reconcile read about a BMC.
type observed struct {
	bmc       *v1alpha1.BMC
	now       time.Time
	location  access.Location
	target    hardware.Target
	targetErr *access.Error
	// name is what the cache knows the BMC by.
	name    string
	reading hardware.Reading[Reading]
	// owned are the Servers behind the BMC.
	owned []v1alpha1.Server
	// facts are about its systems, and certificate is what becomes of the trust in its certificate.
	facts       facts
	certificate certificate
	// sent is what this process knows of the reset under way.
	sent reset.Sent
}

// operation is what the operation annotation asks for; empty for nothing.
func (o *observed) operation() string { return o.bmc.Annotations[v1alpha1.OperationAnnotation] }

// usable says that the BMC answered, and is the one that is meant.
func (o *observed) usable() bool {
	return o.targetErr == nil && o.reading.Reachable() && o.mismatch() == ""
}

// mismatch says that another BMC than the one of spec.bmcUUID answers; empty where that is not so, or not said.
func (o *observed) mismatch() string {
	want, got := o.bmc.Spec.BMCUUID, o.reading.Value.Manager.UUID
	if want == "" || got == "" || isSystem(want, got) {
		return ""
	}
	return fmt.Sprintf("the BMC at %s has the UUID %s and not %s (spec.bmcUUID); check its address; nothing is done to it", o.location.IP, got, want)
}

// trouble says why the BMC cannot be used.
func (o *observed) trouble() status.Trouble {
	switch {
	case o.targetErr != nil:
		return status.Trouble{Reason: o.targetErr.Reason, Message: o.targetErr.Message, News: true}
	case o.reading.Err != nil:
		message, news := access.Describe(o.reading.Err)
		return status.Trouble{Reason: redfish.Reason(o.reading.Err), Message: message + access.Retry(o.reading.Err, o.bmc.Name), News: news}
	}
	return status.Trouble{Reason: v1alpha1.ReasonUnknownError, Message: o.mismatch(), News: true}
}

// silence says whether the BMC gave no answer of any kind. known is false where nothing new is known of that.
func (o *observed) silence() (silent, known bool) {
	switch {
	case o.targetErr != nil:
		return false, true // the manager does not ask it, so its silence is unknown
	case !o.reading.Tried:
		return false, false
	}
	return redfish.Unanswered(o.reading.Err)
}

// refusedCertificate is why the last reading was ended before any request; nil where the certificate is not to blame.
func (o *observed) refusedCertificate() *redfish.CertificateError {
	var refused *redfish.CertificateError
	if o.targetErr == nil && errors.As(o.reading.Err, &refused) {
		return refused
	}
	return nil
}

// pinnedOrOwned says that the certificate of the BMC was pinned, or that it has Servers; each shows that it was reached.
func (o *observed) pinnedOrOwned() bool {
	_, pinned := o.bmc.Annotations[v1alpha1.CertificatePinnedAnnotation]
	return pinned || len(o.owned) > 0
}

// knownBefore says that the BMC was reached before, or its certificate pinned.
func (o *observed) knownBefore() bool { return o.pinnedOrOwned() || status.ReachedBefore(o.bmc.Status) }

// resetInput is what decides what becomes of a restart that the annotation asks for.
func (o *observed) resetInput() reset.Input {
	in := reset.Input{
		UnderWay: reset.UnderWay(o.bmc.Status.Conditions), Sent: o.sent, Read: !o.reading.At.IsZero(), Stranger: o.stranger(),
	}
	if o.targetErr != nil {
		in.Unresolved = reset.Wait{Reason: o.targetErr.Reason, Message: o.targetErr.Message}
	}
	return in
}

// stranger says why the BMC that answers may not be the one that is meant; empty where it is.
func (o *observed) stranger() string {
	if why := o.mismatch(); why != "" {
		return why
	}
	if len(o.owned) == 0 {
		return ""
	}
	for i := range o.owned {
		for _, system := range o.reading.Value.Systems {
			if system.Err == "" && isSystem(o.owned[i].Spec.SystemUUID, system.Identity.UUID) {
				return ""
			}
		}
	}
	return "the BMC was not restarted, because none of its Servers is behind the BMC that answers at " + o.location.IP + "; check its address"
}

// expected is the BMC that is meant, as it was read and by the systems that are known behind it.
func (o *observed) expected() redfish.ManagerIdentity {
	manager := o.reading.Value.Manager
	want := redfish.ManagerIdentity{UUID: cmp.Or(manager.UUID, o.bmc.Spec.BMCUUID), SerialNumber: manager.SerialNumber}
	for i := range o.owned {
		s := &o.owned[i]
		want.Systems = append(want.Systems, redfish.SystemAt{URI: s.Spec.SystemURI, Identity: o.identityOf(s)})
	}
	return want
}

// identityOf is the identity that the system of a Server must show.
func (o *observed) identityOf(s *v1alpha1.Server) redfish.Identity {
	want := redfish.Identity{UUID: s.Spec.SystemUUID}
	for _, system := range o.reading.Value.Systems {
		if a := system.Assignment; a.UUID != "" && isSystem(a.UUID, s.Spec.SystemUUID) && sameURI(system.URI, s.Spec.SystemURI) {
			want.Assigned, want.SerialNumber, want.MAC = true, a.SerialNumber, a.MAC
		}
	}
	return want
}

// answer is what status says of the last reading.
func (o *observed) answer() status.Answer {
	a := status.Answer{
		Settled: o.targetErr != nil || o.reading.Tried, Usable: o.usable(), Refused: o.refusedCertificate(),
		PinnedOrOwned: o.pinnedOrOwned(), Manager: o.reading.Value.Manager,
	}
	if a.Settled && !a.Usable {
		a.Trouble = o.trouble()
	}
	a.Silent, a.SilenceKnown = o.silence()
	return a
}
