// SPDX-License-Identifier: Apache-2.0

package support

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
)

// fill gives each field of a value something, and each string what text says.
func fill(v reflect.Value, depth int, text func() string) {
	if depth > 12 || !v.CanSet() {
		return
	}
	switch v.Interface().(type) {
	case metav1.Time, metav1.MicroTime, time.Time:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1, text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1, text)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1, func() string { return "some" })
		fill(value, depth+1, text)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1, text)
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	default: // numbers without a sign, and what a client writes as raw JSON
	}
}

// filled is a cluster of which each string of each kind that a bundle gathers says what text says.
func filled(t *testing.T, text func() string) *bundle {
	t.Helper()
	scheme, err := access.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	const uuid = "38947555-7742-3448-3784-823347823834"
	named := func(o client.Object, namespace, name string) client.Object {
		o.SetNamespace(namespace)
		o.SetName(name)
		o.SetAnnotations(map[string]string{metalv1alpha1.MediaURLAnnotation: text(), "example.com/password": text(), "example.com/note": text()})
		v := reflect.ValueOf(o).Elem()
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.Name != "TypeMeta" && field.Name != "ObjectMeta" {
				fill(v.Field(i), 0, text)
			}
		}
		return o
	}
	server, bmc := &metalv1alpha1.Server{}, &metalv1alpha1.BMC{}
	boot, maintenance := &metalv1alpha1.ServerBootConfiguration{}, &metalv1alpha1.ServerMaintenance{}
	record := &policyv1alpha1.SanitizationRecord{}
	objects := []client.Object{
		named(server, "", "node-1"), named(bmc, "", "bmc-1"), named(boot, "team", "boot-1"), named(maintenance, "team", "fw-1"), named(record, "", "record-1"),
		named(&metalv1alpha1.Endpoint{}, "", "endpoint-1"), named(&metalv1alpha1.ServerClaim{}, "team", "claim-1"),
		named(&metalv1alpha1.ServerReadinessRule{}, "", "rule-1"), named(&policyv1alpha1.ServerInventory{}, "", uuid),
		named(&policyv1alpha1.FleetControl{}, "", policyv1alpha1.FleetControlName),
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "default"}, InvolvedObject: corev1.ObjectReference{Name: "node-1"}, Message: text()},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "manager-0", Namespace: namespace}},
	}
	server.Spec.SystemUUID, server.Spec.BMCRef = uuid, &corev1.LocalObjectReference{Name: "bmc-1"}
	server.Spec.ServerClaimRef = &metalv1alpha1.ObjectReference{Namespace: "team", Name: "claim-1"}
	bmc.Spec.EndpointRef = &corev1.LocalObjectReference{Name: "endpoint-1"}
	boot.Spec.ServerRef.Name, maintenance.Spec.ServerRef.Name, record.Spec.Machine.SystemUUID = "node-1", "node-1", uuid
	for _, o := range objects {
		o.SetDeletionTimestamp(nil)
	}
	return &bundle{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), files: map[string][]byte{},
		raw: func(context.Context, string) ([]byte, error) {
			return fmt.Appendf(nil, "{\"name\":\"node-1\",\"error\":%q,\"password\":%q}\nnode-1 %s\n", text(), text(), text()), nil
		},
	}
}

// objectsOf are the files that a bundle of a filled cluster has.
var objectsOf = []string{"events.yaml", "logs/manager-0.log", "objects/bmc.yaml", "objects/endpoint.yaml", "objects/fleetcontrol.yaml",
	"objects/sanitizationrecord-record-1.yaml", "objects/server.yaml", "objects/serverbootconfiguration-team-boot-1.yaml",
	"objects/serverclaim.yaml", "objects/serverinventory.yaml", "objects/servermaintenance-team-fw-1.yaml", "objects/serverreadinessrule-rule-1.yaml"}

func gathered(t *testing.T, text func() string) map[string][]byte {
	t.Helper()
	b := filled(t, text)
	if err := b.gather(t.Context(), "node-1"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(objectsOf, slices.Sorted(maps.Keys(b.files))); diff != "" {
		t.Fatal(diff, b.notes)
	}
	return b.files
}

func TestNoFormOfASecretIsLeftInAnyStringOfAFilledCluster(t *testing.T) {
	for name, form := range map[string]string{
		"user info and query of a URL": "asked https://root:canary@10.0.0.1/x?token=canary",
		"a password with blanks":       "refused password: a canary of \"canary\"",
		"a token":                      "sent Bearer canarycanary",
		"a private key":                "-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----",
		"a community":                  "community=canary",
		"an ignition":                  "data:;base64,canary",
	} {
		t.Run(name, func(t *testing.T) {
			for file, text := range gathered(t, func() string { return form }) {
				for line := range strings.Lines(string(text)) {
					if strings.Contains(line, "canary") {
						t.Errorf("%s: %s", file, line)
					}
				}
			}
		})
	}
}

// suspicious are the words by which a reader would look for secrets.
var suspicious = regexp.MustCompile(`(?i)passw|passphrase|secret|token|salt|hash|key|community|communities|authoriz|licen|cookie|credential|media-url`)

func TestWhatIsLeftAtSuspiciousKeysOfAFilledClusterIsNoSecret(t *testing.T) {
	next, seen := 0, 0
	left := map[string]bool{}
	for file, text := range gathered(t, func() string { next++; return fmt.Sprintf("marker-%06d", next) }) {
		var document any
		if err := yaml.Unmarshal(text, &document); err != nil && !strings.HasSuffix(file, ".log") {
			t.Fatal(err)
		}
		walkStrings("", document, func(path, text string) {
			seen++
			if strings.HasPrefix(text, "marker-") && suspicious.MatchString(path) {
				left[path] = true
			}
		})
	}
	want := []string{
		// names of Secrets
		".spec.bmc.bmcSecretRef.name", ".spec.bmcSecretRef.name", ".spec.ignitionSecretRef.name",
		".spec.serverBootConfigurationTemplate.spec.ignitionSecretRef.name",
		// keys of labels and taints
		".spec.taint.key", ".spec.taints.key", ".spec.tolerations.key", ".spec.budgets.selector.matchExpressions.key",
		".spec.freezes.selector.matchExpressions.key", ".spec.serverSelector.matchExpressions.key",
		// what a token is for
		".status.lifecycle.credential.purpose",
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(left))); diff != "" {
		t.Errorf("of %d strings these are left (+), and these are reviewed (-):\n%s", seen, diff)
	}
	t.Logf("%d strings; left at suspicious keys: %s", seen, strings.Join(slices.Sorted(maps.Keys(left)), " "))
}

func walkStrings(path string, value any, visit func(path, text string)) {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			walkStrings(path+"."+key, below, visit)
		}
	case []any:
		for _, below := range v {
			walkStrings(path, below, visit)
		}
	case string:
		visit(path, v)
	}
}
