// SPDX-License-Identifier: Apache-2.0

package objectonly

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// sort is a kind of expressions of the grammar.
type sort string

const (
	texty   sort = "text"
	listy   sort = "list"
	numbery sort = "number"
	truthy  sort = "truth"
	objecty sort = "object"
	// field is a string that is read as it is, and plain a comparison of such.
	field     sort = "field"
	plain     sort = "plain"
	statement sort = "statement"
)

// grammar are the forms of each sort. A sort in angle brackets stands for an expression of it; <list!> is one that can be gone over.
// The forms that come first are those that an expression ends in when it is deep enough.
var grammar = map[sort][]string{
	texty: {
		`"a"`, `"x"`, `"é"`, `""`, `input.object.spec.image`, `input.object.metadata.labels.team`, `input.oldObject.spec.image`, `input.user.name`,
		`input.operation`, `input.object.metadata.namespace`, `input.object.metadata.labels["a/b"]`, `input.object.spec.serverSelector.matchLabels.team`,
		`input.kind`, `large`,
		`object.get(input.object, ["metadata", "labels", "team"], <text>)`, `object.get(object.get(input.object.metadata, "labels", {}), <text>, "none")`,
		`object.get(words, <text>, <text>)`, `input.object.metadata.labels[<text>]`, `words[<text>]`, `banned[<text>]`, `names[<number>]`,
		`names[<text>]`, `substring(<text>, 0, 1)`, `trim_suffix(<text>, "é")`, `trim_prefix(<text>, "é")`, `trim_space(<text>)`,
		`sprintf("é%s-%v", [<text>, <text>])`, `sprintf("%d", [<number>])`, `concat("é", <list>)`, `join(<text>)`, `teams[<text>]`,
	},
	listy: {
		`names`, `banned`, `input.user.groups`, `input.object.metadata.finalizers`, `{"a", "é"}`, `[]`,
		`["a", <text>]`, `table[<text>]`, `sets[<text>]`, `split(<text>, "é")`, `object.get(table, <text>, [])`, `object.get(table, <text>, {"x"})`,
	},
	numbery: {`0`, `1`, `2`, `input.object.metadata.generation`, `count(<text>)`, `count(<list>)`, `count(<object>)`},
	objecty: {
		`input.object.metadata.labels`, `input.object.spec`, `input.object.metadata`, `words`, `input.oldObject`, `input.object`,
		`object.get(input.object.metadata, "labels", {})`,
	},
	truthy: {
		`maybe`, `free`, `is_near(<text>)`,
		`<text> == <text>`, `<text> != <text>`, `<text> < <text>`, `<text> <= <number>`, `<number> > <number>`, `<number> == <number>`,
		`<list> == <list>`, `<object> == <object>`, `<text> == <number>`, `(<truth>) == (<truth>)`, `(<truth>) != (<truth>)`, `false == (<truth>)`,
		`startswith(<text>, <text>)`, `contains(<text>, <text>)`, `endswith(<text>, "é")`, `regex.match("é|a$", <text>)`, `<text> in <list>`,
		`<text> in <object>`, `teams[<text>]`, `is_near(<text>)`, `count(<list>) == <number>`,
	},
	field: {
		`input.object.spec.image`, `input.object.metadata.labels.team`, `input.user.name`, `input.operation`, `input.object.metadata.namespace`,
		`object.get(input.object, ["spec", "image"], "")`,
	},
	plain: {
		`<field> == "a"`, `<field> == <field>`, `<field> != <field>`, `<field> in banned`, `startswith(<field>, "é")`, `input.operation == "CREATE"`,
		`input.operation != "CREATE"`, `input.user.name == "jane"`, `<field> < "b"`, `banned[<field>] == <field>`,
	},
	statement: {
		`<truth>`, `not <truth>`, `<text>`, `not <text>`, `banned[<field>]`, `teams[<field>]`, `sets[<field>][<field>]`, `sets[<text>][<text>]`,
		`not teams[<field>]`, `not teams[<text>]`, `not banned[<field>]`, `not banned[<text>]`, `not sets[<field>][<field>]`, `banned[names[<number>]]`,
		`banned[<field>] == "a"`, `banned[<field>] != "none"`, `<name> := banned[<field>]`, `words[<field>] != "none"`,
		`not words[<field>] == <field>`, `not <text> in <list>`, `(<plain>) == (<plain>)`, `(<plain>) != (<plain>)`, `not (<plain>) == (<plain>)`,
		`<name> := (<plain>)`, `<name> := (<truth>)`, `<name> := <field>`, `<name> := <text>`, `<name> := <list>`, `<name> := <number>`,
		`some <name> in <list>`, `not is_near(<text>)`, `<field>`, `<field> != "none"`,
		`<name> = <text>`, `<text> = <text>`, `startswith(<text>, <text>, false)`, `some t in input.object.spec.tolerations`,
	},
}

// constants are those that the rules use.
const constants = `
teams := {"a": true, "x": false}

banned := {"a", "x"}

names := ["a", "é"]

words := {"a": "x", "é": "k"}

table := {"a": ["x", "a"], "b": []}

sets := {"a": {"x", "a"}, "x": {"é"}}
`

