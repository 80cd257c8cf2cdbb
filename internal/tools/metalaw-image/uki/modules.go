// SPDX-License-Identifier: Apache-2.0

package uki

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Modules are the kernel modules of an image, with the files by which an agent finds them.
type Modules struct {
	// Files are paths of modules below the folder of the kernel's version, sorted. Each module that one of them needs is
	// among them.
	Files []string
	// Index are modules.dep, modules.alias, modules.softdep and modules.builtin, cut to Files.
	Index map[string][]byte
}

// Has tells whether a module is among the files or built into the kernel.
func (m *Modules) Has(module string) bool {
	is := func(file string) bool { return moduleName(file) == moduleName(module) }
	return slices.ContainsFunc(m.Files, is) || slices.ContainsFunc(strings.Fields(string(m.Index["modules.builtin"])), is)
}

// SelectModules chooses modules from the folder of a kernel's version, as depmod left it, and all that they need.
//
// A pattern is a path below kernel/: a folder with a slash at its end ("drivers/nvme/host/"), or a module without its
// extension, with wildcards as in path.Match ("fs/nls/nls_*"). A pattern behind "!" takes out what others chose; a module
// that another needs stays. A pattern without a match is no error, because flavours of a kernel differ: ask Has.
func SelectModules(version fs.FS, patterns []string) (*Modules, error) {
	read := func(name string) ([]byte, error) {
		b, err := fs.ReadFile(version, name)
		if err != nil {
			return nil, fmt.Errorf("choosing kernel modules: %w; run depmod over the folder first", err)
		}
		return b, nil
	}
	text := map[string][]byte{}
	for _, name := range []string{"modules.dep", "modules.alias", "modules.softdep", "modules.builtin"} {
		b, err := read(name)
		if err != nil {
			return nil, err
		}
		text[name] = b
	}
	needs, err := ParseModulesDep(bytes.NewReader(text["modules.dep"]))
	if err != nil {
		return nil, fmt.Errorf("choosing kernel modules: modules.dep: %w", err)
	}
	chosen, err := matching(needs, patterns)
	if err != nil {
		return nil, err
	}
	files := closure(chosen, needs, softNeeds(needs, text["modules.softdep"], text["modules.alias"]))
	names := map[string]bool{}
	for _, file := range files {
		names[moduleName(file)] = true
	}
	return &Modules{Files: files, Index: map[string][]byte{
		"modules.dep":     keepLines(text["modules.dep"], func(f []string) bool { return names[moduleName(strings.TrimSuffix(f[0], ":"))] }),
		"modules.alias":   keepLines(text["modules.alias"], func(f []string) bool { return len(f) == 3 && names[moduleName(f[2])] }),
		"modules.softdep": keepLines(text["modules.softdep"], func(f []string) bool { return len(f) > 2 && names[moduleName(f[1])] }),
		"modules.builtin": text["modules.builtin"],
	}}, nil
}

// ParseModulesDep reads what depmod wrote: the modules that each module needs, by path.
func ParseModulesDep(r io.Reader) (map[string][]string, error) {
	needs := map[string][]string{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		module, list, found := strings.Cut(line, ":")
		if !found || !validModule(module) {
			return nil, fmt.Errorf("line %d: want 'PATH: PATHS', got %q; run depmod again", n, line)
		}
		for _, other := range strings.Fields(list) {
			if !validModule(other) {
				return nil, fmt.Errorf("line %d: %q is no path of a module; run depmod again", n, other)
			}
			needs[module] = append(needs[module], other)
		}
		if _, there := needs[module]; !there {
			needs[module] = nil
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	for module, others := range needs {
		for _, other := range others {
			if _, there := needs[other]; !there {
				return nil, fmt.Errorf("%s needs %s, which has no line; run depmod again", module, other)
			}
		}
	}
	return needs, nil
}

func validModule(file string) bool {
	return fs.ValidPath(file) && moduleName(file) != "" && strings.Contains(path.Base(file), ".ko")
}

// moduleName returns the name by which the kernel knows a module: without folder and extension, with underscores.
func moduleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// matching returns the modules that the patterns choose.
func matching(needs map[string][]string, patterns []string) (map[string]bool, error) {
	matches := func(pattern, file string) (bool, error) {
		file = strings.TrimPrefix(file, "kernel/")
		if strings.HasSuffix(pattern, "/") {
			return strings.HasPrefix(file, pattern), nil
		}
		file, _, _ = strings.Cut(file, ".ko")
		return path.Match(pattern, file)
	}
	chosen := map[string]bool{}
	for _, exclude := range []bool{false, true} {
		for _, pattern := range patterns {
			pattern, negative := strings.CutPrefix(pattern, "!")
			if negative != exclude {
				continue
			}
			for file := range needs {
				match, err := matches(pattern, file)
				if err != nil {
					return nil, fmt.Errorf("choosing kernel modules: pattern %q: %w", pattern, err)
				}
				if match && exclude {
					delete(chosen, file)
				} else if match {
					chosen[file] = true
				}
			}
		}
	}
	return chosen, nil
}

// softNeeds returns what modules ask for by name at run time: "softdep crc_t10dif pre: crct10dif". A name may be an alias.
func softNeeds(needs map[string][]string, softdep, alias []byte) map[string][]string {
	files := map[string][]string{}
	for _, file := range slices.Sorted(maps.Keys(needs)) {
		files[moduleName(file)] = append(files[moduleName(file)], file)
	}
	aliases := map[string][]string{}
	for line := range strings.Lines(string(alias)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "alias" {
			aliases[f[1]] = append(aliases[f[1]], files[moduleName(f[2])]...)
		}
	}
	soft := map[string][]string{}
	for line := range strings.Lines(string(softdep)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "softdep" {
			continue
		}
		for _, name := range f[2:] {
			soft[moduleName(f[1])] = slices.Concat(soft[moduleName(f[1])], files[moduleName(name)], aliases[name])
		}
	}
	return soft
}

// closure adds what the chosen modules need, what that needs, and so on.
func closure(chosen map[string]bool, needs, soft map[string][]string) []string {
	todo := slices.Collect(maps.Keys(chosen))
	all := maps.Clone(chosen)
	for len(todo) > 0 {
		file := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, other := range slices.Concat(needs[file], soft[moduleName(file)]) {
			if !all[other] {
				all[other] = true
				todo = append(todo, other)
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// keepLines returns the lines whose fields are wanted.
func keepLines(text []byte, wanted func(fields []string) bool) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		if f := strings.Fields(string(line)); len(f) > 0 && !strings.HasPrefix(f[0], "#") && wanted(f) {
			out = append(out, line...)
		}
	}
	return out
}
