// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

func TestANeighbourTakesWhatTheGuestSends(t *testing.T) {
	dir := t.TempDir()
	own, guest := filepath.Join(dir, "own"), filepath.Join(dir, "guest")
	if err := (Neighbour{ChassisID: "leaf-1"}).announce(t.Context(), own, guest); err != nil {
		t.Fatal(err)
	}
	wire, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: own, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = wire.Close() }()
	if err := wire.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for n := range 5000 { // more than any kernel keeps for a socket that nobody reads
		if _, err := wire.Write([]byte("frame")); err != nil {
			t.Fatalf("frame %d: %v", n, err)
		}
	}
}
