// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/metalaw/metalaw/engine"
)

// dimmed are the words with a lamp that is switched off slowly.
func dimmed() *engine.Vocabulary {
	v := words()
	v.Effects[1].Params = []engine.ParamType{
		{Name: "dim", Kind: engine.Duration, Most: time.Hour, MostBecause: "nobody looks on for longer"},
		{Name: "force", Kind: engine.Bool, FalseNeeds: "dim"},
		{Name: "tune", Kind: engine.Enum, Values: []string{"Taps", "Bell"}},
		{Name: "wait", Kind: engine.Duration},
	}
	return v
}

func TestWhatAStateEnsuresIsHeldToTheParametersOfItsEffects(t *testing.T) {
	const off = "    - {do: SwitchOff, with: {dim: 5s, force: true}, when: lit}\n"
	if !strings.Contains(shop, off) {
		t.Fatal("the fixture has changed")
	}
	for name, c := range map[string]struct{ ensure, want string }{
		"what fits": {"    - {do: SwitchOff, with: {dim: 1h, force: false, tune: Bell}}", ""},
		"longer than makes sense": {"    - {do: SwitchOff, with: {dim: 61m}}",
			"lifecycle.yaml:27:35: error: SwitchOff: dim is 61m, and at most 1h: nobody looks on for longer (write a duration of 1h at most) [param-range]"},
		"longer than can be counted with": {"    - {do: SwitchOff, with: {wait: 9999999h}}",
			"lifecycle.yaml:27:36: error: SwitchOff: wait is 9999999h, and at most 2562047h (write a duration such as 5m) [param-range]"},
		"less than nothing": {"    - {do: SwitchOff, with: {dim: -1s}}",
			`lifecycle.yaml:27:35: error: SwitchOff: dim is not a duration: "-1s" (write a duration such as 5m) [param-type]`},
		"a list": {"    - {do: SwitchOff, with: {dim: [5s]}}",
			"lifecycle.yaml:27:35: error: dim must be text (write one value) [yaml-type]"},
		"a word that there is not": {"    - {do: SwitchOff, with: {tune: bell}}",
			`lifecycle.yaml:27:36: error: SwitchOff: tune cannot be "bell" (it is one of Taps, Bell) [param-type]`},
		"a boolean in quotes": {"    - {do: SwitchOff, with: {dim: 5s, force: \"true\"}}",
			"lifecycle.yaml:27:46: error: force must be true or false (write true or false, without quotes) [yaml-type]"},
		"two that say the opposite of each other": {"    - {do: SwitchOff, with: {force: false, dim: 0s}}",
			"lifecycle.yaml:27:37: error: SwitchOff: force is false, and without dim, or with 0, it is as if it were true " +
				"(give dim a duration such as 5m, or take force out) [param-contradiction]"},
		"one that needs another": {"    - {do: SwitchOff, with: {force: false}}",
			"lifecycle.yaml:27:37: error: SwitchOff: force is false, and without dim, or with 0, it is as if it were true " +
				"(give dim a duration such as 5m, or take force out) [param-contradiction]"},
		"twice the same": {"    - {do: SwitchOff, with: {dim: 5s, tune: Bell}, when: lit && big}\n    - {do: SwitchOff, when: lit  && big, with: {tune: Bell, dim: 5000ms}}",
			"lifecycle.yaml:28:12: warning: Shelf: the state ensures SwitchOff twice in the same way (take one of them out) [effect-duplicate]"},
		"twice, with other parameters": {"    - {do: SwitchOff, with: {dim: 5s}}\n    - SwitchOff", ""},
		"twice, on other conditions":   {"    - {do: SwitchOff, when: lit}\n    - {do: SwitchOff, when: big}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, found, err := Compile("lifecycle.yaml", []byte(strings.Replace(shop, off, c.ensure+"\n", 1)), dimmed())
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
