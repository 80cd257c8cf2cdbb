// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// files appends lines to one file for each day and host, so that replicas may share a volume.
type files struct {
	directory, host string

	mu sync.Mutex
}

func openFiles(directory string) (*files, error) {
	if err := os.MkdirAll(directory, 0o750); err != nil {
		return nil, fmt.Errorf("sink %s: %w", directory, err)
	}
	probe, err := os.CreateTemp(directory, ".writable-*")
	if err != nil {
		return nil, fmt.Errorf("sink %s: %w; give the manager a volume that it may write", directory, err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, fmt.Errorf("sink %s: %w", directory, err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("sink %s: %w", directory, err)
	}
	return &files{directory: directory, host: filepath.Base(host)}, nil
}

// Append writes a line and waits until the disk has it. After a crash the same record may stand on two lines.
func (f *files) Append(_ context.Context, record *policyv1alpha1.SanitizationRecord) (err error) {
	text, err := line(record)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	name := filepath.Join(f.directory, "sanitization-"+record.Spec.RecordedAt.UTC().Format("2006-01-02")+"-"+f.host+".jsonl")
	file, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o640) //nolint:gosec // those who keep the records read them by group
	if err != nil {
		return fmt.Errorf("sink: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	torn, err := isTorn(file)
	if err != nil {
		return fmt.Errorf("sink %s: %w", name, err)
	}
	if torn {
		text = append([]byte("\n"), text...)
	}
	if _, err := file.Write(text); err != nil {
		return fmt.Errorf("sink: %w", err)
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("sink: %w", err)
	}
	return syncDirectory(f.directory)
}

// isTorn says that a crash cut the last line.
func isTorn(file *os.File) (bool, error) {
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil || end == 0 {
		return false, err
	}
	last := make([]byte, 1)
	_, err = file.ReadAt(last, end-1)
	return last[0] != '\n', err
}

// syncDirectory makes the name of a new file outlive a crash.
func syncDirectory(name string) (err error) {
	directory, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("sink: %w", err)
	}
	defer func() { err = errors.Join(err, directory.Close()) }()
	if err := directory.Sync(); err != nil {
		return fmt.Errorf("sink %s: %w", name, err)
	}
	return nil
}
