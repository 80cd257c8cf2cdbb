// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// maxIndexLine bounds a line of an index of kernel modules: a module may need hundreds of others.
const maxIndexLine = 1 << 20

// alias says that a module serves the devices that a pattern matches.
type alias struct {
	pattern string
	module  string
}

// modules knows the kernel modules of one kernel, by the files that depmod wrote.
type modules struct {
	// files are the paths of modules by name, relative to the folder of the kernel.
	files map[string]string
	// needs are the modules that a module cannot do without, by name.
	needs map[string][]string
	// before and after are the modules that a module is better with.
	before, after map[string][]string
	// aliases are the patterns by what they begin with, up to the first colon.
	aliases map[string][]alias
	builtin map[string]bool
}

// readModules reads the indexes in the folder of one kernel. Only modules.dep must be there.
func readModules(dir fs.FS) (*modules, error) {
	m := &modules{files: map[string]string{}, needs: map[string][]string{}, before: map[string][]string{}, after: map[string][]string{},
		aliases: map[string][]alias{}, builtin: map[string]bool{}}
	for _, index := range []struct {
		name string
		must bool
		take func(fields []string)
	}{
		{"modules.dep", true, m.takeNeeds},
		{"modules.alias", false, m.takeAlias},
		{"modules.softdep", false, m.takeSoft},
		{"modules.builtin", false, func(fields []string) { m.builtin[moduleName(fields[0])] = true }},
	} {
		text, err := fs.ReadFile(dir, index.name)
		if errors.Is(err, fs.ErrNotExist) && !index.must {
			continue
		}
		if err == nil {
			err = eachLine(text, index.take)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", index.name, err)
		}
	}
	return m, nil
}

// eachLine visits the words of each line that is no comment.
func eachLine(text []byte, visit func(fields []string)) error {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxIndexLine)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 0 && !strings.HasPrefix(fields[0], "#") {
			visit(fields)
		}
	}
	return lines.Err()
}

func (m *modules) takeNeeds(fields []string) {
	file, is := strings.CutSuffix(fields[0], ":")
	if !is {
		return
	}
	name := moduleName(file)
	m.files[name] = file
	for _, need := range fields[1:] {
		m.needs[name] = append(m.needs[name], moduleName(need))
	}
}

func (m *modules) takeAlias(fields []string) {
	if len(fields) != 3 || fields[0] != "alias" {
		return
	}
	pattern := plain(fields[1])
	kind := kindOf(pattern)
	m.aliases[kind] = append(m.aliases[kind], alias{pattern: pattern, module: moduleName(fields[2])})
}

// takeSoft reads "softdep NAME pre: A B post: C".
func (m *modules) takeSoft(fields []string) {
	if len(fields) < 3 || fields[0] != "softdep" {
		return
	}
	name := moduleName(fields[1])
	var list map[string][]string
	for _, word := range fields[2:] {
		switch {
		case word == "pre:":
			list = m.before
		case word == "post:":
			list = m.after
		case list != nil:
			list[name] = append(list[name], word)
		}
	}
}

// moduleName is the name by which the kernel knows the module in a file.
func moduleName(file string) string {
	name := path.Base(file)
	for _, suffix := range []string{".zst", ".xz", ".gz", ".ko"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return strings.ReplaceAll(name, "-", "_")
}

// kindOf is what an alias or a pattern begins with, up to its first colon: the bus. It is empty where a wildcard may stand for it.
func kindOf(text string) string {
	kind, _, found := strings.Cut(text, ":")
	if !found || strings.ContainsAny(kind, "*?[") {
		return ""
	}
	return kind
}

// resolve names the modules that serve an alias, or the module of that name.
func (m *modules) resolve(name string) []string {
	var found []string
	if own := moduleName(name); m.files[own] != "" {
		found = append(found, own)
	}
	word := plain(name)
	kinds := []string{kindOf(word)}
	if kinds[0] != "" {
		kinds = append(kinds, "")
	}
	for _, kind := range kinds {
		for _, a := range m.aliases[kind] {
			if !slices.Contains(found, a.module) && matches(a.pattern, word) {
				found = append(found, a.module)
			}
		}
	}
	return slices.DeleteFunc(found, func(name string) bool { return m.builtin[name] })
}

// step is one module that is to be loaded.
type step struct {
	name string
	// soft says that the module that asked does without it.
	soft bool
}

// order lists what is to be loaded for a module, each module after what it needs. A module that is built in needs nothing.
func (m *modules) order(name string) []step {
	var steps []step
	seen := map[string]int{}
	var visit func(name string, soft bool)
	visit = func(name string, soft bool) {
		if at, again := seen[name]; again {
			if at >= 0 && !soft {
				steps[at].soft = false
			}
			return
		}
		if m.builtin[name] {
			return
		}
		seen[name] = -1 // being visited: a circle ends here
		m.visitAll(m.before[name], visit)
		for _, need := range slices.Backward(m.needs[name]) {
			visit(need, soft)
		}
		seen[name] = len(steps)
		steps = append(steps, step{name: name, soft: soft})
		m.visitAll(m.after[name], visit)
	}
	visit(name, false)
	return steps
}

func (m *modules) visitAll(names []string, visit func(name string, soft bool)) {
	for _, name := range names {
		for _, found := range m.resolve(name) {
			visit(found, true)
		}
	}
}

// plain turns dashes into underscores outside of brackets, as kmod compares aliases.
func plain(text string) string {
	if !strings.Contains(text, "-") {
		return text
	}
	letters := []byte(text)
	inside := false
	for i, letter := range letters {
		switch {
		case letter == '[':
			inside = true
		case letter == ']':
			inside = false
		case letter == '-' && !inside:
			letters[i] = '_'
		}
	}
	return string(letters)
}

// matches compares a word with a pattern of fnmatch: *, ? and [...]. Its time grows with the product of both lengths at most.
func matches(pattern, word string) bool {
	p, w := 0, 0
	star, mark := -1, 0
	for w < len(word) {
		if p < len(pattern) && pattern[p] == '*' {
			star, mark = p, w
			p++
			continue
		}
		if width, ok := matchOne(pattern[p:], word[w]); ok {
			p += width
			w++
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		p, w = star+1, mark
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchOne compares one letter with the head of a pattern, and says how long that head is.
func matchOne(pattern string, letter byte) (width int, ok bool) {
	switch {
	case pattern == "":
		return 0, false
	case pattern[0] == '?':
		return 1, true
	case pattern[0] != '[':
		return 1, pattern[0] == letter
	}
	end := strings.IndexByte(pattern, ']')
	if end < 0 {
		return 1, letter == '['
	}
	class := pattern[1:end]
	negated := strings.HasPrefix(class, "!") || strings.HasPrefix(class, "^")
	if negated {
		class = class[1:]
	}
	for i := 0; i < len(class); i++ {
		low, high := class[i], class[i]
		if i+2 < len(class) && class[i+1] == '-' {
			high = class[i+2]
			i += 2
		}
		if low <= letter && letter <= high {
			return end + 1, !negated
		}
	}
	return end + 1, negated
}
