// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/policies"
)

// runbookOf is the page on which the reasons of a const block are explained.
var runbookOf = map[string]string{
	"Reasons of Ready on a BMC, and of BMCReachable on a Server.":        "bmc.md",
	"Reasons of Reset on a BMC.":                                         "bmc.md",
	"Reasons of SystemsAccepted on a BMC.":                               "bmc.md",
	"Reasons of events on a BMC.":                                        "bmc.md",
	"Reasons of conditions on a ServerMaintenance.":                      "maintenance.md",
	"Reasons of conditions on an Endpoint.":                              "endpoint.md",
	"Reasons of Bound and Ready on a ServerClaim.":                       "claim.md",
	"Reasons of conditions on a Server that are not the name of a rule.": "server.md",
	"Reasons of the condition FaultyHardware on a Server.":               "server.md",
	"Reasons of the condition Decommission on a Server.":                 "server.md",
	"Reasons of conditions on a PolicyRevision.":                         "policy.md",
	"Reasons of events on the ConfigMap of a bundle.":                    "policy.md",
	"Reasons of conditions on a FleetControl.":                           "fleet.md",
}

func TestEveryReasonHasARunbook(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseFolders(root, apiFolder, policyAPIFolder, "controllers", "metalprobe/registry", "engine/decision.go")
	if err != nil {
		t.Fatal(err)
	}
	pages := runbooks(t, root)
	needs := func(page, reason string) {
		t.Helper()
		if count(pages[page], reason) == 0 {
			t.Errorf("docs/runbooks/%s has no heading %q; say there what it means, how to look, what to do and what not to do", page, reason)
		}
	}
	inAPI := func(f *file, name string) bool {
		return strings.HasPrefix(f.path, "api/") && strings.HasPrefix(name, "Reason")
	}
	for _, c := range s.strings(inAPI) {
		page, ok := runbookOf[c.block]
		if !ok {
			t.Errorf("%s: nothing says on which runbook page %q is explained; add it to runbookOf", c.file.path, c.block)
			continue
		}
		needs(page, c.value)
	}
	for _, c := range s.strings(func(f *file, name string) bool {
		return !strings.HasPrefix(f.path, "api/") && strings.HasPrefix(name, "Reason")
	}) {
		if c.doc != "" { // a word of a type whose comment speaks for all
			needs("server.md", c.value)
		}
	}
	for _, c := range s.strings(func(f *file, name string) bool { return f.pkg == "engine" && strings.HasPrefix(name, "Halt") }) {
		needs("policy.md", c.value)
		needs("server.md", c.value)
	}
	for _, state := range []string{"OperationSucceeded", "OperationFailed", "OperationRefused"} {
		needs("server.md", s.constants[apiFolder+"."+state])
	}
	for _, reason := range failures(s, "controllers/server/") {
		needs("server.md", reason)
	}
	for _, rule := range stalling(t) {
		needs("server.md", rule)
	}
	for _, rule := range []string{"HeldPoweredOff", "StrangerAppeared", "StrangerReleased", "StrangerBooted"} {
		needs("server.md", rule) // they lead to no Error, and still somebody has to look
	}
}

// failures are the reasons with which the effects of a folder fail; Ready shows them.
func failures(s *source, folder string) []string {
	var all []string
	for _, f := range s.files {
		if !strings.HasPrefix(f.path, folder) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			if function, ok := call.Fun.(*ast.SelectorExpr); ok && function.Sel.Name == "Failing" {
				if reason, known := s.evaluate(f, call.Args[0]); known {
					all = append(all, reason)
				}
			}
			return true
		})
	}
	return all
}

// stalling are the rules that may have led a server to Error.
func stalling(t *testing.T) []string {
	t.Helper()
	b, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"Adopted", "Forced"} // no bundle writes these
	for _, e := range b.Lifecycle.Edges() {
		if e.To == "Error" && !slices.Contains(all, e.Rule) {
			all = append(all, e.Rule)
		}
	}
	return all
}

