// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/internal/bmctrust"
	"github.com/metalaw/metalaw/internal/fingerprint"
)

// certificate is what becomes of the trust in a BMC's certificate.
type certificate struct {
	// trust is the fingerprint to trust from now on; empty where nothing changes.
	trust string
	// reason and message are those of the event; empty for none.
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

// readCertificate decides about the trust. Only a BMC whose certificate was refused is looked at for a pin.
func (v *scope) readCertificate(ctx context.Context) (certificate, error) {
	accepted, written := v.bmc.Annotations[v1alpha1.AcceptCertificateAnnotation]
	contact := access.FirstContact{
		Settings: v.Bundles.Active().Settings, IP: v.location.IP, Known: v.knownBefore(), Err: v.reading.Err,
	}
	if v.refusedCertificate() != nil {
		secret := &v1alpha1.BMCSecret{}
		err := v.Client.Get(ctx, types.NamespacedName{Name: v.bmc.Spec.BMCSecretRef.Name}, secret)
		if err != nil && !apierrors.IsNotFound(err) {
			return certificate{}, fmt.Errorf("get BMCSecret %s: %w", v.bmc.Spec.BMCSecretRef.Name, err)
		}
		contact.Trust = bmctrust.Named(v.bmc, secret) || v.bmc.Spec.Hostname != ""
	}
	return judgeCertificate(accepted, written, contact), nil
}

// write puts the decision into the BMC, which is stored at the end of the reconcile.
func (c certificate) write(b *v1alpha1.BMC, now time.Time) {
	if c.consumed {
		delete(b.Annotations, v1alpha1.AcceptCertificateAnnotation)
	}
	if c.trust != "" {
		b.Spec.Trust = &v1alpha1.BMCTrust{CertificateSHA256: c.trust}
	}
	if c.pinned {
		metav1.SetMetaDataAnnotation(&b.ObjectMeta, v1alpha1.CertificatePinnedAnnotation, now.UTC().Format(time.RFC3339))
	}
}

// notice is the event about what became of the trust.
func (c certificate) notice() notice {
	n := notice{corev1.EventTypeNormal, c.reason, EffectTrustCertificate, c.message}
	if c.trust == "" {
		n.kind = corev1.EventTypeWarning
	}
	return n
}
