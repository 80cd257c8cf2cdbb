// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/bmc"
	"github.com/metalaw/metalaw/controllers/endpoint"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/macprefixes"
	"github.com/metalaw/metalaw/redfish"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// bmcPort is where every emulated BMC listens, each at an address of its own.
const bmcPort = 18443

// prefixes knows the emulated BMCs, with one factory account that is out of date and one that works.
const prefixes = `
macPrefixes:
  - macPrefix: "02:4d:4c"
    manufacturer: Emulated
    protocolScheme: http
    port: 18443
    defaultCredentials: [{username: admin, password: outdated}, {username: admin, password: password}]
    console: {type: SSH, port: 22}
  - macPrefix: "02:4d:4e"
    manufacturer: Certified
    protocolScheme: https
    port: 18443
    defaultCredentials: [{username: admin, password: password}]
  - macPrefix: "02:4d:4d"
    manufacturer: Unlabelled
    protocolScheme: http
    port: 18443
`

// policy is the policy in force; only what these controllers ask of it matters.
type policy struct{ bundle *bundle.Bundle }

func (p policy) Active() *bundle.Bundle { return p.bundle }

// rig is a fleet of emulated BMCs and the controllers that discover them.
type rig struct {
	fleet *emulator.Fleet
	pool  *redfish.Pool
	stop  func()
	// takeOverAfter and the like are short, so that a spec does not wait for minutes.
	bmcOptions bmc.Options
	policy     policy
	// before is what existed when the spec began.
	before map[string]client.Object
}

func newRig(ctx context.Context, options ...func(*emulator.Options)) *rig {
	GinkgoHelper()
	o := emulator.Options{Network: "127.66.0.0/24", Port: bmcPort}
	for _, option := range options {
		option(&o)
	}
	r := &rig{fleet: emulator.New(o)}
	Expect(r.fleet.Start(context.WithoutCancel(ctx))).To(Succeed())
	DeferCleanup(r.fleet.Close)
	macs, problems := macprefixes.Parse("macprefixes.yaml", []byte(prefixes))
	Expect(macs).NotTo(BeNil(), "%v", problems)
	r.policy = policy{&bundle.Bundle{
		Manifest: bundle.Manifest{Settings: bundle.Settings{BMCTLS: bundle.TLSVerify}},
		Revision: engine.Revision{Name: "spec", Version: "1.0.0"}, MACs: macs,
	}}
	r.bmcOptions = bmc.Options{SteadyPoll: 500 * time.Millisecond, TransitionPoll: 100 * time.Millisecond, TakeOverAfter: 2 * time.Second, ResetSettle: time.Second}
	return r
}

// start runs the controllers, after the spec has adjusted the rig.
func (r *rig) start(ctx context.Context) {
	GinkgoHelper()
	r.pool = redfish.NewPool(redfish.PoolOptions{BreakerBase: 100 * time.Millisecond, BreakerMax: time.Second})
	if r.before == nil {
		r.before = present(ctx)
	}
	r.stop = startManager(ctx, func(mgr ctrl.Manager) error {
		if err := endpoint.Setup(mgr, endpoint.Options{
			Bundles: r.policy, Clients: r.pool, Namespace: "metalaw-system",
		}); err != nil {
			return err
		}
		o := r.bmcOptions
		o.Bundles, o.Clients = r.policy, r.pool
		return bmc.Setup(mgr, o)
	})
	DeferCleanup(func(ctx SpecContext) {
		removeNew(ctx, r.before)
		r.stop()
		removeRest(ctx, r.before)
		// A spec may have taken away a BMC that still has a session of ours.
		Expect(r.pool.Close(ctx)).To(Or(Succeed(), MatchError(ContainSubstring("a session may be left"))))
	})
}

// restart ends the manager and begins another, as an upgrade does.
func (r *rig) restart(ctx context.Context) {
	GinkgoHelper()
	r.stop()
	Expect(r.pool.Close(ctx)).To(Succeed())
	r.start(ctx)
}

// present lists the discovered kinds as "kind/name", so that a spec can take away what it made, and nothing else.
func present(ctx context.Context) map[string]client.Object {
	GinkgoHelper()
	found := map[string]client.Object{}
	for _, list := range []client.ObjectList{&v1alpha1.EndpointList{}, &v1alpha1.BMCList{}, &v1alpha1.BMCSecretList{}, &v1alpha1.ServerList{}} {
		Expect(admin.List(ctx, list)).To(Succeed())
		Expect(meta.EachListItem(list, func(o runtime.Object) error {
			object := o.(client.Object)
			found[fmt.Sprintf("%T/%s", object, object.GetName())] = object
			return nil
		})).To(Succeed())
	}
	return found
}

// removeNew deletes what came since before, Endpoints ahead of the BMCs that they would make again. The controllers still
// run, because they take their finalizers away.
func removeNew(ctx context.Context, before map[string]client.Object) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		left := 0
		for key, object := range present(ctx) {
			if before[key] == nil {
				left++
				g.Expect(client.IgnoreNotFound(admin.Delete(ctx, object))).To(Succeed())
			}
		}
		g.Expect(left).To(BeZero())
	}).Should(Succeed())
}

