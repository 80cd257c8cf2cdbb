// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"context"
	"net/netip"
	"time"

	"github.com/beevik/ntp"
	"golang.org/x/sys/unix"
)

const (
	// ntpTry bounds one question to a time server.
	ntpTry = 3 * time.Second
	// ntpAll bounds all of them.
	ntpAll = 10 * time.Second
)

// setClock corrects a clock that stands before the day on which this program was built: certificates would not be valid yet. It
// asks the time servers that DHCP named, and takes the time of the build where none answers.
func setClock(ctx context.Context, c *console, built time.Time, servers []netip.Addr) {
	now := time.Now()
	if built.IsZero() || !now.Before(built) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ntpAll)
	defer cancel()
	right, from := built, "the build of this program"
	for _, server := range servers {
		if ctx.Err() != nil {
			break
		}
		answer, err := ntp.QueryWithOptions(server.String(), ntp.QueryOptions{Timeout: ntpTry})
		if err == nil {
			err = answer.Validate()
		}
		if err != nil {
			c.say("clock", "time server %s: %v", server, err)
			continue
		}
		if told := time.Now().Add(answer.ClockOffset); told.After(built) {
			right, from = told, "time server "+server.String()
			break
		}
		c.say("clock", "time server %s: its time is before the build of this program", server)
	}
	value := unix.NsecToTimeval(right.UnixNano())
	if err := unix.Settimeofday(&value); err != nil {
		c.say("clock", "cannot be set: %v; certificates may seem not to be valid yet", err)
		return
	}
	c.say("clock", "was %s, set to %s from %s", now.UTC().Format(time.RFC3339), right.UTC().Format(time.RFC3339), from)
}
