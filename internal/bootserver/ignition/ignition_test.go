// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"fmt"
	"strings"
	"testing"
)

func TestOnlyTheFormatOfButaneIsTranslated(t *testing.T) {
	const json = `{"ignition":{"version":"3.4.0"}}`
	for name, c := range map[string]struct {
		text, format, want string
		fails              bool
	}{
		"no format":            {json, "", json, false},
		"another format":       {"anything", "cloud-init", "anything", false},
		"Butane":               {"variant: fcos\nversion: 1.5.0\n", "fcos", `"version":"3.4.0"`, false},
		"Butane, with a blank": {"variant: fcos\nversion: 1.5.0\n", " fcos\n", `"version":"3.4.0"`, false},
		"Ignition as Butane":   {json, "fcos", "", true},
	} {
		got, err := Render([]byte(c.text), c.format)
		if (err != nil) != c.fails || !strings.Contains(string(got), c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// bomb is a text of few bytes that stands for very many by its aliases.
func bomb() string {
	var text strings.Builder
	text.WriteString("variant: fcos\nversion: 1.5.0\nstorage:\n  files:\n  - &f {path: /a, contents: {inline: &c " + strings.Repeat("x", 1<<16) + "}}\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "  - {path: /f%d, contents: {inline: *c}}\n", i)
	}
	return text.String()
}

func TestATextThatTakesMuchMoreMemoryThanItHasBytesIsRefused(t *testing.T) {
	const head = "variant: fcos\nversion: 1.5.0\n"
	var large strings.Builder
	large.WriteString(head + "systemd:\n  units:\n  - {name: a.service, contents: \"#")
	large.WriteString(strings.Repeat("#"+strings.Repeat("<", 2000)+"\\n", maxOutput/5/2000) + "\"}\n")
	for name, c := range map[string]struct{ text, says string }{
		"aliases":                {bomb(), "aliases are refused"},
		"one alias":              {head + "passwd: {users: [&u {name: a}, *u]}\n", "line 3 of the Butane text uses the alias *u"},
		"a merged mapping":       {head + "x: &x {name: a}\npasswd: {users: [{<<: *x}]}\n", "aliases are refused"},
		"very many values":       {head + "passwd: {users: [" + strings.Repeat("{name: a},", maxNodes/2) + "]}\n", "more than 8192 values"},
		"a mirror of many disks": {head + "boot_device: {mirror: {devices: [" + strings.Repeat("/a,", 33) + "]}}\n", "more than 32 devices"},
		"a very large result":    {large.String(), "at most 4194304 are served"},
		"very many complaints":   {head + "passwd: {users: [" + strings.Repeat("{},", 1000) + "]}\n", "no Butane text"},
	} {
		got, err := Render([]byte(c.text), "fcos")
		if err == nil || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 2*maxCause {
			t.Errorf("%s: %d bytes, %.300v", name, len(got), err)
		}
	}
	anchored := head + "passwd: {users: [&u {name: core}]}\n"
	if _, err := Render([]byte(anchored), "fcos"); err != nil {
		t.Errorf("an anchor that nothing uses: %v", err)
	}
}

func TestAVersionOfATextIsTranslatedOnce(t *testing.T) {
	var r Renderer
	good, bad := []byte("variant: fcos\nversion: 1.5.0\n"), []byte("{")
	first, err := r.Render(Version{"a", "1"}, good, "fcos")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.Render(Version{"a", "1"}, bad, "fcos"); err != nil || &again[0] != &first[0] {
		t.Errorf("the same version was translated again: %v", err)
	}
	if _, err := r.Render(Version{"a", "2"}, bad, "fcos"); err == nil {
		t.Error("a later version was not translated")
	}
	if _, err := r.Render(Version{"a", "2"}, good, "fcos"); err == nil {
		t.Error("the same bad version was translated again")
	}
	if _, err := r.Render(Version{"b", "1"}, []byte("secret"), ""); err != nil || len(r.kept) != 2 {
		t.Errorf("%d are kept, %v", len(r.kept), err)
	}
	for i := range 100 {
		r.keep(Version{"c", fmt.Sprint(i)}, rendered{text: make([]byte, 1<<20)})
	}
	if r.size > maxKept || len(r.kept) == 0 {
		t.Errorf("%d bytes in %d translations are kept", r.size, len(r.kept))
	}
}

func FuzzRender(f *testing.F) {
	f.Add([]byte("variant: fcos\nversion: 1.5.0\n"))
	f.Add([]byte("variant: fcos\nversion: 1.5.0\nboot_device: {mirror: {devices: [/a, /b]}}\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := Render(text, FormatButane); err == nil && len(got) > maxOutput {
			t.Errorf("%d bytes became %d", len(text), len(got))
		}
	})
}
