// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/policies"
)

// call runs `metalaw policy` with arguments and what is typed.
func call(t *testing.T, typed string, args ...string) (string, error) {
	t.Helper()
	out, _, err := callBoth(t, typed, args...)
	return out, err
}

// callBoth is call, with what is said on stderr.
func callBoth(t *testing.T, typed string, args ...string) (said, saidOnStderr string, err error) {
	t.Helper()
	return callReading(t.Context(), strings.NewReader(typed), args...)
}

// callReading is callBoth, with the stream that is read instead of what is typed.
func callReading(ctx context.Context, in io.Reader, args ...string) (said, saidOnStderr string, err error) {
	root := &cobra.Command{Use: "metalaw", SilenceUsage: true, SilenceErrors: true}
	root.SetFlagErrorFunc(usage.FlagError)
	root.AddCommand(Command("metalaw"))
	var out, complaints bytes.Buffer
	root.SetArgs(append([]string{"policy"}, args...))
	root.SetIn(in)
	root.SetOut(&out)
	root.SetErr(&complaints)
	err = root.ExecuteContext(ctx)
	return out.String(), complaints.String(), err
}

// begun is a directory that init has written.
func begun(t *testing.T, from string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fleet")
	if _, err := call(t, "", "init", dir, "--from", from); err != nil {
		t.Fatal(err)
	}
	return dir
}

