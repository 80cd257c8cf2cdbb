// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/eventsink"
)

var _ = Describe("An Event", func() {
	It("bears lastTimestamp, by which people sort, and is the same for readers of events.k8s.io", func(ctx SpecContext) {
		var tell recorder.EventRecorder
		startManager(ctx, func(mgr ctrl.Manager) error {
			telling, err := eventsink.For(ctx, mgr)
			if err != nil {
				return err
			}
			tell = telling.GetEventRecorder("metalaw-server")
			return nil
		})
		server := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "telling", UID: "0e1e0000-0000-4000-8000-000000000001"}}
		told := func(ctx context.Context) (*corev1.Event, error) {
			var events corev1.EventList
			err := admin.List(ctx, &events, client.InNamespace(metav1.NamespaceDefault))
			for i := range events.Items {
				if events.Items[i].InvolvedObject.Name == server.Name {
					return &events.Items[i], err
				}
			}
			return &corev1.Event{}, err
		}
		DeferCleanup(func(ctx SpecContext) {
			e, err := told(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(client.IgnoreNotFound(admin.Delete(ctx, e))).To(Succeed())
		})
		count := func(ctx context.Context) (int32, error) {
			e, err := told(ctx)
			return e.Count, err
		}

		By("once")
		tell.Eventf(server, nil, corev1.EventTypeNormal, "ProbeReported", "Move", "moved")
		Eventually(count).WithArguments(ctx).Should(BeEquivalentTo(1))
		first, err := told(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(first.LastTimestamp.IsZero()).To(BeFalse())
		Expect(first.LastTimestamp).To(Equal(first.FirstTimestamp))
		Expect(first.Source.Component).To(Equal("metalaw-server"))

		By("and again")
		tell.Eventf(server, nil, corev1.EventTypeNormal, "ProbeReported", "Move", "moved")
		Eventually(count).WithArguments(ctx).Should(BeEquivalentTo(2))
		again, err := told(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Name).To(Equal(first.Name))
		Expect(again.LastTimestamp.Unix()).To(Equal(again.Series.LastObservedTime.Unix()))

		var same eventsv1.Event
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(again), &same)).To(Succeed())
		Expect(same.Note).To(Equal("moved"))
		Expect(same.Regarding).To(Equal(again.InvolvedObject))
		Expect(same.EventTime).To(Equal(first.EventTime))
		Expect(same.Series.Count).To(BeEquivalentTo(2))
	})
})
