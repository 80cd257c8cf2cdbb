// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"net/http"
)

type (
	guardKey struct{} // what WithGuard put in
	armedKey struct{} // the guard of a request that it is about
)

// WithGuard has a check made right before every POST, PATCH and DELETE to the BMC that is not about sessions: after what
// was read for it, and after the wait for a place among the requests. An error from the check keeps that request from
// being sent and ends the operation with a *NotAskedError around it, for which MayHaveHappened is false. What the same
// operation wrote before stays written: PowerOnOnce may have set the boot override.
//
// The check is made with the context of the request and holds one of its BMC's places meanwhile, so it should be short.
// It may be called more than once, by one operation after another.
func WithGuard(ctx context.Context, guard func(ctx context.Context) error) context.Context {
	return context.WithValue(ctx, guardKey{}, guard)
}

// armed returns the context for a request that the guard and the fence are about. The login that may precede the request is not.
func armed(ctx context.Context, method string) context.Context {
	if !writes(method) {
		return ctx
	}
	guard, _ := ctx.Value(guardKey{}).(func(context.Context) error)
	return context.WithValue(ctx, armedKey{}, guard)
}

// guarded asks the guard of a request that has its place and goes out next, and then the fence of the pool.
func guarded(fence func(context.Context) error, next roundTrip) roundTrip {
	return func(req *http.Request) (*http.Response, error) {
		guard, isWrite := req.Context().Value(armedKey{}).(func(context.Context) error)
		if !isWrite {
			return next(req)
		}
		for _, check := range []func(context.Context) error{guard, fence} {
			if check == nil {
				continue
			}
			if err := check(req.Context()); err != nil {
				return nil, &NotAskedError{What: req.Method + " " + redactPath(req.URL.Path), Err: err}
			}
		}
		return next(req)
	}
}
