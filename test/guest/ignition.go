// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"regexp"

	ignition "github.com/coreos/ignition/v2/config"
	"github.com/vincent-petithory/dataurl"
	"k8s.io/utils/ptr"

	"github.com/metalaw/metalaw/metalprobe"
)

// The flags by which an ignition that is not ours starts the agent in one of its units.
var (
	registryFlag = regexp.MustCompile(`--registry-url[= ]["']?([^\s"'\\]+)`)
	serverFlag   = regexp.MustCompile(`--server-uuid[= ]["']?([^\s"'\\]+)`)
)

// agentConfig finds the agent's configuration in an ignition as Ignition itself reads it: the agent's file, or the agent's flags in a
// unit. An ignition with neither is an operating system's business: metalprobe.ErrNoConfig. A text that Ignition refuses
// boots nothing.
func agentConfig(text []byte) (metalprobe.Config, error) {
	parsed, report, err := ignition.Parse(text)
	if err != nil {
		return metalprobe.Config{}, fmt.Errorf("ignition: %w: %s", err, report.String())
	}
	for i := range parsed.Storage.Files {
		file := &parsed.Storage.Files[i]
		if file.Path != metalprobe.ConfigPath {
			continue
		}
		content, err := contentOf(ptr.Deref(file.Contents.Source, ""), ptr.Deref(file.Contents.Compression, ""))
		if err != nil {
			return metalprobe.Config{}, fmt.Errorf("ignition: %s: %w", file.Path, err)
		}
		return metalprobe.ParseConfig(content)
	}
	for i := range parsed.Systemd.Units {
		unit := ptr.Deref(parsed.Systemd.Units[i].Contents, "")
		registry, server := registryFlag.FindStringSubmatch(unit), serverFlag.FindStringSubmatch(unit)
		if registry != nil && server != nil {
			config := metalprobe.Config{RegistryURL: registry[1], ServerUUID: server[1], Purpose: metalprobe.PurposeProbe}
			return config, config.Validate()
		}
	}
	return metalprobe.Config{}, metalprobe.ErrNoConfig
}

// contentOf decodes a data URL by the library that Ignition uses. A file of another address would have to be fetched, which no
// emulated machine does.
func contentOf(source, compression string) ([]byte, error) {
	decoded, err := dataurl.DecodeString(source)
	if err != nil {
		return nil, fmt.Errorf("data URL: %w", err)
	}
	switch compression {
	case "":
		return decoded.Data, nil
	case "gzip":
		unpacked, err := gzip.NewReader(bytes.NewReader(decoded.Data))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(unpacked, maxBootData))
	}
	return nil, errors.New("compression " + compression + " is not known")
}
