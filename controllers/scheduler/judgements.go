// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/policies/index"
)

// judgements remembers what placements say of servers, whatever stands where. That follows from the version of a server alone, and so it
// is found out once for each, and not each time that a claim is looked at. Only the loop uses it.
type judgements struct {
	// versions are those of the servers that were judged last, by number; stamps tell them apart.
	versions []*index.Entry
	stamps   []uint32
	texts    map[string]*judged
	// pinned are the texts that are not forgotten.
	pinned map[string]bool
	// work counts what it cost to judge, and to ask the policy.
	work int64
}

// What is remembered beside the judgements of a gang whose search takes several passes: at most so many judgements, of 8 bytes each, and
// of so many placements, each of which may keep 100 KB of compiled expressions: whoever makes ever new ones costs no more memory.
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

func newJudgements() *judgements { return &judgements{texts: map[string]*judged{}} }

// of are the judgements of a placement.
func (j *judgements) of(p *placement.Placement) *judged {
	t := j.texts[p.Asks()]
	if t == nil {
		if loose := len(j.texts) + 1 - len(j.pinned); loose > mostTexts || loose*len(j.versions) > mostJudgements {
			maps.DeleteFunc(j.texts, func(text string, _ *judged) bool { return !j.pinned[text] })
		}
		t = &judged{placement: p}
		j.texts[p.Asks()] = t
	}
	return t
}

// keepOnly has some placements remembered as long as they are needed, and no others.
func (j *judgements) keepOnly(some []*placement.Placement) {
	j.pinned = map[string]bool{}
	for _, p := range some {
		j.pinned[p.Asks()] = true
	}
}

// stamp tells a version of a server apart from those before.
func (j *judgements) stamp(e *index.Entry) uint32 {
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

// judge is what a placement says of a server.
func (j *judgements) judge(t *judged, e *index.Entry) judgement {
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

// unjudged is how many of some servers were not judged yet.
func (j *judgements) unjudged(t *judged, entries []*index.Entry) (n int) {
	for _, e := range entries {
		if at := int(e.Number()); at >= len(t.each) || t.each[at].stamp != j.stamp(e) {
			n++
		}
	}
	return n
}
