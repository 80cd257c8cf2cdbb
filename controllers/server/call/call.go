// SPDX-License-Identifier: Apache-2.0

// Package call has the calls to a BMC that a server may need, as data that can be compared and run later.
package call

import (
	"context"
	"errors"
	"fmt"

	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/redfish"
)

// Call asks a BMC for something at the system at a URI, if that is the machine that is wanted.
type Call interface {
	Run(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity) error
}

// Reset changes the power or resets the machine.
type Reset struct{ Action redfish.PowerAction }

// Run implements Call.
func (c Reset) Run(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity) error {
	return bmc.Reset(ctx, uri, want, c.Action)
}

// Light sets the locator light.
type Light struct{ LED redfish.IndicatorLED }

// Run implements Call.
func (c Light) Run(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity) error {
	return bmc.SetLED(ctx, uri, want, c.LED)
}

// BootOrder sets the boot order.
type BootOrder struct{ Devices []string }

// Run implements Call.
func (c BootOrder) Run(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity) error {
	return bmc.SetBootOrder(ctx, uri, want, c.Devices)
}

// ClearOverride takes the boot override away.
type ClearOverride struct{}

// Run implements Call.
func (ClearOverride) Run(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity) error {
	return bmc.ClearBoot(ctx, uri, want)
}

// Eject ejects the images of the boot service. A BMC without drives holds none.
type Eject struct {
	// Service is the URL by which BMCs reach the boot service; empty if it was switched off, and its images are 404.
	Service string
}

// Run implements Call.
func (c Eject) Run(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity) error {
	if c.Service == "" {
		return nil
	}
	err := bmc.EjectMedia(ctx, uri, want, c.Service+"/")
	if unsupported := new(redfish.UnsupportedError); errors.As(err, &unsupported) {
		return nil
	}
	return err
}

// PowerOn switches the machine on.
type PowerOn struct {
	// Ways are tried in order. The empty way leaves the boot to the machine's own boot order.
	Ways []boots.Way
	Mode redfish.BootMode
	// Service begins the URLs of images that are ours.
	Service string
	// Inserted says that an image of ours may be in a drive, and Overridden that a boot override stands.
	Inserted, Overridden bool
}

// Run implements Call: by the first way that the BMC takes. A way that is refused was surely not taken.
func (c PowerOn) Run(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity) error {
	var refused []error
	for _, way := range c.Ways {
		err := c.by(ctx, bmc, uri, want, way)
		if err == nil || !redfish.Refused(err) {
			return err
		}
		refused = append(refused, err)
		c.Inserted = c.Inserted || way.Media != ""
	}
	if len(refused) == 1 {
		return refused[0]
	}
	return errors.Join(refused...)
}

func (c PowerOn) by(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity, way boots.Way) error {
	var err error
	switch {
	case way.Media != "":
		err = bmc.InsertMedia(ctx, uri, want, redfish.MediaRequest{URL: way.Media, Ours: c.Service + "/"})
	case c.Inserted: // a machine never boots beside an image of a former entry
		err = Eject{c.Service}.Run(ctx, bmc, uri, want)
	}
	if err := notAsked("virtual media", err); err != nil {
		return err
	}
	if way != (boots.Way{}) {
		return bmc.PowerOnOnce(ctx, uri, want, way.Target, c.Mode)
	}
	if c.Overridden {
		if err := notAsked("boot override", bmc.ClearBoot(ctx, uri, want)); err != nil {
			return err
		}
	}
	return bmc.Reset(ctx, uri, want, redfish.ActionOn)
}

// notAsked says of a preparation that may have failed halfway that the power-on itself was not asked for.
func notAsked(what string, err error) error {
	if redfish.MayHaveHappened(err) {
		return &redfish.NotAskedError{What: "the power-on", Err: fmt.Errorf("%s: %w", what, err)}
	}
	return err
}
