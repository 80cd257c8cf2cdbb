// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func statusChanged(before, after client.Object) bool { return differIn("Status", before, after) }

// mainChanged says whether anything but the status differs that a client may write.
func mainChanged(before, after client.Object) bool {
	if !maps.Equal(before.GetLabels(), after.GetLabels()) || !maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
		!slices.Equal(before.GetFinalizers(), after.GetFinalizers()) ||
		!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()) {
		return true
	}
	return differIn("Spec", before, after)
}

// differIn compares a field of two objects of one kind; a kind without it never differs there.
func differIn(name string, before, after client.Object) bool {
	was := reflect.Indirect(reflect.ValueOf(before)).FieldByName(name)
	return was.IsValid() &&
		!equality.Semantic.DeepEqual(was.Interface(), reflect.Indirect(reflect.ValueOf(after)).FieldByName(name).Interface())
}

// assign makes object equal to wanted, so that what is told after a write is what was written.
func assign[T client.Object](object, wanted T) {
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(wanted).Elem())
}
