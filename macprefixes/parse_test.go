// SPDX-License-Identifier: Apache-2.0

package macprefixes

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseReadsEveryField(t *testing.T) {
	db, problems := Parse("m.yaml", []byte(`
macPrefixes:
- macPrefix: B0-7B-25
  manufacturer: Dell
- macPrefix: "70:b3:d5:1"
  manufacturer: Sensors
  protocol: RedfishWithRegistryPatch
  protocolScheme: http
  type: bmc
  credentialsSecretRef: {name: sensors}
  console: {type: SSH}
- macPrefix: b07b.2500.0aff
  manufacturer: One port
  port: 8443
  defaultCredentials:
  - {username: root, password: ""}
  - {username: admin, password: "0123"}
  console: {type: IPMI, port: 6230}
`))
	want := []Row{
		{Prefix: "b0:7b:25", Bits: 24, Manufacturer: "Dell", Protocol: "Redfish", Scheme: "https", Port: 443, Type: "bmc", Line: 3},
		{Prefix: "70:b3:d5:1", Bits: 28, Manufacturer: "Sensors", Protocol: "RedfishWithRegistryPatch", Scheme: "http", Port: 80, Type: "bmc",
			CredentialsSecretRef: "sensors", Console: &Console{"SSH", 22}, Line: 5},
		{Prefix: "b0:7b:25:00:0a:ff", Bits: 48, Manufacturer: "One port", Protocol: "Redfish", Scheme: "https", Port: 8443, Type: "bmc",
			DefaultCredentials: []Credential{{"root", ""}, {"admin", "0123"}}, Console: &Console{"IPMI", 6230}, Line: 12},
	}
	if db == nil {
		t.Fatalf("refused: %v", problems)
	}
	if diff := cmp.Diff(want, db.Rows()); diff != "" {
		t.Error(diff)
	}
	wantProblems := []string{"m.yaml:12:3: warning: 1 of 3 rows carry credentials in clear, readable by everyone who may read the bundle" +
		" (keep them in a Secret and name it in credentialsSecretRef) [mac-inline-credentials]"}
	if diff := cmp.Diff(wantProblems, texts(problems)); diff != "" {
		t.Error(diff)
	}
}

func texts(problems []Problem) []string {
	var out []string
	for _, p := range problems {
		hint := ""
		if p.Hint != "" {
			hint = " (" + p.Hint + ")"
		}
		out = append(out, fmt.Sprintf("%s:%d:%d: %s: %s%s [%s]", p.File, p.Line, p.Column, p.Severity, p.Message, hint, p.Code))
	}
	return out
}

