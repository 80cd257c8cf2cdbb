// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/env"
)

// auditPolicy has the API server note what the manager asks for, without any content.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    users: ["system:serviceaccount:metalaw-system:metalaw-manager"]
  - level: None
`

var _ = Describe("A full run", Ordered, func() {
	var run *fullRun

	BeforeAll(func(ctx SpecContext) {
		run = newFullRun(ctx)
		run.live(ctx)
	}, NodeTimeout(3*stepLimit))

	It("uses each of the manager's rights, and asks for nothing beyond them", func(ctx SpecContext) {
		granted := managerRights(ctx, run.admin)
		used, refused := usedRights(run.audit)
		Expect(refused).To(BeEmpty(), "requests that RBAC refused")
		Expect(unused(granted, used)).To(BeEmpty(), "what the manager may do and does not: take it away, or say among the rare rights what it is for")
		for right := range rare {
			Expect(granted).To(HaveKey(right), "listed among the rare rights")
		}
	})

	It("writes no secret into any log, event, object or metric", func() {
		secrets := run.secrets()
		for _, kind := range []string{"token of session", "probe agent's token", "wipe agent's token", "private key", "password", "ignition"} {
			Expect(secrets).To(HaveKey(ContainSubstring(kind)), "a run without one proves nothing")
		}
		Expect(run.leaks(secrets)).To(BeEmpty())
	})
})

// fullRun is a run of everything that the manager does, watched from outside.
type fullRun struct {
	*world
	audit   string
	witness *witness
	// texts are what else was written: logs and metrics, by name.
	texts    map[string]string
	machines []*emulator.Machine
	// words are secrets that people made, by what they are.
	words map[string]string
}

func newFullRun(ctx context.Context) *fullRun {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	policy := filepath.Join(dir, "audit-policy.yaml")
	Expect(os.WriteFile(policy, []byte(auditPolicy), 0o600)).To(Succeed())
	r := &fullRun{audit: filepath.Join(dir, "audit.log"), texts: map[string]string{}, words: map[string]string{
		"a BMC's password": "wS-right-7f3c9a1e", "a password that was refused": "wS-wrong-52d8b06f", "a tenant's ignition": "wS-ignition-c41e77aa"}}
	r.world = newWorldFor(ctx, env.Options{APIServerArgs: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + r.audit}}, (*world).prepareMonitored)
	r.witness = watchEverything(r.life, r.plane.Config)
	return r
}

// live goes through everything: the story of one machine, another one with a secret of its own, and a freeze.
func (r *fullRun) live(ctx context.Context) {
	GinkgoHelper()
	Expect(r.manager.Start()).To(Succeed())
	Expect(r.manager.AwaitReady(ctx)).To(Succeed())
	r.freeze(ctx)
	r.guarded(ctx)
	r.twins(ctx)
	r.maintained(ctx)
	r.tell(ctx)
	r.machines = r.fleet.Machines()
	r.texts["metrics"] = r.scrape(ctx)
	r.manager.Stop(stopGrace)
	Expect(r.manager.Failures()).To(BeEmpty())
	logs, err := filepath.Glob(filepath.Join(r.plane.LogDir(), "manager*"))
	Expect(err).NotTo(HaveOccurred())
	Expect(logs).NotTo(BeEmpty())
	for _, path := range logs {
		text, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		r.texts[filepath.Base(path)] = string(text)
	}
}

// twins asks for things twice that there may be only once, and sees the second of each refused.
func (r *fullRun) twins(ctx context.Context) {
	GinkgoHelper()
	endpoint := func(name string) *v1alpha1.Endpoint {
		return &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.EndpointSpec{MACAddress: "0a:00:00:00:00:01", IP: "127.0.0.9"}}
	}
	(&story{world: r.world}).do(ctx, func() error { return r.admin.Create(ctx, endpoint("twin-a")) })
	Expect(r.admin.Create(ctx, endpoint("twin-b"))).To(MatchError(ContainSubstring("twin-a")))
	var bmc v1alpha1.BMC
	Expect(r.admin.Get(ctx, client.ObjectKey{Name: "guarded"}, &bmc)).To(Succeed())
	second := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "guarded-too"}, Spec: *bmc.Spec.DeepCopy()}
	Expect(r.admin.Create(ctx, second)).To(MatchError(ContainSubstring(`"guarded"`)))
	var server v1alpha1.Server
	Expect(r.admin.Get(ctx, client.ObjectKey{Name: "guarded-system-0"}, &server)).To(Succeed())
	other := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "guarded-too"}, Spec: v1alpha1.ServerSpec{SystemUUID: server.Spec.SystemUUID}}
	Expect(r.admin.Create(ctx, other)).To(MatchError(ContainSubstring(server.Name)))
}

// maintained asks for a maintenance, and sees that it is answered.
func (r *fullRun) maintained(ctx context.Context) {
	GinkgoHelper()
	asked := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: "asked"}}
	asked.Spec.ServerRef = corev1.LocalObjectReference{Name: "guarded-system-0"}
	(&story{world: r.world}).do(ctx, func() error { return r.admin.Create(ctx, asked.DeepCopy()) })
	Eventually(func() (v1alpha1.ServerMaintenanceState, error) {
		err := r.admin.Get(ctx, client.ObjectKeyFromObject(asked), asked)
		return asked.Status.State, err
	}).WithTimeout(stepLimit).Should(Equal(v1alpha1.ServerMaintenanceStatePending))
}

// freeze freezes nothing in particular, so that the manager says what it holds back.
func (r *fullRun) freeze(ctx context.Context) {
	GinkgoHelper()
	control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
	control.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "nothing", Level: policyv1alpha1.FreezeAll, Reason: "nothing bears the label",
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"frozen": "yes"}}}}
	(&story{world: r.world}).do(ctx, func() error { return r.admin.Create(ctx, control.DeepCopy()) })
}

// guarded onboards a machine whose password is told wrong at first, and gives it to a claim with an ignition.
func (r *fullRun) guarded(ctx context.Context) {
	GinkgoHelper()
	m := r.fleet.Add(emulator.MachineSpec{Name: "guarded", Profile: emulator.ProfileGeneric, Username: "keeper", Password: r.words["a BMC's password"]})
	Expect(m.Err()).NotTo(HaveOccurred())
	r.ledger.add(m)
	s := &story{world: r.world, m: m, name: "guarded", server: "guarded-system-0"}
	data := func(password string) map[string][]byte {
		return map[string][]byte{"username": []byte("keeper"), "password": []byte(r.words[password])}
	}
	secret := &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Data: data("a password that was refused")}
	s.do(ctx, func() error { return r.admin.Create(ctx, secret) })
	bmc := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	bmc.Spec.Access = &v1alpha1.InlineEndpoint{IP: m.Address()}
	bmc.Spec.BMCSecretRef.Name = s.name
	bmc.Spec.Protocol = v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish, Port: bmcPort, Scheme: v1alpha1.ProtocolSchemeHTTP}
	s.do(ctx, func() error { return r.admin.Create(ctx, bmc) })
	s.reach(ctx, "the refusal of its password", func() error {
		if r.witness.saw(v1alpha1.ReasonAuthenticationFailed) {
			return nil
		}
		return errors.New("nothing was said of it")
	})
	secret.Data = data("a BMC's password")
	s.do(ctx, func() error { return r.admin.Update(ctx, secret) })
	s.stands(ctx, v1alpha1.StateAvailable)
	s.ledger.change(m, func(p *permit) { p.probe, p.claims[s.name] = false, true })
	ignition := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: "ignition"},
		Data: map[string][]byte{"ignition": []byte(`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/motd","contents":{"source":"data:,` +
			r.words["a tenant's ignition"] + `"}}]}}`)}}
	s.do(ctx, func() error { return r.admin.Create(ctx, ignition) })
	claim := s.claim(s.name)
	claim.Spec = v1alpha1.ServerClaimSpec{Power: v1alpha1.PowerOn, Image: image(s.name, 1), ServerRef: &corev1.LocalObjectReference{Name: s.server},
		IgnitionSecretRef: &corev1.LocalObjectReference{Name: ignition.Name}}
	s.do(ctx, func() error { return r.admin.Create(ctx, claim) })
	s.runs(ctx, s.name, 1)
}
