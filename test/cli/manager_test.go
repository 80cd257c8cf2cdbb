// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/test/env"
)

// startManager runs the built manager with its webhooks and more flags, under the shipped rights, until the container of
// specs is over.
func startManager(ctx context.Context, flags ...string) {
	GinkgoHelper()
	Expect(controlPlane.ApplyKustomize(ctx, "config/default")).To(Succeed())
	certificates := GinkgoT().TempDir()
	certificate, key, authority, err := controlPlane.ServingCert("metalaw-system", "metalaw-webhook")
	Expect(err).NotTo(HaveOccurred())
	for name, pem := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": authority} {
		Expect(os.WriteFile(filepath.Join(certificates, name), pem, 0o600)).To(Succeed())
	}
	ports := make([]int, 3)
	for i := range ports {
		ports[i], err = env.FreePort(ctx)
		Expect(err).NotTo(HaveOccurred())
	}
	rights, err := controlPlane.KubeconfigFor(env.Manager)
	Expect(err).NotTo(HaveOccurred())
	Expect(controlPlane.PointWebhooksAt(ctx, fmt.Sprintf("127.0.0.1:%d", ports[0]), authority)).To(Succeed())
	manager, err := controlPlane.StartChild("manager", filepath.Join(folder, "metalaw"), append([]string{"manager",
		"--kubeconfig=" + rights, "--namespace=metalaw-system", "--metrics-bind-address=0",
		"--webhook-host=127.0.0.1", fmt.Sprintf("--webhook-port=%d", ports[0]), "--webhook-cert-dir=" + certificates, "--webhook-cert-rotation=false",
		"--registry-plaintext", fmt.Sprintf("--registry-bind-address=127.0.0.1:%d", ports[1]), fmt.Sprintf("--registry-url=http://127.0.0.1:%d", ports[1]),
		fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", ports[2])}, flags...)...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		manager.Stop(10 * time.Second)
		Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed())
	})
	Expect(manager.AwaitReady(ctx, 30*time.Second, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[2]), http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("not ready: %s", response.Status)
		}
		return nil
	})).To(Succeed())
}

var _ = Describe("A manager that cannot run", func() {
	// starts calls the manager under the shipped rights, and expects that it ends by itself.
	starts := func(ctx SpecContext, args ...string) said {
		GinkgoHelper()
		rights, err := controlPlane.KubeconfigFor(env.Manager)
		Expect(err).NotTo(HaveOccurred())
		return operator.says(ctx, append([]string{"manager", "--kubeconfig=" + rights, "--namespace=metalaw-system", "--webhooks=false",
			"--webhook-cert-rotation=false", "--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0", "--registry-plaintext",
			"--registry-bind-address=127.0.0.1:0", "--registry-url=http://127.0.0.1:1"}, args...)...)
	}

	It("says which address is taken, and looks at no server", func(ctx SpecContext) {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		Expect(starts(ctx, "--registry-bind-address="+listener.Addr().String())).To(Equal(said{code: 1, err: "metalaw: nothing was started: " +
			"--registry-bind-address: cannot listen on " + listener.Addr().String() + ": address already in use; " +
			"end what listens there, or choose another port\n"}))
	}, SpecTimeout(time.Minute))

	It("says that its namespace is not there", func(ctx SpecContext) {
		got := starts(ctx, "--namespace=nowhere")
		Expect(got.code).To(Equal(1))
		Expect(got.err).To(HavePrefix(`metalaw: nothing was started: --namespace="nowhere": there is no such namespace, or the manager has no rights in it`))
		Expect(strings.Count(got.err, "\n")).To(Equal(1), got.err)
	}, SpecTimeout(time.Minute))
})

