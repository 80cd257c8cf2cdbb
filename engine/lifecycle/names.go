// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/spelling"
)

var (
	// ruleName is what a rule may be called: it must serve as a Kubernetes condition reason and event reason.
	ruleName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{1,62}$`)
	// storedName is what states and marks may be called: both are stored in a server's status, in lists whose items have 63
	// letters, and stand in diagrams, metrics and scenarios, where nothing else may be read into them.
	storedName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)
)

// yamlWords are the names that a YAML reader takes for something else than text, in any case of the letters.
var yamlWords = []string{"y", "yes", "n", "no", "on", "off", "true", "false", "null"}

// maxOwnMarks bounds the marks of a lifecycle's own. A server stores 32 in all, and the engine's must find room.
const maxOwnMarks = 16

// nameFlaw says why a name could not be stored, and what to do; empty where it could. The example is a name that could.
func nameFlaw(name, example string) (why, hint string) {
	switch {
	case !storedName.MatchString(name):
		return "", "write one word in upper camel case with at most 63 letters and digits, for example " + example
	case slices.Contains(yamlWords, strings.ToLower(name)):
		return ", because YAML readers take it for something else than text", "choose another word, for example " + example
	}
	return "", ""
}

// collectNames notes the names of the states and marks, and reports those that could not be stored.
func (c *compiler) collectNames(states []stateSpec) {
	for m := range c.vocabulary.Marks {
		c.marks[m] = true
	}
	own := 0
	for _, st := range states {
		c.states[st.name] = true
		if why, hint := nameFlaw(st.name, "BurnIn"); hint != "" {
			c.file.Errorf(st.key, "state-name", "", hint, "%q cannot be a state's name%s", st.name, why)
		}
		for i, m := range st.marks {
			at := itemAt(st.marksAt, i)
			if slices.Contains(st.marks[:i], m) {
				c.file.Errorf(at, "mark-duplicate", st.name, "take one of them out", "the state sets the mark %q twice", m)
			}
			if c.marks[m] {
				continue
			}
			c.marks[m] = true
			own++
			c.checkMark(at, st.name, m, own)
		}
	}
}

// checkMark looks at the name of a mark of the lifecycle's own, the nth of them.
func (c *compiler) checkMark(at *yaml.Node, state, mark string, nth int) {
	why, hint := nameFlaw(mark, "BurntIn")
	switch {
	case hint != "":
		c.file.Errorf(at, "mark-name", state, hint, "%q cannot be a mark's name%s", mark, why)
	case nth == maxOwnMarks+1:
		c.file.Errorf(at, "mark-too-many", state, "take out those that no rule asks for", "more than %d marks of its own", maxOwnMarks)
	}
}

// markHint says what to do about a mark that nothing sets.
func markHint(word string, marks map[string]bool) string {
	return spelling.Hint(word, slices.Sorted(maps.Keys(marks)), "a mark is set by a state's marks or by the engine")
}
