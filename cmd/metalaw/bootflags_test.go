// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestFlagsOfTheBootServiceThatCannotBeUsed(t *testing.T) {
	const good = "--media-url=https://boot.example:8083 --allow-registries=ghcr.io/metalaw"
	for name, c := range map[string]struct{ args, says string }{
		"virtual media alone":          {good, ""},
		"without TLS":                  {"--boot-url=http://boot.example:8082 --boot-plaintext --allow-registries=ghcr.io", ""},
		"neither way":                  {"--allow-registries=ghcr.io", "--boot-url"},
		"no registry":                  {"--media-url=https://boot.example", "--allow-registries"},
		"http where TLS is spoken":     {"--media-url=http://boot.example --allow-registries=ghcr.io", "write https, or change --media-plaintext"},
		"https where no TLS is spoken": {good + " --media-plaintext", "write http, or change --media-plaintext"},
		"a URL with a path":            {"--boot-url=https://boot.example/x --allow-registries=ghcr.io", "nothing else"},
		"an architecture that is none": {good + " --architecture=riscv64", "--architecture"},
		"a cache of no size":           {good + " --cache-size=0", "--cache-size"},
		"a size that is none":          {good + " --cache-size=big", "--cache-size"},
		"an address of no port":        {good + " --media-bind-address=boot", "--media-bind-address"},
		"TLS without certificates":     {good + " --cert-dir=", "--cert-dir"},
		"nobody prepares":              {good + " --workers=0", "--workers"},
		"a user name within the URL":   {"--boot-url=https://a:secret@boot.example --allow-registries=ghcr.io", "nothing else"},
		"a URL that names no host":     {"--boot-url=https://:80 --allow-registries=ghcr.io", "it names no host"},
	} {
		t.Run(name, func(t *testing.T) {
			o, flags := &bootOptions{}, pflag.NewFlagSet("boot", pflag.ContinueOnError)
			o.register(flags)
			if err := flags.Parse(strings.Fields(c.args)); err != nil {
				t.Fatal(err)
			}
			err := o.validate()
			if (err != nil) != (c.says != "") || err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("error %v, want %q", err, c.says)
			}
		})
	}
}
