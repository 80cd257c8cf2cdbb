// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/controllers/fleet/overview"
)

// redraw is how often the watched objects are looked at.
const redraw = 2 * time.Second

// watched reads from watches: one list at the beginning, and then only what changes. Leases change every few seconds,
// so each look lists them; that also tells when the API server does not answer.
type watched struct {
	cache.Cache
	live   live
	broken *broken
}

// each is one list of what the watch holds. The objects belong to the cache and are not changed.
func (w watched) each(ctx context.Context, fresh func() client.ObjectList, take func(client.ObjectList, bool),
	options ...client.ListOption) error {
	list := fresh()
	if _, leases := list.(*coordinationv1.LeaseList); leases {
		return w.live.each(ctx, fresh, take, options...)
	}
	if err := w.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	take(list, true)
	return nil
}

// broken is when a watch failed last. What it brings may be old then.
type broken struct {
	mu  sync.Mutex
	at  time.Time
	why error
}

// brokenFor is how long a failed watch counts; the next attempt comes within this time.
const brokenFor = time.Minute

func (b *broken) note(err error) {
	if errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // watches end this way, and go on
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at, b.why = time.Now(), err
}

// unread is what the screen says of it.
func (b *broken) unread(now time.Time) []overview.Unread {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.why == nil || now.Sub(b.at) > brokenFor {
		return nil
	}
	return []overview.Unread{{Resource: "watches", Why: "a watch failed, so that this may be old: " + b.why.Error()}}
}

// watches begins to watch every kind that could be read, and waits for the first lists.
func (r *request) watches(ctx context.Context, flags *access.Flags, first live, known []overview.Unread) (watched,
	error) {
	w := watched{live: first, broken: &broken{}}
	config, err := flags.RESTConfig()
	if err != nil {
		return w, err
	}
	scheme, err := access.Scheme()
	if err != nil {
		return w, err
	}
	if w.Cache, err = cache.New(config, cache.Options{Scheme: scheme,
		DefaultTransform: func(o any) (any, error) {
			if object, is := o.(client.Object); is {
				slim(object)
			}
			return o, nil
		},
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) { w.broken.note(err) },
	}); err != nil {
		return w, err
	}
	go func() {
		if err := w.Start(ctx); err != nil {
			w.broken.note(err)
		}
	}()
	for _, k := range kinds(&overview.Input{}, r.namespace) {
		unread := slices.ContainsFunc(known, func(u overview.Unread) bool { return u.Resource == k.resource })
		if unread || k.resource == overview.Leases {
			continue
		}
		if _, err := w.GetInformer(ctx, k.object); err != nil {
			return w, access.Explain(err, "watch", k.says)
		}
	}
	return w, nil
}

// follow shows the screen anew when something changed, until it is interrupted. It ends with the exit code of the last.
func (r *request) follow(ctx context.Context, t *terminal.Terminal, flags *access.Flags, first live,
	in overview.Input) error {
	known := in.Unread
	from, err := r.watches(ctx, flags, first, known)
	if err != nil {
		return usage.Unknown(err)
	}
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	var shown overview.Answers
	ended := error(nil)
	for now := time.Now(); ; {
		in.Now = now
		in.Unread = append(in.Unread, from.broken.unread(now)...)
		a := overview.Of(in)
		if changed := different(shown, a); changed || t.Redraws() && !r.output.Structured() {
			if shown.Verdict != "" && changed {
				r.separate(t)
			}
			ended, shown = r.show(t, in, now), a
		}
		if t.Ended(nil) != nil {
			return nil // Out is closed, which the command tells
		}
		select {
		case <-ctx.Done():
			return ended
		case now = <-tick.C:
		}
		if in, err = gather(ctx, from, r.namespace, known); err != nil {
			if ctx.Err() != nil {
				return ended
			}
			return usage.Unknown(err)
		}
	}
}

// separate tells one screen or document from the next.
func (r *request) separate(t *terminal.Terminal) {
	switch {
	case r.output.String() == terminal.AsYAML:
		t.Printf("---\n")
	case r.output.Structured():
	case !t.Redraws():
		t.Printf("\n")
	}
}

// different says that two answers differ in more than the time.
func different(a, b overview.Answers) bool {
	a.At, b.At = time.Time{}, time.Time{}
	a.Held.Running.BeatAt, b.Held.Running.BeatAt = nil, nil
	return !reflect.DeepEqual(a, b)
}
