// SPDX-License-Identifier: Apache-2.0

package support

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
)

func TestOnlyLinesAboutTheServerAreKept(t *testing.T) {
	const log = "a node-1 b\nnode-10 x\n\"node-1\" y\nother\n"
	if got := string(about([]byte(log), []string{"node-1", ""})); got != "a node-1 b\n\"node-1\" y\n" {
		t.Errorf("got %q", got)
	}
}

// world is a cluster with one server, its BMC and credentials.
func world(t *testing.T, log string) *bundle {
	t.Helper()
	scheme, err := access.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	server := &metalv1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "node-1", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", APIVersion: "metal.ironcore.dev/v1alpha1"}}}}
	server.Spec.SystemUUID, server.Spec.BMCRef = "38947555-7742-3448-3784-823347823834", &corev1.LocalObjectReference{Name: "bmc-1"}
	server.Spec.ServerMaintenanceRef = &metalv1alpha1.ObjectReference{Namespace: "ops", Name: "gone"}
	maintenance := &metalv1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "fw"}}
	maintenance.Spec.ServerRef.Name = "node-1"
	bmc := &metalv1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "bmc-1"}}
	bmc.Spec.BMCSecretRef.Name = "creds"
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(server, bmc, maintenance,
		&metalv1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "other"}},
		&metalv1alpha1.ServerReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: "network"}},
		&metalv1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: "creds"}, Data: map[string][]byte{"username": []byte("root"), "password": []byte("hunter22")}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "manager-0", Namespace: namespace}},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "default"}, InvolvedObject: corev1.ObjectReference{Name: "node-1"}, Reason: "ProbeDue"},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "f", Namespace: "default"}, InvolvedObject: corev1.ObjectReference{Name: "node-2"}, Reason: "Other"},
	).Build()
	return &bundle{Client: c, files: map[string][]byte{}, raw: func(_ context.Context, path string) ([]byte, error) {
		if !strings.HasPrefix(path, "/api/v1/namespaces/metalaw-system/pods/manager-0/log") {
			return nil, errors.New("unexpected path " + path)
		}
		return []byte(log), nil
	}}
}

func TestABundleHoldsTheServerAndNoSecret(t *testing.T) {
	b := world(t, "node-1 asked\nnode-2 asked\n")
	if err := b.gather(t.Context(), "node-1"); err != nil {
		t.Fatal(err)
	}
	if err := holdsNone(b.files, b.values); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	if err := b.write(file, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	got := unpack(t, file)
	want := []string{"events.yaml", "logs/manager-0.log", "missing.txt", "objects/bmc.yaml", "objects/server.yaml",
		"objects/servermaintenance-ops-fw.yaml", "objects/serverreadinessrule-network.yaml"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Error(diff)
	}
	if got["logs/manager-0.log"] != "node-1 asked\n" || strings.Contains(got["events.yaml"], "Other") || !strings.Contains(got["events.yaml"], "ProbeDue") {
		t.Errorf("%q\n%q", got["logs/manager-0.log"], got["events.yaml"])
	}
	if strings.Contains(got["objects/server.yaml"], "managedFields") || !strings.Contains(got["missing.txt"], "fleetcontrol") ||
		!strings.Contains(got["missing.txt"], "servermaintenance ops/gone, which the server names, does not exist") {
		t.Errorf("%s\n%s", got["objects/server.yaml"], got["missing.txt"])
	}
	if err := b.write(file, time.Now()); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file that exists is replaced: %v", err)
	}
}

func TestABundleWithThePasswordOfTheBMCIsRefused(t *testing.T) {
	b := world(t, "node-1 logs in with hunter22\n")
	if err := b.gather(t.Context(), "node-1"); err != nil {
		t.Fatal(err)
	}
	err := holdsNone(b.files, b.values)
	if err == nil || !strings.Contains(err.Error(), "logs/manager-0.log") || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("got %v", err)
	}
}

func TestAServerThatIsNotThereIsAnError(t *testing.T) {
	if err := world(t, "").gather(t.Context(), "node-7"); client.IgnoreNotFound(err) == nil && err == nil {
		t.Error("no error")
	}
}

func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	plain, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	archive := tar.NewReader(plain)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimPrefix(header.Name, "metalaw-support/")] = string(text)
	}
}
