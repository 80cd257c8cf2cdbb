// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// sector is the smallest one.
const sector = 512

// Disk is a disk that was opened by its device file. It is a Medium, and sends Commands.
type Disk struct {
	file *os.File
	size int64
}

// Open opens a device file past the page cache, with the flags of os.OpenFile. Where the file system of a regular file does not offer
// that, reads and writes go through the page cache.
func Open(path string, flags int) (*Disk, error) {
	file, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil && size <= 0 {
		err = fmt.Errorf("%s: its size is not known", path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	d := &Disk{file: file, size: size}
	d.dropCache()
	if size%sector == 0 { // a disk consists of whole sectors; a file may not
		d.goDirect()
	}
	return d, nil
}

// OpenCommands opens a device file for commands that only ask. The disk needs no capacity, and no medium that is ready.
func OpenCommands(path string) (*Disk, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	return &Disk{file: file}, nil
}

// Close closes the device file.
func (d *Disk) Close() error { return d.file.Close() }

// Size implements Medium.
func (d *Disk) Size() int64 { return d.size }

// ReadAt implements io.ReaderAt.
func (d *Disk) ReadAt(part []byte, offset int64) (int, error) { return d.file.ReadAt(part, offset) }

// WriteAt implements io.WriterAt.
func (d *Disk) WriteAt(part []byte, offset int64) (int, error) { return d.file.WriteAt(part, offset) }

// Flush implements Medium. What is read next comes from the disk.
func (d *Disk) Flush() error {
	err := d.file.Sync()
	d.dropCache()
	return err
}
