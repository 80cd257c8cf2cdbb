// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// input is a small input of all kinds of fields.
type input struct {
	Name   string           `json:"name" doc:"A name."`
	Color  string           `json:"color" enum:"red,blue"`
	Size   int64            `json:"size"`
	Open   bool             `json:"open"`
	Labels map[string]int64 `json:"labels"`
	Parts  []part           `json:"parts"`
	Any    map[string]any   `json:"any"`
}

type part struct {
	Weight int64 `json:"weight"`
}

func testSpec() Spec {
	return Spec{Package: "metalaw.p", Others: []string{"metalaw.other"}, InputSchema: Schema(input{}), Entrypoints: []Entrypoint{
		{Name: "ok", Form: Boolean, Required: true}, {Name: "why", Form: Messages, Fields: []string{"field"}}, {Name: "points", Form: Number},
	}}
}

// policy is one file of package metalaw.p whose line 2 is the first line of body.
func policy(body string) map[string][]byte {
	return map[string][]byte{"p.rego": []byte("package metalaw.p\n" + body)}
}

func TestAMistakeInRegoV1IsNotTakenForRegoV0(t *testing.T) {
	for name, body := range map[string]string{
		"one rule of several lacks if": "ok if input.open\nother { true }\n",
		"an open bracket":              "ok if {\n",
		"old syntax with a mistake":    "ok { true\n",
		"no Rego at all":               "hello, world\n",
	} {
		_, found := parseFile("p.rego", policy(body)["p.rego"])
		if len(found) == 0 || strings.Contains(found[0].Message, "v0") {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for name, c := range map[string]struct{ body, says string }{
		"a syntax error":                  {"ok if {\n", "p.rego:3:1: error: unexpected eof token"},
		"the old syntax":                  {"ok { true }\n", "p.rego:2:1: error: this is Rego v0, and a bundle is written in Rego v1: `if` keyword is required before rule body (let opa fmt --v0-v1 --write p.rego rewrite it"},
		"a set in the old syntax":         {"ok = true\nwhy[m] {\n\tm := {\"code\": \"a\", \"message\": \"b\"}\n}\n", "p.rego:3:1: error: this is Rego v0"},
		"old syntax beside new":           {"import future.keywords.if\nok { true }\nother if { true }\n", "error: this is Rego v0"},
		"an unknown input field":          {"ok if input.nam == \"a\"\n", "p.rego:2:7: error: ok: input.nam does not exist (there are name, any, color, labels, open, parts, size) [rego-type]"},
		"an unknown field of an item":     {"ok if {\n\tsome p in input.parts\n\tp.wait > 1\n}\n", "p.rego:4:2: error: ok: "},
		"a field of a string":             {"ok if input.name.x\n", "input.name is a string and has no fields"},
		"a number where text belongs":     {"ok if startswith(input.size, \"a\")\n", "p.rego:2:7: error: ok: startswith: invalid argument(s) (have: (number, string); want: (search: string, base: string, result: boolean)) [rego-type]"},
		"an unused variable":              {"ok if {\n\tx := 1\n\tinput.open\n}\n", "p.rego:3:2: error: ok: assigned var x unused"},
		"an unused import":                {"import data.metalaw.lib\nok := true\n", "p.rego:2:1: error: import data.metalaw.lib unused"},
		"a variable out of nowhere":       {"ok if y\n", "p.rego:2:7: error: ok: var y is unsafe"},
		"recursion":                       {"ok if not other\nother if ok\n", "is recursive"},
		"a rule that nobody defines":      {"import data.metalaw.lib\nok if lib.missing\n", "p.rego:3:7: error: ok: no rule defines data.metalaw.lib.missing (a policy reads only its input and the rules of its bundle) [rego-unknown-data]"},
		"external data":                   {"ok if data.servers[input.name]\n", "p.rego:2:7: error: ok: no rule defines data.servers"},
		"a missing entry point":           {"why contains {\"code\": \"a\", \"message\": \"b\"}\n", "p.rego: error: ok: the package metalaw.p has no rule ok (add it: ok if { input... }) [rego-entrypoint]"},
		"a function as entry point":       {"ok(x) if x\n", "p.rego:2:1: error: ok: ok is a function, and metalaw asks for a value"},
		"a set where a value belongs":     {"ok contains \"a\"\n", "ok has another form than metalaw asks for"},
		"an object where a value belongs": {"ok.a := true\n", "ok is an object, and metalaw asks for something else"},
		"a text where true belongs":       {"ok := \"yes\"\n", "ok is not true or false"},
		"a text where a number belongs":   {"ok := true\npoints := \"1\"\n", "p.rego:3:1: error: points: points is not a number"},
		"a value where a set belongs":     {"ok := true\nwhy := \"x\"\n", "p.rego:3:1: error: why: why has another form than metalaw asks for (write it like why contains"},
		"a reason without message":        {"ok := true\nwhy contains {\"code\": \"a\"} if input.open\n", "why contains an object without message"},
		"a reason with an unknown key":    {"ok := true\nwhy contains {\"code\": \"a\", \"message\": \"b\", \"msg\": \"c\"}\n", `unknown key "msg"`},
		"a reason that is a text":         {"ok := true\nwhy contains \"no\"\n", "why contains something else than an object with code and message"},
	} {
		t.Run(name, func(t *testing.T) {
			module, found := Compile(testSpec(), policy(c.body))
			all := ""
			for _, d := range found {
				all += d.String() + "\n"
			}
			if module != nil || !strings.Contains(all, c.says) {
				t.Errorf("compiled: %v, found:\n%swant %s", module != nil, all, c.says)
			}
		})
	}
}

func TestMessagesThatMayBeWellFormedCompile(t *testing.T) {
	for name, body := range map[string]string{
		"a code from the input":                        `why contains {"code": input.name, "message": "b"}`,
		"a code that is one of several":                `why contains {"code": c, "message": "b"} if some c in ["a", "B_C"]`,
		"a code that is put together":                  `why contains {"code": sprintf("%s-x", [input.name]), "message": "b"}`,
		"a code that an object may give":               `why contains {"code": object.get(input.labels, "code", 1), "message": "b"}`,
		"a message of which the type is not known":     `why contains {"code": "a", "message": input.any.text}`,
		"a message that is a text or a number":         "n := input.name if input.open\nelse := 1\nwhy contains {\"code\": \"a\", \"message\": n}",
		"a code that is not the one compared with":     "why contains {\"code\": c, \"message\": \"b\"} if {\n\tc := input.name\n\tnot c == \"A B\"\n}",
		"a code that a rule holds under a condition":   "full := \"GPU_FULL\" if input.open\nelse := \"full\"\nwhy contains {\"code\": full, \"message\": \"b\"}",
		"a message of another rule":                    `why contains m if some m in more` + "\nmore contains {\"code\": \"B\", \"message\": 1} if input.open",
		"variables that are equal to each other":       "why contains {\"code\": c, \"message\": \"b\"} if {\n\tsome c in [input.name]\n\tsome d in [input.name]\n\tc == d\n\td == c\n}",
		"a message that other input makes a text":      "kind := input.size\nwhy contains {\"code\": \"a\", \"message\": n} if {\n\tn := kind with input.size as \"big\"\n}",
		"a code of 63 letters, digits and dashes":      `why contains {"code": "` + strings.Repeat("a-1", 21) + `", "message": "b"}`,
		"a field that the input has and may be a text": `why contains {"code": "a", "message": "b", "field": input.any.path}`,
	} {
		t.Run(name, func(t *testing.T) {
			if module, found := Compile(testSpec(), policy("ok := true\n"+body+"\n")); module == nil {
				t.Error(found)
			}
		})
	}
}

func TestForbiddenBuiltinsDoNotCompile(t *testing.T) {
	for call, hint := range map[string]string{
		`http.send({"method": "get", "url": "http://x"})`: "a policy reads nothing but its input",
		`net.lookup_ip_addr("x")`:                         "a policy reads nothing but its input",
		`opa.runtime().env`:                               "so that a decision can be replayed",
		`time.now_ns() > 1`:                               "the moment of the decision is in the input",
		`rand.intn("x", 2)`:                               "a decision must come out the same when it is replayed",
		`uuid.rfc4122("x")`:                               "a decision must come out the same when it is replayed",
		`io.jwt.decode("x")`:                              "policies decide on facts and handle no secrets",
		`trace("x")`:                                      "compare values in a test rule instead",
		`print("x")`:                                      "compare values in a test rule instead",
		`walk(input, ["x", 1])`:                           "only pure and cheap functions",
		`numbers.range(1, 1000000000)`:                    "can make a list of any length",
	} {
		t.Run(call, func(t *testing.T) {
			module, found := Compile(testSpec(), policy("ok if {\n\t"+call+"\n}\n"))
			if module != nil || len(found) == 0 {
				t.Fatal("it compiled")
			}
			d := found[0]
			if d.Code != CodeForbiddenBuiltin || d.Line != 3 || d.Column != 2 || d.Rule != "ok" || !strings.Contains(d.Hint, hint) {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestAllowedNamesExist(t *testing.T) {
	names := map[string]bool{}
	for _, b := range ofPolicies().Builtins {
		names[b.Name] = true
	}
	for _, name := range allowedNames() {
		if !names[name] {
			t.Errorf("%s is allowed and does not exist", name)
		}
	}
}

func TestCompileReportsTheProblemsOfAllFilesAtOnce(t *testing.T) {
	_, found := Compile(testSpec(), map[string][]byte{
		"b.rego": []byte("package metalaw.p\nok if input.x\n"), "a.rego": []byte("package metalaw.p\ntwo if input.y\nthree if input.z\n"),
	})
	var places []string
	for _, d := range found {
		places = append(places, strings.SplitN(d.String(), ": error", 2)[0])
	}
	if diff := cmp.Diff([]string{"a.rego:2:8", "a.rego:3:10", "b.rego:2:7"}, places); diff != "" {
		t.Error(diff)
	}
}

func TestCompileTakesWhatBelongsToThePackage(t *testing.T) {
	files := map[string][]byte{
		"p.rego":      []byte("package metalaw.p\nimport data.metalaw.lib.text\nok if text.short(input.name)\n"),
		"lib.rego":    []byte("package metalaw.lib.text\nshort(s) if count(s) < 3\n"),
		"other.rego":  []byte("package metalaw.other\nx if input.whatever\n"),
		"p_test.rego": []byte("package metalaw.p_test\ntest_it if not data.metalaw.p.ok with input as {\"name\": \"long\"}\n"),
		"README.md":   []byte("# not Rego"),
	}
	if module, found := Compile(testSpec(), files); module == nil || len(found) > 0 {
		t.Errorf("%v", found)
	}
	files["stray.rego"] = []byte("package metalaw.selektion\nallow := true\n")
	_, found := Compile(testSpec(), files)
	want := "stray.rego:1:1: error: nothing evaluates the package metalaw.selektion (the packages of a bundle are metalaw.other, metalaw.p) [rego-package]"
	if len(found) != 1 || found[0].String() != want {
		t.Errorf("%v", found)
	}
}

func TestARuleThatNothingAsksForIsAWarning(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"the misspelt name of a rule that may be left out": {"ok := true\ndefault pionts := 1\npionts := 2 if input.open\n",
			"p.rego:3:1: warning: pionts: nothing asks for the rule pionts (did you mean points? Else use it, or take it out; metalaw asks for ok, why, points) [rego-unused-rule]"},
		"a function that nobody calls": {"ok if short(input.name)\nshort(s) if count(s) < 3\nlong(s) if count(s) > 3\n",
			"p.rego:4:1: warning: long: nothing asks for the rule long (use it, or take it out; metalaw asks for ok, why, points) [rego-unused-rule]"},
		"rules that others ask for": {"ok if {\n\tsome n in names\n\tn == input.name\n}\nnames := {n | some n in most} | {table.a}\nmost := {\"a\", \"b\"}\ntable := {\"a\": \"c\"}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			module, found := Compile(testSpec(), policy(c.body))
			var got []string
			for _, d := range found {
				got = append(got, d.String())
			}
			if all := strings.Join(got, "\n"); module == nil || all != c.want {
				t.Errorf("got  %s\nwant %s", all, c.want)
			}
		})
	}
}

func TestRunTests(t *testing.T) {
	files := policy("ok if input.open\nok if {\n\tinput.size > 3\n\tinput.size < 9\n}\n")
	files["p_test.rego"] = []byte(`package metalaw.p_test
import data.metalaw.p
test_open if p.ok with input as {"open": true}
test_size if p.ok with input as {"size": 2}
todo_test_later if true
test_error if to_number(object.get({}, "a", "b")) == 1
test_case[c.note] if {
	some c in [{"note": "one", "size": 4}, {"note": "two", "size": 5}]
	p.ok with input as {"size": c.size}
}
`)
	report, found := RunTests(t.Context(), testSpec(), files)
	passed := map[string]bool{}
	for _, result := range report.Results {
		passed[result.Name] = result.Passed
	}
	if diff := cmp.Diff(map[string]bool{"metalaw.p_test.test_case": true, "metalaw.p_test.test_open": true,
		"metalaw.p_test.test_error": false, "metalaw.p_test.test_size": false, "metalaw.p_test.todo_test_later": false}, passed); diff != "" {
		t.Error(diff)
	}
	if all := report.Files["p.rego"]; all.Covered != all.All || all.All == 0 || len(report.UncoveredRules) > 0 {
		t.Errorf("%+v", report)
	}
	var said []string
	for _, d := range found {
		said = append(said, d.String())
	}
	wantSaid := []string{
		`p_test.rego:4:1: error: test_size: the test does not hold (one of its expressions is false or undefined; correct the rule or the test) [rego-test-failed]`,
		"p_test.rego:5:1: error: todo_test_later: the test is switched off by the prefix todo_ (make it hold or remove it) [rego-test-failed]",
		`p_test.rego:6:1: error: test_error: the test ended with an error: to_number: strconv.ParseFloat: parsing "b": invalid syntax (correct the test, or the rule that it calls) [rego-test-failed]`,
	}
	if diff := cmp.Diff(wantSaid, said); diff != "" {
		t.Error(diff)
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"ok := true", "ok if input.open\nwhy contains {\"code\": \"a\", \"message\": \"b\"}", "ok if {", "import data.x", "\xff"} {
		f.Add([]byte("package metalaw.p\n" + seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		module, found := Compile(testSpec(), map[string][]byte{"p.rego": text})
		if (module == nil) != (found.Err() != nil) {
			t.Errorf("compiled %v with %v", module != nil, found)
		}
		for _, d := range found {
			if d.Code == "" || d.Message == "" || d.File == "" {
				t.Errorf("incomplete %+v", d)
			}
		}
	})
}
