// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/webhooks/credentials"
	"github.com/metalaw/metalaw/webhooks/review"
)

// lookup reads what the rules of every kind need. What one reads of the cache is shared and must not be changed.
type lookup struct {
	cache client.Reader
	// reader reads past the cache; it is asked only before a denial.
	reader  client.Reader
	bundles review.Bundles
	// servers is the index of the fleet.
	servers Fleet
	unique  *uniqueness
	// rights takes SubjectAccessReviews.
	rights client.Writer
	// credentials asks who decides where a password goes.
	credentials *credentials.Rules
	// writer notes on a Server who ends its claim; nil notes nothing.
	writer client.Writer
	// namespace is the manager's; bundles count there only.
	namespace string
}

// The rules of each kind, with what they alone need.
type (
	claimRules struct {
		*lookup
		quotas *quotas
		looks  looks
		// longestLook bounds how long the fleet is looked at for one claim.
		longestLook time.Duration
		// noReleaseGrace says that releases take effect at once.
		noReleaseGrace bool
	}
	bmcRules    struct{ *lookup }
	serverRules struct{ *lookup }
)

// names lists the objects of a kind that an index of the cache finds by any of some values.
func (l *lookup) names(ctx context.Context, list client.ObjectList, index string, values ...string) ([]string, error) {
	var all []string
	for _, value := range values {
		if err := l.cache.List(ctx, list, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("the index %s cannot be read: %w", index, err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			all = append(all, o.(client.Object).GetName())
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// get reads an object from the cache and, where it is not there, past it.
func get[T any, P review.Pointer[T]](ctx context.Context, l *lookup, name string) (P, error) {
	return review.Get[T, P](ctx, client.ObjectKey{Name: name}, l.cache, l.reader)
}

// reserve looks for a rival of the object in a change, and keeps the value for the object until it is stored.
func reserve[T any, P interface {
	*T
	client.Object
}](ctx context.Context, l *lookup, c review.Change[T], q question[T],
) (*rival, error) {
	q.self, q.keep = P(c.New).GetName(), !c.DryRun
	found, err := find[T, P](ctx, l.unique, q)
	if found == nil && err == nil && q.keep {
		c.OnDenial(func() { l.unique.release(q.key, q.self) })
	}
	return found, err
}

// duplicate is the refusal of a value that another object has.
func duplicate(path *field.Path, value, kind string, r *rival) *field.Error {
	err := field.Duplicate(path, value)
	err.Detail = fmt.Sprintf("%s %q has it", kind, r.name)
	if r.pending {
		err.Detail = fmt.Sprintf("%s %q was admitted with it a moment ago; if that was not stored, try again in two seconds", kind, r.name)
	}
	return err
}
