// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/readiness"
)

const bootstrapped = "readiness.metal.ironcore.dev/bootstrap-completed-ready-once"

var _ = Describe("A ServerReadinessRule", func() {
	var server *v1alpha1.Server

	BeforeEach(func(ctx SpecContext) {
		server = &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "ready", Labels: map[string]string{"readiness": "spec"}},
			Spec: v1alpha1.ServerSpec{SystemUUID: "5ea1ab1e-0000-4000-8000-000000000001"}}
		Expect(admin.Create(ctx, server)).To(Succeed())
		startManager(ctx, readiness.Setup)
		DeferCleanup(func(ctx SpecContext) { // while the manager runs
			Expect(admin.DeleteAllOf(ctx, &v1alpha1.ServerReadinessRule{})).To(Succeed())
			Eventually(func() ([]v1alpha1.ServerReadinessRule, error) { return rulesLeft(ctx) }).Should(BeEmpty())
			Expect(admin.Delete(ctx, server)).To(Succeed())
		})
	})

	It("taints a server whose condition is absent, until it is True", func(ctx SpecContext) {
		readinessRule(ctx, "ready-net", "NetworkReady", v1alpha1.EnforcementModeContinuous, "net")
		Eventually(taintKeys).WithArguments(ctx, server).Should(ConsistOf("net"))
		hasCondition(ctx, server, "NetworkReady", metav1.ConditionFalse)
		Consistently(taintKeys).WithArguments(ctx, server).Should(ConsistOf("net"))
		hasCondition(ctx, server, "NetworkReady", metav1.ConditionTrue)
		Eventually(taintKeys).WithArguments(ctx, server).Should(BeEmpty())
		atRest, err := storedVersion(ctx, server)
		Expect(err).NotTo(HaveOccurred())
		Consistently(storedVersion).WithArguments(ctx, server).Should(Equal(atRest))
		hasCondition(ctx, server, "NetworkReady", metav1.ConditionUnknown)
		Eventually(taintKeys).WithArguments(ctx, server).Should(ConsistOf("net"))
	})

	It("acts once for the bootstrap", func(ctx SpecContext) {
		readinessRule(ctx, "ready-once", "BurnedIn", v1alpha1.EnforcementModeBootstrapOnly, "burn-in")
		Eventually(taintKeys).WithArguments(ctx, server).Should(ConsistOf("burn-in"))
		hasCondition(ctx, server, "BurnedIn", metav1.ConditionTrue)
		Eventually(taintKeys).WithArguments(ctx, server).Should(BeEmpty())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(server), server)).To(Succeed())
		Expect(server.Annotations).To(HaveKeyWithValue(bootstrapped, "true"))
		hasCondition(ctx, server, "BurnedIn", metav1.ConditionFalse)
		Consistently(taintKeys).WithArguments(ctx, server).Should(BeEmpty())
	})

	It("takes its own taint with it, and no other", func(ctx SpecContext) {
		net := readinessRule(ctx, "ready-net", "NetworkReady", v1alpha1.EnforcementModeContinuous, "net")
		also := readinessRule(ctx, "ready-also", "Wired", v1alpha1.EnforcementModeContinuous, "net")
		readinessRule(ctx, "ready-disk", "DisksGood", v1alpha1.EnforcementModeContinuous, "disk")
		addTaint(ctx, server, "theirs")
		Eventually(taintKeys).WithArguments(ctx, server).Should(ConsistOf("net", "disk", "theirs"))
		Expect(admin.Delete(ctx, net)).To(Succeed())
		Eventually(admin.Get).WithArguments(ctx, client.ObjectKeyFromObject(net), net).Should(Satisfy(apierrors.IsNotFound))
		Consistently(taintKeys).WithArguments(ctx, server).Should(ConsistOf("net", "disk", "theirs"), "another rule asks for the same taint")
		Expect(admin.Delete(ctx, also)).To(Succeed())
		Eventually(admin.Get).WithArguments(ctx, client.ObjectKeyFromObject(also), also).Should(Satisfy(apierrors.IsNotFound))
		Expect(taintKeys(ctx, server)).To(ConsistOf("disk", "theirs"), "the rule is gone, and so is its taint")
	})

	It("loses no taint while two rules and somebody else write them", func(ctx SpecContext) {
		readinessRule(ctx, "ready-net", "NetworkReady", v1alpha1.EnforcementModeContinuous, "net")
		readinessRule(ctx, "ready-also", "Wired", v1alpha1.EnforcementModeContinuous, "net")
		wanted := []any{"net"}
		for i := range 20 {
			key := fmt.Sprintf("theirs-%d", i)
			wanted = append(wanted, key)
			hasCondition(ctx, server, "NetworkReady", []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}[i%2])
			hasCondition(ctx, server, "Wired", []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionTrue}[i/2%2])
			addTaint(ctx, server, key)
		}
		hasCondition(ctx, server, "NetworkReady", metav1.ConditionTrue)
		hasCondition(ctx, server, "Wired", metav1.ConditionFalse)
		Eventually(taintKeys).WithArguments(ctx, server).Should(ConsistOf(wanted...))
		hasCondition(ctx, server, "Wired", metav1.ConditionTrue)
		Eventually(taintKeys).WithArguments(ctx, server).Should(ConsistOf(wanted[1:]...))
	})

	It("accepts the effect Evict", func(ctx SpecContext) {
		rule := &v1alpha1.ServerReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: "ready-evict"}, Spec: v1alpha1.ServerReadinessRuleSpec{
			Conditions:      []v1alpha1.ConditionRequirement{{Type: "NetworkReady", RequiredStatus: metav1.ConditionTrue}},
			EnforcementMode: v1alpha1.EnforcementModeContinuous, Taint: v1alpha1.Taint{Key: "net", Effect: v1alpha1.TaintEffectEvict},
			ServerSelector: metav1.LabelSelector{MatchLabels: map[string]string{"readiness": "spec"}}}}
		Expect(admin.Create(ctx, rule)).To(Succeed())
		Eventually(taintKeys).WithArguments(ctx, server).Should(ConsistOf("net"))
	})
})

