// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What a reader copies from the README shows what stands there.
func TestTheErrorOfTheREADMECanBeReproduced(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)\\$ sed -i '([^']+)' fleet/lifecycle.yaml\n\\$ metalaw policy verify -f fleet\n(.*?)\n\\.\\.\\.\n```").
		FindSubmatch(page)
	if shown == nil {
		t.Fatal("README.md shows no error")
	}
	t.Chdir(filepath.Dir(begun(t, "default")))
	if out, err := exec.CommandContext(t.Context(), "sed", "-i", string(shown[1]), "fleet/lifecycle.yaml").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := call(t, "", "verify", "-f", "fleet")
	if err == nil || !strings.HasPrefix(out, string(shown[2])+"\n") {
		t.Errorf("%v; README.md shows another error than\n%s", err, out)
	}
}
