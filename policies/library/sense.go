// SPDX-License-Identifier: Apache-2.0

package library

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// senseTest is the test that every policy has of the values of its parameters.
const senseTest = "test_the_parameters_make_sense"

// checkSense holds the parameters in a text of the policy's file against the policy's own test of them, and says which line of it they
// break: an author who sets one need not add the policy first to hear that a test does not hold.
// The comment above the line says why, and what is set is explained in the words of the policy.
func (p Policy) checkSense(text []byte, set map[string]string) error {
	file := p.Name + "_test.rego"
	module := p.modules[file]
	if module == nil {
		return fmt.Errorf("policy %s has no %s", p.Name, file)
	}
	at := slices.IndexFunc(module.Rules, func(r *ast.Rule) bool { return r.Head.Name == senseTest })
	if at < 0 {
		return fmt.Errorf("policy %s has no %s", p.Name, senseTest)
	}
	body := module.Rules[at].Body
	var asked strings.Builder
	asked.Write(p.Files[file])
	for i, line := range body {
		fmt.Fprintf(&asked, "\nholds_%d if {\n\t%s\n}\n", i, line.Location.Text)
	}
	for i, line := range body {
		results, err := rego.New(rego.Module(p.Main(), string(text)), rego.Module(file, asked.String()),
			rego.Query(fmt.Sprintf("%s.holds_%d", module.Package.Path, i))).Eval(context.Background())
		if err != nil {
			return fmt.Errorf("parameters of policy %s: %w", p.Name, err)
		}
		if len(results) == 0 {
			what := strings.Join(strings.Fields(strings.ReplaceAll(string(line.Location.Text), "policy.", "")), " ")
			if why := commentAbove(module, line.Location.Row); why != "" {
				what += ": " + why
			}
			return fmt.Errorf("the values of parameters of policy %s do not fit: it asks that %s%s", p.Name, what, p.explained(set))
		}
	}
	return nil
}

// explained is what the policy says of parameters.
func (p Policy) explained(set map[string]string) string {
	var text strings.Builder
	for _, one := range p.Parameters {
		if value, is := set[one.Name]; is {
			fmt.Fprintf(&text, "; %s is to be %s: %s", one.Name, value, one.Doc)
		}
	}
	return text.String()
}
