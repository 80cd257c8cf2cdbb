// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/metalaw/metalaw/engine"
)

// graceful are the words with a server that is powered off gracefully.
func graceful() *engine.Vocabulary {
	v := words()
	v.Effects[1].Params = []engine.ParamType{
		{Name: "graceful", Kind: engine.Duration, Most: time.Hour, MostBecause: "nobody looks on for longer"},
		{Name: "force", Kind: engine.Bool, FalseNeeds: "graceful"},
		{Name: "tune", Kind: engine.Enum, Values: []string{"Taps", "Bell"}},
		{Name: "wait", Kind: engine.Duration},
	}
	return v
}

func TestWhatAStateEnsuresIsHeldToTheParametersOfItsEffects(t *testing.T) {
	const off = "    - {do: PowerOff, with: {graceful: 5s, force: true}, when: running}\n"
	if !strings.Contains(fleet, off) {
		t.Fatal("the fixture has changed")
	}
	for name, c := range map[string]struct{ ensure, want string }{
		"what fits": {"    - {do: PowerOff, with: {graceful: 1h, force: false, tune: Bell}}", ""},
		"longer than makes sense": {"    - {do: PowerOff, with: {graceful: 61m}}",
			"lifecycle.yaml:27:39: error: PowerOff: graceful is 61m, and at most 1h: nobody looks on for longer (write a duration of 1h at most) [param-range]"},
		"longer than can be counted with": {"    - {do: PowerOff, with: {wait: 9999999h}}",
			"lifecycle.yaml:27:35: error: PowerOff: wait is 9999999h, and at most 2562047h (write a duration such as 5m) [param-range]"},
		"less than nothing": {"    - {do: PowerOff, with: {graceful: -1s}}",
			`lifecycle.yaml:27:39: error: PowerOff: graceful is not a duration: "-1s" (write a duration such as 5m) [param-type]`},
		"a list": {"    - {do: PowerOff, with: {graceful: [5s]}}",
			"lifecycle.yaml:27:39: error: graceful must be text (write one value) [yaml-type]"},
		"a word that there is not": {"    - {do: PowerOff, with: {tune: bell}}",
			`lifecycle.yaml:27:35: error: PowerOff: tune cannot be "bell" (it is one of Taps, Bell) [param-type]`},
		"a boolean in quotes": {"    - {do: PowerOff, with: {graceful: 5s, force: \"true\"}}",
			"lifecycle.yaml:27:50: error: force must be true or false (write true or false, without quotes) [yaml-type]"},
		"two that say the opposite of each other": {"    - {do: PowerOff, with: {force: false, graceful: 0s}}",
			"lifecycle.yaml:27:36: error: PowerOff: force is false, and without graceful, or with 0, it is as if it were true " +
				"(give graceful a duration such as 5m, or take force out) [param-contradiction]"},
		"one that needs another": {"    - {do: PowerOff, with: {force: false}}",
			"lifecycle.yaml:27:36: error: PowerOff: force is false, and without graceful, or with 0, it is as if it were true " +
				"(give graceful a duration such as 5m, or take force out) [param-contradiction]"},
		"twice the same": {"    - {do: PowerOff, with: {graceful: 5s, tune: Bell}, when: running && large}\n    - {do: PowerOff, when: running  && large, with: {tune: Bell, graceful: 5000ms}}",
			"lifecycle.yaml:28:12: warning: Ready: the state ensures PowerOff twice in the same way (take one of them out) [effect-duplicate]"},
		"twice, with other parameters": {"    - {do: PowerOff, with: {graceful: 5s}}\n    - PowerOff", ""},
		"twice, on other conditions":   {"    - {do: PowerOff, when: running}\n    - {do: PowerOff, when: large}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, found, err := Compile("lifecycle.yaml", []byte(strings.Replace(fleet, off, c.ensure+"\n", 1)), graceful())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range found {
				got = append(got, d.String())
			}
			if strings.Join(got, "\n") != c.want {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), c.want)
			}
		})
	}
}