// removeRest deletes what a reconcile in flight made after its owner was deleted: no garbage collector runs here.
func removeRest(ctx context.Context, before map[string]client.Object) {
	GinkgoHelper()
	for key, object := range present(ctx) {
		if before[key] != nil {
			continue
		}
		Expect(client.IgnoreNotFound(admin.Delete(ctx, object))).To(Succeed())
		base, ok := object.DeepCopyObject().(client.Object)
		Expect(ok).To(BeTrue())
		object.SetFinalizers(nil)
		Expect(client.IgnoreNotFound(admin.Patch(ctx, object, client.MergeFrom(base)))).To(Succeed())
	}
}

// machine adds one whose BMC the prefix database knows.
func (r *rig) machine(number int, change func(*emulator.MachineSpec)) *emulator.Machine {
	GinkgoHelper()
	spec := emulator.MachineSpec{BMCMAC: fmt.Sprintf("02:4d:4c:00:00:%02x", number), Username: "admin", Password: "password"}
	if change != nil {
		change(&spec)
	}
	m := r.fleet.Add(spec)
	Expect(m.Err()).NotTo(HaveOccurred())
	return m
}

func createEndpoint(ctx context.Context, name, mac, ip string) *v1alpha1.Endpoint {
	GinkgoHelper()
	e := &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.EndpointSpec{MACAddress: mac, IP: ip}}
	Expect(admin.Create(ctx, e)).To(Succeed())
	return e
}

func createSecret(ctx context.Context, name, password string) *v1alpha1.BMCSecret {
	GinkgoHelper()
	s := &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"username": []byte("admin"), "password": []byte(password)}}
	Expect(admin.Create(ctx, s)).To(Succeed())
	return s
}

// createBMC makes a BMC with inline access, and its secret.
func createBMC(ctx context.Context, name, ip, password string, labels map[string]string) *v1alpha1.BMC {
	GinkgoHelper()
	createSecret(ctx, name, password)
	b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	b.Spec.Access = &v1alpha1.InlineEndpoint{IP: ip}
	b.Spec.BMCSecretRef = corev1.LocalObjectReference{Name: name}
	b.Spec.Protocol = v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish, Port: bmcPort, Scheme: v1alpha1.ProtocolSchemeHTTP}
	Expect(admin.Create(ctx, b)).To(Succeed())
	return b
}

// condition returns "status/reason" of a condition of an object, or what keeps it from being read.
func condition(ctx context.Context, object client.Object, name, kind string) func() string {
	return func() string {
		if err := admin.Get(ctx, types.NamespacedName{Name: name}, object); err != nil {
			return string(apierrors.ReasonForError(err))
		}
		var all []metav1.Condition
		switch o := object.(type) {
		case *v1alpha1.Endpoint:
			all = o.Status.Conditions
		case *v1alpha1.BMC:
			all = o.Status.Conditions
		}
		c := meta.FindStatusCondition(all, kind)
		if c == nil {
			return "none"
		}
		if c.ObservedGeneration != object.GetGeneration() {
			return "stale"
		}
		return string(c.Status) + "/" + c.Reason
	}
}

func bmcCondition(ctx context.Context, name, kind string) func() string {
	return condition(ctx, &v1alpha1.BMC{}, name, kind)
}

func endpointCondition(ctx context.Context, name, kind string) func() string {
	return condition(ctx, &v1alpha1.Endpoint{}, name, kind)
}

// servers lists "name bmc uri uuid" of the Servers that name a BMC, sorted by name.
func servers(ctx context.Context) func() []string {
	return func() []string {
		var list v1alpha1.ServerList
		if err := admin.List(ctx, &list); err != nil {
			return []string{err.Error()}
		}
		lines := []string{}
		for i := range list.Items {
			s := &list.Items[i]
			if s.Spec.BMCRef != nil {
				lines = append(lines, fmt.Sprintf("%s %s %s %s", s.Name, s.Spec.BMCRef.Name, s.Spec.SystemURI, s.Spec.SystemUUID))
			}
		}
		return lines
	}
}

func serverLine(name, bmc string, m *emulator.Machine, uuid string) string {
	return fmt.Sprintf("%s %s %s %s", name, bmc, m.SystemURI(), uuid)
}

// countWrites counts from now on how often objects of each discovered kind are written, until the spec ends.
func countWrites(ctx context.Context) func() map[string]int {
	GinkgoHelper()
	watcher, err := client.NewWithWatch(controlPlane.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	var mu sync.Mutex
	counts := map[string]int{}
	for kind, list := range map[string]client.ObjectList{
		"Endpoint": &v1alpha1.EndpointList{}, "BMC": &v1alpha1.BMCList{}, "BMCSecret": &v1alpha1.BMCSecretList{}, "Server": &v1alpha1.ServerList{},
	} {
		Expect(admin.List(ctx, list)).To(Succeed())
		w, err := watcher.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		go func() {
			for range w.ResultChan() {
				mu.Lock()
				counts[kind]++
				mu.Unlock()
			}
		}()
	}
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(counts)
	}
}
