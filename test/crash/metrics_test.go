// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/test/env"
)

// prepareMonitored makes a manager that is elected and whose metrics are served, as in a cluster.
func (w *world) prepareMonitored(ctx context.Context) {
	GinkgoHelper()
	at := freeAddresses(ctx)
	port, err := env.FreePort(ctx)
	Expect(err).NotTo(HaveOccurred())
	w.metrics = local(port)
	w.manager = w.newManager(ctx, "manager", at, at, "--leader-elect", "--metrics-bind-address="+w.metrics, "--metrics-secure=true")
	w.killer = newKiller(w.manager.Kill)
	w.mountCertificates(ctx, at.webhook)
}

// scrape reads the metrics as a monitoring system does.
func (w *world) scrape(ctx context.Context) string {
	GinkgoHelper()
	clients, err := kubernetes.NewForConfig(w.plane.Config)
	Expect(err).NotTo(HaveOccurred())
	_, err = clients.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "metalaw-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: tenants, Name: "default"}}}, metav1.CreateOptions{})
	Expect(client.IgnoreAlreadyExists(err)).NotTo(HaveOccurred())
	token, err := clients.CoreV1().ServiceAccounts(tenants).CreateToken(ctx, "default",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(600))}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://%s/metrics", w.metrics), http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+token.Status.Token)
	scraper := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer scraper.CloseIdleConnections()
	response, err := scraper.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response).To(HaveHTTPStatus(http.StatusOK), string(text))
	return string(text)
}
