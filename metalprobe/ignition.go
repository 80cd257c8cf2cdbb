// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// ConfigPath is where the boot configuration puts the agent's configuration.
const ConfigPath = "/etc/metalprobe/config.json"

// UnitName is the systemd unit that runs the agent.
const UnitName = "metalprobe.service"

// DefaultAgentPath is where the probe image has the agent.
const DefaultAgentPath = "/usr/local/bin/metalprobe"

// ignitionVersion is read by Fedora CoreOS and by Flatcar alike.
const ignitionVersion = "3.3.0"

// ErrNoConfig means that an ignition does not start the agent: it boots an ordinary operating system.
var ErrNoConfig = errors.New("the ignition holds no " + ConfigPath)

// Purpose is what the agent was booted for.
type Purpose string

const (
	// PurposeProbe describes the hardware.
	PurposeProbe Purpose = "probe"
	// PurposeWipe describes the hardware and erases its disks.
	PurposeWipe Purpose = "wipe"
)

// Config is the content of ConfigPath.
type Config struct {
	RegistryURL string `json:"registryURL"`
	// CABundle holds the PEM certificates that vouch for the registry; empty means the system's.
	CABundle string `json:"caBundle,omitempty"`
	// ServerUUID names the server; empty where the firmware of the machine says which it is.
	ServerUUID string `json:"serverUUID,omitempty"`
	// Token is the credential of one server, purpose and entry. It is never logged.
	Token   string  `json:"token,omitempty"`
	Purpose Purpose `json:"purpose"`
	// Entry is the lifecycle entry that the boot belongs to.
	Entry int64 `json:"entry"`
	// Wipe is what the policy says of a wipe; only for PurposeWipe.
	Wipe *WipePolicy `json:"wipe,omitempty"`
}

// Validate says everything that is wrong with a configuration.
func (c Config) Validate() error {
	var problems []error
	if u, err := url.Parse(c.RegistryURL); err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		problems = append(problems, fmt.Errorf("registryURL %.128q: want https://host:port", c.RegistryURL))
	}
	if _, err := NormalizeUUID(c.ServerUUID); err != nil {
		problems = append(problems, fmt.Errorf("serverUUID: %w", err))
	}
	if c.Purpose != PurposeProbe && c.Purpose != PurposeWipe {
		problems = append(problems, fmt.Errorf("purpose %.64q: want %q or %q", c.Purpose, PurposeProbe, PurposeWipe))
	}
	if c.Purpose == PurposeWipe && c.Token == "" {
		problems = append(problems, errors.New("token: empty, and a wipe needs one; let the manager boot the server again"))
	}
	return errors.Join(problems...)
}

// ParseConfig reads and checks the content of ConfigPath. It may name no server: then the firmware of the machine says which it is.
func ParseConfig(text []byte) (Config, error) {
	config, err := DecodeConfig(text)
	if err == nil {
		err = config.ValidateUnnamed()
	}
	if err != nil {
		return Config{}, fmt.Errorf("agent configuration: %w", err)
	}
	return config, nil
}

// anyUUID stands for the server that a configuration does not name.
const anyUUID = "00000000-0000-0000-0000-000000000000"

// ValidateUnnamed is Validate for a configuration that may leave it to the firmware which server it is for.
func (c Config) ValidateUnnamed() error {
	c.ServerUUID = cmp.Or(c.ServerUUID, anyUUID)
	return c.Validate()
}

// DecodeConfig reads a configuration that need not be complete.
func DecodeConfig(text []byte) (config Config, err error) {
	err = json.Unmarshal(text, &config)
	return config, err
}

// ignition is what is written and read of an Ignition configuration.
type ignition struct {
	Ignition struct {
		Version string `json:"version"`
	} `json:"ignition"`
	Storage struct {
		Files []ignitionFile `json:"files,omitempty"`
	} `json:"storage,omitzero"`
	Systemd struct {
		Units []ignitionUnit `json:"units,omitempty"`
	} `json:"systemd,omitzero"`
}

type ignitionFile struct {
	Path      string           `json:"path"`
	Mode      int              `json:"mode,omitempty"`
	Overwrite bool             `json:"overwrite,omitempty"`
	Contents  ignitionContents `json:"contents"`
}

type ignitionContents struct {
	Source      string `json:"source"`
	Compression string `json:"compression,omitempty"`
}

type ignitionUnit struct {
	Name     string `json:"name"`
	Enabled  bool   `json:"enabled"`
	Contents string `json:"contents"`
}

// unit runs the agent.
const unit = `[Unit]
Description=Describe this server to the metalaw registry
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=` + DefaultAgentPath + ` --config ` + ConfigPath + `
Restart=on-failure
RestartSec=10

[Install]
WantedBy=multi-user.target
`

// BuildIgnition renders the Ignition configuration (spec 3) that starts the agent: one file that only root can read,
// and one unit. The same input gives the same bytes.
func BuildIgnition(config Config) ([]byte, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("boot configuration of the agent: %w", err)
	}
	content, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("boot configuration of the agent: %w", err)
	}
	var rendered ignition
	rendered.Ignition.Version = ignitionVersion
	rendered.Storage.Files = []ignitionFile{{
		Path:      ConfigPath,
		Mode:      0o600,
		Overwrite: true,
		Contents:  ignitionContents{Source: "data:application/json;base64," + base64.StdEncoding.EncodeToString(content)},
	}}
	rendered.Systemd.Units = []ignitionUnit{{Name: UnitName, Enabled: true, Contents: unit}}
	return json.Marshal(rendered)
}

// ParseIgnition finds the agent's configuration in an Ignition configuration (spec 3).
// It returns ErrNoConfig where there is none, and another error where there is one that cannot be used.
func ParseIgnition(text []byte) (Config, error) {
	var parsed ignition
	if err := json.Unmarshal(text, &parsed); err != nil {
		return Config{}, fmt.Errorf("ignition: %w", err)
	}
	if !strings.HasPrefix(parsed.Ignition.Version, "3.") {
		return Config{}, fmt.Errorf("ignition: version %.32q: want 3.x", parsed.Ignition.Version)
	}
	for _, file := range parsed.Storage.Files {
		if file.Path != ConfigPath {
			continue
		}
		if file.Contents.Compression != "" {
			return Config{}, fmt.Errorf("ignition: %s: compression %.32q is not read; leave it out", ConfigPath, file.Contents.Compression)
		}
		content, err := decodeDataURL(file.Contents.Source)
		if err != nil {
			return Config{}, fmt.Errorf("ignition: %s: %w", ConfigPath, err)
		}
		config, err := ParseConfig(content)
		if err != nil {
			return Config{}, fmt.Errorf("ignition: %s: %w", ConfigPath, err)
		}
		return config, nil
	}
	return Config{}, ErrNoConfig
}

// decodeDataURL reads a data URL (RFC 2397), base64 or percent-encoded.
func decodeDataURL(source string) ([]byte, error) {
	rest, isData := strings.CutPrefix(source, "data:")
	kind, content, hasComma := strings.Cut(rest, ",")
	if !isData || !hasComma {
		return nil, errors.New("the source is no data URL, such as data:;base64,e30=")
	}
	var decoded []byte
	var err error
	if strings.HasSuffix(kind, ";base64") {
		decoded, err = base64.StdEncoding.DecodeString(content)
	} else {
		content, err = url.PathUnescape(content)
		decoded = []byte(content)
	}
	if err != nil {
		return nil, fmt.Errorf("data URL: %w", err)
	}
	return decoded, nil
}