// edit replaces what stands once in a file.
func edit(t *testing.T, file, old, instead string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), old) != 1 {
		t.Fatalf("%s does not say %q once", file, old)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), old, instead, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhatInitWritesCouldBeAccepted(t *testing.T) {
	for _, name := range policies.ShippedNames() {
		t.Run(name, func(t *testing.T) {
			out, err := call(t, "", "verify", "-f", begun(t, name))
			if err != nil || !strings.Contains(out, "accepted: bundle fleet 0.1.0") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestWhatInitWritesDescribesItself(t *testing.T) {
	for _, name := range policies.ShippedNames() {
		text, err := os.ReadFile(filepath.Join(begun(t, name), "bundle.yaml"))
		if err != nil || !strings.Contains(string(text), "\ndescription: Begun from the built-in bundle "+name+".\n") {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

func TestHistoryShowsWhoAndWhen(t *testing.T) {
	e := entry{By: "axel sha256:" + strings.Repeat("0a", 32) + " 2026-01-31T10:00:00.123456789Z restored"}
	if got := e.row(&terminal.Terminal{Now: time.Now()})[5]; got != "axel 2026-01-31T10:00:00Z restored" {
		t.Error(got)
	}
}

func TestHistoryTellsThatAPromotionWaits(t *testing.T) {
	for name, c := range map[string]struct {
		revision policyv1alpha1.PolicyRevision
		stage    string
		json     string
	}{
		"of one that was never in force": {at("a", "da", "ha", "Active", "Draft", "AwaitingReplicas", "", ""), "Draft, waits to be Active", "Active"},
		"of one to go back to":           {at("a", "da", "ha", "Active", "Superseded", "AwaitingReplicas", "2", ""), "Superseded, waits to be Active", "Active"},
		"of a canary":                    {at("a", "da", "ha", "Canary", "Shadow", "AwaitingReplicas", "", ""), "Shadow, waits to be Canary", "Canary"},
		"not of one that was overtaken":  {at("a", "da", "ha", "Active", "Superseded", "Superseded", "2", ""), "Superseded", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := past([]policyv1alpha1.PolicyRevision{c.revision})[0]
			if got := e.row(&terminal.Terminal{Now: time.Now()})[2]; got != c.stage || e.AwaitsStage != c.json {
				t.Errorf("%s, %q", got, e.AwaitsStage)
			}
		})
	}
}

func TestInitOverwritesNothing(t *testing.T) {
	dir := begun(t, "default")
	before, err := os.ReadFile(filepath.Join(dir, "bundle.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, "", "init", dir, "--from", "no-discovery"); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("%v", err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "bundle.yaml")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("bundle.yaml was changed: %v", err)
	}
}

func TestVerifyNamesThePlaceInTheFileThatWasRead(t *testing.T) {
	dir := begun(t, "default")
	file := filepath.Join(dir, "lifecycle.yaml")
	edit(t, file, `bmc.health == "Critical"`, `bmc.helth == "Critical"`)
	out, err := call(t, "", "verify", "-f", dir)
	want := file + `:10:17: error: critical: there is no fact "bmc.helth" [cel-unknown-fact]` + "\n    did you mean bmc.health?\n"
	if !errors.Is(err, terminal.ErrIncomplete) || !strings.Contains(out, want) {
		t.Errorf("%v\n%s\nwant:\n%s", err, out, want)
	}
}

func TestVerifyNamesWhatWasTakenFromTheDefault(t *testing.T) {
	dir := begun(t, "default")
	for _, file := range []string{"selection.rego", "selection_test.rego"} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := call(t, "", "verify", "-f", dir)
	if want := "because the bundle leaves them out: selection.rego, selection_test.rego\n"; err != nil || !strings.Contains(out, want) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTheFirstExampleOfThePageDoesWhatThePageSays(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "bundles.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```yaml\n")
	example, _, _ := strings.Cut(blocks[1], "```")
	rules, _, _ := strings.Cut(blocks[2], "```")
	lost, retried, _ := strings.Cut(strings.TrimSuffix(rules, "\n"), "\n")
	dir := begun(t, "default")
	scenarios := filepath.Join(dir, "scenarios.yaml")
	text, err := os.ReadFile(scenarios)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(scenarios, append(text, example...), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := call(t, "", "verify", "-f", dir)
	if !errors.Is(err, terminal.ErrIncomplete) || strings.Count(out, "error: ") != 1 || !strings.Contains(out, "it stays in Discovery") {
		t.Errorf("the example before the change: %v\n%s", err, out)
	}
	lifecycle := filepath.Join(dir, "lifecycle.yaml")
	edit(t, lifecycle, strings.Replace(retried, "20m", "30m", 1), retried)
	out, err = call(t, "", "verify", "-f", dir)
	if !errors.Is(err, terminal.ErrIncomplete) || !strings.Contains(out, "the deadline of ProbeLost, which gives up after retries, is never reached") {
		t.Errorf("the second rule alone: %v\n%s", err, out)
	}
	edit(t, lifecycle, strings.Replace(lost, "20m", "30m", 1), lost)
	if out, err = call(t, "", "verify", "-f", dir); err != nil || strings.Contains(out, "deadline-too-late") {
		t.Errorf("after the change: %v\n%s", err, out)
	}
}

func TestVerifySpeaksJSONAndSARIF(t *testing.T) {
	dir := begun(t, "default")
	edit(t, filepath.Join(dir, "bundle.yaml"), "firstSeen: observe", "firstSeen: guess")
	out, err := call(t, "", "verify", "-f", dir, "-o", "json")
	var report jsonReport
	if jsonErr := json.Unmarshal([]byte(out), &report); jsonErr != nil || !errors.Is(err, terminal.ErrIncomplete) {
		t.Fatal(jsonErr, err)
	}
	if report.Accepted || len(report.Findings) == 0 || report.Findings[0].File != filepath.Join(dir, "bundle.yaml") || report.Findings[0].Line == 0 {
		t.Errorf("%+v", report)
	}
	out, err = call(t, "", "verify", "-f", dir, "-o", "sarif")
	var log sarifLog
	if jsonErr := json.Unmarshal([]byte(out), &log); jsonErr != nil || !errors.Is(err, terminal.ErrIncomplete) {
		t.Fatal(jsonErr, err)
	}
	first := log.Runs[0].Results[0]
	if log.Version != "2.1.0" || first.Level != "error" || first.RuleID != "setting-word" || first.Locations[0].Physical.Region.StartLine == 0 {
		t.Errorf("%+v", first)
	}
}

func TestAScenarioOfARuleThatIsGoneIsToldTheRulesThatThereAre(t *testing.T) {
	dir := begun(t, "default")
	text, err := os.ReadFile(filepath.Join(dir, "scenarios.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, "\n- {name: the rule that was taken out, state: Error, expect: {to: Initial, rule: Quarantined}}\n"...)
	if err := os.WriteFile(filepath.Join(dir, "scenarios.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := call(t, "", "verify", "-f", dir)
	if want := "there is no rule \"Quarantined\" [rule-unknown]\n    rules: ClaimAppeared, "; err == nil || !strings.Contains(out, want) || !strings.Contains(out, "WipeTimedOut") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestSARIFNamesFilesAsURIReferences(t *testing.T) {
	for file, want := range map[string]string{
		"fleet/lifecycle.yaml":   "fleet/lifecycle.yaml",
		"./fleet/lifecycle.yaml": "fleet/lifecycle.yaml",
		"my fleet/50%/a#b?.yaml": "my%20fleet/50%25/a%23b%3F.yaml",
		"größer/lifecycle.yaml":  "gr%C3%B6%C3%9Fer/lifecycle.yaml",
		"a:b/lifecycle.yaml":     "./a:b/lifecycle.yaml",
		"/srv/lifecycle.yaml":    "/srv/lifecycle.yaml",
		"standard input":         "standard%20input",
	} {
		if got := uriReference(file); got != want {
			t.Errorf("%s: got %s, want %s", file, got, want)
		}
	}
}

func TestSARIFHasTheWayToAFindingAndTheFactsByWhichItShows(t *testing.T) {
	dir := begun(t, "default")
	edit(t, filepath.Join(dir, "lifecycle.yaml"), "to: Available, when: erased && reported, clears: [Dirty]}", "to: Available, when: erased && reported}")
	out, err := call(t, "", "verify", "-f", dir, "-o", "sarif")
	var log sarifLog
	if jsonErr := json.Unmarshal([]byte(out), &log); jsonErr != nil || !errors.Is(err, terminal.ErrIncomplete) {
		t.Fatal(jsonErr, err)
	}
	i := slices.IndexFunc(log.Runs[0].Results, func(r sarifResult) bool { return r.RuleID == "safety-move" })
	if i < 0 {
		t.Fatalf("no safety-move in %s", out)
	}
	r := log.Runs[0].Results[i]
	if !strings.Contains(r.Message.Text, ". For example: Initial -") || r.Properties == nil ||
		!strings.Contains(r.Properties.Counterexample, "  state: Cleanup\n  given: {") {
		t.Errorf("%+v", r)
	}
	steps := r.CodeFlows[0].ThreadFlows[0].Locations
	last := steps[len(steps)-1].Location
	if len(steps) < 2 || !strings.HasPrefix(last.Message.Text, "in Cleanup with {") || *last.Physical.Region != *r.Locations[0].Physical.Region {
		t.Errorf("the last step is %+v of %d", last, len(steps))
	}
	text, err := os.ReadFile(filepath.Join(dir, "lifecycle.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, step := range steps[:len(steps)-1] {
		_, rule, _ := strings.Cut(strings.TrimSuffix(step.Location.Message.Text[:strings.Index(step.Location.Message.Text, "->")], " "), " -")
		if line := lines[step.Location.Physical.Region.StartLine-1]; !strings.Contains(line, "rule: "+rule+",") {
			t.Errorf("the step %q stands at %q", step.Location.Message.Text, line)
		}
	}
}

func TestANameOfDigitsIsText(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "2024")
	if _, err := call(t, "", "init", dir); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"bundle.yaml", "kustomization.yaml"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(text), `: "2024"`+"\n") {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

func TestWhatInitWritesDrawsNoWarning(t *testing.T) {
	out, err := call(t, "", "verify", "-f", begun(t, "default"))
	if err != nil || strings.Contains(out, "warning:") || !strings.Contains(out, ", 0 warnings") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestABundleWithTheNameOfTheBuiltInOneIsAWarning(t *testing.T) {
	dir := begun(t, "default")
	edit(t, filepath.Join(dir, "bundle.yaml"), "\nname: fleet", "\nname: default")
	out, err := call(t, "", "verify", "-f", dir)
	if want := `bundle.yaml:3:7: warning: "default" is the name of a bundle that is built into metalaw`; err != nil || !strings.Contains(out, want) {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := call(t, "", "verify", "--from", "default"); err != nil || strings.Contains(out, "warning") && !strings.Contains(out, "0 warnings") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTestShowsWhatFailsAndWritesJUnit(t *testing.T) {
	dir := begun(t, "default")
	edit(t, filepath.Join(dir, "lifecycle.yaml"), "{rule: ProbeReported,    to: Available,", "{rule: ProbeReported,    to: Initial,")
	results := filepath.Join(t.TempDir(), "results.xml")
	out, err := call(t, "", "test", "-f", dir, "--junit", results)
	if !errors.Is(err, terminal.ErrIncomplete) || !strings.Contains(out, "FAIL  a reported server becomes available") ||
		!strings.Contains(out, "it moves to Initial by ProbeReported") {
		t.Errorf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	var suites junitSuites
	if err := xml.Unmarshal(text, &suites); err != nil {
		t.Fatal(err)
	}
	if len(suites.Suites) != 3 || suites.Suites[1].Failures != 1 || suites.Suites[2].Tests == 0 || suites.Suites[2].Failures != 0 {
		t.Errorf("%s", text)
	}
	if out, err = call(t, "", "test", "--from", "default", "-v"); err != nil || !strings.Contains(out, "PASS  ") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRenderDrawsInEveryForm(t *testing.T) {
	for form, want := range map[string]string{"mermaid": "stateDiagram-v2", "dot": "digraph lifecycle", "svg": "<svg ", "markdown": "## Available"} {
		if out, err := call(t, "", "render", "--from", "default", "-o", form); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v", form, err)
		}
	}
}

func TestABundleIsReadFromOnePlace(t *testing.T) {
	out := &bytes.Buffer{}
	cmd := Command("metalaw")
	cmd.SetOut(out)
	cmd.SetErr(out)
	cmd.SetArgs([]string{"verify", "-f", "a", "-f", "b"})
	const want = `invalid argument "b" for "-f, --filename" flag: it is given twice; call the command once for each bundle`
	if err := cmd.ExecuteContext(t.Context()); failure(err) != want {
		t.Error(err)
	}
}
