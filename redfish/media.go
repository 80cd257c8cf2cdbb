// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// MediaState is one virtual drive that takes a CD or DVD.
type MediaState struct {
	// URI is the drive's resource.
	URI string
	// Types are the media types that the drive takes, in the words of Redfish.
	Types []string
	// Inserted says that an image is in the drive. A drive that reads NotConnected is empty, whatever Image shows.
	Inserted bool
	// Image is the URL as the BMC shows it; some show its last segment only, or nothing.
	Image string
}

// MediaRequest is an image for a virtual drive.
type MediaRequest struct {
	// URL is an http or https URL that the BMC can open.
	URL string
	// Ours is what the URLs begin with that this request may replace. An image with another URL is never ejected.
	Ours string
}

// VirtualMedia inserts an image into a virtual CD drive, with the same identity check as Power.
type VirtualMedia interface {
	// Media lists the drives of a system that take a CD or DVD: those below the system, else those below its BMC.
	// A BMC with several systems whose drives are listed below the BMC alone gives an *UnsupportedError.
	Media(ctx context.Context, uri string) ([]MediaState, error)
	// InsertMedia inserts one image and reads it back. It writes nothing where the image is in already. Another image in a CD
	// drive is ejected where its URL begins with Ours, and refused with a *MediaError otherwise: a boot from Cd might take it.
	InsertMedia(ctx context.Context, uri string, want Identity, media MediaRequest) error
	// EjectMedia ejects each image whose URL begins with ours, and reads that back. It writes nothing where there is none.
	// An empty ours ejects every image.
	EjectMedia(ctx context.Context, uri string, want Identity, ours string) error
}

// MediaError says that a virtual drive does not hold what it should.
type MediaError struct {
	Address string
	// URI is the drive.
	URI string
	// Asked is what was asked for: insert or eject.
	Asked string
	// Shows is what the drive shows instead, without a path that would give an image away.
	Shows string
	// Remedy is what an operator can do.
	Remedy string
	// Later says that the BMC took the request as a task, which may not have ended yet.
	Later bool
}

func (e *MediaError) Error() string {
	text := fmt.Sprintf("redfish: virtual drive %s at %s: %s: it shows %s", e.URI, e.Address, e.Asked, e.Shows)
	if e.Later {
		text += " so far, and the BMC took the request as a task"
	}
	return text + "; " + e.Remedy
}

// The remedies of a MediaError.
const (
	remedyOccupied = "eject that image, or wait until its owner has; nothing was inserted"
	remedyInsert   = "check that the BMC reaches the boot service, that it trusts its certificate, and that its licence covers virtual media"
	remedyEject    = "eject it by hand, or restart the BMC; the server keeps booting from it otherwise"
)

// Media implements VirtualMedia.
func (c *client) Media(ctx context.Context, uri string) ([]MediaState, error) {
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	doc, _, err := op.system(uri)
	if err != nil {
		return nil, err
	}
	drives, err := drivesOf(op, uri, doc)
	if err != nil {
		return nil, err
	}
	states := make([]MediaState, 0, len(drives))
	for _, d := range drives {
		states = append(states, d.state())
	}
	return states, nil
}

// InsertMedia implements VirtualMedia.
func (c *client) InsertMedia(ctx context.Context, uri string, want Identity, media MediaRequest) error {
	if parsed, err := url.Parse(media.URL); err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return errors.New("redfish: the image has no http or https URL; give the URL of the boot service")
	}
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	doc, _, err := op.checked(uri, want)
	if err != nil {
		return err
	}
	drives, err := drivesOf(op, uri, doc)
	if err != nil {
		return err
	}
	in, err := makeRoom(op, drives, uri, want, media)
	if err != nil || in {
		return err
	}
	if _, _, err := op.checked(uri, want); err != nil {
		return err
	}
	return withoutURL(insertable(drives).insert(op, media.URL), media.URL)
}

// makeRoom ejects what may be replaced, and says whether the image is in already.
func makeRoom(op *operation, drives []*mediaDrive, uri string, want Identity, media MediaRequest) (in bool, err error) {
	for _, d := range drives {
		image := string(d.doc.Image)
		switch {
		case !d.inserted():
			continue
		case !in && showsImage(image, media.URL):
			in = true
		case !begins(image, media.Ours):
			return false, &MediaError{Address: op.c.base.Host, URI: d.uri, Asked: "insert", Shows: shortImage(image), Remedy: remedyOccupied}
		default:
			if err := d.eject(op, uri, want); err != nil {
				return false, withoutURL(err, image)
			}
		}
	}
	return in, nil
}

// EjectMedia implements VirtualMedia.
func (c *client) EjectMedia(ctx context.Context, uri string, want Identity, ours string) error {
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	doc, _, err := op.checked(uri, want)
	if err != nil {
		return err
	}
	drives, err := drivesOf(op, uri, doc)
	if err != nil {
		return err
	}
	for _, d := range drives {
		image := string(d.doc.Image)
		if !d.inserted() || ours != "" && !begins(image, ours) {
			continue
		}
		if err := d.eject(op, uri, want); err != nil {
			return withoutURL(err, image)
		}
	}
	return nil
}

// begins reports whether an image is one of those that a caller calls its own; an empty prefix is no claim.
func begins(image, ours string) bool {
	return ours != "" && strings.HasPrefix(image, ours)
}

// showsImage reports whether a BMC that shows image holds the one of a URL. Some show the last segment alone.
// The segment of an image that is ours cannot be guessed, so it proves enough.
func showsImage(image, wanted string) bool {
	return image == wanted || image != "" && !strings.Contains(image, "://") && lastSegment(image) == lastSegment(wanted)
}

// shortImage names an image without its path, which may be what gives access to it.
func shortImage(image string) string {
	parsed, err := url.Parse(image)
	switch {
	case image == "":
		return "an image without a URL"
	case err != nil || parsed.Host == "":
		return "an image that is not of the boot service"
	}
	return "an image of " + parsed.Scheme + "://" + clip(parsed.Host, 100)
}

// withoutURL takes the URL of an image out of what a BMC said of it.
func withoutURL(err error, image string) error {
	response, answered := errors.AsType[*ResponseError](err)
	if answered && image != "" {
		response.Message = strings.ReplaceAll(response.Message, image, shortImage(image))
		response.body = strings.ReplaceAll(response.body, image, shortImage(image))
	}
	return err
}

// takesCD reports whether a drive takes what a machine boots as Cd. One that does not say which media it takes does not.
func takesCD(types []string) bool {
	return slices.ContainsFunc(types, func(t string) bool { return strings.EqualFold(t, "CD") || strings.EqualFold(t, "DVD") })
}
