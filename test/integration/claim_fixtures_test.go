// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/claim"
	"github.com/metalaw/metalaw/controllers/scheduler"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// embedded is the default bundle, always in force.
type embedded struct{ bundle *bundle.Bundle }

func (e embedded) Active() *bundle.Bundle { return e.bundle }

// runClaims starts the scheduler and the claim loop, and returns what stops them. Servers have no controller here: a spec
// sets their state as the server loop would.
func runClaims(ctx context.Context) (stop func()) {
	GinkgoHelper()
	shipped, err := policies.Default()
	Expect(err).NotTo(HaveOccurred())
	return startManager(ctx, func(mgr ctrl.Manager) error {
		s, err := scheduler.Setup(ctx, mgr, scheduler.Options{Bundles: embedded{shipped}})
		if err != nil {
			return err
		}
		return claim.Setup(mgr, claim.Options{Scheduler: s})
	})
}

// place is a namespace and a pool of servers of its own, so that specs do not take each other's servers.
type place struct{ namespace, pool string }

const poolLabel = "example.com/pool"

func newPlace(ctx context.Context) place {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "claims-"}}
	Expect(admin.Create(ctx, namespace)).To(Succeed())
	return place{namespace.Name, namespace.Name}
}

// server makes a server that is free to claim, changed as the spec says.
func (p place) server(ctx context.Context, name string, change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	GinkgoHelper()
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: p.pool + "-" + name, Labels: map[string]string{poolLabel: p.pool}}}
	s.Spec.SystemUUID = strings.ToLower(string(uuid.NewUUID()))
	s.Status.State, s.Status.PowerState = v1alpha1.StateAvailable, v1alpha1.PowerStateOff
	for _, c := range change {
		c(s)
	}
	status := s.Status.DeepCopy()
	Expect(admin.Create(ctx, s)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(admin.Delete(ctx, s))).To(Succeed())
	})
	s.Status = *status
	Expect(admin.Status().Update(ctx, s)).To(Succeed())
	return s
}

// claim makes a claim for any server of the place's pool, changed as the spec says.
func (p place) claim(ctx context.Context, name string, change ...func(*v1alpha1.ServerClaim)) *v1alpha1.ServerClaim {
	GinkgoHelper()
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}}
	c.Spec.Power, c.Spec.Image = v1alpha1.PowerOn, "registry.example.com/os:1.0"
	c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{poolLabel: p.pool}}
	for _, f := range change {
		f(c)
	}
	Expect(admin.Create(ctx, c)).To(Succeed())
	return c
}

func withFinalizer(c *v1alpha1.ServerClaim) {
	controllerutil.AddFinalizer(c, v1alpha1.FinalizerServerClaim)
}

func naming(server string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) { c.Spec.ServerRef = &corev1.LocalObjectReference{Name: server} }
}

// writtenFor is what the first of the two writes of a binding leaves on a server.
func writtenFor(namespace, name, uid string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: namespace, Name: name}
		if uid != "" {
			s.Annotations = map[string]string{v1alpha1.ClaimUIDAnnotation: uid}
		}
	}
}

func inState(state v1alpha1.ServerState) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Status.State = state }
}

// live reads an object again.
func live[T client.Object](ctx context.Context, object T) T {
	GinkgoHelper()
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	return object
}

// patch changes an object, and patchStatus its status, as somebody else would.
func patch[T client.Object](ctx context.Context, object T, change func(T)) {
	GinkgoHelper()
	before, ok := live(ctx, object).DeepCopyObject().(T)
	Expect(ok).To(BeTrue())
	change(object)
	Expect(admin.Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

func patchStatus[T client.Object](ctx context.Context, object T, change func(T)) {
	GinkgoHelper()
	before, ok := live(ctx, object).DeepCopyObject().(T)
	Expect(ok).To(BeTrue())
	change(object)
	Expect(admin.Status().Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

// serverOf is the name of the server that a claim has, or empty.
func serverOf(ctx context.Context, c *v1alpha1.ServerClaim) func(Gomega) string {
	return func(g Gomega) string {
		var got v1alpha1.ServerClaim
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(c), &got)).To(Succeed())
		if got.Spec.ServerRef == nil {
			return ""
		}
		return got.Spec.ServerRef.Name
	}
}

func phaseOf(ctx context.Context, c *v1alpha1.ServerClaim) func(Gomega) v1alpha1.Phase {
	return func(g Gomega) v1alpha1.Phase {
		var got v1alpha1.ServerClaim
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(c), &got)).To(Succeed())
		return got.Status.Phase
	}
}

