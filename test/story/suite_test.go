// SPDX-License-Identifier: Apache-2.0

// Package story holds the specs of the whole operator: the manager's controllers and its probe registry, run under the
// shipped rights against a real API server, emulated BMCs whose machines boot and report, and a boot provider.
package story

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/maintenance"
	"github.com/metalaw/metalaw/test/env"
)

var (
	controlPlane *env.Env
	// admin reads and writes as the administrator, past any cache.
	admin  client.Client
	scheme = runtime.NewScheme()
	// theWorld is what most specs share; a spec that needs to break it makes its own machines in it.
	theWorld *world
)

// soon is how long what is noticed within a poll, which is 2 s, may take to show where a build runs beside the specs.
const soon = 20 * time.Second

func TestStory(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Story")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	log.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(1500 * time.Millisecond)
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	Expect(policyv1alpha1.AddToScheme(scheme)).To(Succeed())
	var err error
	controlPlane, err = env.Start(context.WithoutCancel(ctx), env.Options{Kustomize: []string{"config/default"}})
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.New(controlPlane.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed()) // admission has specs of its own
	// Times are of whole seconds: a maintenance of the second in which the manager was first told to grant would count as older.
	Expect(admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: maintenance.ConsentConfigMap},
		Data: map[string]string{maintenance.ConsentKey: time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}})).To(Succeed())
	theWorld = newWorld(ctx)
}, NodeTimeout(3*time.Minute))

var _ = AfterEach(func(ctx SpecContext) {
	if theWorld != nil && theWorld.stop == nil {
		theWorld.startManager(ctx)
	}
})

var _ = AfterSuite(func() {
	if theWorld != nil {
		theWorld.close()
	}
	if controlPlane != nil {
		Expect(controlPlane.Stop()).To(Succeed())
	}
})
