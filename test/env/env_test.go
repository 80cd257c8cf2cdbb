// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// One control plane serves all of these; each works in objects of its own.
func TestControlPlane(t *testing.T) {
	began := time.Now()
	e := ForTest(t.Context(), t, Options{Kustomize: []string{"config/default"}})
	t.Logf("etcd, API server, config/default and controllers were up after %s", time.Since(began).Round(time.Millisecond))

	for _, spec := range []struct {
		name string
		run  func(*testing.T, *Env)
	}{
		{"a warning of the API server fails an apply", warningFailsApply},
		{"an unknown field fails an apply", unknownFieldFailsApply},
		{"webhooks are called over TLS, and only for what concerns them", webhooksAreCalled},
		{"a dependent goes with its owner", dependentGoesWithOwner},
		{"the manager has the rights of the shipped roles and no more", managerRights},
		{"whoever may edit a namespace may claim in it", editorsMayClaim},
		{"a new namespace has a service account", namespacesHaveAccounts},
		{"objects survive a restart of etcd and of the API server", objectsSurviveRestarts},
		{"the samples apply", samplesApply},
		{"the shipped FleetControl applies, and applying it anew keeps what a person added", fleetControlApplies},
	} {
		t.Run(spec.name, func(t *testing.T) { spec.run(t, e) })
	}

	pids := []int{e.etcd.cmd.Process.Pid, e.apiserver.cmd.Process.Pid, e.controllers.cmd.Process.Pid}
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		if err := awaitGone(t.Context(), pid); err != nil {
			t.Error(err)
		}
	}
}

func warningFailsApply(t *testing.T, e *Env) {
	pod := object("v1", "Pod", "metalaw-system", "root", map[string]any{
		"containers": []any{map[string]any{"name": "c", "image": "c"}},
	})
	deployment := object("apps/v1", "Deployment", "metalaw-system", "root", map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": "root"}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "root"}},
			"spec":     pod.Object["spec"],
		},
	})
	requireError(t, e.Apply(t.Context(), []*unstructured.Unstructured{deployment}), "PodSecurity")
}

func unknownFieldFailsApply(t *testing.T, e *Env) {
	server := object("metal.ironcore.dev/v1alpha1", "Server", "", "typo", map[string]any{
		"systemUUID": "38947555-7742-3448-3784-823347823834",
		"colour":     "red",
	})
	requireError(t, e.Apply(t.Context(), []*unstructured.Unstructured{server}), "colour")
}

func webhooksAreCalled(t *testing.T, e *Env) {
	calls := serveWebhooks(t, e)
	c := newClient(t, e, User{Name: "somebody", Groups: []string{"system:masters"}})
	server := object("metal.ironcore.dev/v1alpha1", "Server", "", "checked", map[string]any{
		"systemUUID": "38947555-7742-3448-3784-823347823835",
	})

	must(t, c.Create(t.Context(), server))
	calls.expect(t, "CREATE /mutate/server", "CREATE /validate/server")

	server.SetLabels(map[string]string{"rack": "r1"})
	server.SetAnnotations(map[string]string{"example.com/note": "unrelated"})
	must(t, c.Update(t.Context(), server))
	calls.expect(t)

	server.SetAnnotations(map[string]string{"policy.metalaw.dev/delete-data": "true"})
	must(t, c.Update(t.Context(), server))
	calls.expect(t, "UPDATE /validate/server")

	server.SetAnnotations(nil)
	must(t, c.Update(t.Context(), server))
	calls.expect(t, "UPDATE /validate/server")

	must(t, unstructured.SetNestedField(server.Object, "Off", "status", "powerState"))
	must(t, c.Status().Update(t.Context(), server))
	calls.expect(t)

	must(t, unstructured.SetNestedField(server.Object, "Initial", "status", "state"))
	must(t, c.Status().Update(t.Context(), server))
	calls.expect(t, "UPDATE /validate/server")

	manager := newClient(t, e, Manager)
	before := client.MergeFrom(server.DeepCopy())
	must(t, unstructured.SetNestedField(server.Object, "Retain", "spec", "reclaimPolicy"))
	must(t, manager.Patch(t.Context(), server, before))
	calls.expect(t)
	before = client.MergeFrom(server.DeepCopy())
	must(t, unstructured.SetNestedField(server.Object, "Discovery", "status", "state"))
	must(t, manager.Status().Patch(t.Context(), server, before))
	calls.expect(t, "UPDATE /validate/server")

	must(t, c.Delete(t.Context(), server))
	calls.expect(t, "DELETE /validate/server")

	inventory := object("policy.metalaw.dev/v1alpha1", "ServerInventory", "", "38947555-7742-3448-3784-823347823835", map[string]any{
		"systemUUID": "38947555-7742-3448-3784-823347823835",
	})
	must(t, c.Create(t.Context(), inventory))
	must(t, unstructured.SetNestedStringSlice(inventory.Object, []string{"Dirty"}, "custody", "marks"))
	must(t, c.Update(t.Context(), inventory))
	calls.expect(t)
	unstructured.RemoveNestedField(inventory.Object, "custody")
	must(t, c.Update(t.Context(), inventory, client.DryRunAll))
	calls.expect(t, "UPDATE /validate/serverinventory")
	must(t, c.Delete(t.Context(), inventory))
	calls.expect(t, "DELETE /validate/serverinventory")
}

