// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

var wipeConfig = Config{
	RegistryURL: "https://registry:10000", CABundle: "PEM", ServerUUID: uuid, Token: "secret", Purpose: PurposeWipe, Entry: 7,
}

func TestIgnitionIsReadAsItWasBuilt(t *testing.T) {
	text, err := BuildIgnition(wipeConfig)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseIgnition(text)
	if err != nil {
		t.Fatal(err)
	}
	if got != wipeConfig {
		t.Errorf("got %+v, want %+v", got, wipeConfig)
	}
}

func TestIgnitionHoldsOneSecretFileAndOneUnit(t *testing.T) {
	text, err := BuildIgnition(wipeConfig)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Ignition struct{ Version string }
		Storage  struct {
			Files []struct {
				Path string
				Mode int
			}
		}
		Systemd struct {
			Units []struct {
				Name     string
				Enabled  bool
				Contents string
			}
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Ignition.Version != "3.3.0" || len(got.Storage.Files) != 1 || len(got.Systemd.Units) != 1 {
		t.Fatalf("got %+v", got)
	}
	if file := got.Storage.Files[0]; file.Path != "/etc/metalprobe/config.json" || file.Mode != 384 {
		t.Errorf("file: got %+v, want mode 384 (0600)", file)
	}
	unit := got.Systemd.Units[0]
	if unit.Name != "metalprobe.service" || !unit.Enabled ||
		!strings.Contains(unit.Contents, "\nExecStart=/usr/local/bin/metalprobe --config /etc/metalprobe/config.json\n") {
		t.Errorf("unit: got %+v", unit)
	}
}

func TestBuildIgnitionRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"a wipe without a token":      {Config{RegistryURL: "https://r", ServerUUID: uuid, Purpose: PurposeWipe}, "token"},
		"an unknown purpose":          {Config{RegistryURL: "https://r", ServerUUID: uuid, Purpose: "erase"}, "purpose"},
		"no registry":                 {Config{ServerUUID: uuid, Purpose: PurposeProbe}, "registryURL"},
		"no server":                   {Config{RegistryURL: "https://r", Purpose: PurposeProbe}, "serverUUID"},
		"a registry of another sort":  {Config{RegistryURL: "file:///etc", ServerUUID: uuid, Purpose: PurposeProbe}, "registryURL"},
		"several problems, all named": {Config{}, "purpose"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := BuildIgnition(c.config)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Error("the error shows the token")
			}
		})
	}
}

func TestParseIgnition(t *testing.T) {
	file := func(source string) string {
		return `{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/metalprobe/config.json","contents":{"source":"` + source + `"}}]}}`
	}
	for name, c := range map[string]struct {
		text string
		none bool
		want string
	}{
		"an operating system's has no agent":  {`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/motd"}]}}`, true, ""},
		"a percent-encoded file is read":      {file("data:,%7B%22registryURL%22%3A%22https%3A%2F%2Fr%22%2C%22serverUUID%22%3A%22" + uuid + "%22%2C%22purpose%22%3A%22probe%22%7D"), false, ""},
		"another version is refused":          {`{"ignition":{"version":"2.2.0"}}`, false, "want 3.x"},
		"text that is no JSON is refused":     {`#cloud-config`, false, "ignition:"},
		"a remote file is refused":            {file("https://elsewhere/config.json"), false, "data URL"},
		"a broken base64 is refused":          {file("data:;base64,!!"), false, "data URL"},
		"a configuration without a purpose":   {file("data:;base64,e30="), false, "purpose"},
		"a compressed configuration is named": {strings.Replace(file("data:,x"), `"source"`, `"compression":"gzip","source"`, 1), false, "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseIgnition([]byte(c.text))
			switch {
			case c.none:
				if !errors.Is(err, ErrNoConfig) {
					t.Errorf("got %v, want ErrNoConfig", err)
				}
			case c.want == "":
				if err != nil {
					t.Error(err)
				}
			case err == nil || !strings.Contains(err.Error(), c.want):
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func FuzzParseIgnition(f *testing.F) {
	text, err := BuildIgnition(wipeConfig)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/etc/metalprobe/config.json","contents":{"source":"data:,%"}}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		config, err := ParseIgnition(text)
		if err != nil {
			return
		}
		again, err := BuildIgnition(config)
		if err != nil {
			t.Fatalf("what was read cannot be built: %v", err)
		}
		if got, err := ParseIgnition(again); err != nil || got != config {
			t.Fatalf("got %+v, %v, want %+v", got, err, config)
		}
	})
}
