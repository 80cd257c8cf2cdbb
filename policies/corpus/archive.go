// SPDX-License-Identifier: Apache-2.0

// Package corpus reads the bundles that tests hold every reader of bundles to: each is the shipped default with a change.
// The program does not use it.
package corpus

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/metalaw/metalaw/engine/bundle"
)

// Archive is a txtar archive that describes a bundle. Each of its files is one of these:
//
//	-- NAME --             the file of the bundle as it is, in place of the default's
//	-- NAME: edit --       pairs of a line "<<<" with what the default's file says once, and a line ">>>" with what is put there
//	                       ("version: *" is the line with the version, whichever it is)
//	-- NAME: drop --       the bundle has no such file, and nothing is filled in
//	-- NAME: repeat N --   the content, N times
//	-- want --             what is found, one finding in a line
//
// The comment before the first file says what the author did.
type Archive struct {
	// Name is the archive's file, without folder and ending.
	Name string

	path     string
	comment  string
	sections []section
}

// section is one file of an archive.
type section struct{ name, content string }

const (
	wantFile  = "want"
	separator = "-- "
	ending    = ".txtar"
	// anyVersion stands for the line that names the version of the shipped bundle, so that a new version edits no archive.
	anyVersion = "version: *"
)

var versionLine = regexp.MustCompile(`(?m)^version: .*$`)

// Read reads the archives of a folder, sorted by name.
func Read(folder string) ([]Archive, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*"+ending))
	if err != nil {
		return nil, err
	}
	var all []Archive
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		a := parse(data)
		a.path, a.Name = path, strings.TrimSuffix(filepath.Base(path), ending)
		all = append(all, a)
	}
	return all, nil
}

func parse(data []byte) Archive {
	var a Archive
	for line := range strings.Lines(string(data)) {
		head := strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(head, separator) && strings.HasSuffix(head, " --"):
			a.sections = append(a.sections, section{name: strings.TrimSuffix(strings.TrimPrefix(head, separator), " --")})
		case len(a.sections) == 0:
			a.comment += line
		default:
			a.sections[len(a.sections)-1].content += line
		}
	}
	return a
}

// Want is what is found in the bundle, one finding in a line; false where the archive does not say.
func (a *Archive) Want() (string, bool) {
	for _, s := range a.sections {
		if s.name == wantFile {
			return s.content, true
		}
	}
	return "", false
}

// Write stores the archive with what is found in the bundle.
func (a *Archive) Write(want string) error {
	if _, says := a.Want(); !says {
		a.sections = append(a.sections, section{name: wantFile})
	}
	var b bytes.Buffer
	b.WriteString(a.comment)
	for _, s := range a.sections {
		if s.name == wantFile {
			s.content = want
		}
		b.WriteString(separator + s.name + " --\n" + s.content)
	}
	return os.WriteFile(a.path, b.Bytes(), 0o600)
}

// Bundle is the bundle that the archive makes of the default, and the default without what the archive drops, from which
// nothing may be filled in.
func (a *Archive) Bundle(shipped bundle.Files) (files, fill bundle.Files, err error) {
	files, fill = maps.Clone(shipped), maps.Clone(shipped)
	for _, s := range a.sections {
		name, how, _ := strings.Cut(s.name, ": ")
		switch {
		case name == wantFile:
		case how == "":
			files[name] = []byte(s.content)
		case how == "drop":
			delete(files, name)
			delete(fill, name)
		case how == "edit":
			text, err := edited(string(shipped[name]), s.content)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %s: %w", a.Name, name, err)
			}
			files[name] = []byte(text)
		case strings.HasPrefix(how, "repeat "):
			times, err := strconv.Atoi(strings.TrimPrefix(how, "repeat "))
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", a.Name, err)
			}
			files[name] = bytes.Repeat([]byte(s.content), times)
		default:
			return nil, nil, fmt.Errorf("%s: there is no such form: %s", a.Name, s.name)
		}
	}
	return files, fill, nil
}

// edited replaces what stands once in a text.
func edited(text, edits string) (string, error) {
	edits = strings.ReplaceAll(edits, anyVersion, versionLine.FindString(text))
	for edit := range strings.SplitSeq(strings.TrimPrefix(edits, "<<<\n"), "\n<<<\n") {
		old, fresh, ok := strings.Cut(edit+"\n", "\n>>>\n")
		fresh = strings.TrimRight(fresh, "\n")
		if !ok || strings.Count(text, old) != 1 {
			return "", fmt.Errorf("the default does not say once: %s", old)
		}
		text = strings.Replace(text, old, fresh, 1)
	}
	return text, nil
}