// says is a condition as "True Reason: message"; empty where there is none that speaks of the present spec.
func says(ctx context.Context, c *v1alpha1.ServerClaim, kind string) func(Gomega) string {
	return func(g Gomega) string {
		var got v1alpha1.ServerClaim
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(c), &got)).To(Succeed())
		condition := meta.FindStatusCondition(got.Status.Conditions, kind)
		if condition == nil || condition.ObservedGeneration != got.Generation {
			return ""
		}
		return fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
	}
}

// reserve does what the server loop does for a bound claim: state, boot configuration, reference.
func reserve(ctx context.Context, s *v1alpha1.Server, c *v1alpha1.ServerClaim) *v1alpha1.ServerBootConfiguration {
	GinkgoHelper()
	patchStatus(ctx, s, inState(v1alpha1.StateReserved))
	boot := bootFor(live(ctx, c), s.Name)
	Expect(admin.Create(ctx, boot)).To(Succeed())
	patch(ctx, s, func(s *v1alpha1.Server) {
		s.Spec.BootConfigurationRef = &v1alpha1.ObjectReference{Namespace: boot.Namespace, Name: boot.Name}
	})
	return boot
}

func bootFor(c *v1alpha1.ServerClaim, server string) *v1alpha1.ServerBootConfiguration {
	GinkgoHelper()
	boot := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	boot.Spec.ServerRef.Name, boot.Spec.Image, boot.Spec.IgnitionSecretRef = server, c.Spec.Image, c.Spec.IgnitionSecretRef
	Expect(controllerutil.SetControllerReference(c, boot, scheme)).To(Succeed())
	return boot
}

// boundClaim makes a server and a claim that is bound to it and running.
func (p place) boundClaim(ctx context.Context, change ...func(*v1alpha1.ServerClaim)) (*v1alpha1.ServerClaim, *v1alpha1.Server) {
	GinkgoHelper()
	s := p.server(ctx, "one")
	c := p.claim(ctx, "claim", change...)
	Eventually(serverOf(ctx, c)).Should(Equal(s.Name))
	boot := reserve(ctx, s, c)
	Eventually(phaseOf(ctx, c)).Should(Equal(v1alpha1.PhaseBound))
	patchStatus(ctx, boot, func(b *v1alpha1.ServerBootConfiguration) {
		b.Status.State = v1alpha1.ServerBootConfigurationStateReady
	})
	patchStatus(ctx, s, func(s *v1alpha1.Server) { s.Status.PowerState = v1alpha1.PowerState(c.Spec.Power) })
	Eventually(says(ctx, c, v1alpha1.ConditionReady)).Should(HavePrefix("True"))
	return live(ctx, c), live(ctx, s)
}

// goneAtOnce expects an object to go promptly.
func goneAtOnce(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Eventually(func() bool {
		return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(object), object))
	}).WithTimeout(5 * time.Second).Should(BeTrue())
}

// vanish makes a claim go without its finalizer having run, as only an administrator can.
func vanish(ctx context.Context, c *v1alpha1.ServerClaim) {
	GinkgoHelper()
	patch(ctx, c, func(c *v1alpha1.ServerClaim) {
		c.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore}
		c.Finalizers = nil
	})
	gone := c.DeepCopy()
	Expect(admin.Delete(ctx, gone)).To(Succeed())
	goneAtOnce(ctx, gone)
}
