// SPDX-License-Identifier: Apache-2.0

package mergepatch

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// whole is the patch that is made of the whole objects.
func whole(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// full is an object of a kind with each field set, down to the fields of its parts.
func full(o client.Object) client.Object {
	fill(reflect.ValueOf(o).Elem(), 0)
	o.SetName("a")
	o.SetResourceVersion("12")
	o.SetManagedFields(nil)
	o.SetDeletionTimestamp(nil)
	return o
}

func fill(v reflect.Value, depth int) {
	const deepest = 8
	switch {
	case depth > deepest || !v.CanSet():
	case v.Type() == reflect.TypeFor[metav1.Time]():
		v.Set(reflect.ValueOf(metav1.Unix(1_700_000_000, 0)))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	case v.Kind() == reflect.String:
		v.SetString("text")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(3)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), depth+1)
		fill(v.Index(1), depth+1)
	}
}

// leaves calls change with each field of an object, so that it can be emptied: all of them, also those in the middle.
func leaves(v reflect.Value, path string, see func(path string, field reflect.Value)) {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[metav1.Time]() {
		return
	}
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).CanSet() && name != "TypeMeta" {
			see(path+"."+name, v.Field(i))
			leaves(v.Field(i), path+"."+name, see)
		}
	}
}

// same fails where a patch says something else than the one of the whole objects.
func same(t *testing.T, before, after client.Object) {
	t.Helper()
	got, err := Locked(before).Data(after)
	if err != nil {
		t.Fatal(err)
	}
	want, err := whole(before).Data(after)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := json.Unmarshal(want, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("- of the whole, + got:\n%s", diff)
	}
}

func TestAPatchSaysWhatOneOfTheWholeSays(t *testing.T) {
	for name, build := range map[string]func() client.Object{
		"a Server":          func() client.Object { return &v1alpha1.Server{} },
		"a ServerClaim":     func() client.Object { return &v1alpha1.ServerClaim{} },
		"a ServerInventory": func() client.Object { return &policyv1alpha1.ServerInventory{} },
		"a FleetControl":    func() client.Object { return &policyv1alpha1.FleetControl{} },
	} {
		t.Run(name, func(t *testing.T) {
			same(t, full(build()), full(build()))
			same(t, bare(build), full(build()))
			same(t, full(build()), bare(build))
			leaves(reflect.ValueOf(full(build())), "", func(path string, field reflect.Value) {
				if strings.HasSuffix(path, ".ResourceVersion") || strings.HasSuffix(path, ".ManagedFields") {
					return
				}
				before, after := full(build()), full(build())
				leaves(reflect.ValueOf(after), "", func(other string, field reflect.Value) {
					if other == path {
						field.SetZero()
					}
				})
				t.Run(path, func(t *testing.T) {
					same(t, before, after)
					after.SetResourceVersion("12")
					same(t, after, before)
				})
			})
		})
	}
}

// bare is an object with nothing but a version.
func bare(build func() client.Object) client.Object {
	o := build()
	o.SetResourceVersion("12")
	return o
}

func TestWhatIsPatchedStaysAsItIs(t *testing.T) {
	before, after := full(&v1alpha1.Server{}), full(&v1alpha1.Server{})
	after.(*v1alpha1.Server).Status.PowerState = v1alpha1.PowerStateOff
	kept := []client.Object{before.DeepCopyObject().(client.Object), after.DeepCopyObject().(client.Object)}
	data, err := Locked(before).Data(after)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(data), `{"metadata":{"resourceVersion":"12"},"status":{"powerState":"Off"}}`; got != want {
		t.Errorf("the patch is %s, want %s", got, want)
	}
	if diff := cmp.Diff(kept, []client.Object{before, after}); diff != "" {
		t.Errorf("it changed the objects:\n%s", diff)
	}
}

func TestTheLastFieldOfAStatusIsTakenAwayAlone(t *testing.T) {
	before, after := &v1alpha1.Server{}, &v1alpha1.Server{}
	before.ResourceVersion, after.ResourceVersion = "12", "12"
	before.Status.State, after.Status.State = v1alpha1.StateAvailable, v1alpha1.StateAvailable
	before.Status.PowerState = v1alpha1.PowerStateOff
	data, err := Locked(before).Data(after)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(data), `{"metadata":{"resourceVersion":"12"},"status":{"powerState":null}}`; got != want {
		t.Errorf("the patch is %s, want %s", got, want)
	}
}

func TestManagedFieldsAreNoPartOfAPatch(t *testing.T) {
	before, after := full(&v1alpha1.Server{}), full(&v1alpha1.Server{})
	after.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "another"}})
	data, err := Locked(before).Data(after)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(data), `{"metadata":{"resourceVersion":"12"}}`; got != want {
		t.Errorf("the patch is %s, want %s", got, want)
	}
	if len(after.GetManagedFields()) != 1 {
		t.Error("the object has lost them")
	}
}

func TestAnObjectWithoutAVersionCannotBeLocked(t *testing.T) {
	if _, err := Locked(&v1alpha1.Server{}).Data(&v1alpha1.Server{}); err == nil {
		t.Error("it was patched without a lock")
	}
}

func TestWhatIsNoStructIsPatchedAsWell(t *testing.T) {
	object := func(power string) client.Object {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "1"}, "power": power}}
	}
	data, err := Locked(object("On")).Data(object("Off"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(data), `{"metadata":{"resourceVersion":"1"},"power":"Off"}`; got != want {
		t.Errorf("the patch is %s, want %s", got, want)
	}
}

func BenchmarkPatch(b *testing.B) {
	before, after := full(&v1alpha1.Server{}), full(&v1alpha1.Server{})
	after.(*v1alpha1.Server).Status.PowerState = v1alpha1.PowerStateOff
	for name, patch := range map[string]client.Patch{"whole": whole(before), "what differs": Locked(before)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := patch.Data(after); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
