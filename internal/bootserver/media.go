// SPDX-License-Identifier: Apache-2.0

package bootserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metalaw/metalaw/internal/bootmedia"
	"github.com/metalaw/metalaw/internal/bootserver/images"
)

// MediaPath begins the path of each ISO.
const MediaPath = "/media/"

const (
	mediaSuffix = ".iso"
	// mediaName is the length of the name of an ISO: 256 bits in base64url without padding.
	mediaName = 43
	// contentFor is how long the content of an ISO is used without reading its Secret again: BMCs fetch an ISO in thousands
	// of ranges. What is prepared is looked up at each of them.
	contentFor = 30 * time.Second
	// maxContents bounds the contents that are kept.
	maxContents = 256
)

// Media answers BMCs with the ISO images of boots in force. A name that is not in force, and an address that is not the
// BMC's, gives 404.
func Media(options Options) http.Handler {
	m := &media{Options: options, contents: map[string]contentAt{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+MediaPath+"{name}", m.serve) // GET takes HEAD as well
	return mux
}

type media struct {
	Options

	mu       sync.Mutex
	contents map[string]contentAt
}

type contentAt struct {
	content Content
	at      time.Time
}

// isoName reads the name of an ISO out of a path; false for what cannot be one.
func isoName(file string) (string, bool) {
	name, is := strings.CutSuffix(file, mediaSuffix)
	if !is || len(name) != mediaName {
		return "", false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return "", false
		}
	}
	return name, true
}

func (m *media) serve(w http.ResponseWriter, r *http.Request) {
	name, ok := isoName(r.PathValue("name"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	boot, err := m.Source.ByMedia(r.Context(), name)
	if err != nil {
		m.refuse(w, "ISO", err)
		return
	}
	if from := peer(r); !m.AnySource && (!boot.BMC.IsValid() || from != boot.BMC) {
		m.Log.Warn("an ISO was asked for from another address than its BMC's", "bootConfiguration", boot.Name,
			"from", from.String(), "bmc", boot.BMC.String())
		http.NotFound(w, r)
		return
	}
	layer, has := boot.Image.Layers[images.UKI]
	if !has {
		m.refuse(w, "ISO", fmt.Errorf("%w: image %s has no UKI", ErrUnknown, boot.Image.Reference()))
		return
	}
	content, err := m.content(r.Context(), name, boot)
	if err != nil {
		m.refuse(w, "ISO", err)
		return
	}
	blob, err := m.Images.Open(r.Context(), boot.Image, layer)
	if err != nil {
		m.refuse(w, "ISO", err)
		return
	}
	defer func() { _ = blob.Close() }() // it was only read
	iso, err := bootmedia.NewISO(bootmedia.ISOOptions{VolumeID: content.VolumeID, UKI: blob, UKISize: blob.Size, Arch: m.Arch, Files: content.Files})
	if err != nil {
		m.refuse(w, "ISO", err)
		return
	}
	if r.Method == http.MethodHead || r.Header.Get("Range") == "" {
		m.Log.Info("ISO served", "bootConfiguration", boot.Name, "server", boot.UUID, "method", r.Method)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("ETag", entityTag(boot.Image, content))
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(iso, 0, iso.Size()))
}

// peer is the address that a request came from.
func peer(r *http.Request) netip.Addr {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return from.Addr().Unmap().WithZone("")
}

// content reads what goes into an ISO, at most once in a while.
func (m *media) content(ctx context.Context, name string, boot Boot) (Content, error) {
	m.mu.Lock()
	known, has := m.contents[name]
	m.mu.Unlock()
	if has && time.Since(known.at) < contentFor {
		return known.content, nil
	}
	content, err := m.Source.ContentOf(ctx, boot)
	if err != nil {
		return Content{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.contents) >= maxContents {
		clear(m.contents)
	}
	m.contents[name] = contentAt{content: content, at: time.Now()}
	return content, nil
}

// entityTag changes with each byte of an ISO, so that a BMC never joins ranges of two contents.
func entityTag(image images.Image, content Content) string {
	sum := sha256.New()
	add := func(part []byte) { _, _ = fmt.Fprintf(sum, "%d:%s", len(part), part) } // a hash cannot fail to be written to
	add([]byte(image.Layers[images.UKI].Digest.String()))
	add([]byte(content.VolumeID))
	for _, name := range slices.Sorted(maps.Keys(content.Files)) {
		add([]byte(name))
		add(content.Files[name])
	}
	return `"` + hex.EncodeToString(sum.Sum(nil)[:16]) + `"`
}
