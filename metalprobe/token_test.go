// SPDX-License-Identifier: Apache-2.0

package metalprobe

import "testing"

func TestATokenIsStoredAsItsHash(t *testing.T) {
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if got := HashToken("abc"); got != want {
		t.Errorf("stored as %s, want %s", got, want)
	}
}
