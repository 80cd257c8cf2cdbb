// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// askLimit is the time the emulator has to answer.
const askLimit = 20 * time.Second

// machines looks at the emulated machines past their BMCs, through the emulator's control interface. It is how the
// demo proves what the API only says.
type machines struct{ url string }

// machine is what is true of an emulated machine.
type machine struct {
	Name     string  `json:"name"`
	UUID     string  `json:"uuid"`
	Power    string  `json:"power"`
	Boots    int     `json:"boots"`
	Override string  `json:"override"`
	LED      string  `json:"led"`
	Drives   []drive `json:"drives"`
}

type drive struct {
	Name     string `json:"name"`
	Contents string `json:"contents"`
	Erased   bool   `json:"erased"`
}

// holds says whether any drive holds the text.
func (m machine) holds(text string) bool {
	for _, d := range m.Drives {
		if strings.Contains(d.Contents, text) {
			return true
		}
	}
	return false
}

// erased says whether every drive was erased since something was last written to it.
func (m machine) erased() bool {
	for _, d := range m.Drives {
		if !d.Erased || d.Contents != "" {
			return false
		}
	}
	return len(m.Drives) > 0
}

func (m machine) String() string {
	text := fmt.Sprintf("%s: power %s, %d boots", m.Name, m.Power, m.Boots)
	for _, d := range m.Drives {
		state := fmt.Sprintf("holds %q", d.Contents)
		if d.Contents == "" {
			state = "is empty"
		}
		text += ", " + d.Name + " " + state
	}
	return text
}

func (s machines) all(ctx context.Context) ([]machine, error) {
	var all []machine
	err := s.ask(ctx, http.MethodGet, "/machines", nil, &all)
	return all, err
}

// of is the machine of a server.
func (s machines) of(ctx context.Context, server *v1alpha1.Server) (machine, error) {
	all, err := s.all(ctx)
	if err != nil {
		return machine{}, err
	}
	for _, m := range all {
		if strings.EqualFold(m.UUID, server.Spec.SystemUUID) {
			return m, nil
		}
	}
	return machine{}, fmt.Errorf("no emulated machine has the system UUID %s of server %s", server.Spec.SystemUUID, server.Name)
}

// write puts data on every drive, as a tenant does.
func (s machines) write(ctx context.Context, m machine, contents string) error {
	for _, d := range m.Drives {
		body := map[string]string{"contents": contents}
		if err := s.ask(ctx, http.MethodPost, "/machines/"+m.Name+"/drives/"+d.Name, body, nil); err != nil {
			return err
		}
	}
	return nil
}

// bootOrderWrites counts the requests that changed the boot order of a machine.
func (s machines) bootOrderWrites(ctx context.Context, m machine) (int, error) {
	var writes []struct {
		Body string `json:"body"`
	}
	if err := s.ask(ctx, http.MethodGet, "/writes?method=PATCH&machine="+m.Name, nil, &writes); err != nil {
		return 0, err
	}
	n := 0
	for _, w := range writes {
		if strings.Contains(w.Body, "BootOrder") {
			n++
		}
	}
	return n, nil
}

func (s machines) ask(ctx context.Context, method, path string, in, out any) error {
	body := io.Reader(http.NoBody)
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, body)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("emulator: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("emulator: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("emulator: %s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(text))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}
