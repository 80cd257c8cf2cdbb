// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statusOf returns the Status field of an object, or nil for a kind that has none.
func statusOf(object client.Object) any {
	v := reflect.Indirect(reflect.ValueOf(object)).FieldByName("Status")
	if !v.IsValid() {
		return nil
	}
	return v.Interface()
}

func statusChanged(before, after client.Object) bool {
	return !equality.Semantic.DeepEqual(statusOf(before), statusOf(after))
}

// mainChanged says whether anything but the status differs that a client may write.
func mainChanged(before, after client.Object) bool {
	if !maps.Equal(before.GetLabels(), after.GetLabels()) || !maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
		!slices.Equal(before.GetFinalizers(), after.GetFinalizers()) ||
		!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()) {
		return true
	}
	return !equality.Semantic.DeepEqual(fieldOf(before, "Spec"), fieldOf(after, "Spec"))
}

func fieldOf(object client.Object, name string) any {
	v := reflect.Indirect(reflect.ValueOf(object)).FieldByName(name)
	if !v.IsValid() {
		return nil
	}
	return v.Interface()
}

// assign makes object equal to wanted, so that what is told after a write is what was written.
func assign[T client.Object](object, wanted T) {
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(wanted).Elem())
}
