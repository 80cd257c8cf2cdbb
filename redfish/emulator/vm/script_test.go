// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScripts(t *testing.T) {
	const uuid = "4c4c4544-0042-4a10-8051-000000000001"
	for name, c := range map[string]struct {
		text string
		want script
		err  string
	}{
		"variables are those that were set, and the UUID": {
			text: "#!ipxe\n# a comment\nset service http://10.0.2.2:80\nkernel ${service}/vmlinuz a=${uuid} ${none}b\ninitrd ${service}/initrd\nboot\n",
			want: script{kernel: "http://10.0.2.2:80/vmlinuz", initrds: []string{"http://10.0.2.2:80/initrd"}, commandLine: "a=" + uuid + " b"},
		},
		"parts of an initramfs keep their order, and names of images do not matter": {
			text: "#!ipxe\nkernel --name k http://a/k\ninitrd -n first http://a/1\ninitrd http://a/2\nboot",
			want: script{kernel: "http://a/k", initrds: []string{"http://a/1", "http://a/2"}},
		},
		"what is no script":           {text: "<html>", err: "no iPXE script"},
		"a command that is not known": {text: "#!ipxe\nsanboot http://a/disk\nboot\n", err: `has "sanboot http://a/disk"`},
		"no kernel":                   {text: "#!ipxe\nboot\n", err: "without a kernel"},
		"no boot":                     {text: "#!ipxe\nkernel http://a/k\n", err: "no boot"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readScript(c.text, uuid)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q in it", err, c.err)
				}
				return
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(script{})); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

func FuzzReadScript(f *testing.F) {
	f.Add("#!ipxe\nset a b\nkernel --name k ${a}/k x=${uuid}\ninitrd i\nboot\n")
	f.Add("#!ipxe\nkernel\n")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := readScript(text, "u"); err == nil && s.kernel == "" {
			t.Error("a script that boots has a kernel")
		}
	})
}
