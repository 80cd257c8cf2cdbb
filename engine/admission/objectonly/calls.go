// SPDX-License-Identifier: Apache-2.0

package objectonly

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Functions lists the built-in functions of Rego that are translated, sorted.
func Functions() []string {
	return slices.Sorted(maps.Keys(functions))
}

// functions write a call in CEL, given its arguments. Those that mean something else in CEL, such as lower, are not there.
var functions = map[string]func(a []operand) operand{
	"equal": func(a []operand) operand { return compared(a, "==") }, "eq": func(a []operand) operand { return compared(a, "==") },
	"neq": func(a []operand) operand { return compared(a, "!=") },
	"lt":  func(a []operand) operand { return ordered(a, "<") }, "lte": func(a []operand) operand { return ordered(a, "<=") },
	"gt": func(a []operand) operand { return ordered(a, ">") }, "gte": func(a []operand) operand { return ordered(a, ">=") },
	"contains":    func(a []operand) operand { return method(a, "contains") },
	"startswith":  func(a []operand) operand { return method(a, "startsWith") },
	"endswith":    func(a []operand) operand { return method(a, "endsWith") },
	"trim_space":  func(a []operand) operand { return method(a, "trim") },
	"trim_suffix": func(a []operand) operand { return trimmed(a, false) },
	"trim_prefix": func(a []operand) operand { return trimmed(a, true) },
	"count":       func(a []operand) operand { return operand{cel: "size(" + a[0].cel + ")"} },
	"split": func(a []operand) operand {
		return operand{cel: a[0].cel + ".split(" + textOf(a[1]) + ")", isList: true}
	},
	"concat": func(a []operand) operand { return operand{cel: listOf(a[1]) + ".join(" + textOf(a[0]) + ")"} },
	"regex.match": func(a []operand) operand {
		return operand{cel: a[1].cel + ".matches(" + textOf(a[0]) + ")", isBool: true}
	},
	"internal.member_2": func(a []operand) operand { return operand{cel: a[0].cel + " in " + listOf(a[1]), isBool: true} },
	"substring":         substring,
	"sprintf":           sprintf,
	"object.get":        objectGet,
}

// call translates a call, of a built-in function or of one of the bundle.
func (s *scope) call(terms []*ast.Term) operand {
	args := make([]operand, len(terms)-1)
	defined := []string{}
	for i, term := range terms[1:] {
		args[i] = s.operand(term)
		defined = append(defined, args[i].defined)
	}
	ref, _ := terms[0].Value.(ast.Ref)
	var result operand
	if write := functions[ref.String()]; write != nil && !s.isRule(ref[0].Value.(ast.Var)) {
		result = write(args)
	} else {
		result = s.callRule(ref, args)
	}
	result.defined = and(append(defined, result.defined)...)
	return result
}

func (s *scope) callRule(ref ast.Ref, args []operand) operand {
	for i := range args { // that all are defined is asked once, by call
		args[i].defined = ""
	}
	if full := s.imported(ref); full != nil {
		ref = full
	}
	path := ref.String()
	if !ref.HasPrefix(ast.DefaultRootRef) {
		path = s.module.Package.Path.String() + "." + path
	}
	if len(s.rules[path]) == 0 || len(s.rules[path][0].rule.Head.Args) != len(args) {
		fail("it calls " + ref.String())
	}
	return s.value(path, args)
}

// known is a condition that holds or does not whatever the object is.
func known(holds bool) operand {
	return operand{cel: strconv.FormatBool(holds), literal: ast.Boolean(holds)}
}

func compared(a []operand, operator string) operand {
	if a[0].literal != nil && a[1].literal != nil {
		return known((a[0].literal.Compare(a[1].literal) == 0) == (operator == "=="))
	}
	return operand{cel: a[0].cel + " " + operator + " " + a[1].cel, isBool: true}
}

func ordered(a []operand, operator string) operand {
	if a[0].literal != nil && a[1].literal != nil {
		fail("it compares two constants")
	}
	return operand{cel: a[0].cel + " " + operator + " " + a[1].cel, isBool: true}
}

// method is a function of a string and, mostly, another one.
func method(a []operand, name string) operand {
	var rest []string
	for _, one := range a[1:] {
		rest = append(rest, one.cel)
	}
	return operand{cel: a[0].cel + "." + name + "(" + strings.Join(rest, ", ") + ")", isBool: name != "trim"}
}

