// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/metalaw/metalaw/controllers/revision"
	"github.com/metalaw/metalaw/controllers/scheduler/informer"
	"github.com/metalaw/metalaw/webhooks"
)

// certificates are the files of the certificates that the manager serves, by what each is for.
func (o *options) certificates() map[string]string {
	files := map[string]string{}
	if o.webhooks {
		files["webhook"] = filepath.Join(o.webhookCerts, "tls.crt")
		files["webhook-authority"] = filepath.Join(o.webhookCerts, "ca.crt")
	}
	if !o.registryPlaintext {
		files["registry"] = filepath.Join(o.registryCerts, "tls.crt")
		files["registry-authority"] = filepath.Join(o.registryCerts, "ca.crt")
	}
	return files
}

// addWebhooks serves admission on every replica, and makes the certificates where nobody else does. The probe registry
// uses the same certificate unless it is given one of its own. What it returns fails until the webhooks answer; nil where
// this process serves none.
func (o *options) addWebhooks(mgr ctrl.Manager, store *revision.Store, fleet *informer.Informer) (serves healthz.Checker, err error) {
	var ready <-chan struct{}
	if o.rotateCerts && (o.webhooks || !o.registryPlaintext) {
		ready, err = webhooks.AddRotator(mgr, webhooks.RotatorOptions{Namespace: o.namespace, SecretName: o.webhookSecret,
			CertDir: o.webhookCerts, ExtraDNSNames: append([]string{"metalaw-registry." + o.namespace + ".svc"}, o.extraDNSNames...)})
		if err != nil {
			return nil, err
		}
	}
	if !o.webhooks {
		return nil, mgr.AddReadyzCheck("ping", healthz.Ping)
	}
	return webhooks.Setup(mgr, webhooks.Options{Bundles: store, Fleet: fleet, Namespace: o.namespace, Ready: ready,
		ManagerUser: "system:serviceaccount:" + o.namespace + ":" + o.serviceAccount})
}
