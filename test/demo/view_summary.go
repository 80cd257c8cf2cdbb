// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"
)

// summary says what happened, how long it took, and what to try now.
func (t *teller) summary() string {
	var b strings.Builder
	b.WriteString("\nwhat happened                                        took\n")
	var all time.Duration
	for i, c := range t.chapters {
		fmt.Fprintf(&b, "  %d %-12s %2d steps, each as expected        %7s\n", i+1, c.title, len(c.steps), seconds(t.took[i]))
		all += t.took[i]
	}
	fmt.Fprintf(&b, "  %-48s %7s\n", "the whole way", seconds(all))
	if t.world.options.once && !t.world.options.keep {
		return b.String()
	}
	b.WriteString("\nwhat to try\n")
	fmt.Fprintf(&b, "  export KUBECONFIG=%s\n", t.world.kubeconfig())
	b.WriteString("  bin/metalaw status       # the fleet on one screen, and what needs a person\n")
	for _, command := range []string{
		"get servers,bmcs -o wide",
		"get scl -n " + tenant + " -o wide",
		"apply -k config/samples",
		"get polrev,sinv",
		"events -A",
	} {
		fmt.Fprintf(&b, "  %s\n", t.world.kubectl(command))
	}
	fmt.Fprintf(&b, "  curl %s/machines   # the emulated machines themselves\n", t.world.machines.url)
	fmt.Fprintf(&b, "  curl http://%s/metrics    # the manager's metrics\n", local(t.world.ports.metrics))
	if manager := t.world.manager.Load(); manager != nil {
		fmt.Fprintf(&b, "  kill -9 %d    # the manager: it is started again, and a restart loses nothing\n", manager.PID())
	}
	fmt.Fprintf(&b, "  logs are in %s\n", t.world.logDir())
	return b.String()
}
