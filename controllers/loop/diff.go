// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"reflect"

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
	return !equal(statusOf(before), statusOf(after))
}

// mainChanged says whether anything but the status differs that a client may write.
func mainChanged(before, after client.Object) bool {
	if !equal(before.GetLabels(), after.GetLabels()) || !equal(before.GetAnnotations(), after.GetAnnotations()) ||
		!equal(before.GetFinalizers(), after.GetFinalizers()) || !equal(before.GetOwnerReferences(), after.GetOwnerReferences()) {
		return true
	}
	return !equal(fieldOf(before, "Spec"), fieldOf(after, "Spec"))
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
