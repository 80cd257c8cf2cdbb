// SPDX-License-Identifier: Apache-2.0

package bootserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/metalaw/metalaw/internal/bootserver/images"
	"github.com/metalaw/metalaw/internal/tools/metalaw-image/oci"
)

const (
	uuid    = "4c4c4544-0035-3410-8050-c6c04f314733"
	isoFile = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" // 43 characters
)

// uki is large enough for a BMC to fetch it in ranges. It begins as an EFI program does.
var uki = append([]byte("MZ"), bytes.Repeat([]byte("unified kernel image "), 20_000)...)

// prepared is a Source with at most one boot.
type prepared struct {
	boot     Boot
	err      error
	ignition []byte
	content  Content
	failing  error
	reads    int
	fetched  []Document
	refused  []Refusal
}

func (p *prepared) ByUUID(_ context.Context, asked string, exact bool) (Boot, error) {
	if p.err == nil && (asked == uuid || !exact && strings.EqualFold(asked, uuid)) {
		return p.boot, nil
	}
	if p.err != nil {
		return Boot{}, p.err
	}
	return Boot{}, ErrUnknown
}

func (p *prepared) ByMedia(_ context.Context, file string) (Boot, error) {
	if file == isoFile && p.err == nil {
		return p.boot, nil
	}
	return Boot{}, ErrUnknown
}

func (p *prepared) Serves(_ context.Context, repository, digest string) (images.Image, error) {
	if repository == p.boot.Image.Repository && digest == p.boot.Image.Digest.String() {
		return p.boot.Image, nil
	}
	return images.Image{}, ErrUnknown
}

func (p *prepared) IgnitionOf(context.Context, Boot) ([]byte, error) { return p.ignition, p.failing }

func (p *prepared) ContentOf(context.Context, Boot) (Content, error) {
	p.reads++
	return p.content, p.failing
}

func (p *prepared) Fetched(_ context.Context, _ Boot, document Document) {
	p.fetched = append(p.fetched, document)
}

func (p *prepared) Refused(_ context.Context, _ Boot, why Refusal) {
	p.refused = append(p.refused, why)
}

