// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/hardware"
	listing "github.com/metalaw/metalaw/internal/drives"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/redfish"
	"github.com/metalaw/metalaw/redfish/drives"
)

const (
	// readTimeout bounds one reading: a BMC may take a second for each of many drives.
	readTimeout = 3 * time.Minute
	// writeRetry is when a write that failed is tried again.
	writeRetry = time.Second
	// withheldAge is how old a reading may grow that lists no drive where the BMC listed some before.
	withheldAge = 30 * time.Second
	// soon is when to look again at a reading that is under way; its end wakes the server before.
	soon = 5 * time.Second
)

// Options is what a Reader needs.
type Options struct {
	// Clients is the pool of BMC clients.
	Clients hardware.Clients
	// Client writes, and Reader reads past the cache.
	Client client.Client
	Reader client.Reader
	// Wake has a server looked at; it is called when a reading has ended.
	Wake func(server string)
	Now  func() time.Time
}

// Reader has BMCs read in the background, and stores what they said. Losing what it remembers costs a reading.
type Reader struct {
	Options
	cache *hardware.Cache[answer]

	mu      sync.Mutex
	pending map[string]question
}

// question is the wish that a server's reading is for, and the machine that must answer.
type question struct {
	wish   Wish
	target hardware.Target
	want   redfish.Identity
}

// answer is a list, and the machine that gave it.
type answer struct {
	list drives.List
	want redfish.Identity
}

// New makes a Reader; Close ends its work.
func New(o Options) *Reader {
	r := &Reader{Options: o, pending: map[string]question{}}
	r.cache = hardware.NewCache(hardware.Options[answer]{Clients: o.Clients, Read: r.read, Wake: o.Wake, Now: o.Now,
		Timeout: readTimeout, Same: func(answer, answer) bool { return false }})
	return r
}

// Start implements manager.Runnable.
func (r *Reader) Start(ctx context.Context) error { return r.cache.Start(ctx) }

// Close ends all readings and waits for them.
func (r *Reader) Close() { r.cache.Close() }

// Forget drops what is remembered of a server that is gone.
func (r *Reader) Forget(server string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	delete(r.pending, server)
	r.mu.Unlock()
	r.cache.Forget(server)
}

var errNoDrives = errors.New("this BMC client reads no drives")

// read is one reading, of the machine that is wanted at the target by now.
func (r *Reader) read(ctx context.Context, bmc redfish.BMC, target hardware.Target) (answer, error) {
	want := r.wantedAt(target)
	reader, ok := bmc.(redfish.DriveReader)
	if !ok {
		return answer{}, errNoDrives
	}
	list, err := reader.Drives(ctx, target.URI, want)
	return answer{list: list, want: want}, err
}

// Subject is a server whose drives may have to be read.
type Subject struct {
	Server    *v1alpha1.Server
	Inventory *policyv1alpha1.ServerInventory
	// Target is where its BMC is, and TargetErr why that is not known.
	Target    hardware.Target
	TargetErr error
	// Want is the machine that must answer.
	Want redfish.Identity
}

// Look reads the drives of a server where that is due, and stores what came of it. It never waits for a BMC. It
// returns when to look again; 0 leaves it to the wake.
func (r *Reader) Look(ctx context.Context, s Subject) time.Duration {
	if r == nil {
		return 0
	}
	q, due, asks := r.question(s)
	if !asks {
		return 0
	}
	a := Answer{Err: s.TargetErr, At: r.Now()}
	if s.TargetErr == nil {
		reading, _ := r.cache.Refresh(s.Server.Name, s.Target, age(s.Inventory, q.wish))
		switch {
		case !reading.Tried:
			return soon
		case reading.Err == nil && reading.Value.want != s.Want:
			r.cache.Forget(s.Server.Name) // another machine is wanted by now
			return time.Millisecond
		}
		a.List, a.Err = reading.Value.list, reading.Err
		if a.Err == nil {
			a.At = reading.Begun
		}
	}
	stored, err := r.store(ctx, s.Inventory, q.wish, a)
	if err != nil {
		logf.FromContext(ctx).V(1).Info("what the BMC said of its drives could not be stored yet", "cause", err.Error())
		return writeRetry
	}
	switch {
	case !due || a.Err == nil && listing.Withheld(stored) == "":
		r.answered(s.Server.Name)
		return 0
	case a.Err == nil:
		return withheldAge
	}
	return max(r.cache.NextTry(s.Server.Name), writeRetry)
}

// age is how old a reading for a wish may be; any reading of a pending wish was begun after the wish.
func age(inventory *policyv1alpha1.ServerInventory, wish Wish) time.Duration {
	if inventory == nil || !listing.Settled(inventory.BMCStorage, wish.Entry, wish.wanted()) {
		return 24 * time.Hour
	}
	if listing.Withheld(inventory.BMCStorage) != "" {
		return withheldAge
	}
	return 24 * time.Hour
}

// question is what is to be read of a server. A reading that was begun is stored for its own entry, even where the
// server has left it.
func (r *Reader) question(s Subject) (q question, due, asks bool) {
	wish, due := Due(s.Server, s.Inventory)
	r.mu.Lock()
	defer r.mu.Unlock()
	q, asks = r.pending[s.Server.Name]
	if due && (!asks || q.wish != wish) {
		q, asks = question{wish: wish}, true
		r.cache.Forget(s.Server.Name) // what was read before the wish does not count
	}
	if asks {
		q.target, q.want = s.Target, s.Want
		r.pending[s.Server.Name] = q
	}
	return q, due, asks
}

// wantedAt is the machine that is wanted at a target; where none is, nothing can be proven and nothing is read.
func (r *Reader) wantedAt(target hardware.Target) redfish.Identity {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.pending {
		if q.target.Key == target.Key && q.target.URI == target.URI {
			return q.want
		}
	}
	return redfish.Identity{}
}

func (r *Reader) answered(server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, server)
}

// store writes an answer into the inventory, if it is worth a write, and returns what is stored. It changes nothing else
// there. It begins from the cache: the API server refuses the write if the inventory changed since, and store reads it then.
func (r *Reader) store(
	ctx context.Context, cached *policyv1alpha1.ServerInventory, wish Wish, a Answer,
) (*policyv1alpha1.BMCStorage, error) {
	if cached == nil {
		return nil, nil
	}
	stored, err := r.storeIn(ctx, cached.DeepCopy(), wish, a)
	if !apierrors.IsConflict(err) {
		return stored, client.IgnoreNotFound(err)
	}
	now := &policyv1alpha1.ServerInventory{}
	if err := r.Reader.Get(ctx, types.NamespacedName{Name: cached.Name}, now); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return r.storeIn(ctx, now, wish, a)
}

func (r *Reader) storeIn(
	ctx context.Context, inventory *policyv1alpha1.ServerInventory, wish Wish, a Answer,
) (*policyv1alpha1.BMCStorage, error) {
	next, write := Result(inventory.BMCStorage, wish, a)
	if !write {
		return inventory.BMCStorage, nil
	}
	before := inventory.DeepCopy()
	inventory.BMCStorage = next
	return next, r.Client.Patch(ctx, inventory, mergepatch.Locked(before))
}
