// SPDX-License-Identifier: Apache-2.0

// Package bootserver answers machines and BMCs with what is prepared for a boot: iPXE scripts, layers of images, ignitions, and
// ISO images for virtual media. What is prepared it asks a Source for, at each request, so that every replica answers alike.
package bootserver

import (
	"context"
	"errors"
	"net/netip"

	"github.com/metalaw/metalaw/internal/bootserver/images"
	"github.com/metalaw/metalaw/internal/bootserver/origin"
)

// Boot is what is prepared for one machine.
type Boot struct {
	// Name is that of the boot configuration, as namespace/name.
	Name string
	// UUID is the machine's, in lower case.
	UUID  string
	Image images.Image
	// Ignition says that the boot configuration names a Secret.
	Ignition bool
	// Tenant says that the ignition is served to its machine alone: it is not an agent's, and no user opened it.
	Tenant bool
	// Machine is what is known of the machine's network interfaces.
	Machine origin.Known
	// Closed says that the ignition is served no longer: the machine gave its first sign, and the policy asks for no more.
	Closed bool
	// BMC is from where an ISO may be fetched; the zero value is nowhere.
	BMC netip.Addr
}

// Content is what goes into an ISO beside the UKI.
type Content struct {
	// VolumeID is the label of the ISO.
	VolumeID string
	// Files are by their path on the ISO.
	Files map[string][]byte
}

// Document is what a machine was given.
type Document string

// The documents that a boot configuration says to have been fetched.
const (
	DocumentScript   Document = "script"
	DocumentIgnition Document = "ignition"
)

// Refusal is why an ignition is not served, although it is prepared.
type Refusal string

const (
	// RefusalAnotherAddress is the reason where the request comes from an address that the machine does not have.
	RefusalAnotherAddress Refusal = "AnotherAddress"
	// RefusalFirstSign is the reason where the machine gave its first sign already.
	RefusalFirstSign Refusal = "FirstSign"
)

// Refuses says why an ignition is not served to an address; empty where it is served. anySource serves it to every address.
func (b Boot) Refuses(from netip.Addr, anySource bool) Refusal {
	switch {
	case b.Closed:
		return RefusalFirstSign
	case b.Tenant && !anySource && origin.Judge(from, b.Machine) == origin.Another:
		return RefusalAnotherAddress
	}
	return ""
}

// Source knows what is prepared. Its errors are ErrUnknown, ErrUnclear, ErrMissing or others.
type Source interface {
	// ByUUID finds the boot of a machine. exact compares the UUID as it is spelled, else letters of either case are alike.
	ByUUID(ctx context.Context, uuid string, exact bool) (Boot, error)
	// ByMedia finds the boot whose ISO has an unguessable name.
	ByMedia(ctx context.Context, name string) (Boot, error)
	// Serves finds the image of a boot in force.
	Serves(ctx context.Context, repository, digest string) (images.Image, error)
	// IgnitionOf reads the ignition of a boot as it is served.
	IgnitionOf(ctx context.Context, boot Boot) ([]byte, error)
	// ContentOf reads what goes into the ISO of a boot.
	ContentOf(ctx context.Context, boot Boot) (Content, error)
	// Fetched notes that a machine fetched a document.
	Fetched(ctx context.Context, boot Boot, document Document)
	// Refused notes that the ignition was asked for and not served.
	Refused(ctx context.Context, boot Boot, why Refusal)
}

var (
	// ErrUnknown means that nothing is prepared.
	ErrUnknown = errors.New("nothing is prepared for this machine")
	// ErrUnclear means that several boots are prepared, and the server names none of them.
	ErrUnclear = errors.New("several boots are prepared for this machine, and its server names none of them")
	// ErrMissing means that the ignition of a boot is not there.
	ErrMissing = errors.New("the ignition is not there")
)
