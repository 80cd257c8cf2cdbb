// SPDX-License-Identifier: Apache-2.0

package macprefixes

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

func (p *parser) prefix(row, node *yaml.Node, into *Row) prefixKey {
	if node == nil {
		p.fail(row, CodeMissingKey, "write the first bytes of the MAC address in quotes", "the row has no macPrefix")
		return prefixKey{}
	}
	text, ok := p.text(node, "macPrefix")
	if !ok {
		return prefixKey{}
	}
	if node.Style == 0 && looksLikeNumber.MatchString(text) {
		p.fail(node, CodeUnquoted, "put it in quotes", "YAML readers take the unquoted macPrefix %s for a number", abbreviate(text))
		return prefixKey{}
	}
	value, digits, err := parsePrefix(text)
	if err != nil {
		p.fail(node, CodePrefix, `write it like "b0:7b:25"`, "the prefix %q %s", abbreviate(text), err)
		return prefixKey{}
	}
	into.Prefix, into.Bits = format(value, digits), 4*digits
	return prefixKey{value, digits}
}

func (p *parser) required(row, node *yaml.Node, name string) string {
	if node == nil {
		p.fail(row, CodeMissingKey, "add it", "the key %s is missing", name)
		return ""
	}
	text, ok := p.text(node, name)
	if ok && strings.TrimSpace(text) == "" {
		p.fail(node, CodeMissingKey, "fill it in", "%s is empty", name)
	}
	return text
}

// choice returns the value of an optional key that has a closed set of values.
func (p *parser) choice(node *yaml.Node, name, byDefault string, allowed ...string) string {
	if node == nil {
		return byDefault
	}
	text, ok := p.text(node, name)
	if ok && !slices.Contains(allowed, text) {
		p.fail(node, CodeValue, "upper and lower case matter", "%s is %q and must be one of %s", name, abbreviate(text), strings.Join(allowed, ", "))
	}
	return text
}

func (p *parser) protocol(node *yaml.Node) string {
	if node != nil && node.Kind == yaml.ScalarNode && (node.Value == "IPMI" || node.Value == "SSH") {
		p.fail(node, CodeValue, "use Redfish, RedfishLocal or RedfishWithRegistryPatch", "the protocol %s is reserved and not spoken yet", node.Value)
		return ""
	}
	return p.choice(node, "protocol", "Redfish", "Redfish", "RedfishLocal", "RedfishWithRegistryPatch")
}

func (p *parser) port(node *yaml.Node, name string, byDefault int32) int32 {
	if node == nil {
		return byDefault
	}
	if node.Kind != yaml.ScalarNode || node.Tag != "!!int" {
		p.fail(node, CodeShape, "write a plain number", "%s is not a whole number", name)
		return 0
	}
	// Base 10 on purpose: YAML would read 0443 as an octal number.
	port, err := strconv.ParseInt(node.Value, 10, 32)
	if err != nil || port < 1 || port > 65535 || strings.HasPrefix(node.Value, "0") {
		p.fail(node, CodeValue, "ports are 1 to 65535, without leading zeros", "%s is %s", name, abbreviate(node.Value))
		return 0
	}
	return int32(port)
}

func (p *parser) credentials(row *yaml.Node, fields map[string]*yaml.Node, into *Row) {
	inline, ref := fields["defaultCredentials"], fields["credentialsSecretRef"]
	if inline != nil && ref != nil {
		p.fail(ref, CodeValue, "keep credentialsSecretRef", "the row has both defaultCredentials and credentialsSecretRef")
		return
	}
	if ref != nil {
		if parts, ok := p.mapping(ref, "credentialsSecretRef", "name"); ok {
			into.CredentialsSecretRef = p.required(ref, parts["name"], "credentialsSecretRef.name")
			if name := into.CredentialsSecretRef; strings.TrimSpace(name) != "" && (!secretName.MatchString(name) || len(name) > maxSecretName) {
				p.fail(parts["name"], CodeValue, "use lower-case letters, digits, dashes and dots, as in metadata.name of the Secret",
					"%q cannot be the name of a Secret", abbreviate(name))
			}
		}
		return
	}
	if inline == nil {
		return
	}
	items, ok := p.sequence(inline, "defaultCredentials")
	if !ok {
		return
	}
	if len(items) > maxCredentials {
		p.fail(inline, CodeLimit, "every further one is a failed login that can lock an account",
			"the row has %d credentials and at most %d are tried", len(items), maxCredentials)
		return
	}
	for _, item := range items {
		parts, ok := p.mapping(item, "a credential", "username", "password")
		if !ok {
			continue
		}
		into.DefaultCredentials = append(into.DefaultCredentials, Credential{
			Username: p.required(item, parts["username"], "username"),
			Password: p.password(item, parts["password"]),
		})
	}
	if len(items) > 0 {
		p.inlineCount++
		if p.inline == nil {
			p.inline = row
		}
	}
}

