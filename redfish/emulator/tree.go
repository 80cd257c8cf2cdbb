// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// What a captured tree may hold. The largest resource seen is 3 MiB, the largest tree 14 MiB in 4,726 resources.
const (
	maxTreeFile  = 16 << 20
	maxTreeSize  = 256 << 20
	maxTreeFiles = 50_000
)

// treeFile is the file in which a capture holds a resource, in a folder of the resource's path.
const treeFile = "index.json"

// Tree is a Redfish tree that was captured from a real BMC. It is never changed once it was read, so that machines can share it.
type Tree struct {
	// Name is that of the archive's top folder, or of the folder.
	Name string

	docs map[string][]byte
	// folded finds a resource whose path a client spells in another case.
	folded  map[string]string
	hosts   []treeHost
	managed treeManager
	media   []treeSlot
	profile Profile
	manners manners
	// invented says what every machine behind this tree needs and the tree does not show.
	invented []string
}

// ReadTree reads a captured tree from a folder or a .tar.gz, in which <name>/redfish/v1/.../index.json are the resources.
// Other files are left out. The error names the file and what to do.
func ReadTree(file string) (*Tree, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("captured tree: %w: name a folder or a .tar.gz", err)
	}
	t := newTree(strings.TrimSuffix(filepath.Base(file), ".tar.gz"))
	if info.IsDir() {
		err = t.readFolder(file)
	} else {
		err = t.readArchiveFile(file)
	}
	if err == nil {
		err = t.understand()
	}
	if err != nil {
		return nil, fmt.Errorf("captured tree %s: %w", file, err)
	}
	return t, nil
}

// parseTree reads a tree from an archive that was unzipped already.
func parseTree(name string, archive io.Reader) (*Tree, error) {
	t := newTree(name)
	err := t.readArchive(archive)
	if err == nil {
		err = t.understand()
	}
	return t, err
}

func newTree(name string) *Tree {
	return &Tree{Name: name, docs: map[string][]byte{}, folded: map[string]string{}}
}

func (t *Tree) readArchiveFile(file string) error {
	archive, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }() // it was only read
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return fmt.Errorf("%w: only folders and .tar.gz are read", err)
	}
	return t.readArchive(unzipped)
}

// readArchive takes regular files only. A name that leads out of the archive ends the reading: such an archive is no capture.
func (t *Tree) readArchive(archive io.Reader) error {
	// What is skipped counts as well, so that an archive of other files ends too.
	bounded := &io.LimitedReader{R: archive, N: 2 * maxTreeSize}
	entries, total := tar.NewReader(bounded), int64(0)
	for {
		entry, err := entries.Next()
		if bounded.N <= 0 {
			return fmt.Errorf("it is larger than %d MiB: give a tree without other files", 2*maxTreeSize>>20)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it cannot be unpacked: %w", err)
		}
		if !fs.ValidPath(path.Clean(strings.TrimPrefix(entry.Name, "./"))) || strings.Contains(entry.Name, "..") {
			return fmt.Errorf("its entry %q leads out of the archive: unpack and check it by hand", entry.Name)
		}
		if entry.Typeflag != tar.TypeReg {
			continue
		}
		if err := t.take(entry.Name, entries, &total); err != nil {
			return err
		}
	}
}

// readFolder follows no link that leads out of the folder.
func (t *Tree) readFolder(folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it was only read
	total, files := int64(0), root.FS()
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := files.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // it was only read
		return t.take(name, file, &total)
	})
}

// take keeps a file if it holds a resource.
func (t *Tree) take(name string, file io.Reader, total *int64) error {
	uri, isResource := resourceOf(name)
	if !isResource {
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxTreeFile+1))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	*total += int64(len(raw))
	switch {
	case len(raw) > maxTreeFile:
		return fmt.Errorf("%s is larger than %d MiB: no BMC sends that", name, maxTreeFile>>20)
	case *total > maxTreeSize:
		return fmt.Errorf("it holds more than %d MiB of resources: leave logs and schemas out", maxTreeSize>>20)
	case len(t.docs) >= maxTreeFiles:
		return fmt.Errorf("it holds more than %d resources: leave logs and schemas out", maxTreeFiles)
	case t.docs[uri] != nil:
		return fmt.Errorf("it holds %s twice: give one tree at a time", uri)
	}
	t.docs[uri] = raw
	t.folded[strings.ToLower(uri)] = uri
	return nil
}

// resourceOf is the URI of the resource that a file of a capture holds; false for any other file. At most one folder stands
// before "redfish".
func resourceOf(name string) (string, bool) {
	inside := path.Clean("/" + name)
	if !strings.HasPrefix(inside+"/", root+"/") {
		_, rest, _ := strings.Cut(inside[1:], "/")
		inside = "/" + rest
	}
	uri := path.Dir(inside)
	return uri, path.Base(inside) == treeFile && (uri == root || strings.HasPrefix(uri, root+"/"))
}

// canonical is the path of a link as the tree's files spell it: without fragment, query and trailing slash.
func (t *Tree) canonical(uri string) string {
	uri, _, _ = strings.Cut(uri, "#")
	uri, _, _ = strings.Cut(uri, "?")
	uri = strings.TrimRight(uri, "/")
	if t.docs[uri] != nil {
		return uri
	}
	if as, known := t.folded[strings.ToLower(uri)]; known {
		return as
	}
	return uri
}

// doc is a fresh copy of a resource; nil where the tree has none that is a JSON object. Numbers stay as they were captured.
func (t *Tree) doc(uri string) doc {
	raw := t.docs[t.canonical(uri)]
	if raw == nil {
		return nil
	}
	var body doc
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&body) != nil {
		return nil
	}
	return body
}

// member reads a link of a resource, and what it leads to; nil where there is none.
func (t *Tree) member(body doc, names ...string) doc { return t.doc(linkOf(body, names...)) }

// members are the resources that a collection lists, with their URIs; those that the tree does not have are left out.
func (t *Tree) members(collection doc) (uris []string, bodies []doc) {
	return t.follow(collection["Members"])
}

func (t *Tree) follow(list any) (uris []string, bodies []doc) {
	for _, uri := range linksOf(list) {
		if body := t.doc(uri); body != nil {
			uris, bodies = append(uris, t.canonical(uri)), append(bodies, body)
		}
	}
	return uris, bodies
}

// linksOf reads a list of links.
func linksOf(list any) []string {
	var uris []string
	entries, _ := list.([]any)
	for _, entry := range entries {
		link, _ := entry.(doc)
		if uri, _ := link["@odata.id"].(string); uri != "" {
			uris = append(uris, uri)
		}
	}
	return uris
}

// linkOf follows names from field to field and reads the link at the end; empty where there is none.
func linkOf(body doc, names ...string) string {
	uri, _ := object(body, names...)["@odata.id"].(string)
	return uri
}

// object follows names from object to object; nil where one is missing.
func object(body doc, names ...string) doc {
	for _, name := range names {
		body, _ = body[name].(doc)
	}
	return body
}

// words reads a list of strings.
func words(list any) []string {
	var all []string
	entries, _ := list.([]any)
	for _, entry := range entries {
		if word, isText := entry.(string); isText {
			all = append(all, word)
		}
	}
	return all
}

// text reads a string without the blanks around it; empty where there is none.
func text(body doc, name string) string {
	value, _ := body[name].(string)
	return strings.TrimSpace(value)
}

// number reads a number; 0 where there is none.
func number(body doc, name string) float64 {
	value, _ := body[name].(json.Number)
	n, err := value.Float64()
	if err != nil {
		return 0
	}
	return n
}
