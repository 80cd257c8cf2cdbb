// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/diag"
)

// The codes of diagnostics about Rego.
const (
	// CodeParse: the text is not Rego v1.
	CodeParse = "rego-parse"
	// CodeCompile: the module does not compile, for a reason that the message gives.
	CodeCompile = "rego-compile"
	// CodeType: a type does not fit, for example an unknown input field.
	CodeType = "rego-type"
	// CodeForbiddenBuiltin: a built-in function is not available to policies.
	CodeForbiddenBuiltin = "rego-forbidden-builtin"
	// CodePackage: the package is not one that metalaw evaluates.
	CodePackage = "rego-package"
	// CodeEntrypoint: a rule that metalaw asks for is missing or has another form.
	CodeEntrypoint = "rego-entrypoint"
	// CodeUnusedRule: nothing asks for a rule.
	CodeUnusedRule = "rego-unused-rule"
	// CodeUnknownData: a reference names a rule that no file defines.
	CodeUnknownData = "rego-unknown-data"
	// CodeLimit: the files are larger than metalaw reads.
	CodeLimit = "rego-limit"
)

const (
	// Library is the package whose rules selection and admission may both import.
	Library    = "metalaw.lib"
	testSuffix = "_test.rego"
)

// Form is the form of a rule that metalaw asks for.
type Form int

const (
	// Boolean is a rule that is true, false or undefined.
	Boolean Form = iota
	// Number is a rule that is a number or undefined.
	Number
	// Messages is a rule of the form `name contains {"code": ..., "message": ...}`.
	Messages
)

// Entrypoint is a rule that metalaw asks for.
type Entrypoint struct {
	Name     string
	Form     Form
	Required bool
	// Fields are the optional keys of Messages besides code and message.
	Fields []string
}

// Spec is what distinguishes one kind of policy from another.
type Spec struct {
	// Package holds the entry points, for example "metalaw.selection".
	Package string
	// Others are packages that a bundle may hold and that this policy does not see.
	Others      []string
	Entrypoints []Entrypoint
	// InputSchema is a JSON schema as Schema makes it.
	InputSchema map[string]any
}

// Module is a compiled policy. It is immutable and safe for use by many goroutines at once.
type Module struct {
	spec     Spec
	compiler *ast.Compiler
	query    ast.Body

	costed sync.Once
	cost   cost
}

// Compile compiles the files of a bundle that belong to spec: those whose package is Spec.Package, a package below it or
// Library. Files that do not end in .rego, tests, and the packages in Spec.Others are passed over. It reports all problems
// that the failing stage of the compiler finds; when one of them is an Error the Module is nil.
func Compile(spec Spec, files map[string][]byte) (*Module, diag.List) {
	modules, found := parse(spec, files, false)
	if found.Err() != nil {
		return nil, found
	}
	compiler := newCompiler(spec, ofPolicies())
	compiler.Compile(modules)
	if compiler.Failed() {
		return nil, append(found, fromOPA(modules, compiler.Errors)...)
	}
	found = append(found, checkReferences(compiler)...)
	found = append(found, checkEntrypoints(spec, compiler, modules)...)
	found = append(found, checkPatterns(compiler, modules)...)
	if !found.HasErrors() { // a rule that is mended may ask for others
		found = append(found, checkUse(spec, compiler)...)
	}
	if found.Err() != nil {
		return nil, found
	}
	query, err := compiler.QueryCompiler().Compile(spec.query())
	if err != nil {
		return nil, append(found, diag.Diagnostic{Severity: diag.Error, Code: CodeCompile, File: spec.Package, Message: err.Error()})
	}
	return &Module{spec: spec, compiler: compiler, query: query}, found
}

func newCompiler(spec Spec, capabilities *ast.Capabilities) *ast.Compiler {
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, spec.InputSchema)
	return withShapesBounded(ast.NewCompiler()).
		WithCapabilities(capabilities).
		WithStrict(true).
		WithSchemas(schemas).
		WithEnablePrintStatements(true). // otherwise print is removed before anyone can refuse it
		WithDefaultRegoVersion(ast.RegoV1).
		SetErrorLimit(maxFindings)
}

