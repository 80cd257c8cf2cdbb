// SPDX-License-Identifier: Apache-2.0

// Package sink keeps sanitization records outside the cluster: in files, or in an object store.
package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// Sink keeps records. Append returns nil only once the record outlives a crash. A repeated call with the same record is harmless.
// Has says whether the sink has a machine's record of a number.
type Sink interface {
	Append(ctx context.Context, record *policyv1alpha1.SanitizationRecord) error
	Has(ctx context.Context, systemUUID string, sequence int64) (bool, error)
}

// Place is where a sink writes, as a URL says it.
type Place struct {
	// Directory is that of a file sink; empty for an object store.
	Directory string
	// Bucket, Prefix, Endpoint and Region name an object store. Endpoint has no scheme.
	Bucket, Prefix, Endpoint, Region string
	// Plaintext reaches the endpoint without TLS.
	Plaintext bool
}

// defaultEndpoint is where s3:// leads that names no endpoint.
const defaultEndpoint = "s3.amazonaws.com"

// Parse reads the URL of a sink: file:///directory, or s3://bucket/prefix?endpoint=https://host&region=name.
func Parse(text string) (Place, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Place{}, errors.New("the sink is no URL; write file:///directory or s3://bucket/prefix?endpoint=https://host")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Place{}, fmt.Errorf("the parameters of the sink cannot be read: %w", err)
	}
	for name := range query {
		if u.Scheme != "s3" || name != "endpoint" && name != "region" {
			return Place{}, fmt.Errorf("the sink has an unknown parameter %q; s3:// takes endpoint and region, file:// takes none", name)
		}
	}
	switch {
	case u.User != nil:
		return Place{}, errors.New("the sink names a user; give credentials by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, " +
			"or by a file that AWS_SHARED_CREDENTIALS_FILE names")
	case u.Fragment != "":
		return Place{}, errors.New("the sink has a fragment (#); leave it out")
	case u.Scheme == "file":
		if u.Host != "" || !path.IsAbs(u.Path) {
			return Place{}, errors.New("the sink names no absolute directory; write file:///directory, with three slashes")
		}
		return Place{Directory: path.Clean(u.Path)}, nil
	case u.Scheme == "s3":
		return parseStore(u, query)
	}
	return Place{}, fmt.Errorf("the sink has scheme %q; write file:///directory or s3://bucket/prefix?endpoint=https://host", u.Scheme)
}

func parseStore(u *url.URL, query url.Values) (Place, error) {
	place := Place{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), Endpoint: defaultEndpoint, Region: query.Get("region")}
	if place.Bucket == "" {
		return Place{}, errors.New("the sink names no bucket; write s3://bucket/prefix?endpoint=https://host")
	}
	text := query.Get("endpoint")
	if text == "" {
		return place, nil
	}
	endpoint, err := url.Parse(text)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "https" && endpoint.Scheme != "http" ||
		strings.Trim(endpoint.Path, "/") != "" || endpoint.User != nil || endpoint.RawQuery != "" {
		return Place{}, fmt.Errorf("the sink's endpoint %q is no URL of a host; write endpoint=https://host or endpoint=https://host:port", text)
	}
	place.Endpoint, place.Plaintext = endpoint.Host, endpoint.Scheme == "http"
	return place, nil
}

// Open makes the sink of a URL; nil where the URL is empty. A directory is checked at once; an object store is first asked when a
// record is kept.
func Open(text string) (Sink, error) {
	if text == "" {
		return nil, nil
	}
	place, err := Parse(text)
	if err != nil {
		return nil, err
	}
	if place.Directory != "" {
		return openFiles(place.Directory)
	}
	return openStore(place)
}

// line is a record as one line of JSON.
func line(record *policyv1alpha1.SanitizationRecord) ([]byte, error) {
	kept := record.DeepCopy()
	kept.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind("SanitizationRecord"))
	kept.ManagedFields, kept.ResourceVersion, kept.UID, kept.Generation = nil, "", "", 0 // kubectl create takes none of them
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(kept); err != nil {
		return nil, fmt.Errorf("record %s: %w", record.Name, err)
	}
	return out.Bytes(), nil
}
