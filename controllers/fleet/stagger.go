// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"hash/fnv"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// staggerEach is how much time each machine that waits for a budget adds to that over which all of them ask again: each
// asks past the cache, and as a rule few of them get what becomes free.
const staggerEach = 10 * time.Millisecond

// stagger is how much later than the others a server asks again for a budget: hardly later where few wait, and up to
// askAgain where many do. It is the same each time, so that the order in which they ask is not drawn anew. It is called
// with the lock held.
func (c *counters) stagger(s *v1alpha1.Server) time.Duration {
	over := min(time.Duration(c.withheld[v1alpha1.ReasonBudgetExhausted])*staggerEach, askAgain)
	if over <= 0 {
		return 0
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(cmp.Or(string(s.UID), s.Name))) // it never fails
	return time.Duration(sum.Sum64() % uint64(over))
}
