// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"fmt"
	"testing"
	"time"
)

var start = time.Unix(1_700_000_000, 0)

func TestPeersAreIPv4AddressesAndIPv6Networks(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.7:1234":        "192.0.2.7/32",
		"[::ffff:192.0.2.7]:1":  "192.0.2.7/32",
		"[2001:db8::1:2:3:4]:1": "2001:db8::/64",
		"[fe80::1%eth0]:1":      "fe80::/64",
		"@unix":                 "invalid Prefix",
	} {
		if got := Of(remote).String(); got != want {
			t.Errorf("%s: got %s, want %s", remote, got, want)
		}
	}
}

func TestTheMemoryOfPeersIsBounded(t *testing.T) {
	busy := false
	table := NewTable(func() *int { return new(int) }, time.Second, func(*int) bool { return !busy })
	for i := range maxPeers + 10 {
		table.Of(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), start)
	}
	if len(table.known) != maxPeers || table.Of("192.0.2.1:1", start) != table.Of("192.0.2.2:1", start) {
		t.Errorf("%d peers are known, and newcomers are told apart", len(table.known))
	}
	busy = true
	if table.Of("192.0.2.1:1", start.Add(time.Minute)); len(table.known) != maxPeers {
		t.Error("a busy peer was forgotten")
	}
	busy = false
	if table.Of("192.0.2.1:1", start.Add(time.Minute)); len(table.known) != 1 {
		t.Errorf("%d peers are known after the others fell silent", len(table.known))
	}
}

func TestEachPeerHasItsRate(t *testing.T) {
	rates := NewRates(1, 2)
	for i, step := range []struct {
		remote string
		after  time.Duration
		want   bool
	}{
		{"10.0.0.1:1", 0, true}, {"10.0.0.1:2", 0, true}, {"10.0.0.1:3", 0, false}, {"10.0.0.2:1", 0, true}, {"10.0.0.1:1", time.Second, true},
	} {
		if got := rates.Allow(step.remote, start.Add(step.after)); got != step.want {
			t.Errorf("request %d: got %v", i, got)
		}
	}
}

func TestABudgetBoundsAllPeersAndEachOfThem(t *testing.T) {
	budget := NewBudget(4, 2)
	var shares []*Share
	for i, step := range []struct {
		peer string
		more int64
		want bool
	}{
		{"10.0.0.1:1", 2, true}, {"10.0.0.1:2", 1, false}, {"10.0.0.2:1", 1, true}, {"10.0.0.3:1", 1, true}, {"10.0.0.4:1", 1, false},
	} {
		share := budget.Share(Of(step.peer))
		shares = append(shares, share)
		if got := share.Take(step.more); got != step.want {
			t.Errorf("step %d: got %v", i, got)
		}
	}
	for _, share := range shares {
		share.Return()
		share.Return() // twice is harmless
	}
	if budget.held != 0 || len(budget.of) != 0 {
		t.Errorf("%d are held, of %v", budget.held, budget.of)
	}
}
