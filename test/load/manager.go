// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/metalaw/metalaw/test/env"
)

// managerLog is the name of the manager's process, and of its log.
const managerLog = "manager"

// macPrefixes is the row of the emulated BMCs, in the form that metal-operator reads: it takes the colons out of the address of an
// Endpoint and not out of the prefix, and ends where a row has no console.
const macPrefixes = `macPrefixes:
  - macPrefix: "024d4c"
    manufacturer: Emulated
    protocol: Redfish
    protocolScheme: http
    port: 8000
    type: bmc
    defaultCredentials:
      - username: admin
        password: password
    console:
      type: SSH
      port: 22
`

// managerUser is who the measured manager is at the API server.
func (w *world) managerUser() env.User {
	if w.options.managerRights == string(rightsAdmin) {
		return adminManager
	}
	return env.ServiceAccount(w.options.namespace, "metalaw-manager")
}

func (w *world) startManager(ctx context.Context) error {
	if err := w.setEnvironment(); err != nil {
		return err
	}
	// The shell becomes the manager, so that the child's costs are the manager's and nothing outlives it.
	child, err := w.plane.StartChild(managerLog, "/bin/sh", "-c", "exec "+w.options.managerCommand)
	if err != nil {
		return err
	}
	w.manager = child
	w.watchChild(child)
	return child.AwaitReady(ctx, startLimit, func(ctx context.Context) error {
		return answers(ctx, "http://"+local(w.health)+"/readyz")
	})
}

// setEnvironment gives the manager what its command may name, by way of this program's own environment.
func (w *world) setEnvironment() error {
	kubeconfig, err := w.plane.KubeconfigFor(w.managerUser())
	if err != nil {
		return err
	}
	prefixes := filepath.Join(w.dir, "macprefixes.yaml")
	if err := os.WriteFile(prefixes, []byte(macPrefixes), 0o600); err != nil {
		return err
	}
	scheme := "http"
	if w.options.registryTLS {
		scheme = "https"
	}
	mode := "off"
	if w.options.maintenances > 0 {
		mode = "on"
	}
	variables := map[string]string{
		"KUBECONFIG":         kubeconfig,
		"NAMESPACE":          w.options.namespace,
		"REGISTRY_URL":       scheme + "://" + local(w.registry),
		"REGISTRY_ADDRESS":   local(w.registry),
		"REGISTRY_PORT":      strconv.Itoa(w.registry),
		"REGISTRY_PLAINTEXT": strconv.FormatBool(!w.options.registryTLS),
		"MAINTENANCE":        mode,
		"CERT_DIR":           w.certDir(),
		"WEBHOOKS":           strconv.FormatBool(w.options.webhooks),
		"WEBHOOK_PORT":       strconv.Itoa(w.webhook),
		"HEALTH_ADDRESS":     local(w.health),
		"METRICS_ADDRESS":    local(w.metrics),
		"MAC_PREFIXES":       prefixes,
		"ROOT":               w.root,
	}
	if w.options.memoryLimit != "" {
		variables["GOMEMLIMIT"] = w.options.memoryLimit
	}
	for name, value := range variables {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// answers is nil when the URL answers with 200.
func answers(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}
