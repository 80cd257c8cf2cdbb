// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheCacheKeepsWhatIsAskedForAndForgetsTheRest(t *testing.T) {
	var c Cache
	const used = "where: server.cores > 0"
	first, _ := c.Parse(used)
	comment := "# " + strings.Repeat("x", 4000) + "\n"
	for i := range 400 { // three times as much as it remembers
		c.Parse(fmt.Sprintf("%swhere: server.cores > %d", comment, i))
		if again, _ := c.Parse(used); again != first {
			t.Fatalf("what is in use was compiled anew after %d others", i)
		}
	}
	length := 0
	for _, all := range []map[string]parsed{c.recent, c.former} {
		for text := range all {
			length += len(text)
		}
	}
	if length > maxCached {
		t.Errorf("it remembers %d bytes", length)
	}
}
