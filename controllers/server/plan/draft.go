// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
)

// effects is what makes each effect of the vocabulary hold.
var effects = map[string]func(*draft, engine.Effect) loop.Progress{
	engine.MarkEffect:             storeMark,
	policies.EffectPowerOff:       powerOff,
	policies.EffectPowerOn:        powerOn,
	policies.EffectPowerAsClaimed: powerAsClaimed,
	policies.EffectBootProbe:      bootProbe,
	policies.EffectBootWipe:       bootWipe,
	policies.EffectBootAsClaimed:  bootAsClaimed,
	policies.EffectClearBoot:      clearBoot,
	policies.EffectReleaseClaim:   releaseClaim,
	policies.EffectForgetHolder:   forgetHolder,
	policies.EffectResetAsAsked:   resetAsAsked,
	policies.EffectLocate:         locate,
	policies.EffectApplyBootOrder: applyBootOrder,
	policies.EffectMaintain:       maintain,
}

// asClaimed are the effects that do what a claim asks for.
var asClaimed = []string{policies.EffectPowerAsClaimed, policies.EffectBootAsClaimed}

// Effect is the steps that make an effect hold. It is pure, and total over the vocabulary.
func Effect(s Seen, effect engine.Effect) Steps {
	if slices.Contains(asClaimed, effect.Name) && s.Claim != nil && v1alpha1.Ignored(s.Claim) {
		return Steps{} // a claim that is to be left alone asks for nothing
	}
	build, known := effects[effect.Name]
	if !known {
		return Steps{Then: loop.Failing("UnknownEffect", "this version cannot carry out "+effect.Name, 0)}
	}
	return drafted(s, func(d *draft) loop.Progress { return build(d, effect) })
}

// drafted are the steps that a function drafts.
func drafted(s Seen, build func(*draft) loop.Progress) Steps {
	d := &draft{Seen: s}
	then := build(d)
	return Steps{Acts: d.acts, Then: then}
}

// draft is steps in the making, with what would be seen once they are done.
type draft struct {
	Seen
	acts []Act
	// copied says that Server is a copy of ours.
	copied bool
}

// do adds acts that change nothing of what is seen.
func (d *draft) do(acts ...Act) { d.acts = append(d.acts, acts...) }

// permit waits for permission.
func (d *draft) permit(actions ...fleet.Action) { d.do(Permit{Actions: actions}) }

// set changes the record.
func (d *draft) set(to func(*v1alpha1.Server)) {
	if !d.copied {
		d.Server, d.copied = d.Server.DeepCopy(), true
	}
	to(d.Server)
	d.do(Set{To: to})
}

// remember changes what is remembered.
func (d *draft) remember(to func(*Memory)) {
	to(&d.Memory)
	d.do(Remember{To: to})
}

// ask has the BMC asked, which works on that from here on.
func (d *draft) ask(a Ask) {
	d.do(a)
	if !a.Stored {
		d.takeJob(a.ID, power.Job{Known: true, Running: true})
		d.BMC.LastJob = later(d.BMC.LastJob, d.Now.Add(1))
	}
}

// forget forgets how a call ended.
func (d *draft) forget(id string) {
	if d.BMC.Jobs[id].Known && !d.BMC.Jobs[id].Running {
		d.takeJob(id, power.Job{})
	}
	d.do(Forget{ID: id})
}

func (d *draft) takeJob(id string, job power.Job) {
	jobs := make(map[string]power.Job, len(d.BMC.Jobs)+1)
	for known, j := range d.BMC.Jobs {
		jobs[known] = j
	}
	jobs[id] = job
	d.BMC.Jobs = jobs
}

// try does steps whose progress holds nothing back.
func (d *draft) try(build func(*draft) loop.Progress) {
	tried := &draft{Seen: d.Seen, copied: d.copied}
	then := build(tried)
	d.Seen, d.copied = tried.Seen, tried.copied
	if len(tried.acts) > 0 {
		d.do(Try{Steps: Steps{Acts: tried.acts, Then: then}})
	}
}

// tell reports what no difference of the object shows.
func (d *draft) tell(n operations.Note) { d.do(Tell{n}) }

// wake has the server looked at again.
func (d *draft) wake(in time.Duration) {
	if in > 0 {
		d.do(Wake{In: in})
	}
}

// poll waits for the BMC to show something, and says for how long at first: what waits has that in its progress.
func (d *draft) poll() time.Duration {
	d.do(Wake{ForBMC: true})
	return d.Shortly()
}

// powerKnown sees to a fresh reading with a power state that can be acted on.
func (d *draft) powerKnown() (loop.Progress, bool) {
	reading := d.PowerReading()
	if !reading.Fresh && reading.Lacks == "" {
		d.do(Refresh{})
	}
	p, polls, ok := reading.Known()
	if polls {
		p.Again = d.poll()
	}
	return p, ok
}

// addMark has the status bear a mark from now on, and the next reconcile go on.
func (d *draft) addMark(mark string) loop.Progress {
	if d.Server.Status.Lifecycle == nil {
		return loop.Waiting("MarkStored", mark+" is kept in its inventory first", time.Millisecond)
	}
	d.set(func(s *v1alpha1.Server) {
		s.Status.Lifecycle.Marks = engine.Decision{Marks: []string{mark}}.MarksAfter(s.Status.Lifecycle.Marks)
	})
	return loop.Waiting("MarkStored", mark+" is stored first", time.Millisecond)
}
