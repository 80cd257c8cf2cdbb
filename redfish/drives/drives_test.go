// SPDX-License-Identifier: Apache-2.0

package drives

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const enabled = `"Status":{"State":"Enabled"}`

func one(body string) []Adapter {
	return []Adapter{{Drives: []Resource{{URI: "/s/A/Drives/0", Raw: []byte(body)}}}}
}

func TestWhichDrivesCount(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		// count says that it counts; left are words of why it is left out; both empty where nothing is said.
		count bool
		left  string
	}{
		"an enabled drive":                 {`{"SerialNumber":"S1","CapacityBytes":1,` + enabled + `}`, true, ""},
		"a state in another case":          {`{"SerialNumber":"S1","CapacityBytes":1,"Status":{"State":"enabled"}}`, true, ""},
		"a drive that shows no state":      {`{"SerialNumber":"S1","CapacityBytes":1,"Status":null}`, true, ""},
		"an empty bay":                     {`{"Name":"Bay 4","Status":{"State":"Absent"}}`, false, ""},
		"an empty bay that shows no state": {`{"Name":"Bay 4","SerialNumber":null,"CapacityBytes":null,"Model":""}`, false, ""},
		"a stub":                           {`{"@odata.id":"/s","@odata.type":"#Drive.v1_11_0.Drive"}`, false, ""},
		"a disabled drive":                 {`{"SerialNumber":"S1","CapacityBytes":1,"Status":{"State":"Disabled"}}`, false, "Disabled"},
		"a drive that is not ready":        {`{"SerialNumber":"S1","CapacityBytes":1,"Status":{"State":"UnavailableOffline"}}`, false, "UnavailableOffline"},
		"a spare of no volume":             {`{"SerialNumber":"S1","CapacityBytes":1,"Status":{"State":"StandbySpare"}}`, false, "StandbySpare"},
		"no serial number":                 {`{"Model":"M","CapacityBytes":1,` + enabled + `}`, false, "serial number"},
		"a placeholder":                    {`{"SerialNumber":"N/A","CapacityBytes":1,` + enabled + `}`, false, "serial number"},
		"zeros":                            {`{"SerialNumber":"00000000","CapacityBytes":1,` + enabled + `}`, false, "serial number"},
		"a number for a serial number":     {`{"SerialNumber":12345678,"CapacityBytes":1,` + enabled + `}`, true, ""},
		"no capacity":                      {`{"SerialNumber":"S1","CapacityBytes":null,` + enabled + `}`, false, "capacity"},
		"a negative capacity":              {`{"SerialNumber":"S1","CapacityBytes":-5,` + enabled + `}`, false, "capacity"},
		"a capacity in a string":           {`{"SerialNumber":"S1","CapacityBytes":"960197124096",` + enabled + `}`, true, ""},
		"USB":                              {`{"SerialNumber":"S1","CapacityBytes":1,"Protocol":"USB",` + enabled + `}`, false, ""},
		"USB by its name":                  {`{"Id":"USB_Device2_PortA","SerialNumber":"S1","CapacityBytes":1,` + enabled + `}`, false, ""},
		"a name that holds the letters":    {`{"Id":"BUSB","SerialNumber":"S1","CapacityBytes":1,` + enabled + `}`, true, ""},
		"AMI's virtual disk":               {`{"Model":"Virtual HDisk Device","SerialNumber":"AAAABBBB","CapacityBytes":1,` + enabled + `}`, false, ""},
		"AMI's virtual CD":                 {`{"Model":"Virtual Cdrom Device","SerialNumber":"AAAABBBB","CapacityBytes":1,` + enabled + `}`, false, ""},
		"a disk of a virtual machine":      {`{"Model":"VMware Virtual NVMe Disk","SerialNumber":"VM1","CapacityBytes":1,` + enabled + `}`, true, ""},
		"no JSON":                          {`<html>`, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(one(c.body))
			if (len(got.Drives) == 1) != c.count || (got.Left == "") != (c.left == "") || !strings.Contains(got.Left, c.left) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestWhatIsReadOfADrive(t *testing.T) {
	got := Judge(one(`{"@odata.id":"/s/A/Drives/0","Name":"PCIe SSD in Slot 0 in Bay 1","Model":"Dell Ent NVMe CM6 RI 1.92TB  ","SerialNumber":" 61X0A002TCD8 ",
		"CapacityBytes":1920383410176,"Protocol":"PCIe","Status":{"State":"Enabled"},
		"PhysicalLocation":{"PartLocation":{"LocationOrdinalValue":0,"LocationType":"Slot"}},
		"Identifiers":[{"DurableName":null},{"DurableName":"50:02:53:8B:00:AA:BB:CC","DurableNameFormat":"NAA"},{"DurableName":"eui.002538B111400ABB"},
			{"DurableName":"0000000000000000"},{"DurableName":"5002538b00aabbcc"},3]}`))
	want := Drive{Name: "PCIe SSD in Slot 0 in Bay 1", Slot: "Slot 0", Model: "Dell Ent NVMe CM6 RI 1.92TB", Serial: "61X0A002TCD8",
		CapacityBytes: 1920383410176, Protocol: "PCIe", DurableNames: []string{"5002538b00aabbcc", "002538b111400abb"}}
	if len(got.Drives) != 1 || fmt.Sprintf("%+v", got.Drives[0]) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", got.Drives, want)
	}
}

func TestSlots(t *testing.T) {
	for location, want := range map[string]string{
		`"PhysicalLocation":{"PartLocation":{"ServiceLabel":"M.2 - Drive0","LocationType":"Bay","LocationOrdinalValue":0}}`: "M.2 - Drive0",
		`"PhysicalLocation":{"Info":"Slot 3","PartLocation":{"LocationType":"Bay","LocationOrdinalValue":1}}`:               "Slot 3",
		`"PhysicalLocation":{"PartLocation":{"LocationType":"Bay","LocationOrdinalValue":7}}`:                               "Bay 7",
		`"Location":[{"Info":"1:2","InfoFormat":"Box:Bay"}]`:                                                                "1:2",
		`"PhysicalLocation":[]`: "",
	} {
		got := Judge(one(`{"SerialNumber":"S1","CapacityBytes":1,` + enabled + `,` + location + `}`))
		if len(got.Drives) != 1 || got.Drives[0].Slot != want {
			t.Errorf("%s: got %+v, want %q", location, got, want)
		}
	}
}

func TestVolumes(t *testing.T) {
	drive := func(n int, more string) Resource {
		return Resource{URI: fmt.Sprint("/s/A/Drives/", n), Raw: fmt.Appendf(nil, `{"SerialNumber":"S%d","CapacityBytes":1,"Status":{"State":"Enabled"}%s}`, n, more)}
	}
	links := func(numbers ...int) string {
		var all []string
		for _, n := range numbers {
			all = append(all, fmt.Sprintf(`{"@odata.id":"/s/A/Drives/%d"}`, n))
		}
		return `"Links":{"Drives":[` + strings.Join(all, ",") + `]}`
	}
	for name, c := range map[string]struct {
		volumes []string
		drives  []Resource
		want    []string
	}{
		"none": {nil, []Resource{drive(0, "")}, []string{"S0"}},
		"Dell's raw devices, one for each drive": {[]string{`{"VolumeType":"RawDevice","RAIDType":null,` + links(0) + `}`},
			[]Resource{drive(0, "")}, []string{"S0"}},
		"RAIDType None": {[]string{`{"RAIDType":"None","VolumeType":"RawDevice",` + links(0) + `}`}, []Resource{drive(0, "")}, []string{"S0"}},
		"a namespace of an NVMe drive": {[]string{`{"RAIDType":"RAID0","NVMeNamespaceProperties":{"NamespaceId":"1"},` + links(0) + `}`},
			[]Resource{drive(0, "")}, []string{"S0"}},
		"a volume that says nothing": {[]string{`{"Name":"v",` + links(0) + `}`}, []Resource{drive(0, "")}, []string{"S0"}},
		"RAID 0 of one drive":        {[]string{`{"RAIDType":"RAID0",` + links(0) + `}`}, []Resource{drive(0, "")}, []string{"S0 behind"}},
		"a mirror, and a drive that no volume uses": {[]string{`{"RAIDType":"RAID1",` + links(0, 1) + `}`},
			[]Resource{drive(0, ""), drive(1, ""), drive(2, "")}, []string{"S0 behind", "S1 behind", "S2 behind spare"}},
		"two drives without a RAID type": {[]string{`{` + links(0, 1) + `}`}, []Resource{drive(0, ""), drive(1, "")}, []string{"S0 behind", "S1 behind"}},
		"a volume of the former schema":  {[]string{`{"VolumeType":"Mirrored"}`}, []Resource{drive(0, "")}, []string{"S0 behind"}},
		"a hot spare, and volumes without links": {[]string{`{"RAIDType":"RAID5"}`},
			[]Resource{drive(0, ""), drive(1, `,"HotspareType":"Global"`)}, []string{"S0 behind", "S1 behind spare"}},
		"a standby spare": {[]string{`{"RAIDType":"RAID1",` + links(0, 1) + `}`},
			[]Resource{drive(0, ""), drive(1, ""), {URI: "/s/A/Drives/2", Raw: []byte(`{"SerialNumber":"S2","CapacityBytes":1,"Status":{"State":"StandbySpare"}}`)}},
			[]string{"S0 behind", "S1 behind", "S2 behind spare"}},
		"the drive names its volume": {[]string{`{"RAIDType":"RAID1"}`},
			[]Resource{drive(0, `,"Links":{"Volumes":[{"@odata.id":"/V/0/"}]}`), drive(1, `,"Links":{"Volumes":[{"@odata.id":"/other"}]}`)},
			[]string{"S0 behind", "S1 behind spare"}},
		"other case and slash": {[]string{`{"RAIDType":"RAID1","Links":{"Drives":[{"@odata.id":"/S/a/drives/0/"}]}}`},
			[]Resource{drive(0, "")}, []string{"S0 behind"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := Adapter{Drives: c.drives}
			for i, v := range c.volumes {
				a.Volumes = append(a.Volumes, Resource{URI: fmt.Sprint("/v/", i), Raw: []byte(v)})
			}
			other := Adapter{Drives: []Resource{{URI: "/s/B/Drives/0", Raw: []byte(`{"SerialNumber":"OTHER","CapacityBytes":1}`)}}}
			var got []string
			for _, d := range Judge([]Adapter{a, other}).Drives {
				text := d.Serial
				if d.BehindVolume {
					text += " behind"
				}
				if d.Spare {
					text += " spare"
				}
				got = append(got, text)
			}
			if want := append(slices.Clone(c.want), "OTHER"); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestADriveThatTwoAdaptersListStandsOnce(t *testing.T) {
	r := Resource{URI: "/c/Drives/0", Raw: []byte(`{"SerialNumber":"S1","CapacityBytes":1}`)}
	again := Resource{URI: "/C/drives/0/", Raw: r.Raw}
	if got := Judge([]Adapter{{Drives: []Resource{r}}, {Drives: []Resource{again}}}); len(got.Drives) != 1 {
		t.Errorf("got %+v", got)
	}
}

func FuzzJudge(f *testing.F) {
	f.Add([]byte(`{"Name":"Bay 1","SerialNumber":"S1","CapacityBytes":1,"Status":{"State":"Enabled"},"Identifiers":[{"DurableName":"eui.1"}]}`),
		[]byte(`{"RAIDType":"RAID1","Links":{"Drives":[{"@odata.id":"/d"}]}}`))
	f.Add([]byte(`{"SerialNumber":[{}],"CapacityBytes":"1e400","Location":[null,{"Info":7}],"Status":"x"}`), []byte(`[]`))
	f.Add([]byte("{\"Name\":\"\xff\\u0000\",\"SerialNumber\":\"\\u0007\"}"), []byte(`{"Links":null}`))
	f.Fuzz(func(t *testing.T, drive, volume []byte) {
		got := Judge([]Adapter{{Drives: []Resource{{URI: "/d", Raw: drive}, {URI: "/e", Raw: drive}}, Volumes: []Resource{{URI: "/v", Raw: volume}}}})
		if len(got.Left) > 900 {
			t.Errorf("%d bytes are said of drives left out", len(got.Left))
		}
		for _, d := range got.Drives {
			for _, text := range append([]string{d.Name, d.Slot, d.Model, d.Serial, d.Protocol}, d.DurableNames...) {
				if len(text) > maxText || strings.ToValidUTF8(text, "") != text || strings.ContainsAny(text, "\x00\n\r") {
					t.Errorf("%q cannot be stored", text)
				}
			}
			if d.Serial == "" || d.CapacityBytes <= 0 || len(d.Protocol) > maxProtocol || len(d.DurableNames) > maxNames || d.Spare && !d.BehindVolume {
				t.Errorf("got %+v", d)
			}
		}
	})
}
