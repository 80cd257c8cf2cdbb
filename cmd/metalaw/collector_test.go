// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"
	"testing"
)

func TestTheCollectorIsSetByTheFlagOrByTheEnvironment(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	for name, c := range map[string]struct {
		args     []string
		variable string
		want     int
	}{
		"the default, where nothing is said": {nil, "", gcPercent},
		"the flag":                           {[]string{"--gc-percent=30"}, "", 30},
		"the environment, which Go has read": {[]string{"--gc-percent=30"}, "200", 100},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetGCPercent(100)
			o := &options{}
			cmd := newManagerCommand()
			cmd.ResetFlags()
			o.register(cmd.Flags())
			if err := cmd.ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			o.setCollector(c.variable)
			if got := debug.SetGCPercent(100); got != c.want {
				t.Errorf("it is %d, want %d", got, c.want)
			}
		})
	}
}
