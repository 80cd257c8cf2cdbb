// SPDX-License-Identifier: Apache-2.0

// Package ignition renders the ignition of a Secret as boot-operator serves it.
package ignition

import (
	"fmt"
	"strings"

	butane "github.com/coreos/butane/config"
	"github.com/coreos/butane/config/common"
)

// FormatButane is the format of a text that is translated. A text of any other is served as it is.
const FormatButane = "fcos"

// Render translates a text of the format fcos from Butane to Ignition, with the library and the options of boot-operator.
func Render(text []byte, format string) ([]byte, error) {
	if strings.TrimSpace(format) != FormatButane {
		return text, nil
	}
	options := common.TranslateBytesOptions{Raw: true}
	options.NoResourceAutoCompression = true
	translated, report, err := butane.TranslateBytes(text, options)
	if err != nil {
		return nil, fmt.Errorf("the key format is %s, and the ignition is no Butane text: %w: %s; "+
			"remove the key format where the text is Ignition JSON", FormatButane, err, report.String())
	}
	return translated, nil
}