// textOf is a string that is written out.
func textOf(v operand) string {
	if _, ok := v.literal.(ast.String); !ok {
		fail("a function takes a string that is not written out")
	}
	return v.cel
}

func listOf(v operand) string {
	if !v.isList {
		fail("it looks into what may be no list")
	}
	return v.cel
}

func trimmed(a []operand, before bool) operand {
	end, _ := a[1].literal.(ast.String)
	textOf(a[1])
	if _, ok := a[0].literal.(ast.String); ok {
		fail("it trims a constant")
	}
	n := strconv.Itoa(utf8.RuneCountInString(string(end)))
	if before {
		return operand{cel: fmt.Sprintf("(%s.startsWith(%s) ? %s.substring(%s) : %s)", a[0].cel, a[1].cel, a[0].cel, n, a[0].cel)}
	}
	return operand{cel: fmt.Sprintf("(%s.endsWith(%s) ? %s.substring(0, size(%s) - %s) : %s)", a[0].cel, a[1].cel, a[0].cel, a[0].cel, n, a[0].cel)}
}

// substring is translated from the beginning alone.
func substring(a []operand) operand {
	from, _ := a[1].literal.(ast.Number)
	length, _ := a[2].literal.(ast.Number)
	most, ok := length.Int()
	if from != "0" || !ok || most < 0 {
		fail("it takes a part of a string from its middle")
	}
	return operand{cel: fmt.Sprintf("(size(%s) > %d ? %s.substring(0, %d) : %s)", a[0].cel, most, a[0].cel, most, a[0].cel)}
}

// sprintf is translated where it puts strings and numbers into a text by %s, %d and %v. The list of its values is written out.
func sprintf(a []operand) operand {
	format, ok := a[0].literal.(ast.String)
	if !ok {
		fail("a message has a format that is not written out")
	}
	values, ok := elements(a[1].cel)
	parts, text := []string{}, ""
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			text += string(format[i])
			continue
		}
		i++
		switch {
		case i < len(format) && format[i] == '%':
			text += "%"
		case i == len(format) || !strings.ContainsRune("sdv", rune(format[i])) || len(values) == 0 || !ok:
			fail("a message is made by more than %s, %d and %v")
		default:
			parts = append(parts, quoted(text), "string("+values[0]+")")
			text, values = "", values[1:]
		}
	}
	if len(values) > 0 {
		fail("a message has more values than places")
	}
	return operand{cel: strings.Join(append(parts, quoted(text)), " + ")}
}

// elements takes the text of a list apart at its own commas.
func elements(list string) (parts []string, ok bool) {
	if !strings.HasPrefix(list, "[") || !strings.HasSuffix(list, "]") {
		return nil, false
	}
	depth, begin, inText := 0, 1, false
	for i := 1; i < len(list); i++ {
		switch c := list[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case i == len(list)-1, c == ',' && depth == 0:
			if part := strings.TrimSpace(list[begin:i]); part != "" {
				parts = append(parts, part)
			}
			begin = i + 1
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		}
	}
	return parts, depth == 0 && !inText
}

// objectGet reads a key, or the keys of a path, where they are there.
func objectGet(a []operand) operand {
	keys := []string{a[1].cel}
	path := a[0].path
	switch asked := a[1].literal.(type) {
	case *ast.Array:
		keys = nil
		asked.Foreach(func(key *ast.Term) {
			if _, isText := key.Value.(ast.String); !isText {
				fail("it asks for an element by its number")
			}
			keys = append(keys, literal(key.Value))
			path = append(slices.Clone(path), literalText(key))
		})
	case ast.String:
		path = append(slices.Clone(path), string(asked))
	default:
		if a[1].isList {
			fail("it asks for an element by a path that is not written out")
		}
	}
	v := operand{cel: a[0].cel}
	for _, key := range keys {
		v.cel += "[?" + key + "]"
	}
	v.cel += ".orValue(" + a[2].cel + ")"
	v.isList = a[2].isList && (a[0].path != nil && slices.Contains(lists, strings.Join(path, ".")) || ofLists(a[0].literal))
	if a[0].path != nil && a[2].literal != nil {
		v.path = path
	}
	return v
}

// ofLists says that all values of a constant object are lists.
func ofLists(v ast.Value) bool {
	object, ok := v.(ast.Object)
	if !ok {
		return false
	}
	all := true
	object.Foreach(func(_, value *ast.Term) {
		_, isArray := value.Value.(*ast.Array)
		all = all && isArray
	})
	return all
}