// row wraps the lines of one row; its macPrefix stands in line 2, so further lines begin with line 3.
func row(lines ...string) string {
	return "macPrefixes:\n- macPrefix: \"b0:7b:25\"\n  " + strings.Join(lines, "\n  ")
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"an empty file":                     {"", "m.yaml:1:1: error: the file is empty"},
		"comments alone":                    {"# nothing\n", "m.yaml:1:1: error: the file is empty"},
		"broken YAML":                       {"macPrefixes: [\n", "error: the text is not YAML"},
		"two documents":                     {"macPrefixes: []\n---\nmacPrefixes: []\n", "m.yaml:2:1: error: the file holds more than one YAML document"},
		"a list at the top":                 {"- a\n", "m.yaml:1:1: error: the database is not a mapping"},
		"no rows key":                       {"{}", "m.yaml:1:1: error: the key macPrefixes is missing"},
		"an unknown key at the top":         {"macPrefixes: []\nmacprefixes: []\n", `m.yaml:2:1: error: the database has no key "macprefixes"`},
		"rows that are no list":             {"macPrefixes: {}\n", "m.yaml:1:14: error: macPrefixes is not a list"},
		"an unknown key in a row":           {row("manufacturer: X", "Port: 1"), `m.yaml:4:3: error: a row has no key "Port" (keys are macPrefix,`},
		"a key twice":                       {row("manufacturer: X", "manufacturer: Y"), "m.yaml:4:3: error: a row has the key manufacturer twice"},
		"a merge key":                       {row("manufacturer: X", "<<: {port: 1}"), `m.yaml:4:3: error: a row has no key "<<"`},
		"a row without prefix":              {"macPrefixes:\n- manufacturer: X\n", "m.yaml:2:3: error: the row has no macPrefix"},
		"a row without manufacturer":        {row(""), "m.yaml:2:3: error: the key manufacturer is missing"},
		"an empty manufacturer":             {row(`manufacturer: " "`), "m.yaml:3:17: error: manufacturer is empty"},
		"a prefix that YAML reads as octal": {"macPrefixes: [{macPrefix: 001122, manufacturer: X}]", "m.yaml:1:27: error: YAML reads the unquoted macPrefix 001122 as a number (put it in quotes)"},
		"a prefix that YAML reads as float": {"macPrefixes: [{macPrefix: 0012e4, manufacturer: X}]", "YAML reads the unquoted macPrefix 0012e4 as a number (put it in quotes)"},
		"a short prefix":                    {`macPrefixes: [{macPrefix: "b0:7b", manufacturer: X}]`, `m.yaml:1:27: error: the prefix "b0:7b" has 4 hexadecimal digits`},
		"a prefix longer than an address":   {`macPrefixes: [{macPrefix: "b0:7b:25:00:00:00:00", manufacturer: X}]`, "has 14 hexadecimal digits"},
		"a prefix with a mask":              {`macPrefixes: [{macPrefix: "70:b3:d5/28", manufacturer: X}]`, `has '/' as character 9`},
		"a multicast prefix":                {`macPrefixes: [{macPrefix: "01:00:5e", manufacturer: X}]`, "multicast"},
		"the prefix of zeros":               {`macPrefixes: [{macPrefix: "00:00:00", manufacturer: X}]`, "all zeros"},
		"the prefix of ones":                {`macPrefixes: [{macPrefix: "ffffff", manufacturer: X}]`, "all ones"},
		"a reserved protocol":               {row("manufacturer: X", "protocol: IPMI"), "m.yaml:4:13: error: the protocol IPMI is reserved and not spoken yet"},
		"an unknown protocol":               {row("manufacturer: X", "protocol: redfish"), `protocol is "redfish" and must be one of Redfish, RedfishLocal, RedfishWithRegistryPatch`},
		"an unknown scheme":                 {row("manufacturer: X", "protocolScheme: ftp"), `protocolScheme is "ftp" and must be one of https, http`},
		"an unknown type":                   {row("manufacturer: X", "type: switch"), `type is "switch" and must be one of bmc`},
		"a port out of range":               {row("manufacturer: X", "port: 65536"), "m.yaml:4:9: error: port is 65536 (ports are 1 to 65535"},
		"an octal port":                     {row("manufacturer: X", "port: 0443"), "port is 0443"},
		"a port in quotes":                  {row("manufacturer: X", `port: "443"`), "port is not a whole number"},
		"credentials twice":                 {row("manufacturer: X", "defaultCredentials: []", "credentialsSecretRef: {name: a}"), "the row has both defaultCredentials and credentialsSecretRef"},
		"a secret without name":             {row("manufacturer: X", "credentialsSecretRef: {}"), "m.yaml:4:25: error: the key credentialsSecretRef.name is missing"},
		"a credential without password":     {row("manufacturer: X", "defaultCredentials: [{username: a}]"), "m.yaml:4:24: error: the key password is missing"},
		"a credential without user name":    {row("manufacturer: X", `defaultCredentials: [{username: "", password: a}]`), "m.yaml:4:35: error: username is empty"},
		"a password that is a number":       {row("manufacturer: X", "defaultCredentials: [{username: a, password: 0123}]"), "YAML reads the unquoted password 0123 as a number"},
		"too many credentials":              {row("manufacturer: X", "defaultCredentials: ["+strings.Repeat("{username: a, password: b},", 17)+"]"), "the row has 17 credentials and at most 16 are tried"},
		"a console without type":            {row("manufacturer: X", "console: {port: 22}"), "m.yaml:4:12: error: the console has no type"},
		"an unknown console":                {row("manufacturer: X", "console: {type: telnet}"), `console.type is "telnet" and must be one of IPMI, SSH, SSHLenovo`},
		"an alias":                          {"macPrefixes:\n- &a {macPrefix: \"b0:7b:25\", manufacturer: X}\n- *a\n", "m.yaml:3:3: error: a row is not a mapping"},
		"one prefix with two contents":      {row("manufacturer: X", "port: 1\n- macPrefix: B07B25", "manufacturer: X"), "m.yaml:5:14: error: the prefix b0:7b:25 has two different rows: line 2 and line 5"},
		"a database above the size limit":   {"#" + strings.Repeat("x", maxBytes), "at most 1048576 are read"},
		"a tab as indentation":              {"macPrefixes:\n\t- a\n", "m.yaml:2:1: error: a tab is used for indentation (YAML indents with spaces only)"},
		"a prefix in base 60":               {"macPrefixes: [{macPrefix: 00:11:22, manufacturer: X}]", "m.yaml:1:27: error: YAML readers take the unquoted macPrefix 00:11:22 for a number (put it in quotes)"},
		"a prefix with a huge exponent":     {"macPrefixes: [{macPrefix: 12e456, manufacturer: X}]", "m.yaml:1:27: error: YAML readers take the unquoted macPrefix 12e456 for a number (put it in quotes)"},
		"a secret that cannot exist":        {row("manufacturer: X", "credentialsSecretRef: {name: Bad_Name}"), `m.yaml:4:32: error: "Bad_Name" cannot be the name of a Secret (use lower-case letters`},
	} {
		t.Run(name, func(t *testing.T) {
			db, problems := Parse("m.yaml", []byte(c.text))
			if all := strings.Join(texts(problems), "\n"); db != nil || !strings.Contains(all, c.says) {
				t.Errorf("got database %v and problems\n%s\nwant %q", db, all, c.says)
			}
		})
	}
}

