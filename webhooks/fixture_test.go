// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

const (
	manager = "system:serviceaccount:metalaw-system:metalaw-manager"
	user    = "jane"
	uuid    = "38947555-7742-3448-3784-823347823834"
	mac     = "b0:7b:25:00:0a:ff"
)

// whole is a fleet of which everything is known.
type whole struct{ fleet *index.Index }

func (w whole) Index() *index.Index { return w.fleet }

func (whole) HasSynced() bool { return true }

// revisions is a policy in force, and those that can be loaded by name.
type revisions struct {
	active *bundle.Bundle
	byName map[string]*bundle.Bundle
}

func (r revisions) Active() *bundle.Bundle { return r.active }

func (r revisions) Revision(name string) (*bundle.Bundle, bool) {
	b, ok := r.byName[name]
	return b, ok
}

var shipped = sync.OnceValues(policies.Default)

func defaults(t testing.TB) *bundle.Bundle {
	t.Helper()
	b, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// withFiles is the default bundle with some files changed.
func withFiles(t testing.TB, changed map[string]string) *bundle.Bundle {
	t.Helper()
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range changed {
		files[name] = []byte(text)
	}
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil || b == nil {
		t.Fatal(err, found.Err())
	}
	return b
}

// world is what the webhooks see: what is stored, and what the cache knows of it.
type world struct {
	t      testing.TB
	stored client.Client
	cached client.Client
	now    time.Time
	hooks  map[string]admission.Handler
}

// newWorld stores objects, all of which the cache knows.
func newWorld(t testing.TB, b *bundle.Bundle, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, stored: store(t, objects...), cached: store(t, objects...), now: time.Unix(1_800_000_000, 0)}
	fleet := index.New()
	for _, o := range objects {
		if s, ok := o.(*v1alpha1.Server); ok {
			fleet.Saw(s)
		}
	}
	hooks, err := handlers(Options{
		Fleet:   whole{fleet},
		Bundles: revisions{b, map[string]*bundle.Bundle{b.Revision.Name: b}}, Client: w.cached, Reader: w.stored,
		ManagerUser: manager, Namespace: "metalaw-system", Registry: prometheus.NewRegistry(), Rights: reviewer{},
	}, w.clock)
	if err != nil {
		t.Fatal(err)
	}
	w.hooks = hooks
	return w
}

func (w *world) clock() time.Time { return w.now }

// reviewer gives everything to the group wheel, a verb on server s1 to those in the group of verbsOf, and the right to activate bundle
// fleet to those whose authentication says so.
type reviewer struct{ client.Writer }

var verbsOf = map[string]string{"forcers": "force", "sanitizers": "sanitize",
	"decommissioners": "decommission", "attesters": "attest-disk",
	"maintainers": "maintain", "enforcers": "enforce", "booters": "boot-maintenance"}

func (reviewer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	review := o.(*authorizationv1.SubjectAccessReview)
	asked := review.Spec.ResourceAttributes
	review.Status.Allowed = slices.ContainsFunc(review.Spec.Groups, func(group string) bool {
		return group == "wheel" || *asked == authorizationv1.ResourceAttributes{
			Verb: verbsOf[group], Group: "metal.ironcore.dev", Resource: "servers", Name: "s1"}
	})
	if slices.Contains(review.Spec.Groups, "restorers") && *asked == (authorizationv1.ResourceAttributes{
		Verb: "restore", Group: "policy.metalaw.dev", Resource: "fleetcontrols", Name: "fleet"}) {
		review.Status.Allowed = true
	}
	if slices.Contains(review.Spec.Extra["example.com/activates"], asked.Name) {
		review.Status.Allowed = *asked == authorizationv1.ResourceAttributes{
			Verb: "activate", Group: "policy.metalaw.dev", Resource: "policyrevisions", Name: asked.Name}
	}
	return nil
}

// of puts who asks into groups.
func of(groups ...string) func(*admissionv1.AdmissionRequest) {
	return func(req *admissionv1.AdmissionRequest) { req.UserInfo.Groups = groups }
}

// onlyStored stores an object that the cache does not know yet.
func (w *world) onlyStored(o client.Object) {
	w.t.Helper()
	if err := w.stored.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// onlyCached takes an object out of the store that the cache still knows.
func (w *world) onlyCached(o client.Object) {
	w.t.Helper()
	if err := w.stored.Delete(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func store(t testing.TB, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, policyv1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	if err := fieldindex.Register(t.Context(), indexer{builder}); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		builder.WithObjects(o.DeepCopyObject().(client.Object))
	}
	return builder.Build()
}

type indexer struct{ builder *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	i.builder.WithIndex(o, field, values)
	return nil
}

// ask is one review. Where it is refused, the answer is "code field: message" for each cause, joined with newlines;
// where it passes it is empty. The warnings follow either way.
func (w *world) ask(path, who string, op admissionv1.Operation, before, after client.Object, edit ...func(*admissionv1.AdmissionRequest)) (string, []string) {
	w.t.Helper()
	req := admissionv1.AdmissionRequest{UID: "1", Operation: op, UserInfo: authenticationv1.UserInfo{Username: who}}
	if before != nil {
		req.Name, req.OldObject.Raw = before.GetName(), raw(w.t, before)
	}
	if after != nil {
		req.Name, req.Object.Raw = after.GetName(), raw(w.t, after)
	}
	for _, e := range edit {
		e(&req)
	}
	return said(w.hooks[path].Handle(w.t.Context(), admission.Request{AdmissionRequest: req}))
}

func said(r admission.Response) (string, []string) {
	if r.Allowed {
		return "", r.Warnings
	}
	if r.Result.Details == nil {
		return r.Result.Message, r.Warnings
	}
	var lines []string
	for _, c := range r.Result.Details.Causes {
		lines = append(lines, strings.TrimPrefix(c.Field+": "+c.Message, ": "))
	}
	return string(r.Result.Reason) + "\n" + strings.Join(lines, "\n"), r.Warnings
}

func raw(t testing.TB, o client.Object) []byte {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func inStatus(req *admissionv1.AdmissionRequest) { req.SubResource = "status" }

func dryRun(req *admissionv1.AdmissionRequest) { req.DryRun = ptr.To(true) }

// The builders hide what a case does not speak about.

func server(change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s1", Finalizers: []string{v1alpha1.FinalizerServer}},
		Spec: v1alpha1.ServerSpec{SystemUUID: uuid, SystemURI: "/redfish/v1/Systems/1", BMCRef: &corev1.LocalObjectReference{Name: "b1"}}}
	for _, c := range change {
		c(s)
	}
	return s
}

func serverNamed(name string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Name = name }
}

func labelled(key, value string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Labels = map[string]string{key: value} }
}

func in(state v1alpha1.ServerState) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Status.State = state }
}

func governedBy(revision string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Revision: revision} }
}

func dirty(s *v1alpha1.Server) {
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Marks: []string{policies.MarkDirty}}
}

func heldBy(namespace, name string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: namespace, Name: name}
	}
}

func annotated(key, value string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, value) }
}

func dirtyInventory() *policyv1alpha1.ServerInventory {
	return &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: uuid},
		Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: uuid}, Custody: &policyv1alpha1.Custody{Marks: []string{policies.MarkDirty}}}
}

func endpoint(name, mac string) *v1alpha1.Endpoint {
	return &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.EndpointSpec{MACAddress: mac, IP: "10.0.0.7"}}
}
