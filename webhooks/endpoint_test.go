// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestEndpoint(t *testing.T) {
	other := endpoint("other", mac)
	for name, c := range map[string]struct {
		before, after string
		want, warns   string
	}{
		"a new MAC address passes":                  {after: "b0:7b:25:00:0a:fe"},
		"a MAC address that another has is refused": {after: mac, want: "Invalid\nspec.MACAddress: Duplicate value: \"b0:7b:25:00:0a:ff\": Endpoint \"other\" has it; no two Endpoints have one spec.macAddress"},
		"another spelling of it is the same":        {after: "B0-7B-25-00-0A-FF", want: "Invalid\nspec.MACAddress: Duplicate value: \"B0-7B-25-00-0A-FF\": Endpoint \"other\" has it; no two Endpoints have one spec.macAddress"},
		"a change to it is refused":                 {before: "b0:7b:25:00:0a:fe", after: mac, want: "Invalid\nspec.MACAddress: Duplicate value: \"b0:7b:25:00:0a:ff\": Endpoint \"other\" has it; no two Endpoints have one spec.macAddress"},
		"its own MAC address passes on an update":   {before: mac, after: mac},
		"a malformed MAC address is refused with what is wrong": {after: "b0:7b:25:00:0a", want: "Invalid\nspec.macAddress: Invalid value: \"b0:7b:25:00:0a\": " +
			"MAC address \"b0:7b:25:00:0a\": has 10 hexadecimal digits and needs 12; write every byte with two digits, like b0:7b:25:00:0a:ff"},
		"a multicast address passes with a warning": {after: "01:00:5e:00:00:01", warns: "spec.macAddress: MAC address \"01:00:5e:00:00:01\": " +
			"is a multicast address (the lowest bit of its first byte is set), which no port has; no row of macprefixes.yaml matches it, " +
			"so that no BMC is made of the Endpoint; write the address that the device has"},
		"the broadcast address is refused": {after: "ff:ff:ff:ff:ff:ff", want: "Invalid\nspec.macAddress: Invalid value: \"ff:ff:ff:ff:ff:ff\": " +
			"MAC address \"ff:ff:ff:ff:ff:ff\": is all ones, which is the broadcast address"},
		"a stored mistake that stays is not held against an update": {before: "01:00:5e:00:00:01", after: "01:00:5e:00:00:01"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, defaults(t), other)
			op, after := admissionv1.Create, endpoint("e", c.after)
			var got string
			var warnings []string
			if c.before != "" {
				got, warnings = w.ask(PathValidateEndpoint, user, admissionv1.Update, endpoint("e", c.before), after)
			} else {
				got, warnings = w.ask(PathValidateEndpoint, user, op, nil, after)
			}
			if got != c.want || c.warns != "" && !slices.Contains(warnings, c.warns) {
				t.Errorf("got  %s\nwant %s\nwarnings %s\nwant     %s", got, c.want, warnings, c.warns)
			}
		})
	}
}

func TestAnEndpointOfAKnownBMCIsWarnedAbout(t *testing.T) {
	w := newWorld(t, defaults(t), inline("b1", "10.0.0.9", mac))
	denied, warnings := w.ask(PathValidateEndpoint, user, admissionv1.Create, nil, endpoint("e", mac))
	want := "BMC b1 is reached at MAC address " + mac + " without an Endpoint already; delete one of the two"
	if denied != "" || len(warnings) != 1 || warnings[0] != want {
		t.Error(denied, warnings)
	}
}

func TestAnAddressAtWhichNoDeviceAnswersIsRefused(t *testing.T) {
	const remedy = ", at which no single device answers; write the address that the device has"
	for ip, want := range map[string]string{
		"0.0.0.0":         "it is the unspecified address",
		"::":              "it is the unspecified address",
		"224.0.0.1":       "it is a multicast address",
		"::ffff:e000:1":   "it is a multicast address",
		"ff02::1":         "it is a multicast address",
		"255.255.255.255": "it is the broadcast address",
		"127.0.0.2":       "", // emulated BMCs answer there
		"10.0.0.7":        "",
		"fd00::7":         "",
	} {
		t.Run(ip, func(t *testing.T) {
			e, b := endpoint("e", mac), inline("b", ip, "")
			e.Spec.IP = ip
			wanted := func(path string) string {
				if want == "" {
					return ""
				}
				return "Invalid\n" + path + ": Invalid value: \"" + ip + "\": " + want + remedy
			}
			w := newWorld(t, defaults(t))
			if got, _ := w.ask(PathValidateEndpoint, user, admissionv1.Create, nil, e); got != wanted("spec.ip") {
				t.Errorf("a new Endpoint: %s", got)
			}
			if got, _ := w.ask(PathValidateEndpoint, user, admissionv1.Update, endpoint("e", mac), e); got != wanted("spec.ip") {
				t.Errorf("a changed Endpoint: %s", got)
			}
			if got, _ := w.ask(PathValidateEndpoint, user, admissionv1.Update, e, e); got != "" {
				t.Errorf("a stored Endpoint: %s", got)
			}
			if got, _ := w.ask(PathValidateBMC, user, admissionv1.Create, nil, b); got != wanted("spec.access.ip") {
				t.Errorf("a new BMC: %s", got)
			}
			if got, _ := w.ask(PathValidateBMC, user, admissionv1.Update, b, b); got != "" {
				t.Errorf("a stored BMC: %s", got)
			}
		})
	}
}

func TestAnIPAddressThatAnotherEndpointHasIsWarnedAbout(t *testing.T) {
	const warning = "Endpoint other has IP address 10.0.0.7 as well; one device answers there, and is taken for both until one of the two is corrected or deleted"
	mine := func(ip string) *v1alpha1.Endpoint {
		e := endpoint("e", "b0:7b:25:00:0a:fe")
		e.Spec.IP = ip
		return e
	}
	for name, c := range map[string]struct {
		before, after *v1alpha1.Endpoint
		want          []string
	}{
		"a new Endpoint":                    {nil, mine("10.0.0.7"), []string{warning}},
		"an Endpoint that comes to have it": {mine("10.0.0.8"), mine("10.0.0.7"), []string{warning}},
		"one that has it already":           {mine("10.0.0.7"), mine("10.0.0.7"), nil},
		"one with an address of its own":    {nil, mine("10.0.0.8"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, defaults(t), endpoint("other", mac))
			var denied string
			var got []string
			if c.before == nil {
				denied, got = w.ask(PathValidateEndpoint, user, admissionv1.Create, nil, c.after)
			} else {
				denied, got = w.ask(PathValidateEndpoint, user, admissionv1.Update, c.before, c.after)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || denied != "" {
				t.Errorf("%s%s", denied, diff)
			}
		})
	}
}
