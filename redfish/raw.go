// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"net/http"
)

// RawReader reads resources as a BMC gives them; every BMC of a Pool is one. It is for tools that look at a BMC, not for controllers.
type RawReader interface {
	// Raw reads one resource by its path, one GET, and returns the body of the answer. A status outside 2xx is a *ResponseError,
	// or an *AuthError. A repeated call asks again.
	Raw(ctx context.Context, uri string) ([]byte, error)
}

var _ RawReader = (*client)(nil)

// Raw implements RawReader.
func (c *client) Raw(ctx context.Context, uri string) ([]byte, error) {
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	got, err := op.send(http.MethodGet, uri, nil, nil)
	if err != nil {
		return nil, err
	}
	return got.body, nil
}
