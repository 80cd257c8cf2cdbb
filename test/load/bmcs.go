// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// askLimit is the time that the emulator has to answer.
const askLimit = 30 * time.Second

// bmcs asks the process of the emulated BMCs, past the BMCs themselves.
type bmcs struct{ url string }

// machine is what is true of an emulated machine.
type machine struct {
	Name   string `json:"name"`
	UUID   string `json:"uuid"`
	URL    string `json:"url"`
	BMCMAC string `json:"bmcMAC"`
	Power  string `json:"power"`
}

// requests counts the requests that the BMCs received, of the whole fleet.
type requests map[request]int

// request is one kind of Redfish request; the path has names for its variable parts.
type request struct{ Method, Path string }

// minus is what was added since an earlier count.
func (r requests) minus(earlier requests) requests {
	added := requests{}
	for k, n := range r {
		if d := n - earlier[k]; d > 0 {
			added[k] = d
		}
	}
	return added
}

func (r requests) total() int {
	n := 0
	for _, count := range r {
		n += count
	}
	return n
}

func (b bmcs) machines(ctx context.Context) ([]machine, error) {
	var all []machine
	err := b.get(ctx, "/machines", &all)
	return all, err
}

// powered is the power state of each machine, by its system UUID.
func (b bmcs) powered(ctx context.Context) (map[string]string, error) {
	all, err := b.machines(ctx)
	power := map[string]string{}
	for _, m := range all {
		power[strings.ToLower(m.UUID)] = m.Power
	}
	return power, err
}

func (b bmcs) requests(ctx context.Context) (requests, error) {
	var counts []struct {
		Method  string `json:"method"`
		Pattern string `json:"pattern"`
		Count   int    `json:"count"`
	}
	if err := b.get(ctx, "/requests", &counts); err != nil {
		return nil, err
	}
	all := requests{}
	for _, c := range counts {
		all[request{c.Method, c.Pattern}] += c.Count
	}
	return all, nil
}

func (b bmcs) get(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("emulated BMCs: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("emulated BMCs: GET %s: %s", path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}
