// SPDX-License-Identifier: Apache-2.0

package regosandbox

import "testing"

func TestAPatternThatCannotBeReadIsFoundWhereItStands(t *testing.T) {
	const regex = ` (correct it, or write a backslash before a bracket, a star or the like that stands for itself: regex.match("^a\\(b", ...)) [rego-pattern]`
	const glob = ` (correct it, or write a backslash before a bracket, a star or the like that stands for itself: glob.match("a\\[*", ...)) [rego-pattern]`
	for name, c := range map[string]struct{ body, says string }{
		"in a call": {"ok if regex.match(\"(\", input.name)\n",
			"p.rego:2:19: error: ok: regex.match cannot read the pattern \"(\": missing closing ): `(`" + regex},
		"between backquotes": {"ok if regex.match(`a**`, input.name)\n",
			"p.rego:2:19: error: ok: regex.match cannot read the pattern \"a**\": invalid nested repetition operator: `**`" + regex},
		"in a condition that is negated": {"ok if {\n\tnot regex.match(\"[\", input.name)\n}\n",
			"p.rego:3:18: error: ok: regex.match cannot read the pattern \"[\": missing closing ]: `[`" + regex},
		"within a comprehension": {"ok if count([p | some p in input.parts; regex.match(\"(\", input.name)]) > 0\n",
			"p.rego:2:53: error: ok: regex.match cannot read the pattern \"(\": missing closing ): `(`" + regex},
		"behind else": {"ok if input.open\nelse if regex.match(\"(\", input.name)\n",
			"p.rego:3:1: error: ok: regex.match cannot read the pattern \"(\": missing closing ): `(`" + regex},
		"in the head": {"ok := regex.match(\"(\", input.name)\n",
			"p.rego:2:19: error: ok: regex.match cannot read the pattern \"(\": missing closing ): `(`" + regex},
		"under a name of the rule": {"ok if {\n\tp := \"(\"\n\tregex.match(p, input.name)\n}\n",
			"p.rego:3:7: error: ok: regex.match cannot read the pattern \"(\": missing closing ): `(`" + regex},
		"under the name of another rule": {"pattern := \"(\"\nok if regex.match(pattern, input.name)\n",
			"p.rego:2:12: error: pattern: regex.match cannot read the pattern \"(\": missing closing ): `(`" + regex},
		"a glob": {"ok if glob.match(\"a[\", [\".\"], input.name)\n",
			"p.rego:2:18: error: ok: glob.match cannot read the pattern \"a[\": glob: syntax error at 2: unexpected end of input" + glob},
		"one that can be read":               {"ok if {\n\tregex.match(\"^a\\\\(\", input.name)\n\tglob.match(\"a*\", [], input.name)\n}\n", ""},
		"one that the input makes":           {"ok if regex.match(input.name, \"(\")\n", ""},
		"one of which it is asked if it can": {"ok if not regex.is_valid(\"(\")\n", ""},
		"under a name, within every": {"ok if {\n\tevery p in input.parts {\n\t\tq := \"(\"\n\t\tregex.match(q, p)\n\t}\n}\n",
			"p.rego:4:8: error: ok: regex.match cannot read the pattern \"(\": missing closing ): `(`" + regex},
		"under a name of the rule, in what it is counted by": {"ok if {\n\tp := \"(\"\n\tcount([q | some q in input.labels; regex.match(p, q)]) > 0\n}\n",
			"p.rego:3:7: error: ok: regex.match cannot read the pattern \"(\": missing closing ): `(`" + regex},
		"a name that the branch before compares": {"matches(p) if { p == \"*\" } else if { regex.match(p, \"x\") }\nok if matches(input.name)\n", ""},
		"a name that is compared in a condition that is negated": {
			"ok if {\n\tevery p in input.parts {\n\t\tnot p == \"*\"\n\t\tregex.match(p, \"x\")\n\t}\n}\n", ""},
		"a name that is compared with another rule": {"pattern := \"(\"\nok if {\n\tsome p in input.labels\n\tnot p == pattern\n\tregex.match(p, \"x\")\n}\n", ""},
		"a name of its own, beside another like it": {"ok if {\n\tp := \"(\"\n\tp == input.name\n\tcount([p | some p in input.labels; regex.match(p, \"x\")]) > 0\n}\n", ""},
		"a rule that never holds":                   {"pattern := \"(\" if false\nok if regex.match(pattern, input.name)\n", ""},
		"a rule under a condition":                  {"pattern := \"(\" if input.open\nok if regex.match(pattern, input.name)\n", ""},
		"a rule that has a default beside it":       {"default pattern := \"a\"\npattern := \"(\" if input.open\nok if regex.match(pattern, input.name)\n", ""},
		"a rule in whose place another stands":      {"pattern := \"(\"\nfits if regex.match(pattern, input.name)\nok if fits with data.metalaw.p.pattern as \"a\"\n", ""},
		"a function in whose place another stands":  {"is(a, b) if a == b\nok if regex.match(\"(\", input.name) with regex.match as is\n", ""},
		"a name of the bundle like the function's":  {"regex.match(a, b) if a == b\nok if regex.match(\"(\", input.name)\n", ""},
		"a name with two texts":                     {"pattern := \"(\" if input.open\npattern := \"a\" if not input.open\nok if regex.match(pattern, input.name)\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, found := Compile(testSpec(), policy(c.body))
			if found.HasErrors() != (c.says != "") || (c.says != "" && found[0].String() != c.says) {
				t.Errorf("%v\nwant %s", found, c.says)
			}
		})
	}
}
