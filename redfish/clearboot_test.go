// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

// standing is a system with an override and the values of Enabled that it offers.
func standing(offered string) string {
	return strings.Replace(systemJSON("Off"), `"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"None"`,
		`"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"`+offered, 1)
}

func TestClearBootSaysThatDisabledIsNotOffered(t *testing.T) {
	const without, with = `,"BootSourceOverrideEnabled@Redfish.AllowableValues":["Once","Continuous"]`,
		`,"BootSourceOverrideEnabled@Redfish.AllowableValues":["Once","disabled"]`
	const busy = `{"error":{"code":"IDRAC.2.8.SWC0700","message":"not ready"}}`
	for name, c := range map[string]struct {
		offered string
		status  int
		body    string
		says    string // of an UnsupportedError; empty for another end
	}{
		"not offered, and refused":  {without, 400, "", "does not support clearing its boot override Once Pxe; it offers Once, Continuous; Disabled is not offered"},
		"not offered, and accepted": {without, 204, "", ""},
		"offered, and refused":      {with, 400, "", ""},
		"nothing is said of it":     {"", 400, "", ""},
		"not offered, and busy":     {without, 400, busy, ""},
		"not offered, and failed":   {without, 500, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.set(systemURI, standing(c.offered))
			f.on("PATCH "+systemURI, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})
			err := f.client(t).ClearBoot(t.Context(), systemURI, self)
			var unsupported *UnsupportedError
			if errors.As(err, &unsupported) != (c.says != "") || c.says != "" && !strings.Contains(err.Error(), c.says) || (err == nil) != (c.status == 204) {
				t.Errorf("error %v, want %q", err, c.says)
			}
		})
	}
}
