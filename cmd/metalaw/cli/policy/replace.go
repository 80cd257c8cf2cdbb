// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"os"
	"path/filepath"
)

// content is what a file is to hold.
type content struct {
	path string
	data []byte
}

// replaceAll writes files: all of them, or where one cannot be written none. Each is whole at any time.
func replaceAll(files []content) error {
	fresh := make([]string, 0, len(files))
	drop := func() (err error) {
		for _, name := range fresh {
			err = errors.Join(err, os.Remove(name))
		}
		return err
	}
	for _, f := range files {
		name, err := writeBeside(f)
		if name != "" {
			fresh = append(fresh, name)
		}
		if err != nil {
			return errors.Join(err, drop())
		}
	}
	for _, f := range files {
		if err := os.Rename(fresh[0], f.path); err != nil { // in the directory that has just been written to
			return errors.Join(err, drop())
		}
		fresh = fresh[1:]
	}
	return nil
}

// writeBeside writes a file under another name in the same directory.
func writeBeside(f content) (name string, err error) {
	if info, err := os.Stat(f.path); err == nil && info.Mode().Perm()&0o200 == 0 {
		return "", &os.PathError{Op: "write", Path: f.path, Err: os.ErrPermission}
	}
	file, err := os.CreateTemp(filepath.Dir(f.path), ".metalaw-")
	if err != nil {
		return "", err
	}
	_, err = file.Write(f.data)
	err = errors.Join(err, file.Chmod(0o644), file.Close()) // for a repository
	return file.Name(), err
}
