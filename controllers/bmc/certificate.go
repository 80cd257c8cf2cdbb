// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/internal/fingerprint"
	"github.com/metalaw/metalaw/redfish"
)

// certificate is what becomes of the trust in a BMC's certificate.
type certificate struct {
	// trust is the fingerprint to trust from now on; empty where nothing changes.
	trust string
	// reason and message are told in an event; empty where nothing is to be told.
	reason, message string
	// pinned says that the fingerprint is trusted because it was shown at first use.
	pinned bool
	// consumed says that the accept annotation goes.
	consumed bool
}

// judgeCertificate is pure. accepted is the value of the accept annotation, written whether there is one.
func judgeCertificate(accepted string, written bool, c access.FirstContact) certificate {
	if written {
		trust := fingerprint.Parse(accepted)
		if trust == "" {
			return certificate{consumed: true, reason: v1alpha1.ReasonCertificateRefused, message: fmt.Sprintf(
				"the annotation %s is no SHA-256 fingerprint (%q) and was removed; write the 64 hexadecimal digits of the certificate",
				v1alpha1.AcceptCertificateAnnotation, loop.Shortened(accepted, maxOperation))}
		}
		return certificate{consumed: true, trust: trust, reason: v1alpha1.ReasonCertificateAccepted,
			message: "the manager trusts the accepted certificate from now on, SHA-256 " + trust}
	}
	if pin := access.Pin(c); pin != "" {
		return certificate{trust: pin, pinned: true, reason: v1alpha1.ReasonCertificatePinned,
			message: "the manager trusts the certificate shown at first use from now on, SHA-256 " + pin}
	}
	return certificate{}
}

// readCertificate gathers what judgeCertificate needs. Only a BMC whose certificate was refused is looked at for a pin.
func (v *scope) readCertificate(ctx context.Context) error {
	accepted, written := v.bmc.Annotations[v1alpha1.AcceptCertificateAnnotation]
	contact := access.FirstContact{
		Settings: v.Bundles.Active().Settings, IP: v.location.IP, Known: knownBefore(v.bmc, len(v.owned)), Err: v.reading.Err,
	}
	if v.refusedCertificate() != nil {
		secret := &v1alpha1.BMCSecret{}
		err := v.Client.Get(ctx, types.NamespacedName{Name: v.bmc.Spec.BMCSecretRef.Name}, secret)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("get BMCSecret %s: %w", v.bmc.Spec.BMCSecretRef.Name, err)
		}
		contact.Trust = access.Trusts(v.bmc, secret) || v.bmc.Spec.Hostname != ""
	}
	v.certificate = judgeCertificate(accepted, written, contact)
	return nil
}

// knownBefore says that a BMC was reached before, or its certificate pinned. It is asked of everything that tells: a pin
// that was lost must not make the next certificate the first.
func knownBefore(b *v1alpha1.BMC, servers int) bool {
	_, pinned := b.Annotations[v1alpha1.CertificatePinnedAnnotation]
	s := b.Status
	return pinned || servers > 0 || s.FirmwareVersion != "" || s.Manufacturer != "" || s.Model != "" || s.SerialNumber != "" ||
		s.State == v1alpha1.BMCStateEnabled || meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady)
}

// refusedCertificate is why the last reading was ended before any request; nil where the certificate is not to blame.
func (v *scope) refusedCertificate() *redfish.CertificateError {
	var refused *redfish.CertificateError
	if v.targetErr == nil && errors.As(v.reading.Err, &refused) {
		return refused
	}
	return nil
}

// trustCertificate writes what judgeCertificate decided into the BMC, which is stored at the end of the reconcile.
func (v *scope) trustCertificate() loop.Progress {
	c := v.certificate
	if c.consumed {
		delete(v.bmc.Annotations, v1alpha1.AcceptCertificateAnnotation)
	}
	if c.trust != "" {
		v.bmc.Spec.Trust = &v1alpha1.BMCTrust{CertificateSHA256: c.trust}
	}
	if c.pinned {
		metav1.SetMetaDataAnnotation(&v.bmc.ObjectMeta, v1alpha1.CertificatePinnedAnnotation, v.now.UTC().Format(time.RFC3339))
	}
	return loop.Holds()
}

// tellCertificate tells in an event what became of the trust.
func (v *scope) tellCertificate() {
	c := v.certificate
	if c.reason == "" {
		return
	}
	kind := corev1.EventTypeNormal
	if c.trust == "" {
		kind = corev1.EventTypeWarning
	}
	v.Recorder.Eventf(v.bmc, nil, kind, c.reason, EffectTrustCertificate, "%s", loop.Shortened(c.message, loop.MaxNote))
}

// recordCertificate says that a BMC which was reached before shows another certificate. A BMC that was never reached has
// none to change, and its condition Ready says what to do.
func (v *scope) recordCertificate() {
	refused := v.refusedCertificate()
	switch {
	case refused != nil && (refused.Trusted != "" || knownBefore(v.bmc, len(v.owned))):
		shown := refused.Shown
		if shown == "" {
			shown = "none"
		}
		v.set(v1alpha1.ConditionCertificateChanged, true, v1alpha1.ReasonOtherCertificate, fmt.Sprintf(
			"the BMC shows a certificate that is not trusted, SHA-256 %s; no password is sent; check who answers there, "+
				"then set the annotation %s to that fingerprint", shown, v1alpha1.AcceptCertificateAnnotation))
	case v.usable() && meta.FindStatusCondition(v.bmc.Status.Conditions, v1alpha1.ConditionCertificateChanged) != nil:
		v.set(v1alpha1.ConditionCertificateChanged, false, v1alpha1.ReasonTrustedCertificate, "the BMC shows a trusted certificate")
	}
}

// certificateAdvice says how the certificate of a BMC that refused it is trusted.
func (v *scope) certificateAdvice() string {
	refused := v.refusedCertificate()
	if refused == nil || refused.Shown == "" {
		return ""
	}
	return "; if that certificate is the BMC's own, set the annotation " + v1alpha1.AcceptCertificateAnnotation + " to its fingerprint"
}
