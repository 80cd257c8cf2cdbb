// SPDX-License-Identifier: Apache-2.0

// Package vm holds the specs of machines that truly boot: the whole operator against a real API server, emulated BMCs whose machines
// are virtual ones, and the agent's image in them. It needs QEMU and what `make vm-images` builds; `make test-vm` runs it.
package vm

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
	controlPlane *env.Env
	// admin reads and writes as the administrator, past any cache.
	admin    client.Client
	scheme   = runtime.NewScheme()
	theWorld *world
)

const (
	// These limits only end what hangs. They are 20 times and more of what an idle host takes.
	booted  = 4 * time.Minute // from power-on to the first report
	wiped   = 5 * time.Minute // a boot with a wipe of small disks
	chained = 6 * time.Minute // a boot of the whole image by iPXE
	soon    = time.Minute     // what needs no boot
)

func TestVM(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "VM")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	log.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(booted)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	var err error
	controlPlane, err = env.Start(context.WithoutCancel(ctx), env.Options{Kustomize: []string{"config/default"}})
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.New(controlPlane.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed()) // admission has specs of its own
	dir, err := os.MkdirTemp("", "metalaw-vm-")
	Expect(err).NotTo(HaveOccurred())
	theWorld = newWorld(ctx, dir)
}, NodeTimeout(5*time.Minute))

var _ = AfterEach(func(ctx SpecContext) {
	if theWorld != nil && theWorld.stop == nil {
		theWorld.startManager(ctx)
	}
	if theWorld != nil && CurrentSpecReport().Failed() {
		theWorld.showConsoles()
		theWorld.showServers(ctx)
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
