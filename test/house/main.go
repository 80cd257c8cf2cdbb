// SPDX-License-Identifier: Apache-2.0

// Command house holds the size of the code's parts to their limits: methods of a receiver, fields of a struct, lines of a
// function, a file and a package. It reads the tree in the working directory and prints what is over a limit.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
)

func main() {
	files, err := sources(os.DirFS("."))
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(2)
	}
	over, unused := judge(measure(files), exceptions)
	for _, line := range over {
		fmt.Fprintln(os.Stderr, "house:", line)
	}
	for _, e := range unused {
		fmt.Fprintf(os.Stderr, "house: the exception for %s is not needed any more; remove it\n", e)
	}
	if len(over)+len(unused) > 0 {
		os.Exit(1)
	}
}

// The limits. docs and CONTRIBUTING name them too.
const (
	maxMethods      = 40
	maxFields       = 15
	manyMethods     = 10 // the limit of fields holds for structs with more methods than that
	maxFunction     = 60
	maxFile         = 400
	maxPackage      = 4000
	maxExceptions   = 11
	generatedMarker = "// Code generated "
)

// exceptions are the parts that may be over a limit, each with its reason. There are at most maxExceptions.
var exceptions = map[string]string{
	"cmd/metalaw.options": "one field for each flag",
	"redfish":             "sessions, requests and the quirks of BMCs share one client",

	// Over 40 methods with those that they get from what they embed. Each waits for its own turn.
	"controllers/bmc.scope":            "reads and effects of a BMC share the subject and what was observed; acts are to take their place",
	"engine/claims/solve.match":        "the members and servers of one gang",
	"engine/claims/solve.reasoner":     "it asks the solver in each order why a server does not fit",
	"engine/claims/solve.solver":       "one pass over all claims, which changes one set of free servers",
	"engine/internal/regonative.scope": "each kind of a Rego term is translated with the names of its rule",
	"engine/lifecycle/verify.checker":  "each property of a lifecycle is checked on one model of it",
	"engine/lifecycle/verify.model":    "a lifecycle as decisions walk through it, over all facts",
	"engine/lifecycle/verify.puzzle":   "a search for facts, with its domains and its trail",
	"engine/lifecycle/verify.spin":     "the cycles of a lifecycle, with the checker that they belong to",
}

// judge returns a sentence for each part over its limit, and the exceptions that no part needs, both sorted.
func judge(parts []part, excepted map[string]string) (over, unused []string) {
	needed := map[string]bool{}
	for _, p := range parts {
		if p.size <= p.limit {
			continue
		}
		if excepted[p.name] != "" {
			needed[p.name] = true
			continue
		}
		over = append(over, fmt.Sprintf("%s has %d %s; the limit is %d: %s", p.name, p.size, p.unit, p.limit, p.remedy))
	}
	for name := range excepted {
		if !needed[name] {
			unused = append(unused, name)
		}
	}
	if len(excepted) > maxExceptions {
		over = append(over, fmt.Sprintf("there are %d exceptions; the limit is %d", len(excepted), maxExceptions))
	}
	slices.Sort(over)
	slices.Sort(unused)
	return over, unused
}

// sources reads the Go files that the limits hold for: not tests, not generated code, not api, test and the emulator.
func sources(tree fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipsFolder(path) {
				return fs.SkipDir
			}
			return nil
		}
		if !isSource(path) {
			return nil
		}
		text, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		if !isGenerated(text) {
			files[path] = text
		}
		return nil
	})
	return files, err
}
