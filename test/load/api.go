// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// kind is a kind that the driver reads or writes, as its plural.
type kind string

const (
	kindEndpoint    kind = "endpoints"
	kindBMC         kind = "bmcs"
	kindServer      kind = "servers"
	kindClaim       kind = "serverclaims"
	kindMaintenance kind = "servermaintenances"
)

var errNotFound = errors.New("not found")

// apiRoot is where the kinds are served.
const apiRoot = "/apis/metal.ironcore.dev/v1alpha1/"

// maxMetrics bounds what is read of the API server's metrics.
const maxMetrics = 256 << 20

// api speaks with the API server as the driver, in as few bytes of an object as the driver needs: with a thousand servers
// every write of the manager comes by here, on the cores that are measured.
type api struct {
	http *http.Client
	base string
}

func newAPI(config *rest.Config) (*api, error) {
	client, err := rest.HTTPClientFor(config)
	return &api{http: client, base: config.Host}, err
}

func (a *api) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	request.Header.Set("Accept", "application/json")
	response, err := a.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 2<<10))
	err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	if response.StatusCode == http.StatusNotFound {
		err = errors.Join(errNotFound, err)
	}
	return nil, err
}

// create makes an object; path is that of its collection.
func (a *api) create(ctx context.Context, path string, object any) error {
	response, err := a.do(ctx, http.MethodPost, path, object)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// patch changes an object by a merge.
func (a *api) patch(ctx context.Context, path string, change any) error {
	response, err := a.do(ctx, http.MethodPatch, path, change)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// policyRevisions is the collection that metalaw alone has.
const policyRevisions = "/apis/policy.metalaw.dev/v1alpha1/policyrevisions"

// serves says whether the API server knows a collection.
func (a *api) serves(ctx context.Context, path string) (bool, error) {
	response, err := a.do(ctx, http.MethodGet, path, nil)
	if errors.Is(err, errNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, response.Body.Close()
}

// activeBundle is the name of the bundle in force; empty where none is.
func (a *api) activeBundle(ctx context.Context) (string, error) {
	response, err := a.do(ctx, http.MethodGet, policyRevisions, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	var list policyv1alpha1.PolicyRevisionList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return "", err
	}
	for i := range list.Items {
		if one := &list.Items[i]; meta.IsStatusConditionTrue(one.Status.Conditions, policyv1alpha1.ConditionActive) {
			return one.Spec.Bundle, nil
		}
	}
	return "", nil
}

func (a *api) delete(ctx context.Context, path string) error {
	response, err := a.do(ctx, http.MethodDelete, path, nil)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// objects lists a kind in all namespaces.
func (a *api) objects(ctx context.Context, k kind) (objects []object, version string, err error) {
	response, err := a.do(ctx, http.MethodGet, apiRoot+string(k), nil)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []object `json:"items"`
	}
	err = json.NewDecoder(response.Body).Decode(&list)
	return list.Items, list.Metadata.ResourceVersion, err
}

// list fills the fleet's view of a kind and returns where to watch from.
func (a *api) list(ctx context.Context, k kind, into *fleet) (version string, err error) {
	objects, version, err := a.objects(ctx, k)
	if err != nil {
		return "", err
	}
	into.replace(k, objects)
	return version, nil
}

// watch keeps the fleet's view of a kind up to date until ctx ends. A watch that is cut goes on where it was.
func (a *api) watch(ctx context.Context, k kind, version string, into *fleet) error {
	for ctx.Err() == nil {
		last, err := a.watchOnce(ctx, k, version, into)
		if err != nil {
			return fmt.Errorf("watch %s: %w", k, err)
		}
		if version = last; version != "" || ctx.Err() != nil {
			continue
		}
		if version, err = a.list(ctx, k, into); err != nil {
			return fmt.Errorf("watch %s: %w", k, err)
		}
	}
	return nil
}

// watchOnce returns the version to go on from; empty where only a list tells.
func (a *api) watchOnce(ctx context.Context, k kind, version string, into *fleet) (last string, err error) {
	response, err := a.do(ctx, http.MethodGet, apiRoot+string(k)+"?watch=true&resourceVersion="+url.QueryEscape(version), nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	events := json.NewDecoder(response.Body)
	for {
		var event struct {
			Type   string `json:"type"`
			Object object `json:"object"`
		}
		err := events.Decode(&event)
		var syntax *json.SyntaxError
		switch {
		case errors.As(err, &syntax):
			return "", err
		case err != nil:
			return version, nil // the API server ends every watch after a while
		case event.Type == "ERROR":
			return "", nil
		}
		version = event.Object.Metadata.ResourceVersion
		into.apply(k, event.Type == "DELETED", event.Object)
	}
}

// metrics reads the API server's own metrics.
func (a *api) metrics(ctx context.Context) (apiMetrics, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	response, err := a.do(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return apiMetrics{}, err
	}
	defer func() { _ = response.Body.Close() }()
	return readAPIMetrics(io.LimitReader(response.Body, maxMetrics))
}
