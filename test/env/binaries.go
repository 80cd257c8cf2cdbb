// SPDX-License-Identifier: Apache-2.0

package env

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// binaries are the paths of the programs that make up a control plane.
type binaries struct {
	etcd, apiserver, controllers, kubectl string
}

// findBinaries looks for each program in KUBEBUILDER_ASSETS first and then where `make control-plane` puts them. The
// controllers are always in the second place, because `make control-plane` makes them.
func findBinaries() (binaries, error) {
	root, err := RepoRoot()
	if err != nil {
		return binaries{}, err
	}
	dirs := []string{filepath.Join(root, "bin", "controlplane")}
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		dirs = append([]string{assets}, dirs...)
	}
	var b binaries
	var missing []string
	for _, want := range []struct {
		name string
		path *string
	}{
		{"etcd", &b.etcd},
		{"kube-apiserver", &b.apiserver},
		{"controllers", &b.controllers},
		{"kubectl", &b.kubectl},
	} {
		if *want.path = findIn(dirs, want.name); *want.path == "" {
			missing = append(missing, want.name)
		}
	}
	if len(missing) > 0 {
		return b, fmt.Errorf("no %s in %s: run `make control-plane`",
			strings.Join(missing, ", "), strings.Join(dirs, " or "))
	}
	return b, nil
}

func findIn(dirs []string, name string) string {
	for _, dir := range dirs {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

// Kubectl is the path of the kubectl that belongs to the control plane.
func (e *Env) Kubectl() string { return e.bins.kubectl }

// RepoRoot is the folder of this repository: the nearest one at or above the working directory
// that holds both go.mod and config.
func RepoRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		_, modErr := os.Stat(filepath.Join(dir, "go.mod"))
		_, configErr := os.Stat(filepath.Join(dir, "config", "default"))
		if modErr == nil && configErr == nil {
			return dir, nil
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		return "", errors.New("not inside the repository: no folder above holds go.mod and config/default; change to it")
	}
}