// serving is a service with one image in its registry.
func serving(t *testing.T) (*prepared, Options) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	image, err := oci.BootImage(oci.Boot{Arch: "amd64", Kernel: []byte("kernel"), Initramfs: []byte("initramfs"), UKI: uki})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(host + "/boot:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, oci.Index(map[string]v1.Image{"amd64": image})); err != nil {
		t.Fatal(err)
	}
	store, err := images.New(images.Options{Folder: t.TempDir(), Limit: 1 << 24, Allowed: []string{host}, Arch: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := store.Resolve(t.Context(), host+"/boot:v1")
	if err != nil {
		t.Fatal(err)
	}
	source := &prepared{
		boot:     Boot{Name: "metalaw-system/s1", UUID: uuid, Image: resolved, Ignition: true, BMC: netip.MustParseAddr("127.0.0.1")},
		ignition: []byte(`{"ignition":{"version":"3.4.0"}}`),
		content:  Content{VolumeID: "METALAW", Files: map[string][]byte{"metalprobe/config.json": []byte(`{"token":"once"}`)}},
	}
	return source, Options{Source: source, Images: store, URL: "https://boot.example:8082", Arch: "amd64", Log: slog.New(slog.DiscardHandler)}
}

func get(t *testing.T, handler http.Handler, method, path string, header ...string) (status int, body []byte, answered http.Header) {
	t.Helper()
	server := httptest.NewServer(quiet(handler))
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := server.Client().Do(request)
	if err != nil {
		return 0, nil, nil
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body, response.Header
}

func TestMachinesGetWhatBootOperatorGives(t *testing.T) {
	upper := strings.ToUpper(uuid)
	for name, c := range map[string]struct {
		change func(*prepared)
		path   string
		status int // 0 is a connection that ends without an answer
		says   string
	}{
		"a script":                              {nil, "/ipxe/" + uuid, 200, "#!ipxe\n# boot configuration metalaw-system/s1\nkernel https://boot.example:8082/image?imageName="},
		"a script for upper case":               {nil, "/ipxe/" + upper, 404, "nothing is prepared"},
		"a script for another":                  {nil, "/ipxe/00000000-0000-0000-0000-000000000001", 404, "nothing is prepared"},
		"a script for what is no UUID":          {nil, "/ipxe/..%2f..%2fetc", 404, "not found"},
		"several boots, and none is named":      {func(p *prepared) { p.err = ErrUnclear }, "/ipxe/" + uuid, 500, "its log says why"},
		"the API server does not answer":        {func(p *prepared) { p.err = errors.New("secret detail") }, "/ipxe/" + uuid, 500, "its log says why"},
		"an ignition":                           {nil, "/ignition/" + uuid, 200, `"3.4.0"`},
		"an ignition for upper case":            {nil, "/ignition/" + upper, 200, `"3.4.0"`},
		"an ignition for another":               {nil, "/ignition/00000000-0000-0000-0000-000000000001", 404, "nothing"},
		"no Secret is named":                    {func(p *prepared) { p.boot.Ignition = false }, "/ignition/" + uuid, 0, ""},
		"the Secret is gone":                    {func(p *prepared) { p.failing = ErrMissing }, "/ignition/" + uuid, 404, "not there"},
		"the Secret is no Butane":               {func(p *prepared) { p.failing = errors.New("no Butane") }, "/ignition/" + uuid, 500, "its log says why"},
		"a layer of an image that is not named": {nil, "/image?imageName=elsewhere/x&version=sha256:1&layerDigest=sha256:2", 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			source, options := serving(t)
			if c.change != nil {
				c.change(source)
			}
			status, body, _ := get(t, Machines(options), http.MethodGet, c.path)
			if status != c.status || !strings.Contains(string(body), c.says) || strings.Contains(string(body), "secret detail") {
				t.Errorf("%d %q, want %d %q", status, body, c.status, c.says)
			}
			if fetched := len(source.fetched) > 0; fetched != (c.status == 200) {
				t.Errorf("noted as fetched: %v", source.fetched)
			}
		})
	}
}

func TestTheScriptLeadsToTheLayersOfTheImage(t *testing.T) {
	source, options := serving(t)
	_, body, _ := get(t, Machines(options), http.MethodGet, "/ipxe/"+uuid)
	var found []string
	for _, word := range strings.Fields(string(body)) {
		if path, is := strings.CutPrefix(word, options.URL); is {
			_, content, _ := get(t, Machines(options), http.MethodGet, path)
			found = append(found, string(content))
		}
	}
	if got := strings.Join(found, " "); got != "kernel initramfs" || !strings.Contains(string(body), "ignition.config.url="+options.URL+"/ignition/"+uuid) {
		t.Errorf("%s\nleads to %q", body, got)
	}
	source.boot.Ignition = false
	_, body, _ = get(t, Machines(options), http.MethodGet, "/ipxe/"+uuid)
	if strings.Contains(string(body), "ignition.") || !strings.Contains(string(body), "s1 without ignition") {
		t.Errorf("without a Secret:\n%s", body)
	}
}

func TestABMCFetchesItsISOByHeadAndInRanges(t *testing.T) {
	source, options := serving(t)
	handler := Media(options)
	path := MediaPath + isoFile + ".iso"
	status, whole, header := get(t, handler, http.MethodGet, path)
	if status != 200 || !bytes.Contains(whole, []byte(`{"token":"once"}`)) || !bytes.Contains(whole, uki) || !bytes.Contains(whole[:40<<10], []byte("METALAW")) {
		t.Fatalf("status %d, %d bytes", status, len(whole))
	}
	if status, body, head := get(t, handler, http.MethodHead, path); status != 200 || len(body) != 0 || head.Get("Content-Length") != fmt.Sprint(len(whole)) || head.Get("Accept-Ranges") != "bytes" {
		t.Errorf("HEAD: %d %v", status, head)
	}
	var joined []byte
	for from := 0; from < len(whole); from += 100_000 {
		to := min(from+100_000, len(whole)) - 1
		status, part, _ := get(t, handler, http.MethodGet, path, "Range", fmt.Sprintf("bytes=%d-%d", from, to), "If-Range", header.Get("Etag"))
		if status != 206 {
			t.Fatalf("range from %d: %d", from, status)
		}
		joined = append(joined, part...)
	}
	if !bytes.Equal(joined, whole) {
		t.Error("the ranges do not make the whole")
	}
	if source.reads != 1 {
		t.Errorf("the Secret was read %d times", source.reads)
	}
	if status, _, _ := get(t, handler, http.MethodGet, path, "Range", "bytes=99999999-"); status != 416 {
		t.Errorf("a range beyond the end: %d", status)
	}
	source.err = ErrUnknown // the entry ended
	if status, _, _ := get(t, handler, http.MethodGet, path); status != 404 {
		t.Errorf("after its entry: %d", status)
	}
}

func TestAnISOIsGivenToItsBMCAlone(t *testing.T) {
	for name, c := range map[string]struct {
		bmc    string
		any    bool
		file   string
		method string
		status int
	}{
		"its BMC":                         {"127.0.0.1", false, isoFile + ".iso", "GET", 200},
		"another address":                 {"192.0.2.1", false, isoFile + ".iso", "GET", 404},
		"another address, where any may":  {"192.0.2.1", true, isoFile + ".iso", "GET", 200},
		"a BMC whose address is unknown":  {"", false, isoFile + ".iso", "GET", 404},
		"another name":                    {"127.0.0.1", false, strings.Repeat("B", 43) + ".iso", "GET", 404},
		"a name that is too short":        {"127.0.0.1", false, "A.iso", "GET", 404},
		"a name of other characters":      {"127.0.0.1", false, strings.Repeat("%25", 43) + ".iso", "GET", 404},
		"the name without what ends it":   {"127.0.0.1", false, isoFile, "GET", 404},
		"a request that writes something": {"127.0.0.1", false, isoFile + ".iso", "PUT", 405},
	} {
		t.Run(name, func(t *testing.T) {
			source, options := serving(t)
			source.boot.BMC = netip.Addr{}
			if c.bmc != "" {
				source.boot.BMC = netip.MustParseAddr(c.bmc)
			}
			options.AnySource = c.any
			if status, _, _ := get(t, Media(options), c.method, MediaPath+c.file); status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
		})
	}
}

func TestThePathOfAnISOIsNotLogged(t *testing.T) {
	_, options := serving(t)
	var written bytes.Buffer
	options.Log = slog.New(slog.NewTextHandler(&written, nil))
	get(t, Media(options), http.MethodGet, MediaPath+isoFile+".iso")
	if text := written.String(); !strings.Contains(text, "metalaw-system/s1") || strings.Contains(text, isoFile) {
		t.Errorf("logged %q", text)
	}
}

func TestFirmwareWithRSAKeyExchangeIsServed(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.StartTLS() // for its certificate
	certificate := server.TLS.Certificates[0]
	server.Close()
	server = httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = TLSConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil })
	server.StartTLS()
	defer server.Close()
	for _, suite := range []uint16{tls.TLS_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_RSA_WITH_AES_128_GCM_SHA256} {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}}}
		connection, err := dialer.DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatalf("%s: %v", tls.CipherSuiteName(suite), err)
		}
		_ = connection.Close()
	}
}

func FuzzNamesInPaths(f *testing.F) {
	for _, text := range []string{uuid, strings.ToUpper(uuid), isoFile + ".iso", "", "..", "\x00.iso", strings.Repeat("é", 18)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if name, ok := machineUUID(text); ok && (name != text || len(name) != 36 || strings.ContainsAny(name, "/.% \x00")) {
			t.Errorf("%q is no UUID", text)
		}
		if name, ok := isoName(text); ok && (name+".iso" != text || strings.ContainsAny(name, "/.% \x00")) {
			t.Errorf("%q names no ISO", text)
		}
	})
}
