// SPDX-License-Identifier: Apache-2.0

package library

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/bundle"
)

// Change is what became of one file of a bundle.
type Change struct{ File, What string }

// Add adds a policy to a bundle: its files, and the rules that use them. set are values of its parameters, as Rego or as plain
// words. What is there already stays as it is, so that a second time changes nothing, or only the parameters that are set. What
// the bundle leaves out and the policy needs is taken from fill. The bundle that is given is not changed.
//
// It fails where the bundle has rules or files of that name which are not the policy's, where a file of it was changed by hand,
// and where it cannot be told how a rule is to be extended.
func (p Policy) Add(to bundle.Files, fill bundle.Files, set map[string]string) (bundle.Files, []Change, error) {
	a := &adding{Policy: p, files: maps.Clone(to), fill: fill}
	if err := a.clash(); err != nil {
		return nil, nil, err
	}
	if err := a.rules(set); err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		if name == p.Main() {
			continue
		}
		switch was, there := a.files[name]; {
		case !there:
			a.put(name, p.Files[name], "written")
		case bytes.Equal(was, p.Files[name]):
		case strings.HasSuffix(name, "_test.rego"):
			a.changes = append(a.changes, Change{name, "left as it is, with tests of your own"})
		default:
			return nil, nil, foreign(name)
		}
	}
	if p.Score != "" {
		if err := a.score(); err != nil {
			return nil, nil, err
		}
	}
	for _, use := range []struct{ file, text string }{{bundle.SelectionFile, p.Selection}, {bundle.AdmissionFile, p.Admission}} {
		if use.text == "" {
			continue
		}
		if err := a.use(use.file, use.text); err != nil {
			return nil, nil, err
		}
	}
	return a.files, a.changes, nil
}

// adding is a policy that is being added.
type adding struct {
	Policy
	files, fill bundle.Files
	changes     []Change
}

func (a *adding) put(name string, text []byte, what string) {
	a.files[name] = text
	a.changes = append(a.changes, Change{name, what})
}

func foreign(name string) error {
	return fmt.Errorf("%s is not the file of this library, in more than its parameters; name it otherwise, or take it out to have it anew", name)
}

// clash refuses a bundle in which another file has a package of the policy.
func (a *adding) clash() error {
	for _, name := range slices.Sorted(maps.Keys(a.files)) {
		if !strings.HasSuffix(name, ".rego") || a.modules[name] != nil {
			continue
		}
		module, err := parse(name, a.files[name])
		if err != nil {
			return fmt.Errorf("%s cannot be read; mend it first: %w", name, err)
		}
		for _, own := range a.modules {
			if module.Package.Equal(own.Package) {
				return fmt.Errorf("%s has the package %s already, which is one of the policy; give it another one", name,
					strings.TrimPrefix(own.Package.Path.String(), "data."))
			}
		}
	}
	return nil
}

// rules writes the file with the rules. Parameters that the bundle has set keep their values.
func (a *adding) rules(set map[string]string) error {
	text, what := a.Files[a.Main()], "written"
	if was, there := a.files[a.Main()]; there {
		if same, err := a.sameButParameters(was); err != nil {
			return fmt.Errorf("%s cannot be read; mend it first: %w", a.Main(), err)
		} else if !same {
			return foreign(a.Main())
		}
		text, what = was, "set"
	}
	changed, err := a.withParameters(text, set)
	if err != nil {
		return err
	}
	if what == "written" || !bytes.Equal(changed, text) {
		a.put(a.Main(), changed, what)
	}
	return nil
}

// score adds the policy's points to the score.
func (a *adding) score() error {
	module, err := a.main(bundle.SelectionFile)
	if err != nil || a.refers(module) {
		return err
	}
	var rules []*ast.Rule
	for _, rule := range module.Rules {
		if rule.Head.Name == "score" {
			rules = append(rules, rule)
		}
	}
	text := string(a.files[bundle.SelectionFile])
	if len(rules) == 0 {
		a.put(bundle.SelectionFile, []byte(text+"\nscore := "+a.Score+"\n"), "score added")
		return nil
	}
	line := lineOf(text, rules[0].Loc().Row)
	value, plain := strings.CutPrefix(line, "score := ")
	if len(rules) > 1 || rules[0].Default || rules[0].Else != nil || !plain || strings.Contains(value, "#") || !isWhole(rules[0], value) {
		return fmt.Errorf("%s:%d: the score is more than one line of the form `score := ...`, and is not changed for you; add `+ %s` to it "+
			"by hand, and call this again",
			bundle.SelectionFile, rules[0].Loc().Row, a.Score)
	}
	if strings.Contains(value, " ") {
		value = "(" + value + ")"
	}
	a.put(bundle.SelectionFile, []byte(replaceLine(text, rules[0].Loc().Row, "score := "+value+" + "+a.Score)), "points added to score")
	return nil
}

// isWhole says that a text is all there is to the value of a rule, which holds without a condition.
func isWhole(rule *ast.Rule, text string) bool {
	alone, err := parse("score", []byte("package alone\n\nscore := "+text))
	return err == nil && len(alone.Rules) == 1 && alone.Rules[0].Equal(rule) && len(rule.Body) == 1 &&
		rule.Body[0].Equal(ast.NewExpr(ast.BooleanTerm(true)))
}

// use adds rules that use the policy to the end of a file.
func (a *adding) use(file, text string) error {
	module, err := a.main(file)
	if err != nil || a.refers(module) {
		return err
	}
	block := "\n# From the library: " + a.Main() + " says what it does.\n" + text
	a.put(file, append(bytes.TrimRight(a.files[file], "\n"), []byte("\n"+block)...), "rule added")
	return nil
}

// main reads selection.rego or admission.rego, which is taken from the default with its tests where the bundle leaves it out.
func (a *adding) main(file string) (*ast.Module, error) {
	if _, own := a.files[file]; !own {
		tests := strings.TrimSuffix(file, ".rego") + "_test.rego"
		for _, name := range []string{file, tests} {
			if _, own := a.files[name]; !own && a.fill[name] != nil {
				a.put(name, slices.Clone(a.fill[name]), "taken from the built-in default, which the bundle had left it to")
			}
		}
	}
	module, err := parse(file, a.files[file])
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read; mend it first: %w", file, err)
	}
	return module, nil
}

// refers says that a file uses the policy's rules already.
func (a *adding) refers(module *ast.Module) bool {
	found := false
	ast.WalkRefs(module, func(ref ast.Ref) bool {
		for _, own := range a.modules {
			found = found || ref.HasPrefix(own.Package.Path)
		}
		return found
	})
	return found
}

func lineOf(text string, row int) string {
	return strings.TrimRight(strings.Split(text, "\n")[row-1], " \t\r")
}

func replaceLine(text string, row int, line string) string {
	lines := strings.Split(text, "\n")
	lines[row-1] = line
	return strings.Join(lines, "\n")
}
