// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/revision"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/test/env"
)

var policyManagers atomic.Int32

// policyManager is one replica that does nothing but roll policies out. The first that starts leads.
type policyManager struct {
	identity string
	store    *revision.Store
	shadows  *revision.Shadows
	manager  ctrl.Manager
	stop     func()
}

// runPolicy starts a manager that understands everything, and has the end of the spec take away what it made.
func runPolicy(ctx context.Context) *policyManager {
	GinkgoHelper()
	m := newPolicyManager(ctx, nil)
	DeferCleanup(removePolicies)
	m.start(ctx)
	return m
}

// newPolicyManager makes a manager that has read what governs and does not run yet. It refuses the versions that refuses
// says.
func newPolicyManager(ctx context.Context, refuses func(version string) bool) *policyManager {
	GinkgoHelper()
	rights, err := controlPlane.ConfigFor(env.Manager)
	Expect(err).NotTo(HaveOccurred())
	m := &policyManager{identity: fmt.Sprintf("replica-%d", policyManagers.Add(1)), stop: func() {}}
	m.manager, err = ctrl.NewManager(rights, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		LeaderElection: true, LeaderElectionID: "policy-specs", LeaderElectionNamespace: managerNamespace, LeaderElectionReleaseOnCancel: true,
		RetryPeriod: ptr.To(200 * time.Millisecond),
	})
	Expect(err).NotTo(HaveOccurred())
	embedded, err := policies.Default()
	Expect(err).NotTo(HaveOccurred())
	m.store = revision.NewStore(m.manager.GetClient(), embedded)
	if accept := m.store.Accept; refuses != nil {
		m.store.Accept = func(ctx context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error) {
			b, found, err := accept(ctx, files, fill)
			if b != nil && refuses(b.Version) {
				found = append(found, diag.Diagnostic{Severity: diag.Error, File: "bundle.yaml", Message: "not for this engine"})
			}
			return b, found, err
		}
	}
	registry := prometheus.NewRegistry()
	m.shadows, err = revision.NewShadows(registry)
	Expect(err).NotTo(HaveOccurred())
	Expect(revision.Setup(ctx, m.manager, revision.Options{Store: m.store, Shadows: m.shadows, Probation: &revision.Probation{}, Namespace: managerNamespace, Identity: m.identity,
		Metrics: registry, Interval: 500 * time.Millisecond})).To(Succeed())
	return m
}

func (m *policyManager) start(ctx context.Context) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- m.manager.Start(running) }()
	stopped := false
	m.stop = func() {
		GinkgoHelper()
		if !stopped {
			stopped = true
			cancel()
			Expect(<-ended).To(Succeed())
		}
	}
	DeferCleanup(func() { m.stop() })
}

// governs is what this manager decides by: "1.0.0, shadow 1.1.0".
func (m *policyManager) governs() string {
	text := versionOf(m.store.Active().Revision.Name)
	for _, b := range m.store.Shadows() {
		text += ", shadow " + versionOf(b.Revision.Name)
	}
	return text
}

// versionOf shortens the name of a revision: default for the built-in one, else its version.
func versionOf(name string) string {
	bundleName, rest, _ := strings.Cut(name, "-")
	if bundleName == policies.DefaultBundle {
		return bundleName
	}
	version, _, _ := strings.Cut(rest, "-")
	return version
}

// apply makes the ConfigMap fleet-VERSION, or fleet-NAME for VERSION@NAME: the default bundle under another name.
func apply(ctx context.Context, version, stage string, change func(files map[string]string)) {
	GinkgoHelper()
	version, name, named := strings.Cut(version, "@")
	if !named {
		name = version
	}
	shipped, err := policies.Shipped(policies.DefaultBundle)
	Expect(err).NotTo(HaveOccurred())
	testkit.Rename(shipped, "fleet", version)
	files := map[string]string{}
	for file, data := range shipped {
		files[file] = string(data)
	}
	if change != nil {
		change(files)
	}
	Expect(admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: "fleet-" + name,
		Labels: map[string]string{policyv1alpha1.BundleLabel: "fleet", policyv1alpha1.StageLabel: stage}}, Data: files})).To(Succeed())
}