var _ = Describe("The verbs, with the manager at the other end", Ordered, func() {
	BeforeAll(func(ctx SpecContext) { startManager(ctx) })

	// taken waits until the manager has taken a server in.
	taken := func(ctx context.Context, name string) {
		GinkgoHelper()
		Eventually(func() v1alpha1.ServerState { return getServer(ctx, name).Status.State }).ShouldNot(BeEmpty())
	}

	It("say in the manager's words why something was refused", func(ctx SpecContext) {
		newServer(ctx, "m-refused", nil, "")
		taken(ctx, "m-refused")
		got := operator.says(ctx, "server", "retry", "m-refused", "--reason", "INC-1", "--wait")
		Expect(got.code).To(Equal(1), got.err)
		Expect(got.out).To(MatchRegexp(`^m-refused  refused    there is nothing to retry: it is in \w+, and a server is retried in Error\n$`))
	})

	It("judge by what can be read, for somebody who may not read Events", func(ctx SpecContext) {
		Expect(admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "servers-only"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"metal.ironcore.dev"}, Resources: []string{"servers"}, Verbs: []string{"get", "list", "watch", "patch"}}}})).To(Succeed())
		sam := person{"sam", []string{"servers-only"}}
		var err error
		kubeconfigs[sam.name], err = controlPlane.KubeconfigFor(env.User{Name: sam.name})
		Expect(err).NotTo(HaveOccurred())
		sam.bind(ctx)
		for _, name := range []string{"m-blind-1", "m-blind-2", "m-blind-3", "m-blind-4"} {
			newServer(ctx, name, map[string]string{"rack": "blind"}, "")
			taken(ctx, name)
		}
		got := sam.says(ctx, "server", "retry", "-l", "rack=blind", "--reason", "INC-1", "--yes", "--wait", "--timeout", "9s")
		Expect(got.code).To(Equal(1), got.err)
		Expect(got.err).To(And(HavePrefix("why something is refused cannot be read: forbidden: "), ContainSubstring(`it takes the verb "list" on events`)))
		Expect(strings.Split(strings.TrimSpace(got.out), "\n")).To(HaveLen(4))
		Expect(got.out).To(MatchRegexp(`^(m-blind-\d  refused    the manager took the request away and recorded nothing; .*\n){4}$`))
	})

	It("force only for those who may, and wait until it is done", func(ctx SpecContext) {
		newServer(ctx, "m-forced", nil, "")
		taken(ctx, "m-forced")
		got := operator.says(ctx, "server", "force", "m-forced", "--to", "Error", "--reason", "INC-1", "--yes")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(And(HavePrefix("m-forced  failed     denied: "), ContainSubstring("metalaw-server-forcer")))
		Expect(forcer.says(ctx, "server", "force", "m-forced", "--to", "Error", "--reason", "INC-1", "--yes")).To(Equal(said{
			out: "m-forced  done       forced to Error\n"}))
		last := getServer(ctx, "m-forced").Status.Lifecycle.History
		Expect(last[len(last)-1]).To(And(HaveField("By", "fred"), HaveField("Reason", "INC-1"), HaveField("Rule", "Forced")))

		By("a retry, which cannot end while nobody knows the machine's power")
		got = operator.says(ctx, "server", "retry", "m-forced", "--reason", "INC-2", "--wait", "--timeout", "2s")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(HavePrefix("m-forced  timed-out  still Pending after 2s; BMCReachable is False, "))
	})

	It("name the safety rules that a force would set aside, and those that it did", func(ctx SpecContext) {
		s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "m-override"}}
		s.Spec.SystemUUID = "dddddddd-0000-0000-0000-000000000001"
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "default", Name: "vanished"}
		Expect(admin.Create(ctx, s)).To(Succeed())
		taken(ctx, "m-override")
		force := []string{"server", "force", "m-override", "--to", "Available", "--reason", "INC-1", "--yes"}
		got := forcer.says(ctx, force...)
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(And(HavePrefix("m-override  refused    force to Available: NeverOfferDirty: "), HaveSuffix("(that is --override-safety)\n")))
		got = forcer.says(ctx, append(force, "--override-safety")...)
		Expect(got.code).To(BeZero())
		Expect(got.out).To(Equal("m-override  done       forced to Available, setting aside AbsenceIsNotEvidence, ClearOnlyOnProof\n"))
		By("what is told before the end is so only where the program saw it before the end")
		Expect(got.err).To(MatchRegexp("^m-override: (would )?set aside AbsenceIsNotEvidence, ClearOnlyOnProof\n$"))
		moves := getServer(ctx, "m-override").Status.Lifecycle.History
		Expect(moves[len(moves)-1]).To(And(HaveField("By", "fred"), HaveField("Overrides", ConsistOf("AbsenceIsNotEvidence", "ClearOnlyOnProof"))))

		By("a refusal for another reason is not mistaken for the former one")
		got = forcer.says(ctx, "server", "force", "m-override", "--to", "Reserved", "--reason", "INC-1", "--yes")
		Expect(got.out).To(HavePrefix("m-override  refused    force to Reserved: "))
	})

	It("freeze with the manager's admission at work", func(ctx SpecContext) {
		got := operator.says(ctx, "freeze", "-l", "rack=nowhere", "--for", "1h", "--reason", "checked by admission")
		Expect(got.code).To(BeZero(), got.err)
		Expect(got.err).To(ContainSubstring("covers no server"))
		Expect(operator.says(ctx, "unfreeze", "--name", "checked-by-admission").code).To(BeZero())
	})
})
