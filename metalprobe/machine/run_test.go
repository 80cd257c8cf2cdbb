// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/metalaw/metalaw/metalprobe"
)

func TestParseOptions(t *testing.T) {
	content := `{"registryURL":"https://r:10000","serverUUID":"` + uuid + `","token":"t","purpose":"wipe","entry":3}`
	root := fstest.MapFS{"etc/metalprobe/config.json": {Data: []byte(content)}, "bad.json": {Data: []byte("{}")},
		"ca.pem": {Data: []byte("PEM")}, "unnamed.json": {Data: []byte(`{"registryURL":"https://r","token":"t","purpose":"wipe"}`)},
		"sys/class/dmi/id/product_uuid": {Data: []byte(strings.ToUpper(uuid) + "\n")}}
	fromFile := metalprobe.Config{RegistryURL: "https://r:10000", ServerUUID: uuid, Token: "t", Purpose: metalprobe.PurposeWipe, Entry: 3}
	for name, c := range map[string]struct {
		args []string
		root fs.FS
		want metalprobe.Config
		err  string
	}{
		"the file is found where the boot configuration puts it": {nil, root, fromFile, ""},
		"flags alone, as upstream's agent is called": {[]string{"--registry-url", "http://r:1", "--server-uuid=" + uuid}, fstest.MapFS{},
			metalprobe.Config{RegistryURL: "http://r:1", ServerUUID: uuid, Purpose: metalprobe.PurposeProbe}, ""},
		"flags go before the file": {[]string{"--registry-url=https://other"}, root,
			metalprobe.Config{RegistryURL: "https://other", ServerUUID: uuid, Token: "t", Purpose: metalprobe.PurposeWipe, Entry: 3}, ""},
		"the server is read from the firmware": {[]string{"--config=/unnamed.json"}, root,
			metalprobe.Config{RegistryURL: "https://r", ServerUUID: uuid, Token: "t", Purpose: metalprobe.PurposeWipe}, ""},
		"all flags": {[]string{"--registry-url=https://r", "--token=t", "--ca=/ca.pem", "--purpose=wipe"}, fstest.MapFS{
			"ca.pem": root["ca.pem"], "sys/class/dmi/id/product_uuid": root["sys/class/dmi/id/product_uuid"]},
			metalprobe.Config{RegistryURL: "https://r", CABundle: "PEM", ServerUUID: uuid, Token: "t", Purpose: metalprobe.PurposeWipe}, ""},
		"flags that complete a file": {[]string{"--config=/bad.json", "--registry-url=https://r", "--purpose=probe"}, root,
			metalprobe.Config{RegistryURL: "https://r", ServerUUID: uuid, Purpose: metalprobe.PurposeProbe}, ""},
		"a wipe of another machine":    {[]string{"--server-uuid=11111111-2222-3333-4444-555555555555"}, root, metalprobe.Config{}, "nothing is erased"},
		"a wipe without a token":       {[]string{"--registry-url=https://r", "--purpose=wipe"}, fstest.MapFS{}, metalprobe.Config{}, "token"},
		"a CA that is missing":         {[]string{"--ca=/nowhere"}, root, metalprobe.Config{}, "--ca"},
		"no UUID anywhere":             {[]string{"--registry-url=https://r"}, fstest.MapFS{}, metalprobe.Config{}, "--server-uuid"},
		"nothing is said":              {nil, fstest.MapFS{}, metalprobe.Config{}, "give --registry-url"},
		"a file that is missing":       {[]string{"--config=/nowhere"}, root, metalprobe.Config{}, "--config"},
		"a file that says too little":  {[]string{"--config=/bad.json"}, root, metalprobe.Config{}, "/bad.json"},
		"an argument":                  {[]string{"now"}, root, metalprobe.Config{}, `argument "now"`},
		"an interval that is no pause": {[]string{"--interval=0s"}, root, metalprobe.Config{}, "--interval"},
	} {
		t.Run(name, func(t *testing.T) {
			var usage strings.Builder
			got, err := ParseOptions(c.args, c.root, &usage)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || got.Config != c.want {
				t.Errorf("got %+v, %v, want %+v", got.Config, err, c.want)
			}
		})
	}
}