func TestParseReportsEveryProblemAtOnce(t *testing.T) {
	_, problems := Parse("m.yaml", []byte("macPrefixes:\n- macPrefix: 001122\n  port: 0\n- manufacturer: X\n  typo: 1\n"))
	want := []string{
		`m.yaml:2:14: error: YAML reads the unquoted macPrefix 001122 as a number (put it in quotes) [mac-unquoted]`,
		`m.yaml:2:3: error: the key manufacturer is missing (add it) [mac-missing-key]`,
		`m.yaml:3:9: error: port is 0 (ports are 1 to 65535, without leading zeros) [mac-value]`,
		`m.yaml:5:3: error: a row has no key "typo" (keys are macPrefix, manufacturer, protocol, protocolScheme, port, type, defaultCredentials, credentialsSecretRef, console) [mac-unknown-key]`,
		`m.yaml:4:3: error: the row has no macPrefix (write the first bytes of the MAC address in quotes) [mac-missing-key]`,
	}
	if diff := cmp.Diff(want, texts(problems)); diff != "" {
		t.Error(diff)
	}
}

func TestParseWarnsOfARowThatSaysTheSameTwice(t *testing.T) {
	db, problems := Parse("m.yaml", []byte(row("manufacturer: X\n- macPrefix: B0-7B-25", "manufacturer: X")))
	want := []string{"m.yaml:4:14: warning: the prefix b0:7b:25 is repeated: line 2 says the same (remove one of the two) [mac-duplicate-prefix]"}
	if diff := cmp.Diff(want, texts(problems)); db == nil || db.Len() != 1 || diff != "" {
		t.Errorf("database %v, %s", db, diff)
	}
}

const shipped = "../policies/bundles/default/macprefixes.yaml"

func TestShippedDatabase(t *testing.T) {
	data, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	db, problems := Parse("macprefixes.yaml", data)
	if db == nil {
		t.Fatal(strings.Join(texts(problems), "\n"))
	}
	if len(problems) != 1 || problems[0].Code != CodeInlineCredentials {
		t.Errorf("problems: %v", texts(problems))
	}
	for mac, want := range map[string]string{
		"B0:7B:25:01:02:03": "Dell root https 443", "C8-4B-D6-01-02-03": "Dell root https 443",
		"5c:ed:8c:00:00:01": "HPE - https 443", "94:40:c9:00:00:01": "HPE - https 443",
		"08:8f:c3:00:00:01": "Lenovo USERID https 443",
		"7c:c2:55:00:00:01": "Supermicro ADMIN https 443", "0c:c4:7a:00:00:01": "Supermicro ADMIN https 443",
		"00:25:90:00:00:01": "Supermicro ADMIN https 443", "ac:1f:6b:00:00:01": "Supermicro ADMIN https 443",
		"3c:ec:ef:00:00:01": "Supermicro ADMIN https 443",
		"b4:2e:99:00:00:01": "Gigabyte admin https 443",
		"a4:bf:01:00:00:01": "Intel - https 443", "00:1e:67:00:00:01": "Intel - https 443",
		"3c:6d:66:00:00:01": "NVIDIA root https 443", "5c:ff:35:00:00:01": "NVIDIA admin https 443",
		"5c:25:73:00:00:01": "NVIDIA root https 443",
		"00:40:a6:00:00:01": "Cray - https 443", "d8:c4:97:00:00:01": "Quanta root https 443",
		"5c:fe:9e:00:00:01": "Wiwynn root https 443",
		"02:4d:4c:00:00:01": "none", "52:54:00:00:00:01": "none",
	} {
		if got := summary(db, mac); got != want {
			t.Errorf("%s: got %q, want %q", mac, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	data, err := os.ReadFile(shipped)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(row("manufacturer: X", "console: {type: SSH}")))
	f.Add([]byte("macPrefixes: [{macPrefix: 001122}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		db, problems := Parse("m.yaml", data)
		failed := false
		for _, p := range problems {
			failed = failed || p.Severity == Error
			if p.Code == "" || p.Message == "" || p.Line < 1 || p.Column < 1 {
				t.Errorf("incomplete problem %+v", p)
			}
		}
		if failed != (db == nil) {
			t.Errorf("database %v with problems %v", db, texts(problems))
		}
	})
}

func BenchmarkParse(b *testing.B) {
	data, err := os.ReadFile(shipped)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		Parse("macprefixes.yaml", data)
	}
}
