// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// noteOfBoot begins the comment in which the boot provider of the tests names the boot configuration.
const noteOfBoot = "# boot configuration "

// bootData is what a machine learns of its boot before it has an ignition.
type bootData struct {
	Image string
	// SBC names the boot configuration, as namespace/name; only the boot provider of the tests says it.
	SBC string
	// IgnitionURL is where the booted image asks for its ignition; empty where its boot configuration names none.
	IgnitionURL string
}

// readScript runs an iPXE script as far as the first kernel: it knows the commands set and kernel, and leaves out the rest.
func readScript(script, uuid string) (bootData, error) {
	if !strings.HasPrefix(script, "#!ipxe") {
		return bootData{}, errors.New("iPXE script: it does not begin with #!ipxe")
	}
	var data bootData
	settings := map[string]string{"uuid": uuid}
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if note, is := strings.CutPrefix(line, noteOfBoot); is {
			data.SBC = note
			continue
		}
		words := strings.Fields(os.Expand(line, func(name string) string { return settings[name] }))
		switch {
		case len(words) == 0:
		case words[0] == "set" && len(words) > 2:
			settings[words[1]] = strings.Join(words[2:], " ")
		case words[0] == "kernel" && len(words) > 1:
			err := data.kernel(words[1], words[2:])
			return data, err
		}
	}
	return bootData{}, errors.New("iPXE script: it starts no kernel")
}

// kernel reads the image out of a kernel's URL, and the address of the ignition out of its command line.
func (d *bootData) kernel(address string, arguments []string) error {
	var err error
	if d.Image, err = imageOf(address); err != nil {
		return err
	}
	for _, argument := range arguments {
		if config, is := strings.CutPrefix(argument, "ignition.config.url="); is {
			d.IgnitionURL = config
		}
	}
	if sbc, without := strings.CutSuffix(d.SBC, " without ignition"); without {
		d.SBC, d.IgnitionURL = sbc, ""
	}
	return nil
}

// imageOf is the image that a layer's URL names; the layer is served as /image?imageName=...&version=...
func imageOf(address string) (string, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("URL of an image: %w", err)
	}
	name, version := parsed.Query().Get("imageName"), parsed.Query().Get("version")
	if name == "" {
		return "", fmt.Errorf("URL of an image %.128q: it has no imageName", address)
	}
	if strings.HasPrefix(version, "sha256:") || strings.HasPrefix(version, "sha512:") {
		return name + "@" + version, nil
	}
	return name + ":" + version, nil
}