// used are statements with a name of a sort, which Rego asks for.
var used = map[sort][]string{
	texty:   {`%s != "none"`, `%s == <text>`, `not %s == <text>`, `not banned[%s]`, `not %s in <list>`},
	listy:   {`count(%s) >= 0`, `not <text> in %s`, `<text> in %s`, `%s == <list>`},
	numbery: {`%s >= 0`, `not %s == <number>`},
	truthy:  {`%s == (<plain>)`, `(<plain>) != %s`, `not %s == (<plain>)`, `%s == (<truth>)`, `not %s == (<truth>)`, `%s != "none"`, `not %s`, `%s`},
}

// drawRules draws the rules of a bundle with one denial.
func drawRules(r *rapid.T) string {
	g := &generator{r: r}
	said := ""
	body := g.body(3, func() {
		if rapid.IntRange(0, 3).Draw(r, "says something") == 0 {
			said = g.draw(texty, 1)
		}
	})
	deny := fmt.Sprintf("\ndeny contains {\"code\": \"c\", \"message\": sprintf(\"é: %%s\", [%s])} if {\n%s}\n", said, body)
	if said == "" {
		deny = fmt.Sprintf("\ndeny contains {\"code\": \"c\", \"message\": \"m\"} if {\n%s}\n", body)
	}
	g.helpers = true
	rules := deny
	for _, helper := range []struct {
		name string
		draw func() string
	}{
		{"maybe", func() string { return "maybe if {\n" + g.body(2, nil) + "}\n" }},
		{"free", func() string {
			return "default free := false\n\nfree if {\n" + g.body(2, nil) + "}\n\nfree if {\n" + g.body(1, nil) + "}\n"
		}},
		{"large", func() string {
			return "large := " + g.draw(texty, 1) + " if {\n" + g.body(1, nil) + "} else := " + g.draw(texty, 1) + " if {\n" + g.body(1, nil) + "}\n"
		}},
		{"is_near", func() string {
			return "is_near(\"x\") if {\n" + g.body(1, nil) + "}\n\nis_near(it) if {\n" + g.body(2, nil, named{texty, "it"}) + "}\n"
		}},
		{"join", func() string { return "join(it) := it if {\n" + g.body(2, nil, named{texty, "it"}) + "}\n" }},
	} {
		if strings.Contains(deny, helper.name) {
			rules += "\n" + helper.draw()
		}
	}
	return constants + rules
}

type named struct {
	sort sort
	name string
}

type generator struct {
	r     *rapid.T
	names []named
	count int
	// helpers are being drawn: they do not use each other.
	helpers bool
}

// body draws a few statements, a line each, and makes use of all names.
func (g *generator) body(most int, end func(), names ...named) string {
	g.names = names
	var b strings.Builder
	for range rapid.IntRange(1, most).Draw(g.r, "statements") {
		b.WriteString("\t" + g.draw(statement, 2) + "\n")
	}
	if end != nil {
		end()
	}
	for _, n := range g.names {
		if strings.Count(b.String(), n.name) < 2 {
			form := fmt.Sprintf(rapid.SampledFrom(used[n.sort]).Draw(g.r, "use"), n.name)
			b.WriteString("\t" + g.fill(form, 1) + "\n")
		}
	}
	g.names = nil
	return b.String()
}

// draw draws an expression of a sort.
func (g *generator) draw(of sort, depth int) string {
	var forms []string
	for _, n := range g.names {
		if n.sort == of {
			forms = append(forms, n.name, n.name)
		}
	}
	for _, form := range grammar[of] {
		isHelper := slices.Contains([]string{"maybe", "free", "large", "is_near(<text>)", "join(<text>)", "not is_near(<text>)"}, form)
		if (depth > 0 || !strings.Contains(form, "<text>") && !strings.Contains(form, "<list>") && !strings.Contains(form, "(<truth")) && (!g.helpers || !isHelper) {
			forms = append(forms, form)
		}
	}
	form := rapid.SampledFrom(forms).Draw(g.r, string(of))
	isNew := strings.HasPrefix(form, "<name>") || strings.HasPrefix(form, "some <name>")
	if !isNew {
		return g.fill(form, depth)
	}
	_, given, _ := strings.Cut(form, "= ")
	n := named{sort(strings.Trim(given, "<>()")), fmt.Sprintf("v%d", g.count)}
	switch n.sort {
	case plain:
		n.sort = truthy
	case truthy, listy, numbery:
	default: // all lists and sets are of strings
		n.sort = texty
	}
	g.count++
	written := g.fill(strings.Replace(form, "<name>", n.name, 1), depth)
	g.names = append(g.names, n)
	return written
}

// fill writes expressions for the sorts of a form.
func (g *generator) fill(form string, depth int) string {
	var b strings.Builder
	for {
		before, rest, _ := strings.Cut(form, "<")
		b.WriteString(before)
		if before == form {
			return b.String()
		}
		inner, after, _ := strings.Cut(rest, ">")
		if grammar[sort(inner)] == nil { // an operator
			b.WriteString("<")
			form = rest
			continue
		}
		b.WriteString(g.draw(sort(inner), depth-1))
		form = after
	}
}
