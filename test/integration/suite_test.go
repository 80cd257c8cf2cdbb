// SPDX-License-Identifier: Apache-2.0

// Package integration holds the specs that run controllers against a real API server. One control plane serves them all;
// each spec starts the controllers that it is about, under the manager's own service account and shipped rights.
package integration

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/test/env"
)

var (
	// controlPlane runs for the whole suite; admin reads and writes as its administrator, past any cache.
	controlPlane *env.Env
	admin        client.Client
	scheme       = runtime.NewScheme()
)

func TestIntegration(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Integration")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	log.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	Expect(policyv1alpha1.AddToScheme(scheme)).To(Succeed())

	var err error
	controlPlane, err = env.Start(context.WithoutCancel(ctx), env.Options{Kustomize: []string{"config/default"}})
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.New(controlPlane.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	// Specs about controllers run without admission; those about admission put it in place themselves.
	Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed())
}, NodeTimeout(3*time.Minute))

var _ = AfterSuite(func() {
	Expect(os.RemoveAll(programs)).To(Succeed())
	if controlPlane != nil {
		Expect(controlPlane.Stop()).To(Succeed())
	}
})
