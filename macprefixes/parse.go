// SPDX-License-Identifier: Apache-2.0

package macprefixes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// What one database may hold. A ConfigMap ends at 1 MiB, so the byte limit never hurts a real one.
const (
	maxBytes       = 1 << 20
	maxRows        = 20000
	maxCredentials = 16
)

// Parse reads a database. It reports all problems at once; when one of them is an Error the Database is nil. file is
// only repeated in the problems.
func Parse(file string, data []byte) (*Database, []Problem) {
	p := &parser{file: file, db: &Database{index: map[prefixKey]int{}}}
	if root := p.document(data); root != nil {
		p.root(root)
	}
	if slices.ContainsFunc(p.problems, func(problem Problem) bool { return problem.Severity == Error }) {
		return nil, p.problems
	}
	return p.db, p.problems
}

type parser struct {
	file     string
	db       *Database
	problems []Problem
	// inline is the first row with credentials in clear: one warning for the file is enough.
	inline      *yaml.Node
	inlineCount int
}

func (p *parser) report(severity Severity, at *yaml.Node, code, hint, format string, args ...any) {
	problem := Problem{Severity: severity, Code: code, File: p.file, Line: 1, Column: 1, Message: fmt.Sprintf(format, args...), Hint: hint}
	if at != nil {
		problem.Line, problem.Column = at.Line, at.Column
	}
	p.problems = append(p.problems, problem)
}

func (p *parser) fail(at *yaml.Node, code, hint, format string, args ...any) {
	p.report(Error, at, code, hint, format, args...)
}

// indentingTab is a tab before the first word of a line.
var indentingTab = regexp.MustCompile(`(?m)^ *(\t)[\t ]*[^\t \r\n#]`)

var yamlErrorLine = regexp.MustCompile(`^yaml: line (\d+): `)

func (p *parser) document(data []byte) *yaml.Node {
	if len(data) > maxBytes {
		p.fail(nil, CodeLimit, "keep the rows that the fleet needs", "the database has %d bytes and at most %d are read", len(data), maxBytes)
		return nil
	}
	if tab := indentingTab.FindSubmatchIndex(data); tab != nil {
		at := tab[2]
		start := bytes.LastIndexByte(data[:at], '\n') + 1
		p.fail(&yaml.Node{Line: 1 + bytes.Count(data[:at], []byte("\n")), Column: at - start + 1}, CodeSyntax, "YAML indents with spaces only",
			"a tab is used for indentation")
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	if err := decoder.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			p.fail(nil, CodeSyntax, `write "macPrefixes: []" for a database without rows`, "the file is empty")
		} else {
			p.syntax(err)
		}
		return nil
	}
	if err := decoder.Decode(&next); err == nil {
		p.fail(&next, CodeSyntax, "join them into one document", "the file holds more than one YAML document")
		return nil
	} else if !errors.Is(err, io.EOF) {
		p.syntax(err)
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		p.fail(nil, CodeSyntax, `write "macPrefixes: []" for a database without rows`, "the file holds no YAML value")
		return nil
	}
	return doc.Content[0]
}

func (p *parser) syntax(err error) {
	at := &yaml.Node{Line: 1, Column: 1}
	message := err.Error()
	if m := yamlErrorLine.FindStringSubmatch(message); m != nil {
		if line, err := strconv.Atoi(m[1]); err == nil && line > 0 {
			at.Line, message = line, message[len(m[0]):]
		}
	}
	p.fail(at, CodeSyntax, "correct the YAML", "the text is not YAML: %s", message)
}

func (p *parser) root(root *yaml.Node) {
	fields, ok := p.mapping(root, "the database", "macPrefixes")
	if !ok {
		return
	}
	list, ok := fields["macPrefixes"]
	if !ok {
		p.fail(root, CodeMissingKey, `begin the file with "macPrefixes:"`, "the key macPrefixes is missing")
		return
	}
	items, ok := p.sequence(list, "macPrefixes")
	if !ok {
		return
	}
	if len(items) > maxRows {
		p.fail(list, CodeLimit, "keep the rows that the fleet needs", "the database has %d rows and at most %d are read", len(items), maxRows)
		return
	}
	for _, item := range items {
		p.row(item)
	}
	if p.inline != nil {
		p.report(Warning, p.inline, CodeInlineCredentials, "keep them in a Secret and name it in credentialsSecretRef",
			"%d of %d rows carry credentials in clear, readable by everyone who may read the bundle", p.inlineCount, len(items))
	}
}

func (p *parser) row(node *yaml.Node) {
	fields, ok := p.mapping(node, "a row", "macPrefix", "manufacturer", "protocol", "protocolScheme", "port", "type",
		"defaultCredentials", "credentialsSecretRef", "console")
	if !ok {
		return
	}
	before := len(p.problems)
	row := Row{Line: node.Line}
	key := p.prefix(node, fields["macPrefix"], &row)
	row.Manufacturer = p.required(node, fields["manufacturer"], "manufacturer")
	row.Type = p.choice(fields["type"], "type", "bmc", "bmc")
	row.Protocol = p.protocol(fields["protocol"])
	row.Scheme = p.choice(fields["protocolScheme"], "protocolScheme", "https", "https", "http")
	row.Port = p.port(fields["port"], "port", map[string]int32{"https": 443, "http": 80}[row.Scheme])
	p.credentials(node, fields, &row)
	row.Console = p.console(fields["console"])
	if len(p.problems) > before {
		return
	}
	p.keep(fields["macPrefix"], row, key)
}

// keep adds the row unless the same prefix was there before.
func (p *parser) keep(at *yaml.Node, row Row, key prefixKey) {
	i, taken := p.db.index[key]
	if !taken {
		p.db.add(row, key)
		return
	}
	former := p.db.rows[i]
	if sameContent(former, row) {
		p.report(Warning, at, CodeDuplicatePrefix, "remove one of the two",
			"the prefix %s is repeated: line %d says the same", row.Prefix, former.Line)
		return
	}
	p.fail(at, CodeDuplicatePrefix, "keep one of the two",
		"the prefix %s has two different rows: line %d and line %d", row.Prefix, former.Line, row.Line)
}
