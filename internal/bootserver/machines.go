// SPDX-License-Identifier: Apache-2.0

package bootserver

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/metalaw/metalaw/internal/bootserver/images"
	"github.com/metalaw/metalaw/internal/bootserver/origin"
	"github.com/metalaw/metalaw/internal/peers"
	"github.com/metalaw/metalaw/internal/ratelimit"
)

// Options say what a server answers with.
type Options struct {
	Source Source
	Images *images.Store
	// URL is where machines reach the service, without a slash at the end.
	URL string
	// AnySource serves an ISO to every address that knows its name.
	AnySource bool
	// AnyMachine serves the ignition of a claim to every address that knows the UUID.
	AnyMachine bool
	// Arch is the architecture of the images: amd64 or arm64.
	Arch string
	Log  *slog.Logger
}

// Machines answers what machines fetch while they boot, with the statuses of boot-operator.
func Machines(options Options) http.Handler {
	m := &machines{Options: options, rates: peers.NewRates(perSecond, burst), told: ratelimit.New(tellPause, maxTold)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ipxe/{uuid}", m.ipxe)
	mux.HandleFunc("GET /ignition/{uuid}", m.ignition)
	mux.HandleFunc("GET /image", m.image)
	return mux
}

type machines struct {
	Options

	rates *peers.Rates
	told  *ratelimit.Limiter
}

const (
	// perSecond and burst limit the scripts and ignitions that one source may ask for: a UUID is not to be found by trying.
	perSecond, burst = 20, 400
	// tellPause is how long the log tells the same refusal only once, and maxTold bounds the boots of which it remembers that.
	tellPause, maxTold = 5 * time.Minute, 8192
)

// limited answers a source that asks too much. Ignition tries again after such an answer. A machine at an address that is
// known for its own is always served: another host may have used up what its network is given.
func (m *machines) limited(w http.ResponseWriter, r *http.Request, boot Boot) bool {
	if origin.Judge(peer(r), boot.Machine) == origin.Machine || m.rates.Allow(r.RemoteAddr, time.Now()) {
		return false
	}
	w.Header().Set("Retry-After", "5")
	http.Error(w, "too many requests from this address; wait, then try again", http.StatusServiceUnavailable)
	return true
}

// maxUUID is the length of a UUID; nothing else is looked up.
const maxUUID = 36

// machineUUID reads a UUID out of a path; false for anything else, which costs no look-up.
func machineUUID(text string) (string, bool) {
	if len(text) != maxUUID {
		return "", false
	}
	for i, c := range []byte(text) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if dash && c != '-' || !dash && !hex {
			return "", false
		}
	}
	return text, true
}

// refuse answers with the status of an error, and logs what is not usual.
func (o Options) refuse(w http.ResponseWriter, what string, err error) {
	switch {
	case errors.Is(err, ErrUnknown), errors.Is(err, ErrMissing):
		http.Error(w, err.Error(), http.StatusNotFound)
	default:
		o.Log.Error("a boot document was not served", "document", what, "error", err)
		http.Error(w, "the boot service cannot answer now; its log says why", http.StatusInternalServerError)
	}
}

