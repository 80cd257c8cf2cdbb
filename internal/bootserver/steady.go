// SPDX-License-Identifier: Apache-2.0

package bootserver

import (
	"net/http"
	"time"
)

const (
	// stallLimit is how long a reader may take nothing, and how long it has besides what the least rate gives it.
	stallLimit = time.Minute
	// leastRate is how many bytes a second a reader has to take. The slowest BMCs take several times as many.
	leastRate = 16 << 10
	// writeStep is how much is written at a time.
	writeStep = 32 << 10
)

// steady ends answers whose readers are too slow, so that they hold neither a connection nor memory.
func steady(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&steadyWriter{ResponseWriter: w, control: http.NewResponseController(w)}, r)
	})
}

// steadyWriter counts from the first byte of an answer: before it the service may have had to download a layer.
type steadyWriter struct {
	http.ResponseWriter

	control *http.ResponseController
	began   time.Time
	written int64
}

// Unwrap lets an http.ResponseController find the connection.
func (s *steadyWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Write implements io.Writer.
func (s *steadyWriter) Write(p []byte) (n int, err error) {
	for first := true; first || len(p) > 0 && err == nil; first = false {
		now := time.Now()
		if s.began.IsZero() {
			s.began = now
		}
		part := p[:min(len(p), writeStep)]
		// A writer without deadlines is one of a test.
		_ = s.control.SetWriteDeadline(writtenBy(s.began, now, s.written+int64(len(part))))
		wrote, failure := s.ResponseWriter.Write(part)
		n, err = n+wrote, failure
		s.written += int64(wrote)
		p = p[len(part):]
	}
	return n, err
}

// writtenBy is when so many bytes of an answer have to be taken that began then.
func writtenBy(began, now time.Time, bytes int64) time.Time {
	atLeast := began.Add(stallLimit + time.Duration(float64(bytes)/leastRate*float64(time.Second)))
	if soon := now.Add(stallLimit); soon.Before(atLeast) {
		atLeast = soon
	}
	if end := began.Add(writeLimit); end.Before(atLeast) {
		return end
	}
	return atLeast
}
