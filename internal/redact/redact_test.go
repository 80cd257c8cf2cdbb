// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a password in YAML":                   {"password: hunter22\nuser: root\n", "password: [hidden]\nuser: root\n"},
		"the whole value after it":             {"password: correct horse, battery \"staple\n", "password: [hidden]\n"},
		"a block of it":                        {"password: |\n  correct\n  horse\nuser: root", "password: [hidden]\nuser: root"},
		"a password in JSON":                   {`{"Password":"hunter 22, \"x\" y","a":1}`, `{"Password":"[hidden]","a":1}`},
		"a password in JSON in JSON":           {`"msg":"sent {\"Password\":\"hunter 22\",\"a\":1}"`, `"msg":"sent {\"Password\":\"[hidden]\",\"a\":1}"`},
		"a word before a colon":                {"login failed, passwd = hunter 22", "login failed, passwd = [hidden]"},
		"a passphrase":                         {"Passphrase: open sesame", "Passphrase: [hidden]"},
		"a community":                          {"snmp community: public", "snmp community: [hidden]"},
		"a licence":                            {"LicenceKey=ABC-DEF", "LicenceKey=[hidden]"},
		"a key":                                {`"EncryptionKey": "00ff"`, `"EncryptionKey": "[hidden]"`},
		"a hash with its salt":                 {"salt: ab\nhash: cd", "salt: [hidden]\nhash: [hidden]"},
		"an authorization":                     {"Authorization: Basic cm9vdDpjYWx2aW4=", "Authorization: [hidden]"},
		"a token of a session":                 {`"X-Auth-Token": "abc"`, `"X-Auth-Token": "[hidden]"`},
		"a bearer token in a sentence":         {"the client sent Bearer abcdefgh12 to it", "the client sent Bearer [hidden] to it"},
		"the name of a boot medium":            {"https://boot.lab/media/0vLMZPvL2FPv4vPx2vf5fBBPEpFP1jJ9dQvRCLqc1rI.iso", "https://boot.lab/media/[hidden].iso"},
		"a JSON web token":                     {"got eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl back", "got [hidden] back"},
		"a token of a forge":                   {"cloned with ghp_0123456789abcdefghij", "cloned with [hidden]"},
		"a bootstrap token":                    {"joins with abcdef.0123456789abcdef", "joins with [hidden]"},
		"user info and query of a URL":         {"GET https://root:c@lvin@10.0.0.1/redfish?x=1&y=2 failed", "GET https://[hidden]@10.0.0.1/redfish?[hidden] failed"},
		"a user alone":                         {"ftp://root@10.0.0.1/", "ftp://[hidden]@10.0.0.1/"},
		"a fragment":                           {"https://h/x#token", "https://h/x#[hidden]"},
		"a URL without either":                 {"https://10.0.0.1:443/redfish/v1", "https://10.0.0.1:443/redfish/v1"},
		"an ignition":                          {"source: data:;base64,eyJhIjoiYiJ9eyJhIjoiYiJ9", "source: data:;base64,[hidden]"},
		"a plain data URL":                     {"source: data:,root%3Apass", "source: data:,[hidden]"},
		"a private key":                        {"-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----\nx", "-----BEGIN EC PRIVATE KEY-----[hidden]\nx"},
		"one that is cut off":                  {"-----BEGIN OPENSSH PRIVATE KEY-----\nMHc", "-----BEGIN OPENSSH PRIVATE KEY-----[hidden]"},
		"the hash of a password":               {"root:$6$salt$abcdef/gh.:19000:0", "root:[hidden]:19000:0"},
		"the URL of a medium":                  {"policy.metalaw.dev/media-url: https://boot/media/abc", "policy.metalaw.dev/media-url: [hidden]"},
		"the name of a Secret":                 {"ignitionSecretRef: {name: web}", "ignitionSecretRef: {name: web}"},
		"a switch":                             {"SNMPv3PassphraseEnabled: Disabled", "SNMPv3PassphraseEnabled: Disabled"},
		"a message without any secret":         {"the BMC refused the password", "the BMC refused the password"},
		"a digest of an image":                 {"ghcr.io/a/b@sha256:00ff", "ghcr.io/a/b@sha256:00ff"},
		"another key before it on one line":    {"user: root password: hunter22", "user: root password: [hidden]"},
		"a key that is a part of another word": {"monkeys: many", "monkeys: [hidden]"}, // rather one word too many
	} {
		t.Run(name, func(t *testing.T) {
			r := &Redactor{}
			got := r.Text(c.text)
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if (got != c.text) != (r.Count > 0) {
				t.Errorf("%d places were counted", r.Count)
			}
			again := &Redactor{}
			if twice := again.Text(got); twice != got || again.Count != 0 {
				t.Errorf("a second time: %q, %d", twice, again.Count)
			}
		})
	}
}

