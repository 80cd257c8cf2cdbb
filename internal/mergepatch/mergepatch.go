// SPDX-License-Identifier: Apache-2.0

// Package mergepatch makes merge patches of objects of which little changed. The one of controller-runtime encodes both objects whole,
// decodes them into maps and compares those: for a Server that is 200 KB of garbage for each write.
package mergepatch

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Locked returns the patch from an object as it was read to what it is when it is written. The API server refuses it with a
// conflict if the object was changed since.
func Locked(before client.Object) client.Patch { return locked{before} }

type locked struct{ before client.Object }

// Type implements client.Patch.
func (locked) Type() types.PatchType { return types.MergePatchType }

// Data implements client.Patch.
func (l locked) Data(after client.Object) ([]byte, error) {
	was, is := l.before, after
	if a, b, ok := differing(was, is); ok {
		was, is = a, b
	}
	return client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}).Data(is)
}

// differing returns copies of two objects of one kind without the fields that are the same in both. What is left shares its content
// with the objects. False: they are not two of the same struct.
func differing(before, after client.Object) (was, is client.Object, ok bool) {
	a, b := reflect.ValueOf(before), reflect.ValueOf(after)
	if a.Kind() != reflect.Pointer || a.Type() != b.Type() || a.IsNil() || b.IsNil() || a.Elem().Kind() != reflect.Struct {
		return nil, nil, false
	}
	a, b = shallow(a), shallow(b)
	was, is1 := a.Interface().(client.Object)
	is, is2 := b.Interface().(client.Object)
	if !is1 || !is2 {
		return nil, nil, false
	}
	was.SetManagedFields(nil) // they are the API server's
	is.SetManagedFields(nil)
	for i := range a.Elem().NumField() {
		if a.Elem().Type().Field(i).Anonymous {
			continue // the kind and the metadata, by which the API server knows the object
		}
		clearEqual(a.Elem().Field(i), b.Elem().Field(i), true)
	}
	return was, is, true
}

// clearEqual empties a field where it is the same in both; of a struct it empties those of its fields. A struct of which nothing would
// be left on one side stays whole: it would be missing there, and the patch would take away all of it.
func clearEqual(a, b reflect.Value, inside bool) {
	switch {
	case !a.CanSet():
	case reflect.DeepEqual(a.Interface(), b.Interface()):
		a.SetZero()
		b.SetZero()
	case inside && a.Kind() == reflect.Struct:
		was, is := shallow(a.Addr()).Elem(), shallow(b.Addr()).Elem()
		for i := range was.NumField() {
			clearEqual(was.Field(i), is.Field(i), false)
		}
		if !was.IsZero() && !is.IsZero() {
			a.Set(was)
			b.Set(is)
		}
	}
}

func shallow(v reflect.Value) reflect.Value {
	copied := reflect.New(v.Type().Elem())
	copied.Elem().Set(v.Elem())
	return copied
}