// readinessRule makes a rule that asks the servers of these specs for a condition.
func readinessRule(ctx context.Context, name, condition string, mode v1alpha1.EnforcementMode, taint string) *v1alpha1.ServerReadinessRule {
	GinkgoHelper()
	rule := &v1alpha1.ServerReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ServerReadinessRuleSpec{
		Conditions:      []v1alpha1.ConditionRequirement{{Type: condition, RequiredStatus: metav1.ConditionTrue}},
		EnforcementMode: mode, Taint: v1alpha1.Taint{Key: taint},
		ServerSelector: metav1.LabelSelector{MatchLabels: map[string]string{"readiness": "spec"}}}}
	Expect(admin.Create(ctx, rule)).To(Succeed())
	return rule
}

func rulesLeft(ctx context.Context) ([]v1alpha1.ServerReadinessRule, error) {
	var list v1alpha1.ServerReadinessRuleList
	err := admin.List(ctx, &list)
	return list.Items, err
}

func taintKeys(ctx context.Context, s *v1alpha1.Server) ([]string, error) {
	now := &v1alpha1.Server{}
	err := admin.Get(ctx, client.ObjectKeyFromObject(s), now)
	var keys []string
	for _, t := range now.Spec.Taints {
		keys = append(keys, t.Key)
	}
	return keys, err
}

func storedVersion(ctx context.Context, s *v1alpha1.Server) (string, error) {
	now := &v1alpha1.Server{}
	err := admin.Get(ctx, client.ObjectKeyFromObject(s), now)
	return now.ResourceVersion, err
}

// hasCondition writes a condition of a server, as whoever checks servers does.
func hasCondition(ctx context.Context, s *v1alpha1.Server, kind string, status metav1.ConditionStatus) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now := &v1alpha1.Server{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(s), now); err != nil {
			return err
		}
		meta.SetStatusCondition(&now.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Checked"})
		return admin.Status().Update(ctx, now)
	})).To(Succeed())
}

// addTaint adds a taint under the optimistic lock, as a user's tool does.
func addTaint(ctx context.Context, s *v1alpha1.Server, key string) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now := &v1alpha1.Server{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(s), now); err != nil {
			return err
		}
		now.Spec.Taints = append(now.Spec.Taints, v1alpha1.Taint{Key: key, Effect: v1alpha1.TaintEffectNoBind})
		return admin.Update(ctx, now)
	})).To(Succeed())
}
