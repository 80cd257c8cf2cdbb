// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// ceiling is what compiling and evaluating a hostile module may allocate in all, garbage included.
const ceiling = 512 << 20

// chain is a body in which each variable is made of the one before: %[1]d is its number, and %[2]d that of the one before.
func chain(first string, n int, step string) string {
	text := "\ta0 := " + first + "\n"
	for i := range n {
		text += fmt.Sprintf("\ta%[1]d := "+step+"\n", i+1, i)
	}
	return text
}

const digits = "digits := [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n"

// hostile are modules each of which took all memory of the process, or a processor for longer than a user waits.
var hostile = map[string]struct{ body, says string }{
	"a shift":                      {"ok if bits.lsh(1, 400000000000) > 1\n", "bits.lsh is not available"},
	"a range":                      {"ok if count(numbers.range(1, 1000000000)) > 1\n", "numbers.range is not available"},
	"a replacement of itself":      {"ok if {\n" + chain(`"`+strings.Repeat("a", 64)+`"`, 4, `replace(a%[2]d, "a", a%[2]d)`) + "\ta4 != \"\"\n}\n", "replace: one call"},
	"a width":                      {`ok if sprintf("%900000000d", [1]) != ""` + "\n", "sprintf: one call"},
	"many widths":                  {`ok if sprintf("` + strings.Repeat("%[1]900000d", 300) + `", [1]) != ""` + "\n", "sprintf: one call"},
	"a width as an argument":       {`ok if sprintf("%*d", [100000000, 1]) != ""` + "\n", "sprintf: one call"},
	"a product of itself":          {"ok if {\n" + chain("999999999", 40, "a%[2]d * a%[2]d") + "\ta40 > 1\n}\n", "*: a number has more than 400 digits"},
	"an exponent":                  {`ok if to_number("1e100000") * 2 > 1` + "\n", "to_number: a number has more than 400 digits"},
	"a unit with an exponent":      {`ok if units.parse("1e999999") > 1` + "\n", "units.parse: a number has more than 400 digits"},
	"a text joined with itself":    {"ok if {\n" + chain(`"abcdefgh"`, 40, `concat("", [a%[2]d, a%[2]d, a%[2]d])`) + "\ta40 != \"\"\n}\n", "concat: one call"},
	"a template of itself":         {"ok if {\n" + chain(`"abcdefgh"`, 40, `$"{a%[2]d}{a%[2]d}{a%[2]d}"`) + "\ta40 != \"\"\n}\n", "the template string: one call"},
	"a list joined with itself":    {"ok if {\n" + chain("[1, 2, 3]", 40, "array.concat(a%[2]d, a%[2]d)") + "\tcount(a40) > 1\n}\n", "array.concat: one call"},
	"many middling texts":          {digits + `text := sprintf("%200000d", [1])` + "\nok if count([upper(concat(\"\", [text, t])) | some a in digits; some b in digits; t := sprintf(\"%d%d\", [a, b])]) > 1\n", "the calls of one evaluation"},
	"a slow pattern":               {`ok if regex.match("(a*)*(a*)*(a*)*(a*)*b", sprintf("%250000d", [1]))` + "\n", "regex.match: one call"},
	"a list of itself twice":       {"ok if {\n" + chain("input.name", 40, "[a%[2]d, a%[2]d]") + strings.ReplaceAll(chain("input.name", 40, "[a%[2]d, a%[2]d]"), "a", "b") + "\ta40 == b40\n}\n", sharedTooOften},
	"a rule of the next twice":     {"a0 := [a1, a1]\n" + strings.ReplaceAll(chain("1", 40, "[a%[2]d, a%[2]d]")[len("\ta0 := 1\n"):], "\ta", "b") + "ok if a0 == [1]\n", ""},
	"a function of itself":         {"f(x) := [x, x]\nok if count(" + strings.Repeat("f(", 20) + "1" + strings.Repeat(")", 20) + ") > 1\n", sharedTooOften},
	"lists that share lists":       {digits + sharedLists + "ok if a2 == b2\n", "a value has more than 32768 parts"},
	"sets of lists that share":     {digits + sharedLists + "ok if {a2} == {b2}\n", "a value has more than 32768 parts"},
	"lists that share, unlike":     {digits + sharedLists + "ok if a2 != b2\n", "a value has more than 32768 parts"},
	"lists that share, as text":    {digits + sharedLists + "ok if sprintf(\"%v\", [a2]) != \"\"\n", "a value has more than 32768 parts"},
	"a wide literal in a loop":     {digits + "ok if count([[a" + strings.Repeat(", 0", 9000) + "] | some a in digits; some b in digits; some c in digits; some d in digits]) > 1\n", "more than 200000 steps"},
	"operators without end":        {"ok if 1 < 1" + strings.Repeat(" + 1", 15000) + "\n", "nested more than 25 deep"},
	"brackets without end":         {"ok if " + strings.Repeat("{", 30000) + "\n", "brackets are nested"},
	"templates in templates":       {"ok if " + strings.Repeat(`$"{`, 20) + "1" + strings.Repeat(`}"`, 20) + " != \"\"\n", "nested more than"},
	"comprehensions in each other": {"ok if count(" + strings.Repeat("[", 12) + "1" + strings.Repeat(" | true]", 12) + ") > 1\n", "nested more than 5 deep"},
	"names of nothing":             {strings.Repeat("ok if { nothing }\n", 499), ""},
	"a number of many digits":      {"ok if 1" + strings.Repeat("0", 600) + " * 2 > 1\n", "a number has more than 400 digits"},
	"rules without end":            {strings.Repeat("a := 1\n", 9000) + "ok := true\n", "rules and may have 500"},
}