// password may be empty, since some factories ship it so, but must be there.
func (p *parser) password(row, node *yaml.Node) string {
	if node == nil {
		p.fail(row, CodeMissingKey, `write password: "" where it is empty`, "the key password is missing")
		return ""
	}
	text, _ := p.text(node, "password")
	return text
}

func (p *parser) console(node *yaml.Node) *Console {
	if node == nil {
		return nil
	}
	fields, ok := p.mapping(node, "console", "type", "port")
	if !ok {
		return nil
	}
	if fields["type"] == nil {
		p.fail(node, CodeMissingKey, "add it", "the console has no type")
		return nil
	}
	kind := p.choice(fields["type"], "console.type", "", "IPMI", "SSH", "SSHLenovo")
	return &Console{Type: kind, Port: p.port(fields["port"], "console.port", map[string]int32{"IPMI": 623, "SSH": 22, "SSHLenovo": 22}[kind])}
}

// looksLikeNumber is what some YAML readers take for a number where this one reads text: digits in base 60, and exponents that no
// number can have.
var looksLikeNumber = regexp.MustCompile(`^\d+(:[0-5]?\d)+$|^\d+[eE]\d+$`)

// secretName is the form of a name that an object can have.
var secretName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

const maxSecretName = 253

// notStrings names what YAML takes an unquoted value for, by its tag.
var notStrings = map[string]string{
	"!!int": "a number", "!!float": "a number", "!!bool": "a boolean", "!!null": "nothing", "!!timestamp": "a date",
}

// text returns a string value. What YAML reads as anything else is refused: 001122 would have become 594.
func (p *parser) text(node *yaml.Node, name string) (string, bool) {
	if node.Kind != yaml.ScalarNode {
		p.fail(node, CodeShape, "write one value", "%s is not a string", name)
		return "", false
	}
	if node.Tag != "!!str" {
		kind := notStrings[node.Tag]
		if kind == "" {
			kind = "something else than a string"
		}
		p.fail(node, CodeUnquoted, "put it in quotes", "YAML reads the unquoted %s %s as %s", name, abbreviate(node.Value), kind)
		return "", false
	}
	return node.Value, true
}

func (p *parser) sequence(node *yaml.Node, name string) ([]*yaml.Node, bool) {
	if node.Kind != yaml.SequenceNode {
		p.fail(node, CodeShape, "write its items on lines that begin with '-'", "%s is not a list", name)
		return nil, false
	}
	return node.Content, true
}

// mapping returns the values of a mapping by key. Aliases and merge keys are not followed: a row says all about itself.
func (p *parser) mapping(node *yaml.Node, name string, allowed ...string) (map[string]*yaml.Node, bool) {
	if node.Kind != yaml.MappingNode {
		p.fail(node, CodeShape, "keys are "+strings.Join(allowed, ", "), "%s is not a mapping", name)
		return nil, false
	}
	fields := make(map[string]*yaml.Node, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		switch _, seen := fields[key.Value]; {
		case key.Kind != yaml.ScalarNode || !slices.Contains(allowed, key.Value):
			p.fail(key, CodeUnknownKey, "keys are "+strings.Join(allowed, ", "), "%s has no key %q", name, abbreviate(key.Value))
		case seen:
			p.fail(key, CodeDuplicateKey, "keep one of the two", "%s has the key %s twice", name, key.Value)
		default:
			fields[key.Value] = node.Content[i+1]
		}
	}
	return fields, true
}
