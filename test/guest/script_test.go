// SPDX-License-Identifier: Apache-2.0

package guest

import "testing"

func TestScriptsAreRead(t *testing.T) {
	const refused = "an error"
	for name, c := range map[string]struct{ script, want string }{
		"as boot-operator writes them": {
			"#!ipxe\n\nset ipxe-svc http://boot:8082\nset kernel-url http://boot:8082/image?imageName=ghcr.io%2Fa%2Fos&layerDigest=sha256%3Aab&version=5\n" +
				"\necho Loading kernel...\nkernel ${kernel-url} initrd=initrd ip=any ignition.config.url=${ipxe-svc}/ignition/${uuid} console=tty0\nboot\n",
			"ghcr.io/a/os:5 http://boot:8082/ignition/" + uuid + " "},
		"with a digest": {"#!ipxe\nkernel http://b/image?imageName=os&version=sha256%3Aab ignition.config.url=http://b/i", "os@sha256:ab http://b/i "},
		"with a note of their boot configuration": {
			"#!ipxe\n# boot configuration ns/a without ignition\nkernel http://b/image?imageName=os&version=1 ignition.config.url=http://b/i", "os:1  ns/a"},
		"but not one that starts no kernel": {"#!ipxe\nshell\n", refused},
		"but no other text":                 {"<html>", refused},
		"but no kernel of another sort":     {"#!ipxe\nkernel http://b/vmlinuz", refused},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := readScript(c.script, uuid)
			got := data.Image + " " + data.IgnitionURL + " " + data.SBC
			if err != nil {
				got = refused
			}
			if got != c.want {
				t.Errorf("got %q (%v), want %q", got, err, c.want)
			}
		})
	}
}

func FuzzReadScript(f *testing.F) {
	_, text := script("linux:5", " without ignition")(1)
	f.Add(text)
	f.Add("#!ipxe\nset a $\nkernel ${a ?imageName=%")
	f.Fuzz(func(t *testing.T, text string) {
		if data, err := readScript(text, uuid); err == nil && data.Image == "" {
			t.Error("a kernel without an image was read")
		}
	})
}