// runbooks are the headings of every page.
func runbooks(t *testing.T, root string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs/runbooks/*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no runbooks (error %v)", err)
	}
	pages := map[string][]string{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range heading.FindAllStringSubmatch(withoutCode(string(text)), -1) {
			pages[filepath.Base(name)] = append(pages[filepath.Base(name)], h[1])
		}
	}
	return pages
}

var codeBlock = regexp.MustCompile("(?s)```.*?```")

func withoutCode(text string) string { return codeBlock.ReplaceAllString(text, "") }

func count(headings []string, title string) int {
	n := 0
	for _, h := range headings {
		if h == title {
			n++
		}
	}
	return n
}

func TestNoRunbookHasTwoHeadingsOfOneAnchor(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	for page, headings := range runbooks(t, root) {
		seen := map[string]bool{}
		for _, h := range headings {
			if strings.HasPrefix(page, "Metalaw") {
				break // its sections have the same names on every page
			}
			if seen[slug(h)] {
				t.Errorf("docs/runbooks/%s: two headings have the anchor #%s", page, slug(h))
			}
			seen[slug(h)] = true
		}
	}
}

// alert is one alert of config/prometheus/rules.yaml.
type alert struct {
	Alert, Expr string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T, root string) []alert {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config/prometheus/rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rule struct {
		Spec struct {
			Groups []struct{ Rules []alert }
		}
	}
	if err := yaml.Unmarshal(text, &rule); err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, g := range rule.Spec.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there is no alert")
	}
	return all
}

const runbookURL = "https://github.com/metalaw/metalaw/blob/main/docs/runbooks/"

func TestEveryAlertHasARunbook(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	pages := runbooks(t, root)
	index, err := os.ReadFile(filepath.Join(root, "docs/runbooks/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, a := range alerts(t, root) {
		known[a.Alert+".md"] = true
		severity := a.Labels["severity"]
		if severity != "critical" && severity != "warning" || a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("alert %s needs a severity (critical or warning), a summary and a description", a.Alert)
		}
		page, anchor, _ := strings.Cut(strings.TrimPrefix(a.Annotations["runbook_url"], runbookURL), "#")
		headings, exists := pages[page]
		if !exists {
			t.Errorf("alert %s: runbook_url %q leads to no page of docs/runbooks; it begins with %s", a.Alert, a.Annotations["runbook_url"], runbookURL)
			continue
		}
		if anchor != "" && !slices.ContainsFunc(headings, func(h string) bool { return slug(h) == anchor }) {
			t.Errorf("alert %s: %s has no heading #%s", a.Alert, page, anchor)
		}
		if page == a.Alert+".md" && headings[0] != a.Alert {
			t.Errorf("docs/runbooks/%s begins with %q", page, headings[0])
		}
		if !strings.Contains(string(index), "| ["+a.Alert+"]("+page+") | "+severity+" |") {
			t.Errorf("docs/runbooks/README.md does not list %s as %s", a.Alert, severity)
		}
	}
	for page := range pages {
		if strings.HasPrefix(page, "Metalaw") && !known[page] {
			t.Errorf("docs/runbooks/%s is the runbook of no alert", page)
		}
	}
}

// foreignMetrics are the metrics of others that alerts read: of Prometheus, controller-runtime and the API server.
var foreignMetrics = []string{
	"up", "leader_election_master_status", "workqueue_longest_running_processor_seconds", "rest_client_requests_total",
	"controller_runtime_reconcile_total", "controller_runtime_reconcile_errors_total", "controller_runtime_reconcile_panics_total",
	"certwatcher_read_certificate_errors_total",
	"apiserver_admission_webhook_rejection_count", "apiserver_admission_webhook_fail_open_count",
}

var (
	// selected is the name of a metric in an expression: its labels follow, or its range, or it is one of ours.
	selected = regexp.MustCompile(`(metalaw_[a-z0-9_]+|[a-z][a-z0-9_]*[{[])`)
	quoted   = regexp.MustCompile(`"[^"]*"`)
)

func TestEveryAlertReadsMetricsThatExist(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseFolders(root, "controllers", "webhooks", "metalprobe", "redfish", "cmd")
	if err != nil {
		t.Fatal(err)
	}
	declared, err := fromCalls(s, s.files, metricOf)
	if err != nil {
		t.Fatal(err)
	}
	known := slices.Clone(foreignMetrics)
	for _, m := range declared {
		known = append(known, m.name)
		if m.kind == "histogram" {
			known = append(known, m.name+"_bucket", m.name+"_sum", m.name+"_count")
		}
	}
	for _, a := range alerts(t, root) {
		names := selected.FindAllStringSubmatch(quoted.ReplaceAllString(a.Expr, `""`), -1)
		if len(names) == 0 {
			t.Errorf("alert %s reads no metric", a.Alert)
		}
		for _, name := range names {
			if metric := strings.TrimRight(name[1], "{["); !slices.Contains(known, metric) {
				t.Errorf("alert %s reads %s, which nothing serves", a.Alert, metric)
			}
		}
	}
}

// A counter of ours is born with its first value, so that its increase misses what happened first, and all that another
// replica counted before it lost the lease.
func TestNoAlertDependsOnTheIncreaseOfACounterThatIsBornLate(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	late := regexp.MustCompile(`increase\(metalaw_`)
	for _, a := range alerts(t, root) {
		if late.MatchString(a.Expr) {
			t.Errorf("alert %s: use a gauge that is read from what is stored in place of the increase in %q", a.Alert, a.Expr)
		}
	}
}

func TestEveryStallThatAnAlertCountsIsOne(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`metalaw_servers_abnormal\{condition="Stalled", reason=~"([^"]+)"`)
	found := 0
	for _, a := range alerts(t, root) {
		for _, match := range named.FindAllStringSubmatch(a.Expr, -1) {
			for _, rule := range strings.Split(match[1], "|") {
				found++
				if !slices.Contains(stalling(t), rule) {
					t.Errorf("alert %s: no rule %q leads to Error", a.Alert, rule)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no alert counts a stall by its rule")
	}
}