func TestDocument(t *testing.T) {
	for name, c := range map[string]struct{ document, want string }{
		"by key":                        {`{"Password":"x","IPMIKey":"y","Users.2.SHA256PasswordSalt":"z","a":"b"}`, `{"IPMIKey":"[hidden]","Password":"[hidden]","Users.2.SHA256PasswordSalt":"[hidden]","a":"b"}`},
		"a list":                        {`{"CommunityNames":["public","private"]}`, `{"CommunityNames":["[hidden]","[hidden]"]}`},
		"all below a key":               {`{"License":{"Type":"Perpetual","Entitlements":[{"Id":"7"}]}}`, `{"License":{"Entitlements":[{"Id":"[hidden]"}],"Type":"[hidden]"}}`},
		"a number":                      {`{"Password":1234,"MinPasswordLength":8}`, `{"MinPasswordLength":8,"Password":"[hidden]"}`},
		"a pair of name and value":      {`{"Name":"SNMPCommunity","Value":"public"}`, `{"Name":"SNMPCommunity","Value":"[hidden]"}`},
		"a variable of a container":     {`{"env":[{"name":"DB_PASSWORD","value":"x"},{"name":"HOME","value":"/"}]}`, `{"env":[{"name":"DB_PASSWORD","value":"[hidden]"},{"name":"HOME","value":"/"}]}`},
		"by form, at a key that is not": {`{"message":"tried https://a:b@c/"}`, `{"message":"tried https://[hidden]@c/"}`},
		"a link stays":                  {`{"LicenseService":{"@odata.id":"/redfish/v1/LicenseService"}}`, `{"LicenseService":{"@odata.id":"/redfish/v1/LicenseService"}}`},
		"what OData says of a key":      {`{"LicenseType@Redfish.AllowableValues":["Trial"]}`, `{"LicenseType@Redfish.AllowableValues":["Trial"]}`},
		"the names of Secrets":          {`{"bmcSecretRef":{"name":"creds"}}`, `{"bmcSecretRef":{"name":"creds"}}`},
		"the key of a taint":            {`{"taints":[{"key":"unwiped","effect":"NoBind"}]}`, `{"taints":[{"effect":"NoBind","key":"unwiped"}]}`},
		"another key":                   {`{"key":"00ff"}`, `{"key":"[hidden]"}`},
		"the URL of a medium":           {`{"annotations":{"policy.metalaw.dev/media-url":"https://b/m/1"}}`, `{"annotations":{"policy.metalaw.dev/media-url":"[hidden]"}}`},
		"what is empty, and a switch":   {`{"Password":"","SNMPv3PassphraseEnabled":"Disabled","token":null,"hasToken":true}`, `{"Password":"","SNMPv3PassphraseEnabled":"Disabled","hasToken":true,"token":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			var document any
			if err := json.Unmarshal([]byte(c.document), &document); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal((&Redactor{}).Document(document))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALineOfALogIsRedactedByItsKeysToo(t *testing.T) {
	got := (&Redactor{}).Log([]byte(`{"level":"info","msg":"sent password: correct \"horse","n":12345678901234567}` + "\npanic: token: abc\nlast"))
	want := `{"level":"info","msg":"sent password: [hidden]","n":12345678901234567}` + "\npanic: token: [hidden]\nlast"
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAKeyOfSeveralLinesIsOneSecretInALog(t *testing.T) {
	got := (&Redactor{}).Log([]byte("{\"a\":1}\n-----BEGIN PRIVATE KEY-----\nMHc\n-----END PRIVATE KEY-----\nrest\n{\"a\":2}\n"))
	if want := "{\"a\":1}\n-----BEGIN PRIVATE KEY-----[hidden]\nrest\n{\"a\":2}\n"; string(got) != want {
		t.Errorf("got %s", got)
	}
}

func TestWhatWasHiddenIsHiddenEverywhere(t *testing.T) {
	r := &Redactor{}
	r.Text("password: hunter22\ntoken: short\nsecret: withoutdigits")
	if got := r.Everywhere("it logs in with hunter22, short and withoutdigits"); got != "it logs in with [hidden], short and withoutdigits" {
		t.Error(got)
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"password: x\nhttps://a:b@c/", `"Password":"x\"y"`, "-----BEGIN PRIVATE KEY-----", "token=\\\"a\\\"", "key: |\n a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { // it does not panic, and hides what follows a password
		(&Redactor{}).Text(text)
		const canary = "c4narycanary"
		if strings.ContainsAny(text, "\n\"'\\|>") {
			return
		}
		if got := (&Redactor{}).Text("password: " + text + canary); strings.Contains(got, canary) {
			t.Errorf("%q", got)
		}
	})
}

func FuzzLog(f *testing.F) {
	f.Add([]byte(`{"password":"x"}` + "\nplain"))
	f.Fuzz(func(_ *testing.T, text []byte) { // it must not panic
		r := &Redactor{}
		r.Everywhere(string(r.Log(text)))
	})
}
