// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"golang.org/x/sys/unix"
)

const (
	// modulesRoot holds a folder of modules for each kernel.
	modulesRoot = "/lib/modules"
	// moduleLimit bounds an unpacked module; the largest drivers of today have 30 MB.
	moduleLimit = 256 << 20
	// ueventBuffer is how many bytes of messages the kernel keeps for us: a large machine says a lot at once.
	ueventBuffer = 16 << 20
	// ueventBacklog is how many messages wait while modules are loaded.
	ueventBacklog = 8192
)

// uptime is how long the kernel has been running.
func uptime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}

// modulesDir is the folder of the modules of the running kernel.
func modulesDir() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return modulesRoot + "/unknown"
	}
	return filepath.Join(modulesRoot, unix.ByteSliceToString(name.Release[:]))
}

// inserter gives modules in a folder to the kernel.
func inserter(dir string) func(file string) error {
	return func(file string) error {
		f, err := os.Open(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if strings.HasSuffix(file, ".ko") {
			err = unix.FinitModule(int(f.Fd()), "", 0)
		} else {
			var image []byte
			if image, err = unpack(f, file); err == nil {
				err = unix.InitModule(image, "")
			}
		}
		switch {
		case errors.Is(err, unix.EEXIST):
			return nil
		case errors.Is(err, unix.ENODEV):
			return errAbsent
		}
		return err
	}
}

// unpack reads a module that is packed as its name says.
func unpack(packed io.Reader, name string) ([]byte, error) {
	var plain io.Reader
	var err error
	switch filepath.Ext(name) {
	case ".zst":
		var decoder *zstd.Decoder
		if decoder, err = zstd.NewReader(packed, zstd.WithDecoderConcurrency(1)); err == nil {
			defer decoder.Close()
			plain = decoder
		}
	case ".xz":
		plain, err = xz.NewReader(packed)
	case ".gz":
		plain, err = gzip.NewReader(packed)
	default:
		return nil, errors.New("a module is named .ko, .ko.xz, .ko.zst or .ko.gz")
	}
	if err != nil {
		return nil, err
	}
	var image bytes.Buffer
	if _, err := image.ReadFrom(io.LimitReader(plain, moduleLimit+1)); err != nil {
		return nil, err
	}
	if image.Len() > moduleLimit {
		return nil, fmt.Errorf("it has more than %d bytes", moduleLimit)
	}
	return image.Bytes(), nil
}

// listen hears what the kernel says of devices, until ctx ends.
func listen(ctx context.Context) (<-chan uevent, error) {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, fmt.Errorf("listening to the kernel's devices: %w", err)
	}
	_ = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, ueventBuffer) // a small one loses messages under load only
	if err := unix.Bind(socket, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}); err != nil {
		_ = unix.Close(socket)
		return nil, fmt.Errorf("listening to the kernel's devices: %w", err)
	}
	file := os.NewFile(uintptr(socket), "uevents") // its reads end when it is closed
	context.AfterFunc(ctx, func() { _ = file.Close() })
	events := make(chan uevent, ueventBacklog)
	go func() {
		message := make([]byte, 64<<10)
		for ctx.Err() == nil {
			n, err := file.Read(message)
			if errors.Is(err, unix.ENOBUFS) {
				continue // messages were lost; others follow
			}
			if err != nil {
				return
			}
			if event, ok := parseUevent(message[:n]); ok {
				select {
				case events <- event:
				case <-ctx.Done():
				}
			}
		}
	}()
	return events, nil
}
