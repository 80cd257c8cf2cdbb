// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Outcomes of a request, as PoolOptions.OnRequest gets them.
const (
	OutcomeOK           = "ok"           // 2xx and 3xx with a usable body
	OutcomeRefused      = "refused"      // 401 and 403
	OutcomeClientError  = "client-error" // other 4xx
	OutcomeServerError  = "server-error" // 5xx
	OutcomeBadAnswer    = "bad-answer"   // a body that is too large or not a JSON object
	OutcomeTimeout      = "timeout"      // no complete answer in time
	OutcomeUnreachable  = "unreachable"  // no connection, or it broke
	OutcomeCancelled    = "cancelled"    // the caller went away
	sessionsPathSegment = "/sessions/"   // below it, paths name sessions
	redactedSegment     = "(session)"    // stands for a session's name in logs
)

// observed reports each request that really goes out. It logs neither bodies nor headers, and no query.
func observed(key func() string, address string, options PoolOptions, next roundTrip) roundTrip {
	log, onRequest := options.Logger, options.OnRequest
	return func(req *http.Request) (*http.Response, error) {
		start := time.Now()
		resp, err := next(req)
		took := time.Since(start)
		result := outcome(req, resp, err)
		if onRequest != nil {
			onRequest(key(), req.Method, result, took)
		}
		if log != nil && log.Enabled(req.Context(), slog.LevelDebug) {
			status := 0
			if resp != nil {
				status = resp.StatusCode
			}
			log.DebugContext(req.Context(), "redfish request", "bmc", key(), "address", address, "method", req.Method,
				"path", redactPath(req.URL.Path), "status", status, "outcome", result, "took", took)
		}
		return resp, err
	}
}

func outcome(req *http.Request, resp *http.Response, err error) string {
	switch {
	case is[*ResponseError](err):
		return OutcomeBadAnswer
	case err != nil && errors.Is(req.Context().Err(), context.Canceled):
		return OutcomeCancelled
	case err != nil && isTimeout(err):
		return OutcomeTimeout
	case err != nil:
		return OutcomeUnreachable
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return OutcomeRefused
	case resp.StatusCode >= 500:
		return OutcomeServerError
	case resp.StatusCode >= 400:
		return OutcomeClientError
	}
	return OutcomeOK
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// redactPath hides the name of a session: some BMCs use the token itself.
func redactPath(path string) string {
	if i := strings.Index(strings.ToLower(path), sessionsPathSegment); i >= 0 {
		return path[:i+len(sessionsPathSegment)] + redactedSegment
	}
	return path
}