const sharedLists = "thousand := [1 | some a in digits; some b in digits; some c in digits]\n" +
	"a1 := [thousand | some a in thousand]\na2 := [a1 | some a in thousand]\nb1 := [thousand | some a in thousand]\nb2 := [b1 | some a in thousand]\n"

// attempt compiles a module and evaluates it, and returns what is said of it, and how much was allocated.
func attempt(t testing.TB, body string, steps int64) (says string, allocated uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	module, found := Compile(testSpec(), policy(body))
	if module == nil {
		says = found.Err().Error()
	} else {
		ctx, cancel := Bounded(t.Context(), steps)
		defer cancel()
		evaluation, err := module.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer evaluation.Close()
		if _, err := evaluation.Eval(Value(plainInput{Name: "n", Size: 3, Parts: []part{{3}}})); err != nil {
			says = err.Error()
			if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
				says += "\n" + fmt.Sprint(ctx.Err())
			}
		}
	}
	runtime.ReadMemStats(&after)
	return says, after.TotalAlloc - before.TotalAlloc
}

func TestAHostileModuleIsRefusedBeforeItTakesMuch(t *testing.T) {
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			says, allocated := attempt(t, c.body, 200_000)
			if says == "" || !strings.Contains(says, c.says) {
				t.Errorf("it says %.300q, want %q", says, c.says)
			}
			if allocated > ceiling/8 {
				t.Errorf("%d MiB were allocated", allocated>>20)
			}
		})
	}
}

func TestABoundThatIsHitIsAnErrorAndNotUndefined(t *testing.T) {
	for name, body := range map[string]string{
		"under not":            `ok if not sprintf("%900000d", [1]) == ""`,
		"in a comprehension":   `ok if count([x | x := sprintf("%900000d", [1])]) == 0`,
		"in every":             `ok if every x in [1] { sprintf("%900000d", [x]) != "" }`,
		"in a function":        "f(x) := sprintf(\"%900000d\", [x])\nok if not f(1)",
		"with an else":         "ok if sprintf(\"%900000d\", [1]) == \"\"\nelse := true",
		"with a default":       "default ok := true\nok := false if sprintf(\"%900000d\", [1]) != \"\"",
		"in another rule":      "a if sprintf(\"%900000d\", [1]) != \"\"\nok if not a",
		"of one reject of two": "ok := true\nwhy contains {\"code\": \"a\", \"message\": sprintf(\"%900000d\", [1])}\nwhy contains {\"code\": \"b\", \"message\": \"c\"}",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := evaluate(t.Context(), t, body+"\n", plainInput{})
			bound, ok := errors.AsType[*BoundError](err)
			if got != nil || !ok || bound.Function != "sprintf" {
				t.Fatalf("%v, %v", got, err)
			}
			if place, ok := errors.AsType[*EvalError](err); !ok || place.File != "p.rego" || place.Line == 0 || place.Column == 0 || place.Rule == "" {
				t.Errorf("no place: %+v", place)
			}
		})
	}
}

// What a function would come to is said before it works, so that it must never make more than that.
func TestAFunctionMakesNoMoreThanWasPredicted(t *testing.T) {
	for call, want := range map[string]int{
		`concat(", ", ["a", "bc"])`:                 6,
		`concat(", ", {"a", "bc"})`:                 6,
		`replace("aXbXc", "X", "long")`:             11,
		`replace("abc", "", "--")`:                  11,
		`sprintf("%d of %s", [12, "many"])`:         10,
		`sprintf("%v", [{"a": [1, "\n", "ä"]}])`:    17,
		`sprintf("%q %x", ["\n\n\n", "abc"])`:       15,
		`sprintf("%8d|%-8s|%.3f", [1, "a", 1e300])`: 323,
		`sprintf("%[1]s%[1]s%[1]s", ["abc"])`:       9,
		`sprintf("%d", [])`:                         9,
		`sprintf("%d", ["abcdef"])`:                 17,
		`$"{1} and {"two"}"`:                        9,
		`lower("ABC")`:                              3,
		`upper("straße")`:                           7,
	} {
		t.Run(call, func(t *testing.T) {
			made := -1
			module, found := Compile(testSpec(), policy("points := count("+call+")\nok if points >= 0\n"))
			if module == nil {
				t.Fatal(found.Err())
			}
			evaluation, err := module.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer evaluation.Close()
			got, err := evaluation.Eval(Value(plainInput{}))
			if err != nil {
				t.Fatal(err)
			}
			if n, ok := got[2].(ast.Number).Int(); ok {
				made = n
			}
			if charged := evaluation.made.Load(); int64(made) > charged || charged > int64(made)*20+2000 {
				t.Errorf("%d letters were made, and %d bytes charged", made, charged)
			}
			if made < want-1 {
				t.Errorf("it made %d letters, not about %d: this test shows nothing", made, want)
			}
		})
	}
}

func TestEveryFunctionThatGrowsIsWrapped(t *testing.T) {
	for _, b := range allowed {
		known := ast.BuiltinMap[b.name]
		if topdown.GetBuiltin(b.name) == nil {
			continue
		}
		if charged := b.growth == linear || b.growth == growing; charged && known.CanSkipBctx {
			t.Errorf("%s is charged, and OPA calls it without a context", b.name)
		}
		if (b.growth == growing) != (b.predict != nil) {
			t.Errorf("%s: a growing function, and no other, predicts what it makes", b.name)
		}
	}
}

func FuzzHostileRego(f *testing.F) {
	for _, c := range hostile {
		f.Add(c.body)
	}
	f.Add("ok if input.open\n")
	f.Fuzz(func(t *testing.T, body string) {
		if _, allocated := attempt(t, body, 20_000); allocated > ceiling {
			t.Errorf("%d MiB were allocated", allocated>>20)
		}
	})
}
