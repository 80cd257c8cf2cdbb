// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no"))

// signed makes an authority and a certificate for a name, as PEM.
func signed(t *testing.T, name string, until time.Time) (authority, serving []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: noon.Add(-time.Hour),
		NotAfter: noon.AddDate(10, 0, 0), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotBefore: noon.AddDate(-1, 0, 0), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	encode := func(template *x509.Certificate) []byte {
		der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	return encode(ca), encode(leaf)
}

// healthy is a cluster in which nothing is wrong.
func healthy(t *testing.T) view {
	t.Helper()
	authority, serving := signed(t, "registry.example", noon.AddDate(0, 6, 0))
	boot := metalv1alpha1.ServerBootConfiguration{}
	boot.Name, boot.Namespace, boot.CreationTimestamp = "s0", "metalaw-system", metav1.NewTime(noon.Add(-time.Hour))
	boot.Status.State = metalv1alpha1.ServerBootConfigurationStateReady
	bmc := metalv1alpha1.BMC{}
	bmc.Name = "b0"
	bmc.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True"}}
	return view{
		now:         noon,
		definitions: []definition{{Name: "servers.metal.ironcore.dev", Established: true}},
		admission:   admission{Refused: true},
		rights:      []right{{Verb: "get", Resource: "bmcsecrets", Allowed: true}},
		manager: managerState{Wanted: 2, Ready: 2, Image: "metalaw:1", RegistryURL: "https://registry.example:10000", CredentialUse: "on",
			Leader: "pod-a", Renewed: noon.Add(-time.Second), LeaseFor: 15 * time.Second},
		certificate: certificateState{Serving: serving, Authority: authority, Trusted: authority},
		boots:       []metalv1alpha1.ServerBootConfiguration{boot},
		bmcs:        []metalv1alpha1.BMC{bmc},
		encryption:  encryptionState{Prefixes: []string{"k8s:enc:secretbox:v1:"}},
	}
}

func TestEachCheckSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	other, _ := signed(t, "other", noon.AddDate(1, 0, 0))
	_, ended := signed(t, "registry.example", noon.Add(-time.Minute))
	for name, c := range map[string]struct {
		change func(*view)
		check  string
		want   finding
	}{
		"a definition is missing": {func(v *view) { v.definitions[0] = definition{Name: "bmcs.metal.ironcore.dev", Missing: true} }, "CRDs",
			finding{Verdict: Failed, Message: "not in the cluster: bmcs.metal.ironcore.dev",
				Remedy: "apply config/crd of the manager's version: kubectl apply --server-side -k config/crd"}},
		"a definition is of another version": {func(v *view) { v.definitions[0].Differ = true }, "CRDs",
			finding{Verdict: Warned, Message: "the schema is that of another version of metalaw: servers.metal.ironcore.dev",
				Remedy: "apply config/crd of the manager's version: kubectl apply --server-side -k config/crd"}},
		"the manager runs elsewhere": {func(v *view) { v.manager.Ready = 0 }, "manager",
			finding{Verdict: Warned, Message: "no replica of the Deployment is ready, and pod-a leads: the manager runs elsewhere",
				Remedy: "see kubectl logs -n metalaw-system deployment/metalaw-manager"}},
		"the manager runs elsewhere without a leader": {func(v *view) { v.manager.Ready, v.manager.Leader = 0, "" }, "manager",
			finding{Verdict: Warned, Message: "no replica of the Deployment is ready, and admission answers: the manager runs elsewhere",
				Remedy: "see kubectl logs -n metalaw-system deployment/metalaw-manager"}},
		"no replica is ready": {func(v *view) {
			v.manager.Ready, v.manager.Leader, v.admission = 0, "", admission{Err: errors.New("timeout")}
		}, "manager",
			finding{Verdict: Failed, Message: "none of 2 replicas of metalaw:1 is ready", Remedy: "see kubectl logs -n metalaw-system deployment/metalaw-manager"}},
		"no replica leads": {func(v *view) { v.manager.Renewed = noon.Add(-time.Minute) }, "manager",
			finding{Verdict: Failed, Message: "no replica leads, so no server is reconciled", Remedy: "see kubectl logs -n metalaw-system deployment/metalaw-manager"}},
		"a right is missing": {func(v *view) { v.rights[0].Allowed = false }, "rights",
			finding{Verdict: Failed, Message: "service account metalaw-manager may not get bmcsecrets", Remedy: "apply config/rbac of the manager's version"}},
		"the user may not ask for rights": {func(v *view) { v.rightsErr = forbidden }, "rights",
			finding{Verdict: Unknown, Message: "cannot be read: " + forbidden.Error(),
				Remedy: "run it with the rights of ClusterRole cluster-admin, or read this by hand"}},
		"no webhook is called": {func(v *view) { v.admission = admission{Stored: true} }, "webhooks",
			finding{Verdict: Failed, Message: "no webhook looked at a bundle in a dry run",
				Remedy: "apply config/webhook, and look at the webhook configurations"}},
		"the webhook does not answer": {func(v *view) { v.admission = admission{Unreachable: true, Err: errors.New("timeout")} }, "webhooks",
			finding{Verdict: Failed, Message: "the API server cannot call the webhook: timeout",
				Remedy: "see that the manager runs, and that the API server reaches Service metalaw-webhook"}},
		"another authority is trusted": {func(v *view) { v.certificate.Trusted = other }, "certificates",
			finding{Verdict: Failed, Message: "the authority in the webhook configurations did not sign the serving certificate: " +
				`x509: certificate signed by unknown authority (possibly because of "x509: ECDSA verification failure" while trying to verify candidate authority certificate "ca")`,
				Remedy: "see the manager's log; it writes the authority by itself"}},
		"the certificate has ended": {func(v *view) { v.certificate.Serving = ended }, "certificates",
			finding{Verdict: Failed, Message: "the serving certificate ended at 2026-03-01T11:59:00Z",
				Remedy: "see the manager's log; it renews the certificate by itself"}},
		"agents dial another name": {func(v *view) { v.manager.RegistryURL = "https://10.0.0.1:10000" }, "certificates",
			finding{Verdict: Failed, Message: "the certificate is not valid for 10.0.0.1, the host of --registry-url; agents refuse it",
				Remedy: "name a certificate that is, with --registry-cert-dir"}},
		"agents dial an address that the registry adds": {func(v *view) {
			v.manager.RegistryURL, v.certificate.Signs = "https://10.0.0.1:10000", true
		}, "certificates", finding{Verdict: Passed, Message: "the serving certificate is good until 2026-09-01T12:00:00Z"}},
		"no boot service answers": {func(v *view) { v.boots[0].Status.State = "" }, "boot service",
			finding{Verdict: Failed, Message: "no boot service has answered; 1 wait: metalaw-system/s0", Remedy: "install a boot service: docs/install.md"}},
		"no server has booted": {func(v *view) { v.boots = nil }, "boot service",
			finding{Verdict: Unknown, Message: "no ServerBootConfiguration exists yet, so none shows whether a boot service answers",
				Remedy: "look again when a server boots"}},
		"no BMC answers": {func(v *view) {
			v.bmcs[0].Status.Conditions[0] = metav1.Condition{Type: "Ready", Status: "False", Message: "timeout"}
		}, "BMCs",
			finding{Verdict: Failed, Message: "none of 1 is Ready: b0 (timeout)",
				Remedy: "see that the manager reaches the BMC network, and the credentials in the BMCSecrets"}},
		"BMCSecrets are not encrypted": {func(v *view) { v.encryption.Prefixes = []string{"identity"} }, "BMCSecrets at rest",
			finding{Verdict: Warned, Message: "the API server shows no sign of encrypting them: passwords of BMCs may lie in etcd in the clear",
				Remedy: "name bmcsecrets.metal.ironcore.dev in the API server's EncryptionConfiguration: docs/security.md"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := healthy(t)
			c.change(&v)
			for _, f := range judge(v) {
				want := finding{Check: f.Check, Verdict: Passed, Message: f.Message}
				if f.Check == "webhooks" && c.check == "manager" {
					continue
				}
				if f.Check == c.check {
					want = c.want
					want.Check = c.check
				}
				if f != want {
					t.Errorf("got %+v, want %+v", f, want)
				}
			}
		})
	}
}

func TestTheTransformersOfBMCSecretsAreReadFromTheMetrics(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"encrypted": {`apiserver_storage_transformation_operations_total{resource="bmcsecrets.metal.ironcore.dev",status="OK",transformation_type="to_storage",transformer_prefix="k8s:enc:aesgcm:v1:"} 3
`, "k8s:enc:aesgcm:v1:"},
		"another resource is encrypted": {`apiserver_storage_transformation_operations_total{resource="secrets",status="OK",transformation_type="to_storage",transformer_prefix="k8s:enc:aesgcm:v1:"} 3
`, ""},
		"nothing is transformed": {"up 1\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			state, err := transformations([]byte(c.text))
			if got := list(state.Prefixes); err != nil || got != c.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func FuzzTransformations(f *testing.F) {
	f.Add([]byte("a{b=\"c\"} 1\n"))
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = transformations(text) }) // it must not panic
}
