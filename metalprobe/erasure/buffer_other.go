// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package erasure

// buffer gives memory; the agent runs on Linux, elsewhere it is only built and tested.
func buffer(size int) (memory []byte, free func(), err error) {
	return make([]byte, size), func() {}, nil
}
