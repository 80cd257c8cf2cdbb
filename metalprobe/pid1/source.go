// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/metalaw/metalaw/metalprobe"
	agent "github.com/metalaw/metalaw/metalprobe/machine"
)

const (
	// caPath holds the authority of an HTTPS server of ignitions, where the image has one.
	caPath = "etc/metalprobe/ca.pem"
	// mediaConfig and mediaIgnition are where virtual media hold the configuration.
	mediaConfig, mediaIgnition = "metalprobe/config.json", "ignition.json"
	// maxConfig bounds a configuration in bytes.
	maxConfig = 1 << 20
	// fetchTimeout bounds one try to fetch an ignition.
	fetchTimeout = 10 * time.Second
	// firstRetry and lastRetry bound the time between two looks for a configuration; a problem that stays is said every sayAgain.
	firstRetry, lastRetry, sayAgain = time.Second, 10 * time.Second, 30 * time.Second
)

// mediaLabel is the volume label of a USB medium with a configuration.
const mediaLabel = "METALPROBE"

// labelled looks for our label where ISO 9660, FAT16 and FAT32 have theirs.
func labelled(head []byte) bool {
	for _, at := range []int{32768 + 40, 43, 71} {
		if at+len(mediaLabel) <= len(head) && string(head[at:at+len(mediaLabel)]) == mediaLabel {
			return true
		}
	}
	return false
}

// errNone means that a source holds no configuration.
var errNone = errors.New("no configuration")

// sources are where the configuration of a machine may be, in the order in which they are asked.
type sources struct {
	// root holds the configuration file that the image or a cpio in front of it carries.
	root fs.FS
	// media reads the configuration on the media that are in the machine. It stops at the first that has one.
	media func(ctx context.Context) (metalprobe.Config, error)
	// url is what the kernel command line names; empty where it names none. "{uuid}" in it stands for the system UUID.
	url string
	// fetch gets a URL.
	fetch func(ctx context.Context, url string) ([]byte, error)
}

// look asks each source once. It returns what the first source says that has a configuration, and where that is.
func (s *sources) look(ctx context.Context) (config metalprobe.Config, from string, err error) {
	text, err := readBounded(s.root, strings.TrimPrefix(metalprobe.ConfigPath, "/"))
	if err == nil {
		config, err = metalprobe.ParseConfig(text)
		return config, metalprobe.ConfigPath, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return config, metalprobe.ConfigPath, err
	}
	if config, err = s.media(ctx); !errors.Is(err, errNone) {
		return config, "the medium", err
	}
	if s.url == "" {
		return config, "", fmt.Errorf("%w: the image holds no %s, no medium holds %s or %s, and the kernel command line names no %s",
			errNone, metalprobe.ConfigPath, mediaConfig, mediaIgnition, ignitionArgument)
	}
	from = strings.ReplaceAll(s.url, "{uuid}", agent.FirmwareUUID(s.root))
	if text, err = s.fetch(ctx, from); err != nil {
		return config, redacted(from), err
	}
	config, err = metalprobe.ParseIgnition(text)
	return config, redacted(from), err
}

// redacted is a URL without what may be a secret: a boot service may put a nonce into a path.
func redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "the URL"
	}
	return u.Scheme + "://" + u.Host
}

// readMedium reads the configuration on a medium.
func readMedium(medium fs.FS) (metalprobe.Config, error) {
	text, err := readBounded(medium, mediaConfig)
	if err == nil {
		return metalprobe.ParseConfig(text)
	}
	if text, err = readBounded(medium, mediaIgnition); err == nil {
		return metalprobe.ParseIgnition(text)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return metalprobe.Config{}, errNone
	}
	return metalprobe.Config{}, err
}

func readBounded(root fs.FS, name string) ([]byte, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxConfig+1))
	if err == nil && len(text) > maxConfig {
		err = fmt.Errorf("%s has more than %d bytes", name, maxConfig)
	}
	return text, err
}

// wait looks until there is a configuration, however long that takes: it may be written late. What is wrong is said when it
// changes and then every sayAgain. before is called before each further look.
func (s *sources) wait(ctx context.Context, say func(format string, args ...any), before func()) (metalprobe.Config, bool) {
	pause := firstRetry
	var last string
	var said time.Time
	for {
		config, from, err := s.look(ctx)
		if err == nil {
			say("from %s: server %s, purpose %s, registry %s", from, cmp.Or(config.ServerUUID, "as the firmware says"), config.Purpose,
				config.RegistryURL)
			return config, true
		}
		text := strings.TrimPrefix(from+": "+hideURL(err), ": ")
		if text != last || time.Since(said) >= sayAgain {
			last, said = text, time.Now()
			say("%s; trying again", text)
		}
		if !metalprobe.Wait(ctx, pause) {
			return config, false
		}
		pause = min(2*pause, lastRetry)
		before()
	}
}

// hideURL leaves the URL out of an error of net/http.
func hideURL(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err.Error()
	}
	return err.Error()
}

// fetcher gets ignitions. It trusts the authorities of the image, where it has some.
func fetcher(root fs.FS) func(ctx context.Context, url string) ([]byte, error) {
	return func(ctx context.Context, url string) ([]byte, error) {
		authorities, err := readBounded(root, caPath)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		client, err := metalprobe.NewHTTPClient(authorities)
		if err != nil {
			return nil, fmt.Errorf("/%s: %w", caPath, err)
		}
		defer client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Accept", "application/vnd.coreos.ignition+json;version=3.3.0, */*;q=0.1")
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("status %d", response.StatusCode)
		}
		text, err := io.ReadAll(io.LimitReader(response.Body, maxConfig+1))
		if err == nil && len(text) > maxConfig {
			err = fmt.Errorf("the ignition has more than %d bytes", maxConfig)
		}
		return text, err
	}
}
