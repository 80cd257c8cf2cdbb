// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

type content struct {
	path string
	data []byte
}

// replacement is a file on its way to another content.
type replacement struct {
	path string // where links lead
	mode os.FileMode
	// was is what the file holds; it means something only where there is one.
	there bool
	was   []byte
	// fresh is the file beside it that holds the new content; empty once that has taken its place.
	fresh string
}

// replaceAll writes files: all of them, or where one cannot be written none. Each is whole at any time and keeps its mode; of a link,
// the file to which it leads is written. Whoever kills the process between two files leaves the first of them written. A file that is
// replaced is another one on the disk: other hard links to it keep the former content, and it belongs to whoever wrote it.
func replaceAll(files []content) error { return replaceBy(os.Rename, files) }

func replaceBy(rename func(from, to string) error, files []content) (err error) {
	all := make([]replacement, 0, len(files))
	defer func() {
		for _, r := range all {
			if r.fresh != "" {
				err = errors.Join(err, os.Remove(r.fresh))
			}
		}
	}()
	for _, f := range files {
		r, err := replacementOf(f.path)
		if err != nil {
			return err
		}
		r.fresh, err = writeBeside(r.path, f.data, r.mode)
		all = append(all, r)
		if err != nil {
			return err
		}
	}
	for i := range all {
		if err := rename(all[i].fresh, all[i].path); err != nil {
			return errors.Join(err, putBack(all[:i]))
		}
		all[i].fresh = ""
	}
	return nil
}

// replacementOf looks at a file that is to be replaced, or to be made.
func replacementOf(path string) (replacement, error) {
	r := replacement{path: path, mode: 0o644} // for a repository
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	var err error
	if r.path, err = filepath.EvalSymlinks(path); err != nil {
		return r, err
	}
	info, err := os.Stat(r.path)
	if err != nil {
		return r, err
	}
	r.there, r.mode = true, info.Mode().Perm()
	if r.mode&0o200 == 0 {
		return r, &os.PathError{Op: "write", Path: path, Err: os.ErrPermission}
	}
	r.was, err = os.ReadFile(r.path)
	return r, err
}

// writeBeside writes a content under another name into the directory of a file.
func writeBeside(path string, data []byte, mode os.FileMode) (name string, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".metalaw-")
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Chmod(mode), file.Close())
	return file.Name(), err
}

// putBack gives files the content that they had, and takes away those that were not there. The error names those that stay as they
// are now.
func putBack(all []replacement) (err error) {
	for _, r := range all {
		var failed error
		if r.there {
			failed = replaceAll([]content{{r.path, r.was}})
		} else {
			failed = os.Remove(r.path)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s stays changed: %w", r.path, failed))
		}
	}
	return err
}
