// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// source is what a machine boots.
type source struct {
	// flags choose it.
	flags []string
	// kernel is the kernel that the host gives to the guest; empty where the guest fetches one itself.
	kernel string
	// bootFile is what the network card fetches; empty where it does not boot.
	bootFile string
	// disks says that the disks boot.
	disks bool
	// temporary are files to remove when the guest has ended.
	temporary []string
}

func (s source) remove() {
	for _, file := range s.temporary {
		_ = os.Remove(file)
	}
}

// retry is the pause between two questions that were not answered.
const retry = 500 * time.Millisecond

// choose says what the machine boots. It asks the boot provider until that answers, as firmware does.
func (v *VM) choose(ctx context.Context, m *emulator.Machine, boot emulator.BootSelection) (source, error) {
	switch boot.Target {
	case "Pxe", "UefiHttp":
		if v.description.Chain == IPXE {
			return source{bootFile: inGuest(strings.TrimSuffix(v.backend.options.ProviderURL, "/") + "/ipxe/${uuid}")}, nil
		}
		return v.insist(ctx, func() (source, error) { return v.direct(ctx, strings.ToLower(m.InBandUUID())) })
	case "Cd", "UsbCd":
		if boot.MediaURL == "" {
			return source{}, errors.New("the virtual CD drive is empty")
		}
		return v.insist(ctx, func() (source, error) { return v.media(ctx, boot.MediaURL) })
	default:
		return source{disks: true}, nil
	}
}

// insist tries until it works or the machine is switched off.
func (v *VM) insist(ctx context.Context, try func() (source, error)) (source, error) {
	for {
		from, err := try()
		if err == nil {
			return from, nil
		}
		v.backend.options.Log.Debug("no boot data", "machine", v.description.Name, "error", err)
		select {
		case <-ctx.Done():
			return source{}, err
		case <-time.After(retry):
		}
	}
}

// direct reads the machine's iPXE script and fetches what it names.
func (v *VM) direct(ctx context.Context, uuid string) (source, error) {
	fetch := v.backend.fetcher
	text, err := fetch.text(ctx, strings.TrimSuffix(v.backend.options.ProviderURL, "/")+"/ipxe/"+uuid)
	if err != nil {
		return source{}, err
	}
	script, err := readScript(text, uuid)
	if err != nil {
		return source{}, err
	}
	kernel, err := fetch.file(ctx, script.kernel)
	if err != nil {
		return source{}, err
	}
	from := source{kernel: kernel, flags: []string{"-kernel", kernel}}
	var parts []string
	for _, initrd := range script.initrds {
		part, err := fetch.file(ctx, initrd)
		if err != nil {
			return source{}, err
		}
		parts = append(parts, part)
	}
	switch len(parts) {
	case 0:
	case 1:
		from.flags = append(from.flags, "-initrd", parts[0])
	default:
		whole := v.file("initramfs")
		if err := concatenate(whole, parts); err != nil {
			return source{}, err
		}
		from.temporary = append(from.temporary, whole)
		from.flags = append(from.flags, "-initrd", whole)
	}
	// The serial port is the only console of the machine; the kernel takes the last one that is named.
	from.flags = append(from.flags, "-append", inGuest(script.commandLine)+" console=ttyS0,115200")
	return from, nil
}

// media boots an image as a virtual CD in UEFI firmware. It is a CD at USB, as a BMC shows its media to the machine.
func (v *VM) media(ctx context.Context, address string) (source, error) {
	image, err := v.backend.fetcher.file(ctx, address)
	if err != nil {
		return source{}, err
	}
	return source{flags: []string{
		"-drive", options("if=pflash,format=raw,unit=0,readonly=on", "file", v.backend.options.Firmware),
		"-drive", options("if=none,id=cd,format=raw,media=cdrom,readonly=on", "file", image),
		"-device", "qemu-xhci,id=media", "-device", "usb-storage,bus=media.0,drive=cd,bootindex=0",
		"-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=no", "-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=no",
	}}, nil
}

// inGuest names this host as a guest reaches it.
func inGuest(text string) string {
	return strings.NewReplacer("://127.0.0.1", "://"+GuestHost, "://localhost", "://"+GuestHost).Replace(text)
}

// concatenate makes one initramfs of several, each of which begins at a multiple of four.
func concatenate(to string, parts []string) (err error) {
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for _, part := range parts {
		content, err := os.ReadFile(part)
		if err != nil {
			return err
		}
		if _, err := file.Write(append(content, make([]byte, -len(content)&3)...)); err != nil {
			return err
		}
	}
	return nil
}

// fetcher downloads what machines boot.
type fetcher struct {
	http *http.Client
	// cache holds files by the digest of their content.
	cache string
}

// newFetcher reaches this host under both of its names.
func newFetcher(client *http.Client, cache string) fetcher {
	if client == nil {
		client = &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if rest, inside := strings.CutPrefix(address, GuestHost+":"); inside {
					address = "127.0.0.1:" + rest
				}
				return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, address)
			},
			IdleConnTimeout: 30 * time.Second,
		}}
	}
	return fetcher{http: client, cache: cache}
}

// maxText bounds a script.
const maxText = 1 << 20

func (f fetcher) text(ctx context.Context, address string) (string, error) {
	body, err := f.open(ctx, address)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(io.LimitReader(body, maxText))
	return string(text), err
}

// file downloads a file. One whose URL carries its digest is downloaded once.
func (f fetcher) file(ctx context.Context, address string) (path string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	if digest, named := strings.CutPrefix(u.Query().Get("layerDigest"), "sha256:"); named && filepath.Base(digest) == digest {
		path = filepath.Join(f.cache, digest)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	body, err := f.open(ctx, address)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	file, err := os.CreateTemp(f.cache, ".download-*")
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, sum), body)
	err = errors.Join(err, file.Close())
	path = filepath.Join(f.cache, hex.EncodeToString(sum.Sum(nil)))
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return path, nil
}

func (f fetcher) open(ctx context.Context, address string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := f.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("boot provider: %s: status %d", request.URL.Path, response.StatusCode)
	}
	return response.Body, nil
}
