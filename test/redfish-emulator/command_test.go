// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// lines collects output and tells when a text is there.
type lines struct {
	buf   bytes.Buffer
	want  string
	found chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	had := strings.Contains(l.buf.String(), l.want)
	n, err := l.buf.Write(p)
	if !had && strings.Contains(l.buf.String(), l.want) {
		close(l.found)
	}
	return n, err
}

func TestTheProgramPrintsATableAndWritesManifests(t *testing.T) {
	dir := t.TempDir()
	faults := filepath.Join(dir, "faults.yaml")
	if err := os.WriteFile(faults, []byte("faults:\n- use: ServiceUnavailable\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	manifests, ca := filepath.Join(dir, "endpoints.yaml"), filepath.Join(dir, "ca.pem")
	out := &lines{want: "control interface", found: make(chan struct{})}
	cmd := newCommand(newGuest)
	cmd.SetOut(out)
	cmd.SetArgs([]string{
		"--machines", "2", "--addresses", "127.0.0.0/29", "--base-port", "0", "--tls", "--profile", "dell,openbmc", "--seed", "3",
		"--power-delay", "0", "--faults", faults, "--endpoints-out", manifests, "--ca-out", ca, "--control-addr", "127.0.0.1:0",
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	select {
	case <-out.found:
	case err := <-done:
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"machine-000", "machine-001", "dell", "openbmc", "https://127.0.0.1:", "https://127.0.0.2:", "calvin", "0penBmc"} {
		if !strings.Contains(out.buf.String(), want) {
			t.Errorf("the output lacks %s:\n%s", want, out.buf.String())
		}
	}
	got, err := os.ReadFile(manifests)
	if err != nil {
		t.Fatal(err)
	}
	const want = `---
apiVersion: metal.ironcore.dev/v1alpha1
kind: Endpoint
metadata:
  name: machine-000
spec:
  macAddress: "c8:4b:d6:01:da:a5"
  ip: 127.0.0.1
---
apiVersion: metal.ironcore.dev/v1alpha1
kind: Endpoint
metadata:
  name: machine-001
spec:
  macAddress: "d8:c4:97:01:da:b5"
  ip: 127.0.0.2
`
	if string(got) != want {
		t.Errorf("manifests:\n%s", got)
	}
	if pem, err := os.ReadFile(ca); err != nil || !bytes.Contains(pem, []byte("BEGIN CERTIFICATE")) {
		t.Errorf("CA %q, %v", pem, err)
	}
}

func TestTheBootProviderGoesToTheGuest(t *testing.T) {
	cmd := newCommand(func(url string) (emulator.Guest, error) { return nil, io.ErrNoProgress })
	cmd.SetArgs([]string{"--boot-provider", "http://127.0.0.1:1"})
	if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v", err)
	}
}
