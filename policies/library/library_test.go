// SPDX-License-Identifier: Apache-2.0

package library

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies"
)

func shippedBundle(t testing.TB, name string) bundle.Files {
	t.Helper()
	files, err := policies.Shipped(name)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// added is a bundle with some policies of the library.
func added(t testing.TB, files bundle.Files, names []string, set map[string]string) bundle.Files {
	t.Helper()
	fill := shippedBundle(t, policies.DefaultBundle)
	for _, name := range names {
		p, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		own := map[string]string{}
		for _, parameter := range p.Parameters {
			if value, ok := set[name+"."+parameter.Name]; ok {
				own[parameter.Name] = value
			}
		}
		if files, _, err = p.Add(files, fill, own); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// accepted holds a bundle to all that it must pass, every line of its own.
func accepted(t testing.TB, files bundle.Files) *bundle.Bundle {
	t.Helper()
	b, report, err := bundle.Accept(t.Context(), files, policies.Acceptance(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range report.Found {
		ofTheBase := d.Code == "mac-inline-credentials" || d.Code == "bundle-name-built-in"
		if d.Severity != diag.Info && !ofTheBase {
			t.Error(d)
		}
	}
	if b == nil {
		t.Fatal("the bundle is not accepted")
	}
	return b
}

func TestEveryPolicyIsAcceptedInEveryShippedBundle(t *testing.T) {
	for _, shipped := range policies.ShippedNames() {
		sets := map[string][]string{"all together": Names(), "all in the opposite order": reversed(Names())}
		for _, name := range Names() {
			sets[name+" alone"] = []string{name}
		}
		for what, names := range sets {
			t.Run(what+" in "+shipped, func(t *testing.T) {
				b := accepted(t, added(t, shippedBundle(t, shipped), names, nil))
				if !b.Selection.IsNative() {
					t.Error("its selection is interpreted")
				}
			})
		}
	}
}

func reversed(names []string) []string {
	all := slices.Clone(names)
	slices.Reverse(all)
	return all
}

func TestABundleThatLeavesSelectionToTheDefaultGetsAFileOfItsOwn(t *testing.T) {
	head := bundle.Files{bundle.BundleFile: shippedBundle(t, policies.DefaultBundle)[bundle.BundleFile]}
	files := added(t, head, []string{"wear-levelling"}, nil)
	for _, name := range []string{"selection.rego", "selection_test.rego", "wear-levelling.rego", "wear-levelling_test.rego"} {
		if files[name] == nil {
			t.Errorf("%s is not there", name)
		}
	}
	if _, report, err := policies.Accept(t.Context(), files); err != nil || report.Found.HasErrors() {
		t.Errorf("%v %v", err, report.Found)
	}
}

func TestASecondTimeChangesNothing(t *testing.T) {
	once := added(t, shippedBundle(t, policies.DefaultBundle), Names(), map[string]string{"reserve-per-zone.percent": "25"})
	for _, name := range Names() {
		p, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		twice, changes, err := p.Add(once, nil, nil)
		if err != nil || len(changes) > 0 || twice.Digest() != once.Digest() {
			t.Errorf("%s: %v %v", name, err, changes)
		}
	}
}

func TestParametersAreSetAndKept(t *testing.T) {
	p, err := Find("reserve-per-zone")
	if err != nil {
		t.Fatal(err)
	}
	first, _, err := p.Add(shippedBundle(t, policies.DefaultBundle), nil, map[string]string{"percent": "25", "label": "example.com/vital"})
	if err != nil {
		t.Fatal(err)
	}
	second, changes, err := p.Add(first, nil, map[string]string{"priority": "500"})
	if diff := cmp.Diff([]Change{{"reserve-per-zone.rego", "set"}}, changes); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, line := range []string{"\npercent := 25\n", "\nlabel := \"example.com/vital\"\n", "\npriority := 500\n", "\nvalue := \"true\"\n"} {
		if !strings.Contains(string(second[p.Main()]), line) {
			t.Errorf("it does not say %q:\n%s", line, second[p.Main()])
		}
	}
	accepted(t, second)
}

func TestWhatWouldClashIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		policy, file, text string
		set                map[string]string
		want               string
	}{
		"a file that was changed by hand": {policy: "wear-levelling", file: "wear-levelling.rego",
			text: "package metalaw.selection.wear_levelling\n\npoints := 7\n", want: "is not the file of this library, in more than its parameters"},
		"another file with its package": {policy: "wear-levelling", file: "wear.rego",
			text: "package metalaw.selection.wear_levelling\n\npoints := 7\n", want: "wear.rego has the package metalaw.selection.wear_levelling already"},
		"a score in several rules": {policy: "wear-levelling", file: "selection.rego",
			text: "package metalaw.selection\n\nallow := true\n\nscore := 1 if input.candidate.cores > 1\n", want: "selection.rego:5: the score is more than one line"},
		"a score with a default": {policy: "wear-levelling", file: "selection.rego",
			text: "package metalaw.selection\n\nallow := true\n\ndefault score := 0\n\nscore := 1 if input.candidate.cores > 1\n", want: "selection.rego:5: the score is more than one line"},
		"a file that is no Rego": {policy: "wear-levelling", file: "selection.rego", text: "package", want: "selection.rego cannot be read; mend it first"},
		"an unknown parameter": {policy: "wear-levelling", set: map[string]string{"wait": "2"},
			want: `policy wear-levelling has no parameter "wait"; it has weight, most`},
		"a value of another kind": {policy: "wear-levelling", set: map[string]string{"weight": "heavy"},
			want: `parameter weight of policy wear-levelling: "heavy" is no value; write it like 1`},
		"a list where an object is": {policy: "images-per-namespace", set: map[string]string{"images": "[1]"},
			want: "[1] is a value of kind array, and it takes one of kind object"},
	} {
		t.Run(name, func(t *testing.T) {
			files := shippedBundle(t, policies.DefaultBundle)
			if c.file != "" {
				files[c.file] = []byte(c.text)
			}
			p, err := Find(c.policy)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := p.Add(files, nil, c.set); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

func TestParametersThatMakeNoSenseAreRefusedInTheWordsOfThePolicysOwnTest(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		set    map[string]string
		want   string
	}{
		"a share that is more than all": {"reserve-per-zone", map[string]string{"percent": "250"}, "the values of parameters of policy reserve-per-zone do not fit: it asks that percent < 100; " +
			"percent is to be 250: How many of a zone's servers are kept free"},
		"a share of nothing":           {"reserve-per-zone", map[string]string{"percent": "0"}, "it asks that percent > 0"},
		"part of a priority":           {"reserve-per-zone", map[string]string{"priority": "1.5"}, "it asks that priority == round(priority)"},
		"no weight":                    {"wear-levelling", map[string]string{"weight": "-3"}, "it asks that weight > 0"},
		"a health that no BMC reports": {"exclude-failing-hardware", map[string]string{"failing": `{"Bad"}`}, `it asks that every health in failing { health in {"Warning", "Critical", "Unknown"} }`},
		"a star for a registry":        {"images-per-namespace", map[string]string{"others": `["linux*"]`}, "it asks that every _, patterns in"},
		"an empty label":               {"tenancy-by-namespace", map[string]string{"label": ""}, `it asks that label != ""`},
		"what no label can be called": {"tenancy-by-namespace", map[string]string{"label": "a/b/c"}, "it asks that is_label_key(label): the key of a label is a name of at most 63 letters, " +
			"digits, dashes, underscores and dots, with a domain in lower-case letters and one slash before it or without; label is to be a/b/c: The label of a Server"},
		"a tenant that no label can name": {"tenancy-by-namespace", map[string]string{"namespaces": `{"acme ltd": ["acme"]}`}, "a tenant is the value of a label"},
		"a pattern for namespaces":        {"tenancy-by-namespace", map[string]string{"namespaces": `{"acme": ["acme-*"]}`}, "patterns mean nothing here"},
		"a priority that no claim has":    {"reserve-per-zone", map[string]string{"priority": "2000"}, `it asks that true in [priority <= 1000, label != ""]: no claim has a priority above 1000`},
		"a priority that every claim has": {"reserve-per-zone", map[string]string{"priority": "-1000"}, "it asks that priority > -1000: every claim has a priority of -1000 or more"},
		"a label alone":                   {"reserve-per-zone", map[string]string{"priority": "2000", "label": "example.com/vital"}, ""},
		"a label of blanks":               {"reserve-per-zone", map[string]string{"label": "is vital"}, "the key of a label is a name"},
		"a value that no label has":       {"reserve-per-zone", map[string]string{"value": "a/b"}, "the value of a label has at most 63"},
		"what no namespace is called":     {"images-per-namespace", map[string]string{"images": `{"Bad!": ["a/*"]}`}, "the name of a namespace has at most 63 lower-case letters, digits and dashes"},
		"an empty pattern":                {"images-per-namespace", map[string]string{"others": `[""]`}, "a pattern is a whole reference"},
		"what fits":                       {"best-fit", map[string]string{"weight": "32", "memory": "64"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Find(c.policy)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = p.Add(shippedBundle(t, policies.DefaultBundle), nil, c.set)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

func TestEveryPolicyTestsItsParameters(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if err := p.checkSense(p.Files[p.Main()], nil); err != nil {
			t.Error(err)
		}
	}
}

func TestParametersThatWereSetByHandAreTestedWithTheBundle(t *testing.T) {
	files := added(t, shippedBundle(t, policies.DefaultBundle), []string{"reserve-per-zone"}, nil)
	files["reserve-per-zone.rego"] = bytes.Replace(files["reserve-per-zone.rego"], []byte("percent := 10"), []byte("percent := 250"), 1)
	b, report, err := policies.Accept(t.Context(), files)
	if err != nil || b != nil || !strings.Contains(report.Found.Err().Error(), "reserve-per-zone_test.rego") {
		t.Errorf("%v %v", err, report.Found)
	}
}

func TestAPriorityThatEveryNamespaceMayAskForOrNoneIsWarnedOf(t *testing.T) {
	const nobody = "reserve-per-zone keeps something for claims of priority 500, and those of no namespace may ask for more than 400, so that no claim can " +
		"have it. Lower priority, or in bundle.yaml, say in settings.claims.priority.namespaces who may ask for 500"
	for name, c := range map[string]struct {
		policy, priority string
		max              int64
		want             string
		core             int64
		label            string
	}{
		"all may ask for it": {policy: "reserve-per-zone", priority: "500", max: 1000, want: "reserve-per-zone keeps something for claims of priority 500, and those of every namespace may ask for " +
			"up to 1000. In bundle.yaml, set settings.claims.priority.max below 500, and in settings.claims.priority.namespaces who may ask for more"},
		"all may ask for just that": {policy: "reserve-per-zone", priority: "500", max: 500, want: "reserve-per-zone keeps something for claims of priority 500, and those of every namespace may ask for " +
			"up to 500. In bundle.yaml, set settings.claims.priority.max below 500, and in settings.claims.priority.namespaces who may ask for more"},
		"few may":                    {policy: "reserve-per-zone", priority: "500", max: 499, core: 500},
		"nobody may":                 {policy: "reserve-per-zone", priority: "500", max: 100, core: 400, want: nobody},
		"nobody may, and labels can": {policy: "reserve-per-zone", priority: "500", max: 100, core: 400, label: "vital"},
		"a policy without a part":    {policy: "wear-levelling", max: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Find(c.policy)
			if err != nil {
				t.Fatal(err)
			}
			set := map[string]string{}
			if c.priority != "" {
				set["priority"] = c.priority
			}
			if c.label != "" {
				set["label"] = c.label
			}
			files, _, err := p.Add(shippedBundle(t, policies.DefaultBundle), nil, set)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Warnings(files, bundle.Claims{Priority: bundle.Priority{Max: c.max, Namespaces: map[string]int64{"core": c.core}}})
			if err != nil || strings.Join(got, "\n") != c.want {
				t.Errorf("%q %v", got, err)
			}
		})
	}
}

func TestParametersThatNameASettingExist(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		for _, named := range []string{p.Priority, p.Label} {
			if named != "" && !slices.ContainsFunc(p.Parameters, func(one Parameter) bool { return one.Name == named }) {
				t.Errorf("%s has no parameter %s", p.Name, named)
			}
		}
	}
}

func TestAPatternThatReachesIntoTheNameOfARegistryIsRefused(t *testing.T) {
	for images, accepted := range map[string]bool{`{"shop": ["registry.example.com*"]}`: false, `{"shop": ["registry.example.com/*"]}`: true} {
		files := added(t, shippedBundle(t, policies.DefaultBundle), []string{"images-per-namespace"}, nil)
		text := files["images-per-namespace.rego"]
		files["images-per-namespace.rego"] = bytes.Replace(text, []byte("\nimages := {}\n"), []byte("\nimages := "+images+"\n"), 1)
		if bytes.Equal(text, files["images-per-namespace.rego"]) {
			t.Fatal("nothing is set")
		}
		if b, report, err := policies.Accept(t.Context(), files); err != nil || (b != nil) != accepted {
			t.Errorf("%s: %v %v", images, err, report.Found.Err())
		}
	}
}
