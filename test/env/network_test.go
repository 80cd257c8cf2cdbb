// SPDX-License-Identifier: Apache-2.0

package env

import (
	"strings"
	"testing"
)

func TestAFreeNetworkHoldsAllAddresses(t *testing.T) {
	for addresses, bits := range map[int]int{1: 24, 254: 24, 255: 23, 1000: 22, 20_000: 17} {
		network, err := FreeNetwork(t.Context(), addresses, 0)
		if err != nil || network.Bits() != bits || !network.Addr().IsLoopback() || network.Addr().As4()[1] == 0 {
			t.Errorf("%d addresses: got %s, %v; want a /%d of 127.0.0.0/8", addresses, network, err, bits)
		}
	}
	if _, err := FreeNetwork(t.Context(), 2_000_000, 0); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("got %v", err)
	}
}
