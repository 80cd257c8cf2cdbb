// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Written is what a process wrote last of objects, by UID, for as long as a cache does not show it. The zero value is empty.
type Written[T client.Object] struct {
	latest map[types.UID]T
	gone   map[types.UID]bool
}

// Wrote remembers a version of an object.
func (w *Written[T]) Wrote(o T) {
	if w.latest == nil {
		w.latest = map[types.UID]T{}
	}
	w.latest[o.GetUID()] = o
}

// Ended remembers that an object is gone.
func (w *Written[T]) Ended(uid types.UID) {
	if w.gone == nil {
		w.gone = map[types.UID]bool{}
	}
	w.gone[uid] = true
	delete(w.latest, uid)
}

// Over are the objects that a cache shows, each in the version that was written last. What the cache shows no more is
// forgotten.
func Over[O any, T interface {
	*O
	client.Object
}](w *Written[T], cached []O) []T {
	all := make([]T, 0, len(cached))
	latest, gone := map[types.UID]T{}, map[types.UID]bool{}
	for i := range cached {
		one := T(&cached[i])
		uid := one.GetUID()
		if w.gone[uid] {
			gone[uid] = true
			continue
		}
		if ours, ok := w.latest[uid]; ok && Older(one, ours.GetResourceVersion()) {
			latest[uid], one = ours, ours
		}
		all = append(all, one)
	}
	w.latest, w.gone = latest, gone
	return all
}

// Older says that an object is older than a version. Versions that cannot be compared are taken for the newer.
func Older(o client.Object, version string) bool {
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), version)
	return err == nil && order < 0
}
