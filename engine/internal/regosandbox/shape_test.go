// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"fmt"
	"strings"
	"testing"
)

// deep are two chains of rules, each of which holds the one before once.
var deep = func() string {
	text := "a0 := input.name\nb0 := input.color\n"
	for i := range 40 {
		text += fmt.Sprintf("a%[1]d := [a%[2]d]\nb%[1]d := [b%[2]d]\n", i+1, i)
	}
	return text
}()

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
		"two large tables that are compared": "a := [" + strings.Repeat("[1, 2, 3], ", 60) + "input.size]\nb := [" +
			strings.Repeat("[1, 2, 3], ", 60) + "3]\nok if a == b\n",
		"a chain of values beside literals": "ok if {\n" + chain("input.name", 14, `{"at": a%[2]d, "of": ["x", {"y": [1, 2]}], ["k"]: {3}}`) + "\tcount(a14) > 1\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if says, _ := attempt(t, body, 20_000); says != "" {
				t.Error(says)
			}
		})
	}
}

// entangled are modules that took the compiler, or an evaluation, forever.
func entangled() map[string]struct{ body, says string } {
	circle, unions := "", ""
	for i := range 380 {
		circle += fmt.Sprintf("a%d := [a%d]\n", i, (i+1)%380)
	}
	for _, name := range []string{"a", "b"} {
		unions += name + "0 := input.name\n"
		for i := range 12 {
			unions += fmt.Sprintf("%[1]s%[2]d := [%[1]s%[3]d, 1] if input.open\n%[1]s%[2]d := [%[1]s%[3]d, \"x\"] if not input.open\n", name, i+1, i)
		}
	}
	return map[string]struct{ body, says string }{
		"a circle":              {circle + "ok if a0\n", "recursive"},
		"a function of itself":  {"f(x) := f([x, x])\nok if f(1)\n", "recursive"},
		"doubling by calls":     {"f(x) := [x, x]\nok if {\n" + chain("1", 40, "f(a%[2]d)") + "\ta40 != 1\n}\n", sharedTooOften},
		"doubling by functions": {"f0(x) := [x, x]\nf1(x) := f0(f0(f0(f0(x))))\nok if f1(f1(f1(f1(1)))) != 1\n", sharedTooOften},
		"doubling within one":   {"f(x) := a17 if {\n" + chain("x", 17, "[a%[2]d, a%[2]d]") + "}\nok if f(1) != 1\n", sharedTooOften},
		"doubling what is wrapped": {"ok if {\n" + chain("input.name", 16, "[a%[2]d, a%[2]d]") + "\tb := " + strings.Repeat("[", 20) + "a16" +
			strings.Repeat("]", 20) + "\n\tc := b" + strings.Repeat("[0]", 20) + "\n\td := [c, c]\n\td != 1\n}\n", sharedTooOften},
		"two deep lists of one part":     {deep + "ok if a40 == b40\n", sharedTooOften},
		"two deep lists within every":    {deep + "ok if every x in [a40] { x == b40 }\n", sharedTooOften},
		"two deep lists behind in":       {deep + "ok if a40 in [b40]\n", sharedTooOften},
		"two deep lists by one argument": {deep + "f(x) if x == a40\nok if f(b40)\n", sharedTooOften},
		"two deep lists for the input":   {deep + "ok if input.any == a40 with input.any as b40\n", sharedTooOften},
		"two deep lists in loops":        {deep + "ok if count([1 | a18 == b18]) == 1\n" + strings.Repeat("ok if [[[[1 | a18 == b18] | true] | true] | true]\n", 400), sharedTooOften},
		"lists of one or another":        {unions + "ok if a12 == b12\n", sharedTooOften},
	}
}

func TestAnEntangledModuleEndsInAnErrorThatTakesLittle(t *testing.T) {
	for name, c := range entangled() {
		t.Run(name, func(t *testing.T) {
			says, allocated := attempt(t, c.body, 200_000)
			if says == "" || !strings.Contains(says, c.says) {
				t.Errorf("it says %.300q, want %q", says, c.says)
			}
			if allocated > ceiling/4 {
				t.Errorf("%d MiB were allocated", allocated>>20)
			}
		})
	}
}