// query asks for all entry points at once: one list per entry point, empty where it is undefined.
func (s Spec) query() ast.Body {
	var parts []string
	for _, e := range s.Entrypoints {
		parts = append(parts, fmt.Sprintf("[v | v = data.%s.%s]", s.Package, e.Name))
	}
	return ast.MustParseBody(resultVar + " = [" + strings.Join(parts, ", ") + "]")
}

func parse(spec Spec, files map[string][]byte, withTests bool) (map[string]*ast.Module, diag.List) {
	modules := map[string]*ast.Module{}
	var found diag.List
	size := 0
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(file, ".rego") || (!withTests && strings.HasSuffix(file, testSuffix)) {
			continue
		}
		if d := tooLarge(file, files[file], size); d != nil {
			return nil, append(found, *d)
		}
		size += len(files[file])
		module, problems := parseFile(file, files[file])
		if module == nil {
			found = append(found, problems...)
			continue
		}
		switch pkg := packageName(module); {
		case belongs(pkg, spec.Package), belongs(pkg, Library):
			modules[file] = module
		case !slices.ContainsFunc(spec.Others, func(other string) bool { return belongs(pkg, other) }):
			found = append(found, diag.Diagnostic{Severity: diag.Error, Code: CodePackage, File: file,
				Line: module.Package.Loc().Row, Column: module.Package.Loc().Col,
				Message: fmt.Sprintf("nothing evaluates the package %s", pkg), Hint: packageHint(spec, file)})
		}
	}
	return modules, found
}

// packageHint names the package that a file of this name holds.
func packageHint(spec Spec, file string) string {
	all := append([]string{spec.Package}, spec.Others...)
	slices.Sort(all)
	for _, pkg := range all {
		stem := pkg[strings.LastIndex(pkg, ".")+1:]
		switch file {
		case stem + ".rego":
			return "write package " + pkg
		case stem + testSuffix:
			return fmt.Sprintf("write package %s_test, or %s", pkg, pkg)
		}
	}
	return "the packages of a bundle are " + strings.Join(all, ", ")
}

func parseFile(file string, text []byte) (*ast.Module, diag.List) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, diag.List{{Severity: diag.Error, Code: CodeParse, File: file, Line: 1, Column: 1, Message: "the file is empty",
			Hint: "write it, or take it out: what a bundle leaves out is taken from the default"}}
	}
	options := ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: understood()}
	module, err := ast.ParseModuleWithOpts(file, string(text), options)
	if err == nil && module != nil {
		if found := overgrown(file, module); len(found) > 0 {
			return nil, found
		}
		return module, nil
	}
	if errs, ok := errors.AsType[ast.Errors](err); ok {
		found := fromOPA(nil, errs)
		for i := range found {
			found[i].File = file
		}
		return nil, sayV0(file, text, found)
	}
	message := "the file holds no Rego"
	if err != nil {
		message = err.Error()
	}
	return nil, diag.List{{Severity: diag.Error, Code: CodeParse, File: file, Line: 1, Column: 1, Message: message,
		Hint: `begin it with "package"`}}
}

// PackageOf is the dotted name of a file's package; ok is false where the file is not Rego.
func PackageOf(file string, text []byte) (pkg string, ok bool) {
	module, _ := parseFile(file, text)
	if module == nil {
		return "", false
	}
	return packageName(module), true
}

// packageName is the dotted name without "data".
func packageName(module *ast.Module) string {
	return strings.TrimPrefix(module.Package.Path.String(), "data.")
}

// belongs: tests live in the package itself or in its twin with the suffix _test.
func belongs(pkg, to string) bool {
	return pkg == to || pkg == to+"_test" || strings.HasPrefix(pkg, to+".")
}