func dependentGoesWithOwner(t *testing.T, e *Env) {
	serveWebhooks(t, e)
	c := newClient(t, e, User{Name: "somebody", Groups: []string{"system:masters"}})
	must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "owned"}}))
	server := object("metal.ironcore.dev/v1alpha1", "Server", "", "owner", map[string]any{
		"systemUUID": "38947555-7742-3448-3784-823347823836",
	})
	must(t, c.Create(t.Context(), server))
	boot := object("metal.ironcore.dev/v1alpha1", "ServerBootConfiguration", "owned", "dependent", map[string]any{
		"serverRef": map[string]any{"name": "owner"},
	})
	boot.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(server, server.GroupVersionKind())})
	must(t, c.Create(t.Context(), boot))

	must(t, c.Delete(t.Context(), server))
	eventually(t, "the dependent is gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(boot), boot))
	})
	must(t, c.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "owned"}}))
	eventually(t, "the namespace is gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Name: "owned"}, &corev1.Namespace{}))
	})
}

func managerRights(t *testing.T, e *Env) {
	manager := newClient(t, e, Manager)
	must(t, manager.List(t.Context(), list("metal.ironcore.dev/v1alpha1", "ServerList")))
	must(t, manager.List(t.Context(), &corev1.SecretList{}, client.InNamespace("metalaw-system")))
	var secrets corev1.SecretList
	if err := manager.List(t.Context(), &secrets); !apierrors.IsForbidden(err) {
		t.Errorf("the manager listed every secret of the cluster: %v", err)
	}
	server := object("metal.ironcore.dev/v1alpha1", "Server", "", "any", nil)
	if err := manager.Delete(t.Context(), server); !apierrors.IsForbidden(err) {
		t.Errorf("the manager may delete servers: %v", err)
	}
	stranger := newClient(t, e, User{Name: "stranger"})
	if err := stranger.List(t.Context(), list("metal.ironcore.dev/v1alpha1", "ServerList")); !apierrors.IsForbidden(err) {
		t.Errorf("anybody may list servers: %v", err)
	}
}

func editorsMayClaim(t *testing.T, e *Env) {
	c := newClient(t, e, User{Name: "somebody", Groups: []string{"system:masters"}})
	eventually(t, "the role edit holds the verb create on claims", func(ctx context.Context) bool {
		var edit rbacv1.ClusterRole
		if err := c.Get(ctx, client.ObjectKey{Name: "edit"}, &edit); err != nil {
			return false
		}
		return slices.ContainsFunc(edit.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Resources, "serverclaims") && slices.Contains(r.Verbs, "create")
		})
	})
}

func namespacesHaveAccounts(t *testing.T, e *Env) {
	c := newClient(t, e, User{Name: "administrator", Groups: []string{"system:masters"}})
	must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "accounts"}}))
	eventually(t, "the namespace has its default service account", func(ctx context.Context) bool {
		return c.Get(ctx, client.ObjectKey{Namespace: "accounts", Name: "default"}, &corev1.ServiceAccount{}) == nil
	})
}

func objectsSurviveRestarts(t *testing.T, e *Env) {
	c := newClient(t, e, User{Name: "somebody", Groups: []string{"system:masters"}})
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "survivor", Namespace: "default"}}
	must(t, c.Create(t.Context(), config))
	for _, restart := range []func(context.Context) error{e.RestartEtcd, e.RestartAPIServer} {
		must(t, restart(t.Context()))
		eventually(t, "the object is read again", func(ctx context.Context) bool {
			return c.Get(ctx, client.ObjectKeyFromObject(config), config) == nil
		})
	}
}

