// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"fmt"
	"strings"
	"testing"
)

func TestValuesThatHoldEachOtherALittleCompile(t *testing.T) {
	backwards := ""
	for i := range 14 {
		backwards += fmt.Sprintf("a%d := [input.name, a%d]\n", i, i+1)
	}
	for name, body := range map[string]string{
		"a function of what it returned, twice":         "pair(a, b) := [a, b]\nok if pair(pair(input.name, \"x\"), pair(input.name, \"y\")) != []\n",
		"a finding within a finding":                    "finding(code, says) := {\"code\": code, \"says\": says}\nok if finding(\"a\", finding(\"b\", \"c\")) != {}\n",
		"a wrapping within a wrapping":                  "wrapped(x, w) := {\"value\": x, \"weights\": [w, 1]}\nok if wrapped(wrapped(input.name, input.size), input.size) != {}\n",
		"a chain of values that each hold another once": "ok if {\n" + chain("input.name", 14, "[input.name, a%[2]d]") + "\tcount(a14) > 1\n}\n",
		"a chain of rules, each before the next":        backwards + "a14 := input.name\nok if count(a0) > 1\n",
		"a chain of values beside literals":             "ok if {\n" + chain("input.name", 14, `{"at": a%[2]d, "of": ["x", {"y": [1, 2]}], ["k"]: {3}}`) + "\tcount(a14) > 1\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if says, _ := attempt(t, body, 20_000); says != "" {
				t.Error(says)
			}
		})
	}
}

// entangled are modules that are hard to count.
func entangled() map[string]struct{ body, says string } {
	backwards, many, calls, circle := "", "", "", ""
	for i := range 380 {
		backwards += fmt.Sprintf("\ta%d = [input.name, a%d]\n", i, i+1)
		many += fmt.Sprintf("a%d := [a%d, %s1]\n", i, i+1, strings.Repeat("a380, ", 15))
		calls += "\tx == x\n"
		circle += fmt.Sprintf("a%d := [a%d]\n", i, (i+1)%380)
	}
	return map[string]struct{ body, says string }{
		"a chain backwards in one rule":  {"ok if {\n" + backwards + "\ta380 = 1\n}\n", "ok: values are put together"},
		"rules of each other and others": {many + "a380 := 1\nok if a0\n", ": values are put together"},
		"calls of many shapes": {"ok if {\n" + chain("input.name", 190, "[input.name, a%[2]d]") +
			strings.ReplaceAll(chain("f(a0)", 189, "f(a%[1]d)"), "\ta", "\tb") + "}\nf(x) := 1 if {\n" + calls + "}\n" +
			"also if {\n" + chain("input.size", 190, "[1, [a%[2]d, input.name], input.name]") +
			strings.ReplaceAll(chain("f(a0)", 189, "f(a%[1]d)"), "\ta", "\tb") + "}\n", "over so many rules and calls"},
		"a circle":              {circle + "ok if a0\n", ""},
		"a function of itself":  {"f(x) := f([x, x])\nok if f(1)\n", ""},
		"doubling by calls":     {"f(x) := [x, x]\nok if {\n" + chain("1", 40, "f(a%[2]d)") + "\ta40 != 1\n}\n", "ok: values are put together"},
		"doubling by functions": {"f0(x) := [x, x]\nf1(x) := f0(f0(f0(f0(x))))\nok if f1(f1(f1(f1(1)))) != 1\n", "ok: values are put together"},
		"doubling within one":   {"f(x) := a13 if {\n" + chain("x", 13, "[a%[2]d, a%[2]d]") + "}\nok if f(1) != 1\n", "f: values are put together"},
		"doubling what is wrapped": {"ok if {\n" + chain("input.name", 12, "[a%[2]d, a%[2]d]") + "\tb := " + strings.Repeat("[", 20) + "a12" + strings.Repeat("]", 20) +
			"\n\tc := b" + strings.Repeat("[0]", 20) + "\n\td := [c, c]\n\td != 1\n}\n", "ok: values are put together"},
	}
}

func TestWhatIsEntangledIsCountedOrGivenUp(t *testing.T) {
	for name, c := range entangled() {
		t.Run(name, func(t *testing.T) {
			modules, found := parse(testSpec(), policy(c.body), false)
			if len(modules) == 0 {
				t.Fatal(found.Err())
			}
			s := &sharing{sizes: map[string]levels{}, most: maxShared}
			s.run(modules)
			if s.terms > maxVisited+1 {
				t.Errorf("%d terms were gone through", s.terms)
			}
			if says := fmt.Sprint(found.Err()); !strings.Contains(says, c.says) || c.says == "" && len(found) > 0 {
				t.Errorf("it says %q, want %q", says, c.says)
			}
		})
	}
}

func BenchmarkSharing(b *testing.B) {
	for name, c := range entangled() {
		b.Run(name, func(b *testing.B) {
			modules, _ := parse(testSpec(), policy(c.body), false)
			for b.Loop() {
				checkSharing(modules)
			}
		})
	}
}
