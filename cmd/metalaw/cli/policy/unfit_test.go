// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/diag"
)

const unfitManifest = "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Manifest\nfiles:\n" +
	"- {name: elsewhere.rego, configMap: other, digest: \"sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef\"}\n"

func TestWhatIsNoWholeBundleIsToldInTheFormThatWasAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		args        []string
		code, place string
	}{
		"a part that is missing, as SARIF":        {[]string{"verify", "-o", "sarif"}, "manifest-part-missing", "manifest.yaml"},
		"a part that is missing, as JSON":         {[]string{"verify", "-o", "json"}, "manifest-part-missing", "manifest.yaml"},
		"a part that is missing, of test as JSON": {[]string{"test", "-o", "json"}, "manifest-part-missing", "manifest.yaml"},
		"an empty directory, as SARIF":            {[]string{"verify", "-o", "sarif"}, "bundle-absent", ""},
		"an empty directory, as JSON":             {[]string{"verify", "-o", "json"}, "bundle-absent", ""},
		"an empty directory, of test as JSON":     {[]string{"test", "-o", "json"}, "bundle-absent", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.place != "" {
				dir = begun(t, "default")
				if err := os.WriteFile(filepath.Join(dir, c.place), []byte(unfitManifest), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, err := call(t, "", append(c.args, "-f", dir)...)
			if !errors.Is(err, terminal.ErrIncomplete) {
				t.Errorf("error %v", err)
			}
			var told struct {
				Findings []struct{ Code, File string }
				Runs     []struct {
					Results []struct {
						RuleID    string
						Locations []struct {
							PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
						}
					}
				}
			}
			if err := json.Unmarshal([]byte(out), &told); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			code, place := "", ""
			if len(told.Findings) == 1 {
				code, place = told.Findings[0].Code, told.Findings[0].File
			}
			if len(told.Runs) == 1 && len(told.Runs[0].Results) == 1 {
				result := told.Runs[0].Results[0]
				code, place = result.RuleID, result.Locations[0].PhysicalLocation.ArtifactLocation.URI
			}
			if want := filepath.Join(dir, c.place); code != c.code || place != want {
				t.Errorf("got %s at %s, want %s at %s\n%s", code, place, c.code, want, out)
			}
		})
	}
}

func TestManifestsOfWhichNoBundleCanBeTakenAreToldInTheFormThatWasAskedFor(t *testing.T) {
	whole := strings.Replace(head, "setings", "settings", 1)
	for name, c := range map[string]struct {
		typed string
		want  diag.Diagnostic
	}{
		"a file that is no text": {whole + "binaryData:\n  macprefixes.yaml: /w==\n", diag.Diagnostic{Code: "file-encoding", Line: 18, Column: 21,
			Message: "ConfigMap lab-1.0.0 has macprefixes.yaml under binaryData, which nothing reads: a file of a bundle is UTF-8 text",
			Hint:    "see whether the file has another encoding"}},
		"two bundles": {whole + "---\n" + strings.Replace(whole, "lab-1", "lab-2", 1), diag.Diagnostic{Code: "bundle-several", Line: 22, Column: 1,
			Message: "there are 2 bundles here (lab-1.0.0, lab-2.0.0), and one is judged at a time", Hint: "give one of them"}},
		"bytes that are no UTF-8": {strings.Replace(whole, "name: lab\n", "name: lab # gr\xf6\xdfer\n", 1), diag.Diagnostic{Code: "file-encoding", Line: 14,
			Column: 19, Message: "from here on the file is no UTF-8 text", Hint: "save it as UTF-8"}},
		"no YAML": {"a: 1\nb: [\n", diag.Diagnostic{Code: "yaml-syntax", Line: 2, Column: 1,
			Message: "YAML cannot be read on from here: did not find expected node content",
			Hint:    "check indentation, brackets and quotes in this line and the next"}},
		"an object without kind": {strings.Replace(whole, "kind: ConfigMap\n", "", 1), diag.Diagnostic{Code: "bundle-object", Line: 5, Column: 1,
			Message: `the object "lab-1.0.0" has the label of a bundle and is no ConfigMap as it is written`, Hint: "write apiVersion: v1 and kind: ConfigMap"}},
		"a key that stands twice": {whole + "kind: ConfigMap\n", diag.Diagnostic{Code: "yaml-duplicate-key", Line: 17, Column: 1,
			Message: `the key "kind" stands in line 6 already`, Hint: "where another object begins here, put --- before it"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Severity, c.want.File = diag.Error, "standard input"
			out, err := call(t, c.typed, "verify", "-f", "-", "-o", "json")
			var told struct{ Findings []diag.Diagnostic }
			if jsonErr := json.Unmarshal([]byte(out), &told); jsonErr != nil || !errors.Is(err, terminal.ErrIncomplete) {
				t.Fatal(jsonErr, err, out)
			}
			if diff := cmp.Diff([]diag.Diagnostic{c.want}, told.Findings); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
			out, err = call(t, c.typed, "verify", "-f", "-", "-o", "sarif")
			var log sarifLog
			if jsonErr := json.Unmarshal([]byte(out), &log); jsonErr != nil || !errors.Is(err, terminal.ErrIncomplete) {
				t.Fatal(jsonErr, err, out)
			}
			if r := log.Runs[0].Results[0]; r.RuleID != c.want.Code || r.Locations[0].Physical.Region.StartLine != c.want.Line {
				t.Errorf("SARIF: %+v", r)
			}
		})
	}
}