// ipxe compares the UUID exactly, in lower case, as boot-operator does.
func (m *machines) ipxe(w http.ResponseWriter, r *http.Request) {
	uuid, ok := machineUUID(r.PathValue("uuid"))
	if !ok {
		if !m.limited(w, r, Boot{}) {
			http.NotFound(w, r)
		}
		return
	}
	boot, err := m.Source.ByUUID(r.Context(), uuid, true)
	if m.limited(w, r, boot) {
		return
	}
	if err == nil && !boot.Image.PXE() {
		err = fmt.Errorf("%w: image %s has no kernel and initramfs", ErrUnknown, boot.Image.Reference())
	}
	if err != nil {
		m.refuse(w, "iPXE script", err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	// The machine is gone where a write fails; there is nobody to tell.
	_, _ = w.Write([]byte(script(m.URL, boot)))
	m.Log.Info("iPXE script served", "bootConfiguration", boot.Name, "server", boot.UUID)
	m.Source.Fetched(r.Context(), boot, DocumentScript)
}

// script is an iPXE script with the kernel command line of boot-operator.
func script(service string, boot Boot) string {
	layer := func(kind images.Kind) string {
		return service + "/image?" + url.Values{"imageName": {boot.Image.Repository}, "version": {boot.Image.Digest.String()},
			"layerDigest": {boot.Image.Layers[kind].Digest.String()}}.Encode()
	}
	arguments := []string{"initrd=initrd"}
	if boot.Image.Has(images.SquashFS) {
		arguments = append(arguments, "gl.ovl=/:tmpfs", "gl.url="+layer(images.SquashFS), "gl.live=1")
	}
	arguments = append(arguments, "ip=any", "BOOTIF=01-${netX/mac:hexhyp}")
	if boot.Ignition {
		arguments = append(arguments, "ignition.firstboot=1", "ignition.config.url="+service+"/ignition/"+boot.UUID, "ignition.platform.id=metal")
	}
	arguments = append(arguments, "console=ttyS0,115200", "console=tty0", "console=ttyAMA0")
	note := boot.Name
	if !boot.Ignition {
		note += " without ignition"
	}
	return strings.Join([]string{
		"#!ipxe", "# boot configuration " + note,
		"kernel " + layer(images.Kernel) + " " + strings.Join(arguments, " "),
		"initrd --name initrd " + layer(images.Initramfs), "boot", "",
	}, "\n")
}

// ignition takes a UUID in either case. A boot without a Secret ends the connection without an answer, as at boot-operator.
func (m *machines) ignition(w http.ResponseWriter, r *http.Request) {
	uuid, ok := machineUUID(r.PathValue("uuid"))
	if !ok {
		if !m.limited(w, r, Boot{}) {
			http.NotFound(w, r)
		}
		return
	}
	boot, err := m.Source.ByUUID(r.Context(), uuid, false)
	if m.limited(w, r, boot) {
		return
	}
	if err != nil {
		m.refuse(w, "ignition", err)
		return
	}
	if !boot.Ignition {
		panic(http.ErrAbortHandler)
	}
	if why := boot.Refuses(peer(r), m.AnyMachine); why != "" {
		m.withhold(w, r, boot, why)
		return
	}
	text, err := m.Source.IgnitionOf(r.Context(), boot)
	if err != nil {
		m.refuse(w, "ignition", err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(text) //nolint:gosec // it is JSON for a machine, and nosniff is set
	m.Log.Info("ignition served", "bootConfiguration", boot.Name, "server", boot.UUID)
	m.Source.Fetched(r.Context(), boot, DocumentIgnition)
}

// withhold answers as if nothing were prepared, so that a stranger does not learn that a UUID is good.
func (m *machines) withhold(w http.ResponseWriter, r *http.Request, boot Boot, why Refusal) {
	if m.told.Due(boot.Name+"/"+string(why), time.Now()) {
		m.Log.Warn("an ignition was not served", "bootConfiguration", boot.Name, "server", boot.UUID, "reason", why, "from", peer(r).String())
	}
	m.Source.Refused(r.Context(), boot, why)
	m.refuse(w, "ignition", ErrUnknown)
}

// image serves a layer of an image that a boot in force names, and no other.
func (m *machines) image(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	image, err := m.Source.Serves(r.Context(), query.Get("imageName"), query.Get("version"))
	if err != nil {
		m.refuse(w, "layer", err)
		return
	}
	layer, has := image.Layer(query.Get("layerDigest"))
	if !has {
		http.NotFound(w, r)
		return
	}
	blob, err := m.Images.Open(r.Context(), image, layer)
	if err != nil {
		m.refuse(w, "layer", err)
		return
	}
	defer func() { _ = blob.Close() }() // it was only read
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("ETag", `"`+layer.Digest.String()+`"`)
	http.ServeContent(w, r, "", time.Time{}, blob)
}
