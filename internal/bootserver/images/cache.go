// SPDX-License-Identifier: Apache-2.0

package images

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// cache holds layers in files that are named by their digest. What was used longest ago makes room for what is new. A file
// that is being read when it makes room stays readable until it is closed.
type cache struct {
	folder string
	limit  int64

	mu sync.Mutex
	// files are complete; those of an earlier run are verified when they are first opened.
	files map[string]*cached
	// pending are the bytes that downloads under way will take.
	pending int64
}

type cached struct {
	size     int64
	used     time.Time
	verified bool
}

const (
	filePrefix = "sha256-"
	partPrefix = "part-"
)

// openCache takes over the files of an earlier run, and removes unfinished ones.
func openCache(folder string, limit int64) (*cache, error) {
	if limit <= 0 {
		return nil, errors.New("the cache of boot images has no room; set --cache-size")
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("cache of boot images: %w; mount a writable volume there", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("cache of boot images: %w", err)
	}
	c := &cache{folder: folder, limit: limit, files: map[string]*cached{}}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if digest, is := strings.CutPrefix(entry.Name(), filePrefix); is {
			c.files["sha256:"+digest] = &cached{size: info.Size(), used: info.ModTime()}
		} else if strings.HasPrefix(entry.Name(), partPrefix) {
			_ = os.Remove(filepath.Join(folder, entry.Name())) // it takes room until the next start
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.makeRoom(0)
	return c, nil
}

func (c *cache) path(digest string) string {
	return filepath.Join(c.folder, filePrefix+strings.TrimPrefix(digest, "sha256:"))
}

// Blob is an open layer.
type Blob struct {
	*os.File
	Size int64
}

// open returns nil where the layer is not in the cache.
func (c *cache) open(layer Layer) (*Blob, error) {
	digest := layer.Digest.String()
	c.mu.Lock()
	known := c.files[digest]
	verified := known != nil && known.verified
	if known != nil {
		known.used = time.Now()
	}
	c.mu.Unlock()
	if known == nil {
		return nil, nil
	}
	file, err := os.Open(c.path(digest))
	if errors.Is(err, fs.ErrNotExist) {
		c.forget(digest)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cache of boot images: %w", err)
	}
	if !verified {
		if digestOf(file) != digest {
			_ = file.Close()
			_ = os.Remove(c.path(digest)) // it is downloaded again
			c.forget(digest)
			return nil, nil
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("cache of boot images: %w", err)
		}
		c.mu.Lock()
		known.verified = true
		c.mu.Unlock()
	}
	return &Blob{File: file, Size: known.size}, nil
}

// digestOf is the digest of a file; empty where it cannot be read.
func digestOf(file io.Reader) string {
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return ""
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

func (c *cache) forget(digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.files, digest)
}

// add stores a layer, whose digest and size are verified.
func (c *cache) add(layer Layer, content io.Reader) error {
	if layer.Digest.Algorithm != "sha256" {
		return fmt.Errorf("digest %s is not of sha256; push the image again", layer.Digest)
	}
	if err := c.reserve(layer.Size); err != nil {
		return err
	}
	defer func() {
		c.mu.Lock()
		c.pending -= layer.Size
		c.mu.Unlock()
	}()
	part, err := os.CreateTemp(c.folder, partPrefix)
	if err != nil {
		return fmt.Errorf("cache of boot images: %w", err)
	}
	defer func() { _ = os.Remove(part.Name()) }() // it was renamed after a success
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(part, sum), io.LimitReader(content, layer.Size+1))
	if err = errors.Join(err, part.Close()); err != nil {
		return fmt.Errorf("cache of boot images: %w", err)
	}
	digest := layer.Digest.String()
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != digest || size != layer.Size {
		return fmt.Errorf("the registry sent other content than %s; nothing of it is kept", digest)
	}
	if err := os.Rename(part.Name(), c.path(digest)); err != nil {
		return fmt.Errorf("cache of boot images: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[digest] = &cached{size: size, used: time.Now(), verified: true}
	return nil
}

func (c *cache) reserve(size int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if size > c.limit-c.pending {
		return fmt.Errorf("the cache has no room for %d MiB beside what is being downloaded; raise --cache-size", size>>20)
	}
	c.pending += size
	c.makeRoom(c.pending)
	return nil
}

// makeRoom removes what was used longest ago. The lock is held.
func (c *cache) makeRoom(wanted int64) {
	total := wanted
	digests := make([]string, 0, len(c.files))
	for digest, file := range c.files {
		total += file.size
		digests = append(digests, digest)
	}
	slices.SortFunc(digests, func(a, b string) int {
		return cmp.Or(c.files[a].used.Compare(c.files[b].used), strings.Compare(a, b))
	})
	for _, digest := range digests {
		if total <= c.limit {
			return
		}
		if err := os.Remove(c.path(digest)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // it goes on counting
		}
		total -= c.files[digest].size
		delete(c.files, digest)
	}
}