func TestWhatIsNoFileWithTextIsNotRead(t *testing.T) {
	for name, c := range map[string]struct {
		make func(path string) error
		want string
	}{
		"a device": {func(path string) error { return os.Symlink(os.DevNull, path) },
			"error: this is a pipe, a socket or a device and no file with text [file-kind]"},
		"a socket": {func(path string) error {
			l, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { _ = l.Close() })
			}
			return err
		}, "error: this is a pipe, a socket or a device and no file with text [file-kind]"},
		"a directory":               {func(path string) error { return os.Mkdir(path, 0o700) }, "error: this is a directory and no file with text [file-kind]"},
		"a link that leads nowhere": {func(path string) error { return os.Symlink("nowhere", path) }, "error: this is a link that leads nowhere and no file with text [file-kind]"},
		"a file that has no end": {func(path string) error {
			if err := os.WriteFile(path, []byte("#"), 0o600); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		}, "error: the file has 1099511627776 bytes and at most 1048576 are read [limit-file-size]"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "lifecycle.yaml")
			if err := os.WriteFile(filepath.Join(dir, "bundle.yaml"), []byte("name: x\nversion: 1.0.0\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.make(path); err != nil {
				t.Skip(err)
			}
			out, err := call(t, "", "verify", "-f", dir)
			if !errors.Is(err, terminal.ErrIncomplete) || !strings.HasPrefix(out, path+": "+c.want) {
				t.Errorf("%v\n%s\nwant:\n%s: %s", err, out, path, c.want)
			}
		})
	}
}

func TestEveryFindingOfADirectoryNamesIt(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		gone       []string
		args       []string
		want       string
	}{
		"a file that is missing": {gone: []string{"bundle.yaml"}, args: []string{"verify"}, want: "bundle.yaml: error: the bundle has no bundle.yaml [file-missing]"},
		"scenarios that are missing": {file: "lifecycle.yaml", text: "# of its own", gone: []string{"scenarios.yaml"}, args: []string{"verify"},
			want: "scenarios.yaml: error: "},
		"what is drawn": {file: "lifecycle.yaml", text: "colour: red", args: []string{"render"}, want: "lifecycle.yaml:"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := begun(t, "default")
			if c.file != "" {
				f, err := os.OpenFile(filepath.Join(dir, c.file), os.O_APPEND|os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.WriteString("\n" + c.text + "\n"); err != nil {
					t.Fatal(err)
				}
				_ = f.Close()
			}
			for _, gone := range c.gone {
				if err := os.Remove(filepath.Join(dir, gone)); err != nil {
					t.Fatal(err)
				}
			}
			out, err := call(t, "", append(c.args, "-f", dir)...)
			if err == nil || !strings.Contains("\n"+out+"\n"+err.Error(), "\n"+filepath.Join(dir, c.want)) {
				t.Errorf("%v\n%s\nwant:\n%s", err, out, filepath.Join(dir, c.want))
			}
		})
	}
}

func TestOneFileOfABundleIsNotTheBundle(t *testing.T) {
	dir := begun(t, "default")
	for _, file := range []string{"lifecycle.yaml", "selection.rego"} {
		out, err := call(t, "", "verify", "-f", filepath.Join(dir, file))
		want := filepath.Join(dir, file) + ": error: this is one file of a bundle, and holds no ConfigMap [bundle-absent]\n    name its directory: -f " + dir + "\n"
		if !errors.Is(err, terminal.ErrIncomplete) || !strings.HasPrefix(out, want) {
			t.Errorf("%v\n%s\nwant:\n%s", err, out, want)
		}
	}
}

func TestATestOfWhatDoesNotCompileDoesNotEndWellInItsWords(t *testing.T) {
	dir := begun(t, "default")
	if err := os.WriteFile(filepath.Join(dir, "lifecycle.yaml"), []byte("states: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := call(t, "", "test", "-f", dir)
	if !errors.Is(err, terminal.ErrIncomplete) || strings.Contains(out, "exercised:") || !strings.Contains(out, "above; so not all can be run, and ") {
		t.Errorf("%v\n%s", err, out)
	}
}
