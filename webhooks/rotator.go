// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"cmp"
	"errors"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// RotatorOptions says whose certificate is made. What is left empty has the name that the shipped manifests give it.
type RotatorOptions struct {
	// Namespace is the manager's; required.
	Namespace string
	// SecretName is the Secret that holds authority and certificate; it must exist, and may be empty.
	SecretName string
	// CertDir is where that Secret is mounted; required. The webhook server must read its certificate there.
	CertDir string
	// ExtraDNSNames are further names that the certificate is good for, such as the probe registry's outside name.
	ExtraDNSNames []string
}

// AddRotator makes the manager keep its own authority and serving certificate in a Secret, renew both before they end,
// and put the authority into the webhook configurations. The channel is closed when the certificate is mounted and the
// API server knows the authority; give it to Options.Ready. It is not called where somebody else (cert-manager, a file)
// brings the certificate.
func AddRotator(mgr ctrl.Manager, o RotatorOptions) (ready <-chan struct{}, err error) {
	if o.Namespace == "" || o.CertDir == "" {
		return nil, errors.New("the certificate rotator needs Namespace and CertDir")
	}
	const service = "metalaw-webhook" // by which the API server reaches the webhooks
	done := make(chan struct{})
	err = rotator.AddRotator(onlyChanges(mgr), &rotator.CertRotator{
		SecretKey:      types.NamespacedName{Namespace: o.Namespace, Name: cmp.Or(o.SecretName, "metalaw-webhook-certs")},
		CertDir:        o.CertDir,
		CAName:         "metalaw-webhook-ca",
		CAOrganization: "metalaw",
		DNSName:        service + "." + o.Namespace + ".svc",
		ExtraDNSNames:  append([]string{service + "." + o.Namespace + ".svc.cluster.local"}, o.ExtraDNSNames...),
		IsReady:        done,
		FieldOwner:     "metalaw",
		Webhooks: []rotator.WebhookInfo{
			{Type: rotator.Validating, Name: "metalaw-validating"},
			{Type: rotator.Mutating, Name: "metalaw-mutating"},
		},
		// Every replica serves, and so every replica makes sure of the certificate; the Secret's version settles races.
		RequireLeaderElection: false,
	})
	return done, err
}
