// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"

	"github.com/minio/minio-go/v7"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	chain "github.com/metalaw/metalaw/metalprobe/registry/record"
)

// Has reads the lines of every file. It is asked once before a wipe.
func (f *files) Has(ctx context.Context, systemUUID string, sequence int64) (bool, error) {
	names, err := filepath.Glob(filepath.Join(f.directory, "*.jsonl"))
	if err != nil {
		return false, fmt.Errorf("sink %s: %w", f.directory, err)
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if has, err := fileHas(name, chain.Name(systemUUID, sequence)); has || err != nil {
			return has, err
		}
	}
	return false, nil
}

func fileHas(name, wanted string) (has bool, err error) {
	file, err := os.Open(name)
	if err != nil {
		return false, fmt.Errorf("sink: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	has, err = linesHave(file, wanted)
	if err != nil {
		return false, fmt.Errorf("sink %s: %w", name, err)
	}
	return has, nil
}

// linesHave says whether one of the lines is the record of a name. A line that a crash cut is no record.
func linesHave(from io.Reader, wanted string) (bool, error) {
	lines := bufio.NewReader(from)
	for {
		text, err := lines.ReadBytes('\n')
		if bytes.Contains(text, []byte(wanted)) {
			var kept policyv1alpha1.SanitizationRecord
			if json.Unmarshal(text, &kept) == nil && kept.Name == wanted {
				return true, nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		}
	}
}

// ErrNotAllowed says that the credentials of a sink may not look what it has.
var ErrNotAllowed = errors.New("the credentials may not look what the sink has; allow s3:GetObject and s3:ListBucket")

// Has asks for the object of the record.
func (s *store) Has(ctx context.Context, systemUUID string, sequence int64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	key := path.Join(s.prefix, systemUUID, chain.Name(systemUUID, sequence)+".json")
	_, err := s.client.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{})
	switch answer := minio.ToErrorResponse(err); {
	case err == nil:
		return true, nil
	case answer.StatusCode == http.StatusNotFound && answer.Code == "NoSuchKey":
		return false, nil
	case answer.StatusCode == http.StatusForbidden:
		return false, fmt.Errorf("sink s3://%s: %w", s.bucket, ErrNotAllowed)
	}
	return false, fmt.Errorf("sink s3://%s/%s: %w", s.bucket, key, err)
}
