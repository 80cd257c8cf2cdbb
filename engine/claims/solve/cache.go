// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"slices"

	"github.com/metalaw/metalaw/engine/claims/index"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// PlacementCache remembers what placements say of servers, spread left aside. That follows from the version of a server
// alone, so that it is found out once for each. One goroutine at a time uses it.
type PlacementCache struct {
	// versions are those of the servers that were judged last, by number; stamps tell them apart.
	versions []*index.Entry
	stamps   []uint32
	texts    map[string]*judged
	// groups is where the candidates of each alternative are put; spare is the room of Snapshots that were closed.
	groups [][]*selection.PreparedCandidate
	spare  []*feasible
	// work counts what it cost to judge, and to ask the policy.
	work int64
}

// At most so many judgements are remembered, of 8 bytes each, and of so many placements, each of which may keep 100 KB of compiled
// expressions: a user who makes ever new ones costs no more memory.
const (
	mostJudgements = 4 << 20
	mostTexts      = 512
)

// judged is what one placement says of servers, by number.
type judged struct {
	placement *placement.Placement
	each      []judgement
}

// judgement is what a placement says of one server.
type judgement struct {
	// stamp is that of the version; 0 where none was judged.
	stamp uint32
	score int16
	// alternative is the group that the server is of, if it is accepted. code is where in judgementCodes it is said why it is not.
	alternative, code uint8
}

// judgementCodes are those of a judgement; the first is that of a server that is accepted.
var judgementCodes = []string{"", placement.CodePlacement, placement.CodeError}

func (j judgement) accepted() bool { return j.code == 0 }

// NewPlacementCache makes an empty one.
func NewPlacementCache() *PlacementCache { return &PlacementCache{texts: map[string]*judged{}} }

// of is what is remembered of a placement.
func (j *PlacementCache) of(p *placement.Placement) *judged {
	t := j.texts[p.Asks()]
	if t == nil {
		if n := len(j.texts) + 1; n > mostTexts || n*len(j.versions) > mostJudgements {
			clear(j.texts)
		}
		t = &judged{placement: p}
		j.texts[p.Asks()] = t
	}
	return t
}

// stamp tells a version of a server apart from those before.
func (j *PlacementCache) stamp(e *index.Entry) uint32 {
	n := int(e.Number())
	if n >= len(j.versions) {
		j.versions = slices.Grow(j.versions, n+1-len(j.versions))[:n+1]
		j.stamps = slices.Grow(j.stamps, n+1-len(j.stamps))[:n+1]
	}
	if j.versions[n] != e {
		j.versions[n] = e
		j.stamps[n]++
	}
	return j.stamps[n]
}

// mostSpare bounds the room that is kept from one Snapshot to the next, of 16 bytes for each server.
const mostSpare = 8

// room is where the servers of a claim are put.
func (j *PlacementCache) room() *feasible {
	last := len(j.spare) - 1
	if last < 0 {
		return &feasible{}
	}
	f := j.spare[last]
	j.spare = j.spare[:last]
	return f
}

// keep keeps the room of a Snapshot, and nothing that stands there.
func (j *PlacementCache) keep(some map[string]*feasible) {
	for _, f := range some {
		if len(j.spare) == mostSpare {
			break
		}
		clear(f.entries[:cap(f.entries)])
		clear(f.candidates[:cap(f.candidates)])
		j.spare = append(j.spare, &feasible{entries: f.entries[:0], candidates: f.candidates[:0]})
	}
	for _, group := range j.groups {
		clear(group[:cap(group)])
	}
}

// judge is what a placement says of a server.
func (j *PlacementCache) judge(t *judged, e *index.Entry) judgement {
	n, stamp := int(e.Number()), j.stamp(e)
	if n >= len(t.each) {
		t.each = slices.Grow(t.each, len(j.versions)-len(t.each))[:len(j.versions)]
	}
	one := &t.each[n]
	if one.stamp != stamp {
		of := t.placement.Brief(e.Candidate().Facts())
		*one = judgement{stamp: stamp, score: int16(of.Score), alternative: uint8(of.Alternative), code: uint8(slices.Index(judgementCodes, of.Code))}
		j.work += t.placement.Cost()
	}
	return *one
}
