// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/xml"
	"os"
)

// The types are the part of JUnit's XML that CI systems agree on.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Failure *junitFailure `xml:"failure,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
}

func (s *junitSuite) add(c testCase) {
	one := junitCase{Name: c.name, Class: s.Name, File: c.file, Line: c.line}
	if !c.passed {
		s.Failures++
		one.Failure = &junitFailure{Message: c.message}
	}
	s.Tests++
	s.Cases = append(s.Cases, one)
}

// writeJUnit writes all results to a file. What keeps the bundle from being compiled is a failed case of its own suite.
func (v verdict) writeJUnit(path string) error {
	scenarios, tests, compile := junitSuite{Name: "scenarios"}, junitSuite{Name: "rego"}, junitSuite{Name: "compile"}
	for _, c := range v.cases() {
		if c.scenario {
			scenarios.add(c)
		} else {
			tests.add(c)
		}
	}
	for _, d := range v.broken() {
		d = v.Placed(d)
		compile.add(testCase{name: d.Code + " " + d.Rule, file: d.File, line: d.Line, message: d.Message + " (" + d.Hint + ")"})
	}
	text, err := xml.MarshalIndent(junitSuites{Suites: []junitSuite{compile, scenarios, tests}}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(xml.Header), append(text, '\n')...), 0o644) //nolint:gosec // CI systems read it as another user.
}
