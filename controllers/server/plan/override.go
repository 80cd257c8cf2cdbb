// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/call"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/controllers/server/seen"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/redfish"
)

// waitsForEject is why a state waits for an image to leave its drive.
const waitsForEject = "WaitsForEject"

// clearOverride takes away an override that outlived the boot it was for. Its failure holds nothing back.
func clearOverride(d *draft) loop.Progress {
	if !d.Facts.BMC.OverrideSet {
		return loop.Holds()
	}
	id := d.jobID("clear-override")
	in := overrideInput(d)
	in.Set, in.FirstWord, in.Job, in.Now = true, d.FirstWord(), d.BMC.Jobs[id], d.Now
	in.Started, in.Testing = bootShown(d)
	out := boots.Override(in)
	d.wake(out.Again)
	if out.Tell {
		refused(d, "BootOverrideStays", "the boot override could not be cleared: ", in.Job)
	}
	if !out.Clear {
		return loop.Holds()
	}
	d.forget(id)
	d.permit(fleet.Setting)
	d.ask(Ask{ID: id, Call: call.ClearOverride{}, Actions: []fleet.Action{fleet.Setting}})
	return loop.Holds()
}

// overrideInput is what a decision about an override, or about an image, depends on in any case.
func overrideInput(d *draft) boots.OverrideInput {
	return boots.OverrideInput{Reported: d.Facts.Probe.Entry == d.Facts.Lifecycle.Entry, Since: d.bootedSince(), Boot: d.Boot}
}

// bootedSince is when the machine was last switched on, restarted, or came into its entry.
func (s *Seen) bootedSince() time.Time {
	l, records := s.Server.Status.Lifecycle, s.Memory.Seen
	since := records.RecordedAt(seen.Entry, EntryText(l.Entry), l.EnteredAt, l.EnteredCounted, s.Instant())
	if isOn(l.Request) {
		since = later(since, s.Requested().RecordedAt)
	}
	if op := s.Server.Status.Operation; operations.EndedReset(op) {
		since = later(since, records.NotAhead(seen.Operation, op.ID, op.FinishedAt.Time, s.Instant()))
	}
	return since
}

// isOn says that a power-on was asked for last.
func isOn(request *v1alpha1.PowerRequest) bool {
	return request != nil && request.Action == v1alpha1.PowerActionOn
}

// bootSettings is how the policy has this machine booted.
func (s *Seen) bootSettings() bundle.BootOf {
	return s.Settings.Boot.For(s.Server.Status.Manufacturer, s.Server.Status.Model)
}

// FirstWord is how long after its power-on a machine may take to use its override, if nothing proves that it did.
func (s *Seen) FirstWord() time.Duration {
	if s.BootGrace > 0 {
		return s.BootGrace
	}
	return s.bootSettings().FirstWord
}

// bootShown says whether the BMC shows this boot to have used its override, or to be in the self test before that.
func bootShown(d *draft) (started, testing bool) {
	if !d.Shows(redfish.PowerOn) {
		return false, false
	}
	return watchBoot(d)
}

// watchBoot follows the last boot that was asked for.
func watchBoot(d *draft) (started, testing bool) {
	watch, started, testing := d.Memory.Boot.Look(bootID(d.Server), d.BMC.System.BootProgress)
	d.remember(func(m *Memory) { m.Boot = watch })
	return started, testing
}

// bootID names the last boot that was asked for.
func bootID(s *v1alpha1.Server) string {
	id := EntryText(s.Status.Lifecycle.Entry)
	if request := s.Status.Lifecycle.Request; isOn(request) {
		id = power.RequestID(request)
	}
	if op := s.Status.Operation; operations.EndedReset(op) {
		id += "/" + op.ID
	}
	return id
}

func (s *Seen) mediaMayBeIn() bool {
	return s.Server.Annotations[v1alpha1.MediaInsertedAnnotation] != ""
}

// expectMedia records, before the BMC is asked, that an image may come into a drive (order 1).
func expectMedia(d *draft, ways []boots.Way) {
	if !slices.ContainsFunc(ways, func(w boots.Way) bool { return w.Media != "" }) {
		return
	}
	d.set(func(s *v1alpha1.Server) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.MediaInsertedAnnotation, "true")
	})
	d.forget(d.jobID("eject-media")) // an eject before this boot says nothing
}

// ejectMedia ejects an image once the machine is off, or is known to have booted from it. The port reads it back.
func ejectMedia(d *draft) loop.Progress {
	if !d.mediaMayBeIn() || !d.Shows(redfish.PowerOff) && !needsNoMedia(d) {
		return loop.Holds()
	}
	id := d.jobID("eject-media")
	job := d.BMC.Jobs[id]
	switch {
	case job.Succeeded():
		d.forget(id)
		d.set(func(s *v1alpha1.Server) { delete(s.Annotations, v1alpha1.MediaInsertedAnnotation) })
		return loop.Holds()
	case job.Known && !job.Running:
		if !repeats(d, id, job, "MediaStays", "the virtual media could not be ejected: ") {
			return loop.Failing(waitsForEject, "the virtual media could not be ejected: "+job.Words, job.SettingPause())
		}
	}
	d.permit(fleet.Setting)
	d.ask(Ask{ID: id, Call: call.Eject{Service: d.MediaURL}, Actions: []fleet.Action{fleet.Setting}})
	return loop.Waiting(waitsForEject, "the virtual media to be ejected", d.poll())
}

// needsNoMedia says that the machine has what it needs of its image.
func needsNoMedia(d *draft) bool {
	if !d.Shows(redfish.PowerOn) {
		return false
	}
	in := overrideInput(d)
	in.Started, _ = bootShown(d)
	return in.Booted()
}
