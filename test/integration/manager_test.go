// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/test/env"
)

// startManager runs controllers in this process with the rights of the shipped service account. The function that it
// returns stops them, and may be called more than once; the end of the spec calls it as well.
func startManager(ctx context.Context, setup func(ctrl.Manager) error) (stop func()) {
	GinkgoHelper()
	rights, err := controlPlane.ConfigFor(env.Manager)
	Expect(err).NotTo(HaveOccurred())
	mgr, err := ctrl.NewManager(rights, ctrl.Options{
		Scheme:     scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(fieldindex.Register(ctx, mgr.GetFieldIndexer())).To(Succeed())
	Expect(setup(mgr)).To(Succeed())
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		Expect(<-ended).To(Succeed())
	}
	DeferCleanup(func() { stop() })
	return stop
}
