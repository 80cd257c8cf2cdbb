// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// dataLink points to the version of the files that counts.
const dataLink = "..data"

// mount keeps a folder in step with a Secret, as the kubelet does for a volume: all files change at once, because they
// are reached through one link that is replaced.
type mount struct {
	dir     string
	version int
	shown   map[string][]byte
}

// show puts the Secret's content into the folder. A repeated call with the same content does nothing.
func (m *mount) show(secret *corev1.Secret) error {
	if len(secret.Data) == 0 || maps.EqualFunc(secret.Data, m.shown, bytes.Equal) {
		return nil
	}
	former := m.versionDir()
	m.version++
	if err := m.write(secret.Data); err != nil {
		return fmt.Errorf("mount of secret %s at %s: %w", secret.Name, m.dir, err)
	}
	m.shown = maps.Clone(secret.Data)
	return os.RemoveAll(former)
}

func (m *mount) versionDir() string {
	return filepath.Join(m.dir, "..version-"+strconv.Itoa(m.version))
}

func (m *mount) write(files map[string][]byte) error {
	if err := os.MkdirAll(m.versionDir(), 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(m.versionDir(), name), content, 0o600); err != nil {
			return err
		}
	}
	fresh := filepath.Join(m.dir, "..fresh")
	if err := os.Symlink(filepath.Base(m.versionDir()), fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, filepath.Join(m.dir, dataLink)); err != nil {
		return err
	}
	for name := range files {
		err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(m.dir, name))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}