func samplesApply(t *testing.T, e *Env) {
	serveWebhooks(t, e)
	must(t, e.ApplyKustomize(t.Context(), "config/samples"))
	must(t, e.ApplyKustomize(t.Context(), "config/samples"))
}

// A person freezes a rack and changes nothing that the manifests own.
func fleetControlApplies(t *testing.T, e *Env) {
	objects, err := e.Render(t.Context(), "config/default")
	must(t, err)
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() != kindFleetControl })
	if len(objects) != 1 {
		t.Fatalf("config/default holds %d FleetControls, want 1", len(objects))
	}
	must(t, e.Apply(t.Context(), objects))
	admin, err := client.New(e.Config, client.Options{})
	must(t, err)
	stored := objects[0].DeepCopy()
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(stored), stored))
	before := stored.DeepCopy()
	must(t, unstructured.SetNestedField(stored.Object, []any{map[string]any{"name": "rack-7", "level": "All"}}, "spec", "freezes"))
	must(t, admin.Patch(t.Context(), stored, client.MergeFrom(before), client.FieldOwner("metalaw")))
	must(t, e.Apply(t.Context(), objects))
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(stored), stored))
	if freezes, _, _ := unstructured.NestedSlice(stored.Object, "spec", "freezes"); len(freezes) != 1 {
		t.Errorf("the freezes are %v after the manifests were applied anew", freezes)
	}
	// While a freeze stands, the shipped hook is asked about the deletion, and here none answers.
	unstructured.RemoveNestedField(stored.Object, "spec", "freezes")
	must(t, admin.Update(t.Context(), stored))
	must(t, admin.Delete(t.Context(), stored))
}

// webhookCalls records which webhook was asked about what.
type webhookCalls struct {
	mu   sync.Mutex
	seen []string
}

// expect compares the calls since the last time, in any order. The API server asks again when it loses a race with
// another writer, so that a call may be seen more than once.
func (w *webhookCalls) expect(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.seen)
	w.seen = slices.Compact(w.seen)
	if !slices.Equal(w.seen, want) {
		t.Errorf("webhook calls %q, want %q", w.seen, want)
	}
	w.seen = nil
}

// serveWebhooks answers every admission review with yes, over TLS, until the test ends.
func serveWebhooks(t *testing.T, e *Env) *webhookCalls {
	t.Helper()
	certPEM, keyPEM, caPEM, err := e.ServingCert("metalaw-system", "metalaw-webhook")
	must(t, err)
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	must(t, err)
	calls := &webhookCalls{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &review)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		calls.mu.Lock()
		calls.seen = append(calls.seen, string(review.Request.Operation)+" "+r.URL.Path)
		calls.mu.Unlock()
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	t.Cleanup(server.Close)
	must(t, e.PointWebhooksAt(t.Context(), server.Listener.Addr().String(), caPEM))
	awaitWebhooks(t, e, calls)
	return calls
}

// awaitWebhooks tries until the API server, which learns of the change by its own watch, asks the
// new address about a dry run.
func awaitWebhooks(t *testing.T, e *Env, calls *webhookCalls) {
	t.Helper()
	c := newClient(t, e, User{Name: "somebody", Groups: []string{"system:masters"}})
	eventually(t, "the webhooks are called at their new address", func(ctx context.Context) bool {
		probe := object("metal.ironcore.dev/v1alpha1", "Server", "", "probe", map[string]any{
			"systemUUID": "00000000-0000-0000-0000-000000000001",
		})
		err := c.Create(ctx, probe, client.DryRunAll)
		calls.mu.Lock()
		defer calls.mu.Unlock()
		asked := len(calls.seen)
		calls.seen = nil
		return err == nil && asked == 2
	})
}

func object(apiVersion, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	if spec != nil {
		o.Object["spec"] = spec
	}
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func list(apiVersion, kind string) *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
}

func newClient(t *testing.T, e *Env, user User) client.Client {
	t.Helper()
	config, err := e.ConfigFor(user)
	must(t, err)
	c, err := client.New(config, client.Options{})
	must(t, err)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func requireError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one that says %q", err, want)
	}
}

func eventually(t *testing.T, what string, holds func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) { return holds(ctx), nil })
	if err != nil {
		t.Fatalf("not in time: %s", what)
	}
}
