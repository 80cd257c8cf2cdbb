// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// BuildProgram builds the program metalaw as it is in the repository into a folder, and returns its path. Calling it again builds
// it again, which is quick while nothing has changed.
func BuildProgram(ctx context.Context, dir string) (string, error) {
	root, err := RepoRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "metalaw")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/metalaw")
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build metalaw: %w\n%s", err, output)
	}
	return path, nil
}
