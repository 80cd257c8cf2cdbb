// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/redfish"
)

// waitsForEject is why a state waits for an image to leave its drive.
const waitsForEject = "WaitsForEject"

// wayIn is how a machine is switched on.
type wayIn struct {
	ways []boots.Way
	mode redfish.BootMode
	// service begins the URLs of images that are ours.
	service string
	// inserted says that an image of ours may be in a drive, and overridden that a boot override stands.
	inserted, overridden bool
}

// bootWays decides how the machine is to be booted.
func (v bootShell) bootWays(source string) (wayIn, string) {
	ways, waits := boots.Ways(boots.WaysInput{Source: source, Policy: v.settings().Boot.Ways, BMC: v.stated.ways, Service: v.MediaURL, Boot: v.boot})
	return wayIn{ways: ways, mode: redfish.BootMode(v.bootSettings().Mode), service: v.MediaURL, inserted: v.mediaMayBeIn()}, waits
}

func (v bootShell) mediaMayBeIn() bool {
	return v.server.Annotations[v1alpha1.MediaInsertedAnnotation] != ""
}

// recordMedia notes, before the BMC is asked, that an image may come into a drive (order 1).
func (v bootShell) recordMedia(ways []boots.Way) {
	if !slices.ContainsFunc(ways, func(w boots.Way) bool { return w.Media != "" }) {
		return
	}
	if v.server.Annotations == nil {
		v.server.Annotations = map[string]string{}
	}
	v.server.Annotations[v1alpha1.MediaInsertedAnnotation] = "true"
	v.Cache.Repeat(v.server.Name, jobID(v.server, "eject-media")) // an eject before this boot says nothing
}

// powerOn switches the machine on by the first way that its BMC takes. A way that is refused was surely not taken.
func (w wayIn) powerOn(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity) error {
	var refused []error
	for _, way := range w.ways {
		err := w.by(ctx, bmc, uri, want, way)
		if err == nil || !redfish.Refused(err) {
			return err
		}
		refused = append(refused, err)
		w.inserted = w.inserted || way.Media != ""
	}
	if len(refused) == 1 {
		return refused[0]
	}
	return errors.Join(refused...)
}

func (w wayIn) by(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity, way boots.Way) error {
	var err error
	switch {
	case way.Media != "":
		err = bmc.InsertMedia(ctx, uri, want, redfish.MediaRequest{URL: way.Media, Ours: w.service + "/"})
	case w.inserted: // a machine never boots beside an image of a former entry
		err = ejectOurs(ctx, bmc, uri, want, w.service)
	}
	if redfish.MayHaveHappened(err) {
		return &redfish.NotAskedError{What: "the power-on", Err: fmt.Errorf("virtual media: %w", err)}
	}
	if err != nil {
		return err
	}
	if way == (boots.Way{}) {
		return w.byOwnOrder(ctx, bmc, uri, want)
	}
	return bmc.PowerOnOnce(ctx, uri, want, way.Target, w.mode)
}

// byOwnOrder switches the machine on so that it boots as it would by itself.
func (w wayIn) byOwnOrder(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity) error {
	if w.overridden {
		err := bmc.ClearBoot(ctx, uri, want)
		if redfish.MayHaveHappened(err) {
			return &redfish.NotAskedError{What: "the power-on", Err: fmt.Errorf("boot override: %w", err)}
		}
		if err != nil {
			return err
		}
	}
	return bmc.Reset(ctx, uri, want, redfish.ActionOn)
}

// ejectOurs ejects the images of the boot service. A BMC without drives holds none.
func ejectOurs(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity, service string) error {
	if service == "" {
		return nil // the boot service was switched off; its images are 404
	}
	err := bmc.EjectMedia(ctx, uri, want, service+"/")
	if unsupported := new(redfish.UnsupportedError); errors.As(err, &unsupported) {
		return nil
	}
	return err
}

// ejectMedia ejects an image once the machine is off, or is known to have booted from it. What reads it back is the port.
func (v bootShell) ejectMedia(ctx context.Context) loop.Progress {
	if !v.mediaMayBeIn() || !v.shows(redfish.PowerOff) && !v.needsNoMedia() {
		return loop.Holds()
	}
	id := jobID(v.server, "eject-media")
	job := v.job(id)
	switch {
	case job.Succeeded():
		v.Cache.Repeat(v.server.Name, id)
		delete(v.server.Annotations, v1alpha1.MediaInsertedAnnotation)
		return loop.Holds()
	case job.Known && !job.Running:
		if !settingShell(v).repeats(id, job, "MediaStays", "the virtual media could not be ejected: ") {
			return loop.Failing(waitsForEject, "the virtual media could not be ejected: "+job.Words, job.SettingPause())
		}
	}
	if p, ok := v.permitted(ctx, fleet.Setting); !ok {
		return p
	}
	service := v.MediaURL
	settingShell(v).ask(id, func(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity) error {
		return ejectOurs(ctx, bmc, uri, want, service)
	})
	return loop.Waiting(waitsForEject, "the virtual media to be ejected", v.pollInterval())
}

// needsNoMedia says that the machine has what it needs of its image.
func (v bootShell) needsNoMedia() bool {
	if !v.shows(redfish.PowerOn) {
		return false
	}
	in := boots.OverrideInput{Reported: v.facts.Probe.Entry == v.facts.Lifecycle.Entry, Since: v.bootedSince(), Boot: v.boot, Job: power.Job{}}
	in.Started, _ = v.bootShown()
	return in.Booted()
}