func head(ctx context.Context, version string) *corev1.ConfigMap {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	Expect(admin.Get(ctx, types.NamespacedName{Namespace: managerNamespace, Name: "fleet-" + version}, cm)).To(Succeed())
	return cm
}

func label(ctx context.Context, version, stage string) {
	GinkgoHelper()
	cm := head(ctx, version)
	before := cm.DeepCopy()
	cm.Labels[policyv1alpha1.StageLabel] = stage
	Expect(admin.Patch(ctx, cm, client.MergeFrom(before))).To(Succeed())
}

// revisions is every revision by its version: "default Superseded Superseded, 1.0.0 Active InForce".
func revisions(ctx context.Context) func() string {
	return func() string {
		var list policyv1alpha1.PolicyRevisionList
		Expect(admin.List(ctx, &list)).To(Succeed())
		var all []string
		for i := range list.Items {
			r := &list.Items[i]
			reason := ""
			if c := meta.FindStatusCondition(r.Status.Conditions, policyv1alpha1.ConditionActive); c != nil {
				reason = c.Reason
			}
			all = append(all, fmt.Sprintf("%s %s %s", versionOf(r.Name), r.Status.Stage, reason))
		}
		return strings.Join(all, ", ")
	}
}

func revisionOf(ctx context.Context, version string) *policyv1alpha1.PolicyRevision {
	GinkgoHelper()
	var list policyv1alpha1.PolicyRevisionList
	Expect(admin.List(ctx, &list)).To(Succeed())
	for i := range list.Items {
		if versionOf(list.Items[i].Name) == version {
			return &list.Items[i]
		}
	}
	return &policyv1alpha1.PolicyRevision{}
}

func activeMessage(ctx context.Context, version string) string {
	GinkgoHelper()
	c := meta.FindStatusCondition(revisionOf(ctx, version).Status.Conditions, policyv1alpha1.ConditionActive)
	if c == nil {
		return ""
	}
	return c.Message
}

// eventsOf are the events on a ConfigMap: "Normal InForce".
func eventsOf(ctx context.Context, name string) func() []string {
	return func() []string {
		var list eventsv1.EventList
		Expect(admin.List(ctx, &list, client.InNamespace(managerNamespace))).To(Succeed())
		var all []string
		for i := range list.Items {
			if e := &list.Items[i]; e.Regarding.Kind == "ConfigMap" && e.Regarding.Name == name {
				all = append(all, e.Type+" "+e.Reason)
			}
		}
		return all
	}
}

func leases(ctx context.Context) int {
	GinkgoHelper()
	var list coordinationv1.LeaseList
	Expect(admin.List(ctx, &list, client.HasLabels{policyv1alpha1.ReplicaLabel})).To(Succeed())
	return len(list.Items)
}

// makeServer makes a Server of which nothing but its labels counts.
func makeServer(ctx context.Context, labels map[string]string) *v1alpha1.Server {
	GinkgoHelper()
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{GenerateName: "canary-", Labels: labels}}
	s.Spec.SystemUUID = fmt.Sprintf("38947555-7742-3448-3784-%012d", policyManagers.Add(1))
	Expect(admin.Create(ctx, s)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, s)).To(Succeed()) })
	return s
}

// removePolicies takes away everything that a rollout leaves.
func removePolicies(ctx SpecContext) {
	GinkgoHelper()
	for _, key := range []string{policyv1alpha1.BundleLabel, policyv1alpha1.BundlePartLabel} {
		Expect(admin.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(managerNamespace), client.HasLabels{key})).To(Succeed())
	}
	Expect(admin.DeleteAllOf(ctx, &policyv1alpha1.PolicyRevision{})).To(Succeed())
	Expect(admin.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(managerNamespace), client.HasLabels{policyv1alpha1.ReplicaLabel})).To(Succeed())
	Expect(admin.DeleteAllOf(ctx, &eventsv1.Event{}, client.InNamespace(managerNamespace))).To(Succeed())
}
