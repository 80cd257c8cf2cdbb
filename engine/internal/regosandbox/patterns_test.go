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
		"a name with two texts":              {"pattern := \"(\" if input.open\npattern := \"a\" if not input.open\nok if regex.match(pattern, input.name)\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, found := Compile(testSpec(), policy(c.body))
			if found.HasErrors() != (c.says != "") || (c.says != "" && found[0].String() != c.says) {
				t.Errorf("%v\nwant %s", found, c.says)
			}
		})
	}
}
