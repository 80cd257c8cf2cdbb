// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// Verdict is how a check ended.
type Verdict string

const (
	// Passed means that what was checked is in order.
	Passed Verdict = "ok"
	// Warned means that metalaw works, and the operator should know.
	Warned Verdict = "warning"
	// Failed means that metalaw cannot work so.
	Failed Verdict = "failed"
	// Unknown means that the check could not be made, for example for want of a right.
	Unknown Verdict = "unknown"
)

// finding is what one check found.
type finding struct {
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Message string  `json:"message"`
	// Remedy says what to do; empty where nothing is to be done.
	Remedy string `json:"remedy,omitempty"`
}

// view is what was read of a cluster. A reading that failed has its error, and the check says so.
type view struct {
	now time.Time

	definitions    []definition
	definitionsErr error

	admission admission

	rights    []right
	rightsErr error

	manager    managerState
	managerErr error

	certificate    certificateState
	certificateErr error

	boots    []metalv1alpha1.ServerBootConfiguration
	bootsErr error

	bmcs    []metalv1alpha1.BMC
	bmcsErr error

	encryption    encryptionState
	encryptionErr error

	credentialUse    credentialState
	credentialUseErr error

	maintenance    maintenanceState
	maintenanceErr error

	protections    protectionState
	protectionsErr error

	identities    identityState
	identitiesErr error

	revisions    []policyv1alpha1.PolicyRevision
	revisionsErr error
}

// checks are all checks, in the order in which trouble is looked for.
var checks = []func(view) finding{
	checkDefinitions, checkManager, checkRights, checkCertificate, checkAdmission, checkBootService, checkBMCs, checkEncryption,
	checkCredentialUse,
	checkMaintenances, checkForeignMaintenances, checkMaintenanceLabels, checkRestored, checkIdentities,
	checkHidden, checkProtections, checkPromotion,
}

// judge makes every check.
func judge(v view) []finding {
	found := make([]finding, 0, len(checks))
	for _, check := range checks {
		found = append(found, check(v))
	}
	return found
}

// definition is one CustomResourceDefinition as the cluster has it.
type definition struct {
	Name                         string
	Missing, Established, Differ bool
}

func checkDefinitions(v view) finding {
	const check = "CRDs"
	if v.definitionsErr != nil {
		return unread(check, v.definitionsErr)
	}
	var missing, pending, differ []string
	for _, d := range v.definitions {
		switch {
		case d.Missing:
			missing = append(missing, d.Name)
		case !d.Established:
			pending = append(pending, d.Name)
		case d.Differ:
			differ = append(differ, d.Name)
		}
	}
	const remedy = "apply config/crd of the manager's version: kubectl apply --server-side -k config/crd"
	switch {
	case len(missing) > 0:
		return finding{check, Failed, "not in the cluster: " + list(missing), remedy}
	case len(pending) > 0:
		return finding{check, Failed, "not established: " + list(pending), "look at their conditions: kubectl describe crd " + pending[0]}
	case len(differ) > 0:
		return finding{check, Warned, "the schema is that of another version of metalaw: " + list(differ), remedy}
	}
	return finding{check, Passed, fmt.Sprintf("%d are established, with the schemas of this program", len(v.definitions)), ""}
}

// admission is what came of creating, as a dry run, a bundle that admission must refuse.
type admission struct {
	// Refused says that our webhook refused it; Stored that nothing did.
	Refused, Stored bool
	// Unreachable says that the API server could not call the webhook.
	Unreachable bool
	Err         error
}

func checkAdmission(v view) finding {
	const check = "webhooks"
	switch a := v.admission; {
	case a.Refused:
		return finding{check, Passed, "admission refused a broken bundle in a dry run, as it should", ""}
	case a.Stored:
		return finding{check, Failed, "no webhook looked at a bundle in a dry run", "apply config/webhook, and look at the webhook configurations"}
	case a.Unreachable:
		return finding{check, Failed, "the API server cannot call the webhook: " + a.Err.Error(),
			"see that the manager runs, and that the API server reaches Service metalaw-webhook"}
	default:
		return unread(check, a.Err)
	}
}

// right is something that the manager's service account must be allowed to do.
type right struct {
	Verb, Group, Resource, Subresource, Name string
	Allowed                                  bool
}

func (r right) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	if r.Name != "" {
		resource += " " + r.Name
	}
	return r.Verb + " " + resource
}

func checkRights(v view) finding {
	const check = "rights"
	if v.rightsErr != nil {
		return unread(check, v.rightsErr)
	}
	var denied []string
	for _, r := range v.rights {
		if !r.Allowed {
			denied = append(denied, r.String())
		}
	}
	if len(denied) > 0 {
		return finding{check, Failed, "service account " + account + " may not " + list(denied), "apply config/rbac of the manager's version"}
	}
	return finding{check, Passed, fmt.Sprintf("service account %s may do all %d things that were asked for", account, len(v.rights)), ""}
}

