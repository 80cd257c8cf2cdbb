// SPDX-License-Identifier: Apache-2.0

package bootprovider

import (
	"fmt"
	"strings"

	butane "github.com/coreos/butane/config"
	"github.com/coreos/butane/config/common"
)

// formatButane is the format of a text that boot-operator translates; a text of any other is served as it is.
const formatButane = "fcos"

// render gives the ignition as boot-operator serves it: by the same library with the same options.
func render(text []byte, format string) ([]byte, error) {
	if strings.TrimSpace(format) != formatButane {
		return text, nil
	}
	options := common.TranslateBytesOptions{Raw: true}
	options.NoResourceAutoCompression = true
	translated, report, err := butane.TranslateBytes(text, options)
	if err != nil {
		return nil, fmt.Errorf("format is %s, and the text is no Butane: %w: %s", formatButane, err, report.String())
	}
	return translated, nil
}
