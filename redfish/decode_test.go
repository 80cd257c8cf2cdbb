// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"github.com/stmcginnis/gofish/schemas"

	"encoding/json"
	"math"
	"testing"
)

func TestValuesOfAWrongTypeReadAsAbsent(t *testing.T) {
	var got struct {
		T text
		N number
		F flag
		O object[struct{ A text }]
		L list[text]
		K link
	}
	type row struct {
		doc  string
		says func() bool
	}
	for name, c := range map[string]row{
		"as they should be": {`{"T":" a ","N":2.5,"F":true,"O":{"A":"x"},"L":["x"],"K":{"@odata.id":"/x"}}`, func() bool {
			return got.T == "a" && got.N == 2.5 && got.F.Value && got.O.Value.A == "x" && got.L.Values[0] == "x" && got.K == "/x"
		}},
		"mixed up": {`{"T":7,"N":"2.5","F":"True","K":"/x"}`, func() bool { return got.T == "7" && got.N == 2.5 && got.F.Value && got.K == "/x" }},
		"null": {`{"T":null,"N":null,"F":null,"O":null,"L":null,"K":null}`, func() bool {
			return got.T == "" && got.N == 0 && !got.F.Present && !got.O.Present && !got.L.Present && got.K == ""
		}},
		"wrong": {`{"T":{"a":1},"N":[],"F":1,"O":"x","L":{"0":1},"K":[1]}`, func() bool {
			return got.T == "" && got.N == 0 && !got.F.Present && !got.O.Present && !got.L.Present && got.K == ""
		}},
		"numbers of no kind": {`{"N":"NaN"}`, func() bool { return got.N == 0 }},
		"infinite":           {`{"N":"1e999"}`, func() bool { return got.N == 0 }},
		"false is present":   {`{"F":false}`, func() bool { return got.F.Present && !got.F.Value }},
		"empty is present":   {`{"L":[],"O":{}}`, func() bool { return got.L.Present && got.O.Present }},
		"members of a list":  {`{"L":["a",1,null,{}]}`, func() bool { return len(got.L.Values) == 4 && len(words(got.L)) == 2 }},
	} {
		got.T, got.N, got.F = "", 0, flag{}
		got.O, got.L, got.K = object[struct{ A text }]{}, list[text]{}, ""
		if err := json.Unmarshal([]byte(c.doc), &got); err != nil || !c.says() {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func FuzzSystem(f *testing.F) {
	f.Add([]byte(systemJSON("On")))
	f.Add([]byte(`{"PowerState":0,"Boot":[],"Actions":{"#ComputerSystem.Reset":null},"MemorySummary":{"TotalSystemMemoryGiB":1e300}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var doc systemDoc
		err := json.Unmarshal(raw, &doc)
		if isObject(raw) && json.Valid(raw) && err != nil {
			t.Fatalf("an object failed to decode: %v", err)
		}
		s := doc.snapshot("/x")
		if s.Power == PowerOff && doc.PowerState == "" || s.MemoryBytes < 0 || s.CPUCount < 0 {
			t.Errorf("made up a state: %+v", s)
		}
		doc.resettable("/x")
	})
}

func FuzzManager(f *testing.F) {
	f.Add([]byte(`{"Id":"1","LastResetTime":"0000-00-00T00:00:00+00:00","Links":{"ManagerForServers":[{"@odata.id":"/x"}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var doc managerDoc
		if err := json.Unmarshal(raw, &doc); isObject(raw) && json.Valid(raw) && err != nil {
			t.Fatalf("an object failed to decode: %v", err)
		}
		_ = plausible(doc.LastResetTime) // must not panic
	})
}

func FuzzCollection(f *testing.F) {
	f.Add([]byte(`{"Members":[{"@odata.id":"/x","MACAddress":"70:b5:e8:f0:52:dc"},null,{}],"Members@odata.nextLink":7}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var p page
		if err := json.Unmarshal(raw, &p); isObject(raw) && json.Valid(raw) && err != nil {
			t.Fatalf("an object failed to decode: %v", err)
		}
		var members []member
		for _, m := range p.Members.Values {
			referenceOnly(m)
			members = append(members, member{URI: memberURI(m), raw: m})
		}
		nics, _ := hostNICs(members)
		for _, nic := range nics {
			if mac, ok := cleanMAC(nic.MACAddress); !ok || mac != nic.MACAddress {
				t.Errorf("%q is not a clean address", nic.MACAddress)
			}
		}
	})
}

func FuzzErrorBody(f *testing.F) {
	f.Add([]byte(`{"error":{"code":"Base.1.0.X","message":"m","@Message.ExtendedInfo":[{"MessageId":"a","Message":"b"}]}}`))
	f.Add([]byte(`{"error":{"@Message.ExtendedInfo":{"MessageId":7}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		id, message := errorMessage(raw)
		if len(id) > 130 || len(message) > 310 {
			t.Error("not clipped")
		}
	})
}

func TestMACAddresses(t *testing.T) {
	for raw, want := range map[string]string{
		"70:B5:E8:F0:52:DC": "70:b5:e8:f0:52:dc", "70-b5-e8-f0-52-dc": "70:b5:e8:f0:52:dc", "70b5.e8f0.52dc": "70:b5:e8:f0:52:dc", "70B5E8F052DC": "70:b5:e8:f0:52:dc",
		"": "", "Not Available": "", "70:b5:e8:f0:52": "", "70:b5:e8:f0:52:dc:00:01": "", "00:00:00:00:00:00": "", "ff:ff:ff:ff:ff:ff": "", "01:00:5e:00:00:01": "", "zz:b5:e8:f0:52:dc": "",
	} {
		if got, ok := cleanMAC(raw); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q %v", raw, got, ok)
		}
	}
}

func TestStrongETags(t *testing.T) {
	for raw, want := range map[string]string{`"a"`: `"a"`, `W/"a"`: `"a"`, `a`: `"a"`, `""a""`: `"a"`, `"a-gzip"`: `"a"`, `W/"a-gzip"`: `"a"`, ``: ``, `*`: `*`} {
		if got := strongETag(raw); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

func TestMemoryThatDoesNotFitIsZero(t *testing.T) {
	for n, want := range map[number]int64{1: 1 << 30, 0.5: 1 << 29, -1: 0, 0: 0, 1e300: 0, number(math.MaxInt64): 0} {
		if got := gibibytes(n); got != want {
			t.Errorf("%v: %d", n, got)
		}
	}
}

func TestGofishReadsThroughOurTransport(t *testing.T) {
	f := newFake(t)
	c := f.client(t).(*client)
	op, cancel, err := c.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	system, err := schemas.GetObject[schemas.ComputerSystem](&gofishClient{op: op}, systemURI)
	if err != nil || system.UUID != systemUUID {
		t.Fatalf("%+v, %v", system, err)
	}
	if _, err := (&gofishClient{op: op}).PostMultipart("/x", nil); err == nil {
		t.Error("a multipart push was sent")
	}
	f.set("/redfish/v1/Systems", "null")
	if _, err := schemas.GetCollectionObjects[schemas.ComputerSystem](&gofishClient{op: op}, "/redfish/v1/Systems"); err == nil {
		t.Error("a null collection, which makes gofish panic, was let through")
	}
}