// certificateState is what the Secret of the manager and the webhook configuration hold.
type certificateState struct {
	// Serving and Authority are PEM.
	Serving, Authority []byte
	// Signs says that the Secret holds the authority's key: the registry makes its certificate good for its host itself.
	Signs bool
	// Trusted is the authority in the webhook configurations, PEM.
	Trusted []byte
}

// expiresSoon is shorter than the time before the end at which the manager renews by itself.
const expiresSoon = 7 * 24 * time.Hour

func checkCertificate(v view) finding {
	const check = "certificates"
	switch {
	case apierrors.IsNotFound(v.certificateErr) && v.admission.Refused:
		return finding{check, Passed, "the manager keeps its certificate elsewhere, and the API server trusts it", ""}
	case v.certificateErr != nil:
		return unread(check, v.certificateErr)
	}
	block, _ := pem.Decode(v.certificate.Serving)
	if block == nil {
		return finding{check, Failed, "Secret metalaw-webhook-certs holds no certificate", "see the manager's log; it fills the Secret at its start"}
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return finding{check, Failed, "Secret metalaw-webhook-certs: " + err.Error(),
			"delete the key tls.crt of the Secret; the manager fills it anew"}
	}
	until := certificate.NotAfter.Format(time.RFC3339)
	if left := certificate.NotAfter.Sub(v.now); left <= 0 {
		return finding{check, Failed, "the serving certificate ended at " + until, "see the manager's log; it renews the certificate by itself"}
	} else if left < expiresSoon {
		return finding{check, Warned, "the serving certificate ends at " + until, "see the manager's log; it renews the certificate by itself"}
	}
	if len(v.certificate.Trusted) == 0 {
		return finding{check, Failed, "the webhook configurations hold no authority", "see the manager's log; it fills them at its start"}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(v.certificate.Trusted)
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: v.now}); err != nil {
		return finding{check, Failed, "the authority in the webhook configurations did not sign the serving certificate: " + err.Error(),
			"see the manager's log; it writes the authority by itself"}
	}
	registry, err := url.Parse(v.manager.RegistryURL)
	if err == nil && registry.Scheme == "https" && !v.certificate.Signs && certificate.VerifyHostname(registry.Hostname()) != nil {
		words := fmt.Sprintf("the certificate is not valid for %s, the host of --registry-url; agents refuse it", registry.Hostname())
		return finding{check, Failed, words, "name a certificate that is, with --registry-cert-dir"}
	}
	return finding{check, Passed, "the serving certificate is good until " + until, ""}
}

func checkBMCs(v view) finding {
	const check = "BMCs"
	if v.bmcsErr != nil {
		return unread(check, v.bmcsErr)
	}
	var silent []string
	for i := range v.bmcs {
		b := &v.bmcs[i]
		if c := meta.FindStatusCondition(b.Status.Conditions, metalv1alpha1.ConditionReady); c == nil || c.Status != "True" {
			why := "it has no condition Ready"
			if c != nil {
				why = cmp.Or(c.Message, c.Reason)
			}
			silent = append(silent, fmt.Sprintf("%s (%.120s)", b.Name, why))
		}
	}
	switch {
	case len(v.bmcs) == 0:
		return finding{check, Unknown, "there is no BMC yet", "add one: docs/install.md"}
	case len(silent) == len(v.bmcs):
		return finding{check, Failed, fmt.Sprintf("none of %d is Ready: %s", len(v.bmcs), list(silent)),
			"see that the manager reaches the BMC network, and the credentials in the BMCSecrets"}
	case len(silent) > 0:
		return finding{check, Warned, fmt.Sprintf("%d of %d are not Ready: %s", len(silent), len(v.bmcs), list(silent)),
			"kubectl describe bmc NAME says why"}
	}
	return finding{check, Passed, fmt.Sprintf("all %d are Ready", len(v.bmcs)), ""}
}

// encryptionState is how the API server stores BMCSecrets, by its metric of transformations.
type encryptionState struct {
	// Prefixes are the transformers that wrote or read BMCSecrets, such as k8s:enc:secretbox:v1: or identity.
	Prefixes []string
}

func checkEncryption(v view) finding {
	const check = "BMCSecrets at rest"
	const remedy = "name bmcsecrets.metal.ironcore.dev in the API server's EncryptionConfiguration: docs/security.md"
	if v.encryptionErr != nil {
		return finding{check, Unknown, "the metrics of the API server cannot be read: " + v.encryptionErr.Error(), remedy}
	}
	if slices.ContainsFunc(v.encryption.Prefixes, func(p string) bool { return strings.HasPrefix(p, "k8s:enc:") }) {
		return finding{check, Passed, "the API server encrypts them: " + list(v.encryption.Prefixes), ""}
	}
	return finding{check, Warned, "the API server shows no sign of encrypting them: passwords of BMCs may lie in etcd in the clear", remedy}
}

// list joins names, and counts those that are too many.
func list(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
