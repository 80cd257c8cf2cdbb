// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// running refuses what is said of a machine that its BMC has not shown on since its entry began: whoever says it, with a
// token or without, it does not run there. That may only not be known yet, to the manager or to the cache, so it is asked to come
// again; the API server is not asked, because of many machines that boot at once most agents are faster than the manager's next look.
func (r *Registry) running(g grant) *refusal {
	if seenOn(g.server, g.entry) {
		r.unseen.forget(g)
		return nil
	}
	if !r.unseen.long(g, r.options.Now()) {
		return notShownOn(OutcomeNotYetShownOn)
	}
	return notShownOn(OutcomeNotShownOn).about(g.server)
}

// seenOn says that something may be running on a server in an entry.
func seenOn(server *metalv1alpha1.Server, entry int64) bool {
	l := server.Status.Lifecycle
	return l != nil && l.Entry == entry && l.SeenOnAt != nil
}

const (
	// unseenPatience is how long reports of a machine that is not shown on come in before anybody is told. Every boot has
	// some: the manager looks at the BMC now and then, and an agent may be faster.
	unseenPatience = 3 * time.Minute
	// unseenPause without a report begins the patience anew.
	unseenPause = 2 * time.Minute
	// maxUnseen bounds what is remembered of such reports.
	maxUnseen = 8192
)

// unseenEntry is one entry of one server.
type unseenEntry struct {
	server types.UID
	entry  int64
}

// unseenReports remembers since when reports have come of machines that are not shown on.
type unseenReports struct {
	mu    sync.Mutex
	times map[unseenEntry]unseenTimes
}

type unseenTimes struct{ first, last time.Time }

func newUnseenReports() *unseenReports {
	return &unseenReports{times: map[unseenEntry]unseenTimes{}}
}

// long hears of one more report, and says whether they have come for longer than a boot takes to show.
func (u *unseenReports) long(g grant, now time.Time) bool {
	key := unseenEntry{g.server.UID, g.entry}
	u.mu.Lock()
	defer u.mu.Unlock()
	times, known := u.times[key]
	if !known || now.Sub(times.last) >= unseenPause {
		times.first = now
	}
	times.last = now
	if !known && len(u.times) >= maxUnseen {
		maps.DeleteFunc(u.times, func(_ unseenEntry, of unseenTimes) bool { return now.Sub(of.last) >= unseenPause })
		if len(u.times) >= maxUnseen {
			return true // told early rather than never
		}
	}
	u.times[key] = times
	return now.Sub(times.first) >= unseenPatience
}

func (u *unseenReports) forget(g grant) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.times, unseenEntry{g.server.UID, g.entry})
}
