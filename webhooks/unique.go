// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// remembered is how long an admission is remembered: longer than any cache lags.
	remembered = 30 * time.Second
	// inFlight is how long an admitted object that is not stored may still be on its way there.
	inFlight = 2 * time.Second
	// few admissions are remembered without looking for those that are too old.
	few = 64
)

// uniqueness tells who else has a value that only one object may have. The cache answers; a process also remembers what
// it admitted a moment ago, because the cache does not know that yet.
type uniqueness struct {
	// reader reads past the cache.
	reader client.Reader
	now    func() time.Time

	mu     sync.Mutex
	recent map[string]admitted
}

type admitted struct {
	name string
	at   time.Time
}

// rival is another object that has the value. pending says that it was admitted a moment ago and is not stored yet.
type rival struct {
	name    string
	pending bool
}

// question asks for the rival of one object.
type question[T any] struct {
	// key names the value, with its kind and field, for example "endpoint/mac/b07b25000aff".
	key string
	// self is the name of the object that is to have the value.
	self string
	// cached names the objects that have the value as far as the cache knows.
	cached []string
	// has says whether an object, read past the cache, has the value.
	has func(*T) bool
	// keep reserves the value for self where there is no rival; release takes that back.
	keep bool
}

// find returns the rival, nil where there is none. After that, the value is reserved for self if keep was asked for.
func find[T any, P interface {
	*T
	client.Object
}](ctx context.Context, u *uniqueness, q question[T],
) (*rival, error) {
	holds := func(name string) (bool, error) {
		o := P(new(T))
		err := u.reader.Get(ctx, client.ObjectKey{Name: name}, o)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("%s, which may have the same value, cannot be read: %w", name, err)
		}
		return q.has((*T)(o)), nil
	}
	for _, name := range q.cached {
		if name == q.self {
			continue
		}
		if held, err := holds(name); held || err != nil {
			return &rival{name: name}, err
		}
	}
	for {
		former, free := u.reserve(q.key, q.self, q.keep)
		if free {
			return nil, nil
		}
		held, err := holds(former.name)
		if held || err != nil {
			return &rival{name: former.name}, err
		}
		if u.now().Sub(former.at) < inFlight {
			return &rival{name: former.name, pending: true}, nil
		}
		u.release(q.key, former.name)
	}
}

// reserve gives the value to self unless another has it.
func (u *uniqueness) reserve(key, self string, keep bool) (admitted, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	if former, ok := u.recent[key]; ok && former.name != self && now.Sub(former.at) < remembered {
		return former, false
	}
	if keep {
		// What is too old to matter goes, so that the memory stays as small as the rate of admissions.
		if len(u.recent) >= few {
			maps.DeleteFunc(u.recent, func(_ string, a admitted) bool { return now.Sub(a.at) >= remembered })
		}
		u.recent[key] = admitted{self, now}
	}
	return admitted{}, true
}

// release forgets that name was admitted with the value.
func (u *uniqueness) release(key, name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.recent[key].name == name {
		delete(u.recent, key)
	}
}
