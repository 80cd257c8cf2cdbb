// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestDoubleBindingsAreCounted(t *testing.T) {
	server := func(who, whom string) func(*bindings) { return func(b *bindings) { b.serverNames(who, whom) } }
	claim := func(who, whom string) func(*bindings) { return func(b *bindings) { b.claimNames(who, whom) } }
	for name, c := range map[string]struct {
		changes []func(*bindings)
		want    int
	}{
		"none in an ordinary life":                       {[]func(*bindings){server("s", "c"), claim("c", "s"), claim("c", "s"), claim("c", ""), server("s", ""), server("s", "d"), claim("d", "s")}, 0},
		"none where a claim follows one that is gone":    {[]func(*bindings){claim("c", "s"), claim("c", ""), claim("d", "s")}, 0},
		"two claims that name one server":                {[]func(*bindings){claim("c", "s"), claim("d", "s")}, 1},
		"two servers that name one claim":                {[]func(*bindings){server("s", "c"), server("r", "c")}, 1},
		"one that was undone at once":                    {[]func(*bindings){claim("c", "s"), claim("d", "s"), claim("d", "")}, 1},
		"a server that goes from claim to claim":         {[]func(*bindings){server("s", "c"), server("s", "d")}, 1},
		"each of several, a claim that changes included": {[]func(*bindings){claim("c", "s"), claim("d", "s"), claim("e", "r"), claim("e", "s")}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBindings()
			for _, change := range c.changes {
				change(b)
			}
			if b.doubles != c.want {
				t.Errorf("got %d, want %d", b.doubles, c.want)
			}
		})
	}
}
