// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/metalaw/metalaw/internal/peers"
	"github.com/metalaw/metalaw/metalprobe"
)

const (
	// bodiesOfAll bounds the bodies that are read or served at a time, in bytes, and bodiesOfOne those of one source: many sources that
	// send slowly leave room for others.
	bodiesOfAll = 64 * metalprobe.MaxBody
	bodiesOfOne = bodiesOfAll / 8
	// bodyStep is by how much the room for a body grows at least, in bytes. A slow sender takes no more room than it fills.
	bodyStep = 4 << 10
)

// readBody reads the body of a request into memory, before the request takes a turn: a sender that is slow keeps no turn from others. An
// error of the sender is found by the endpoint, where the body ends. done gives the room back, and must be called.
func readBody(w http.ResponseWriter, request *http.Request, share *peers.Share) (done func(), refused *refusal) {
	body := http.MaxBytesReader(w, request.Body, metalprobe.MaxBody)
	var held []byte
	for {
		if len(held) == cap(held) {
			more := min(max(bodyStep, len(held)), metalprobe.MaxBody+1-len(held)) // one more, to see where the body ends
			if !share.Take(int64(more)) {
				share.Return()
				w.Header().Set("Connection", "close") // else the server would wait for the rest of the body before it answers
				return nil, tooManyAtOnce()
			}
			held = slices.Grow(held, more)
		}
		n, err := body.Read(held[len(held):cap(held)])
		held = held[:len(held)+n]
		if err != nil {
			request.Body = io.NopCloser(io.MultiReader(bytes.NewReader(held), failing{err}))
			return share.Return, nil
		}
	}
}

// failing is the end of a body.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) {
	if errors.Is(f.err, io.EOF) {
		return 0, io.EOF
	}
	return 0, f.err
}
