// SPDX-License-Identifier: Apache-2.0

// Package restored walks the procedure of docs/operations.md for a restored etcd: with the whole operator, a real etcd whose data is
// put back to a snapshot, and emulated machines, which no restore reaches.
package restored

import (
	"context"
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
	controlPlane *env.Env
	// admin reads and writes as the administrator, past any cache.
	admin    client.Client
	scheme   = runtime.NewScheme()
	theWorld *world
)

func TestRestored(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Restored")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	log.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(4 * time.Second)
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	Expect(policyv1alpha1.AddToScheme(scheme)).To(Succeed())
	var err error
	controlPlane, err = env.Start(context.WithoutCancel(ctx), env.Options{Kustomize: []string{"config/default"}})
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.New(controlPlane.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed()) // admission has specs of its own
	theWorld = newWorld(ctx)
}, NodeTimeout(3*time.Minute))

var _ = AfterSuite(func() {
	if theWorld != nil {
		theWorld.close()
	}
	if controlPlane != nil {
		Expect(controlPlane.Stop()).To(Succeed())
	}
})
