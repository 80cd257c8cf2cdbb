// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

const (
	// storeTime bounds one append; the agent asks again afterwards.
	storeTime = 10 * time.Second
	// maxKept bounds what is read of an object that is there already.
	maxKept = 4 << 20
)

// store keeps each record as an object of its own, which it never replaces.
type store struct {
	client         *minio.Client
	bucket, prefix string
}

func openStore(place Place) (*store, error) {
	client, err := minio.New(place.Endpoint, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{},
			&credentials.FileAWSCredentials{},
		}),
		Secure:     !place.Plaintext,
		Region:     place.Region,
		MaxRetries: 1, // the agent is who tries again
	})
	if err != nil {
		return nil, fmt.Errorf("sink s3://%s: %w", place.Bucket, err)
	}
	return &store{client: client, bucket: place.Bucket, prefix: place.Prefix}, nil
}

// Append puts an object where there is none. Where there is one, it must be the same record.
func (s *store) Append(ctx context.Context, record *policyv1alpha1.SanitizationRecord) error {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	text, err := line(record)
	if err != nil {
		return err
	}
	key := path.Join(s.prefix, record.Spec.Machine.SystemUUID, record.Name+".json")
	options := minio.PutObjectOptions{ContentType: "application/json"}
	options.SetMatchETagExcept("*")
	_, err = s.client.PutObject(ctx, s.bucket, key, bytes.NewReader(text), int64(len(text)), options)
	if err == nil {
		return nil
	}
	if minio.ToErrorResponse(err).StatusCode != http.StatusPreconditionFailed {
		return fmt.Errorf("sink s3://%s/%s: %w", s.bucket, key, err)
	}
	if err := s.same(ctx, key, record); err != nil {
		return fmt.Errorf("sink s3://%s/%s: %w", s.bucket, key, err)
	}
	return nil
}

// same reads the object that is there already.
func (s *store) same(ctx context.Context, key string, record *policyv1alpha1.SanitizationRecord) (err error) {
	object, err := s.client.GetObject(ctx, s.bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	text, err := io.ReadAll(io.LimitReader(object, maxKept))
	if err != nil {
		return err
	}
	var kept policyv1alpha1.SanitizationRecord
	if err := json.Unmarshal(text, &kept); err != nil {
		return fmt.Errorf("the object that is there is no record: %w", err)
	}
	if kept.Spec.Hash != record.Spec.Hash {
		return fmt.Errorf("another record with hash %s is there; find out who wrote it, and move it away", kept.Spec.Hash)
	}
	return nil
}
