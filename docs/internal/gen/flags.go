// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"time"
)

// program is one command line and the code that declares it.
type program struct {
	title, about string
	folders      []string
	declaredIn   string
}

var programs = []program{
	{"metalaw manager", "Runs the operator: controllers on the elected replica, webhooks and probe registry on every one.",
		[]string{"cmd/metalaw"}, "cmd/metalaw/flags.go"},
	{"metalaw boot", "Prepares boot configurations on the elected replica, and serves machines and BMCs on every one. It is off by default.",
		[]string{"cmd/metalaw"}, "cmd/metalaw/bootflags.go"},
	{"metalprobe", "The agent that the probe and the wipe image run. It usually finds what it needs in the file that the ignition brings.",
		[]string{"metalprobe", "metalprobe/machine"}, "metalprobe/machine/run.go"},
	{"redfish-emulator", "A fleet of BMCs in one process, for tests and demos.",
		[]string{"redfish/emulator", "test/redfish-emulator"}, "test/redfish-emulator/main.go"},
}

func flagsPage(root string) (string, error) {
	m := newPage("Flags", "the declarations in the code")
	m.paragraph("`metalaw version` prints the version of the program and of its policy engine. `--help` prints these lists. " +
		"What an operator asks on the command line is in [commands](commands.md).")
	m.paragraph("Each program checks its flags before it starts anything. It names all flags that cannot be used at once, each with its " +
		"value, the cause and a remedy; metalprobe names the first. Exit code 2 says that flags cannot be used, and that nothing was started. " +
		"Exit code 1 says that the program could not start or go on. Exit code 0 says that it was asked to stop.")
	for _, p := range programs {
		s, err := parseFolders(root, p.folders...)
		if err != nil {
			return "", err
		}
		rows, err := fromCalls(s, slices.DeleteFunc(slices.Clone(s.files), func(f *file) bool { return f.path != p.declaredIn }), flagOf)
		if err != nil {
			return "", err
		}
		if len(rows) == 0 {
			return "", fmt.Errorf("%s declares no flags", p.declaredIn)
		}
		m.heading(2, "%s", p.title)
		m.paragraph(p.about)
		m.table([]string{"flag", "type", "default", "meaning"}, rows)
	}
	return m.text(), nil
}

var flagTypes = map[string]string{
	"String": "text", "Bool": "true or false", "Int": "number", "Uint64": "number", "Duration": "duration", "StringSlice": "list",
}

// flagOf reads f.TypeVar(&x, name, default, usage) and f.Type(name, default, usage).
func flagOf(s *source, f *file, call *ast.CallExpr) ([]string, bool, error) {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil, false, nil
	}
	word, known := flagTypes[strings.TrimSuffix(function.Sel.Name, "Var")]
	args := call.Args
	if strings.HasSuffix(function.Sel.Name, "Var") && len(args) > 0 {
		args = args[1:]
	}
	if !known || len(args) != 3 {
		return nil, false, nil
	}
	name, isName := s.evaluate(f, args[0])
	usage, isUsage := s.evaluate(f, args[2])
	if !isName || !isUsage {
		return nil, false, nil
	}
	value, err := defaultOf(s, f, args[1])
	if err != nil {
		return nil, false, fmt.Errorf("%s: the default of --%s: %w", f.path, name, err)
	}
	return []string{code("--" + name), word, value, usage}, true, nil
}

// defaultOf sets a default value in words.
func defaultOf(s *source, f *file, e ast.Expr) (string, error) {
	if text, ok := s.evaluate(f, e); ok {
		return code(text), nil
	}
	if d, ok := s.duration(f, e); ok {
		return code(d.String()), nil
	}
	switch e := e.(type) {
	case *ast.Ident:
		switch e.Name {
		case "true", "false":
			return code(e.Name), nil
		case "nil":
			return "", nil
		}
	case *ast.CompositeLit:
		var words []string
		for _, element := range e.Elts {
			text, ok := s.evaluate(f, element)
			if !ok {
				return "", fmt.Errorf("an element is not a constant")
			}
			words = append(words, text)
		}
		return codes(words), nil
	case *ast.CallExpr:
		if name, ok := e.Fun.(*ast.Ident); ok && name.Name == "envOr" && len(e.Args) == 2 {
			variable, _ := s.evaluate(f, e.Args[0])
			fallback, _ := s.evaluate(f, e.Args[1])
			return code("$"+variable) + ", or " + code(fallback), nil
		}
	}
	return "", fmt.Errorf("it is written in a way that the generator does not know (%T)", e)
}

var units = map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

// duration reads a number of units, such as 3 * time.Minute, a unit alone, or a constant of that form.
func (s *source) duration(of *file, e ast.Expr) (time.Duration, bool) {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		if unit, ok := units[e.Sel.Name]; ok {
			return unit, true
		}
		return s.durationNamed(of, e)
	case *ast.BinaryExpr:
		n, isLiteral := e.X.(*ast.BasicLit)
		unit, isUnit := s.duration(of, e.Y)
		if !isLiteral || !isUnit || e.Op != token.MUL {
			return 0, false
		}
		count, err := strconv.ParseInt(n.Value, 10, 64)
		return time.Duration(count) * unit, err == nil
	case *ast.Ident:
		return s.durationNamed(of, e)
	}
	return 0, false
}

// durationNamed reads the constant that an expression names, in its own package or another one of the program.
func (s *source) durationNamed(of *file, e ast.Expr) (found time.Duration, ok bool) {
	for _, f := range s.files {
		eachConstant(f, func(_ *ast.GenDecl, spec *ast.ValueSpec, i int) {
			if f.refersTo(spec.Names[i]) == of.refersTo(e) {
				found, ok = s.duration(f, spec.Values[i])
			}
		})
	}
	return found, ok
}
