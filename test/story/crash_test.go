// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/test/guest"
)

// errCrashed is what each write of a manager comes to from the moment at which it is taken to have been killed.
var errCrashed = errors.New("the manager was killed")

// crash cuts a manager off from the API server between two of its writes. It is safe for concurrent use.
type crash struct {
	mu sync.Mutex
	// counts says which writes count; nil while none is planned.
	counts func(o client.Object, sub string) bool
	// left is how many more of them are carried out.
	left    int
	crashed chan struct{}
	// done are the writes that counted and were carried out.
	done []string
}

// after plans that a manager is cut off before it makes another write that counts once so many were carried out. The channel is closed
// at that moment. Writes that do not count go on: nothing of what is looked at depends on them.
func (c *crash) after(writes int, counts func(o client.Object, sub string) bool) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts, c.left, c.crashed, c.done = counts, writes, make(chan struct{}), nil
	return c.crashed
}

// end takes the plan back.
func (c *crash) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts = nil
}

// write carries a write out unless the manager is cut off.
func (c *crash) write(o client.Object, sub string, write func() error) error {
	if !c.allows(o, sub) {
		return errCrashed
	}
	return write()
}

func (c *crash) allows(o client.Object, sub string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.counts == nil, !c.counts(o, sub):
		return true
	case c.left < 0:
		return false
	case c.left == 0:
		c.left = -1
		close(c.crashed)
		return false
	}
	c.left--
	c.done = append(c.done, fmt.Sprintf("%T %s %s", o, o.GetName(), sub))
	return true
}

// written lists the writes that counted since a moment was planned, in their order.
func (c *crash) written() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.done)
}

// client is a manager's client whose writes can be cut off.
func (c *crash) client(config *rest.Config, options client.Options) (client.Client, error) {
	inner, err := client.NewWithWatch(config, options)
	if err != nil {
		return nil, err
	}
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, api client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return c.write(o, "", func() error { return api.Create(ctx, o, options...) })
		},
		Update: func(ctx context.Context, api client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return c.write(o, "", func() error { return api.Update(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, api client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			return c.write(o, "", func() error { return api.Patch(ctx, o, p, options...) })
		},
		Delete: func(ctx context.Context, api client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return c.write(o, "", func() error { return api.Delete(ctx, o, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, api client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
			return c.write(o, sub, func() error { return api.SubResource(sub).Update(ctx, o, options...) })
		},
		SubResourcePatch: func(ctx context.Context, api client.Client, sub string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption,
		) error {
			return c.write(o, sub, func() error { return api.SubResource(sub).Patch(ctx, o, p, options...) })
		},
	}), nil
}

// boots is what machines booted. It is safe for concurrent use.
type boots struct {
	mu  sync.Mutex
	all []guest.Boot
}

func (b *boots) add(boot guest.Boot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, boot)
}

// of lists what a machine booted from a mark on, as "Kind image", oldest first.
func (b *boots) of(uuid string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var texts []string
	for _, boot := range b.all {
		if boot.UUID == uuid {
			texts = append(texts, string(boot.Kind)+" "+boot.Image)
		}
	}
	return slices.Clip(texts)
}
