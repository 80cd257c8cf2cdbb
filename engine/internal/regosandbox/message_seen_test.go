// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatATestSeesOfAMessageHasItsForm(t *testing.T) {
	const example = `(write it like why contains {"code": "word", "message": "sentence"} if { input... }, or correct the test where only its own data is like that) [rego-entrypoint]`
	for name, c := range map[string]struct {
		body, test string
		want       []string
	}{
		"a code that is put together and well formed": {
			`why contains {"code": concat("-", ["no", input.color]), "message": input.name} if input.open`,
			`count(p.why) == 1 with input as {"color": "red", "name": "b", "open": true}`, nil},
		"a code that is put together of a text with capitals": {
			`why contains {"code": concat("_", ["no", input.name]), "message": "b"} if input.open`,
			`count(p.why) == 1 with input as {"name": "Red", "open": true}`,
			[]string{`p.rego:3:1: warning: why: why contains the code "no_Red"; a code is 1 to 63 lower-case letters, digits and dashes ` +
				`(seen in metalaw.p_test.test_it) ` + example}},
		"a message that is a number for one input": {
			"why contains {\"code\": \"a\", \"message\": input.any.x} if input.open",
			`count(p.why) == 1 with input as {"open": true, "any": {"x": 1}}`,
			[]string{`p.rego:3:1: warning: why: why contains an object whose message is not a string: 1 (seen in metalaw.p_test.test_it) ` + example}},
		"an object that another rule makes": {
			"why contains m if some m in more\nmore contains object.union({\"code\": \"a\"}, {\"text\": input.name}) if input.open",
			`some m in p.why with input as {"open": true, "name": "x"}` + "\n\tm.code == \"a\"",
			[]string{`p.rego:3:1: warning: why: why contains an object with the unknown key "text" (seen in metalaw.p_test.test_it) ` + example}},
		"a rule that is seen twice is told of once": {
			`why contains {"code": input.name, "message": "b"} if input.open`,
			"count(p.why) == 1 with input as {\"name\": \"A\", \"open\": true}\n\tcount(p.why) == 1 with input as {\"name\": \"B\", \"open\": true}",
			[]string{`p.rego:3:1: warning: why: why contains the code "A"; a code is 1 to 63 lower-case letters, digits and dashes ` +
				`(seen in metalaw.p_test.test_it) ` + example}},
		"an input with which the rule does not hold": {
			`why contains {"code": input.name, "message": "b"} if input.open`,
			`count(p.why) == 0 with input as {"name": "A", "open": false}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			files := policy("ok := true\n" + c.body + "\n")
			files["p_test.rego"] = []byte("package metalaw.p_test\n\nimport data.metalaw.p\n\ntest_it if {\n\t" + c.test + "\n}\n")
			if module, found := Compile(testSpec(), files); module == nil {
				t.Fatal(found)
			}
			_, found := RunTests(t.Context(), testSpec(), files)
			var said []string
			for _, d := range found {
				said = append(said, d.String())
			}
			if diff := cmp.Diff(c.want, said); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
