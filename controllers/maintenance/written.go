// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// written is what this manager wrote last, for as long as a cache does not show it: limits count what was granted a moment ago, and no
// write is made twice.
type written struct {
	maintenances versions[*v1alpha1.ServerMaintenance]
	servers      versions[*v1alpha1.Server]
	claims       versions[*v1alpha1.ServerClaim]
	// boots are the boot configurations that were deleted.
	boots map[types.UID]bool
}

// versions are objects by UID.
type versions[T client.Object] struct {
	latest map[types.UID]T
	gone   map[types.UID]bool
}

// wrote remembers a version of an object.
func (v *versions[T]) wrote(o T) {
	if v.latest == nil {
		v.latest = map[types.UID]T{}
	}
	v.latest[o.GetUID()] = o
}

// ended remembers that an object is gone.
func (v *versions[T]) ended(uid types.UID) {
	if v.gone == nil {
		v.gone = map[types.UID]bool{}
	}
	v.gone[uid] = true
	delete(v.latest, uid)
}

// shown are the objects that a cache shows, each in the version that was written last. What is in the cache no more is forgotten.
func shown[O any, T client.Object](v *versions[T], cached []O, pointer func(*O) T) []T {
	all := make([]T, 0, len(cached))
	latest, gone := map[types.UID]T{}, map[types.UID]bool{}
	for i := range cached {
		one := pointer(&cached[i])
		uid := one.GetUID()
		if v.gone[uid] {
			gone[uid] = true
			continue
		}
		if ours, ok := v.latest[uid]; ok && older(one, ours) {
			latest[uid], one = ours, ours
		}
		all = append(all, one)
	}
	v.latest, v.gone = latest, gone
	return all
}

// older says that a version is older than another. Versions that cannot be compared are taken for the newer.
func older(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}
