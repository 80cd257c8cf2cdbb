// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

const uuid = "4c4c4544-0042-3510-8054-b7c04f4d4d32"

// everything is a report as it looks on the wire, with every field that agents send.
const everything = `{
 "timestamp":"2026-01-02T03:04:05.000006Z",
 "systemInfo":{"biosInformation":{"vendor":"v","version":"1","date":"d"},
  "systemInformation":{"manufacturer":"m","productName":"p","version":"1","serialNumber":"s","uuid":"u","skuNumber":"k","family":"f"},
  "boardInformation":{"manufacturer":"m","product":"p","version":"1","serialNumber":"s","assetTag":"a"}},
 "cpu":[{"id":1,"totalCores":2,"totalHardwareThreads":4,"vendor":"v","model":"m","capabilities":["fpu"]}],
 "networkInterfaces":[{"name":"eth0","ipAddresses":["10.0.0.1"],"macAddress":"00:11:22:33:44:55","carrierStatus":"up"}],
 "lldp":[{"name":"eth0","neighbors":[{"chassisId":"c","portId":"p","portDescription":"pd","systemName":"s","systemDescription":"sd","mgmtIp":"10.0.0.9","capabilities":["Bridge"],"vlanId":"7"}]}],
 "storage":[{"path":"/dev/sda","name":"sda","rotational":true,"removable":true,"readOnly":true,"vendor":"v","model":"m","serial":"s","wwid":"w","physicalBlockSize":4096,"logicalBlockSize":512,"hWSectorSize":512,"sizeBytes":1024,"firmware":"f","pciAddress":"0000:00:02.0","slot":"1","content":"Data","contentFound":"GPT","numaNodeID":1}],
 "memory":[{"size":1024,"deviceSet":"d","deviceLocator":"l","bankLocator":"b","memoryType":"t","speed":"s","vendor":"v","serialNumber":"n","assetTag":"a","partNumber":"p","configuredMemorySpeed":"c","minimumVoltage":"1","maximumVoltage":"2","configuredVoltage":"1"}],
 "nics":[{"name":"eth0","mac":"m","pciAddress":"0000:00:01.0","speed":"25000Mb/s","linkModes":["l"],"supportedPorts":["FIBRE"],"driver":"ice","firmwareVersion":"f"}],
 "pciDevices":[{"address":"0000:00:01.0","vendor":"v","vendorID":"8086","product":"p","productID":"1572","class":"020000","driver":"i40e","numaNodeID":1}],
 "problems":[{"source":"disks","message":"m"}]}`

func TestEveryFieldOfTheContractSurvivesDecodingAndEncoding(t *testing.T) {
	var data Data
	if err := json.Unmarshal([]byte(everything), &data); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(encoded, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(everything), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("encoded again (-want +got):\n%s", diff)
	}
}

func TestDecodingForeignSpellings(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an object of LLDP interfaces is a list":      {`{"lldp":{"interfaces":[{"name":"eth0"}]}}`, `{"lldp":[{"name":"eth0"}]}`},
		"unknown fields are left out":                 {`{"cpu":[{"id":0,"new":true}],"gpus":[1]}`, `{"cpu":[{"id":0}]}`},
		"a timestamp in seconds":                      {`{"timestamp":86400}`, `{"timestamp":"1970-01-02T00:00:00.000000Z"}`},
		"an empty timestamp is none":                  {`{"timestamp":""}`, `{}`},
		"a null timestamp is none":                    {`{"timestamp":null}`, `{}`},
		"a timestamp with a zone is the same instant": {`{"timestamp":"2026-01-01T01:00:00+01:00"}`, `{"timestamp":"2026-01-01T00:00:00.000000Z"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var data Data
			if err := json.Unmarshal([]byte(c.text), &data); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(data)
			if err != nil {
				t.Fatal(err)
			}
			// An empty object of system information is left out by omitzero.
			if string(got) != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestDigestIsOfTheHardwareAlone(t *testing.T) {
	of := func(text string) string {
		var data Data
		if err := json.Unmarshal([]byte(text), &data); err != nil {
			t.Fatal(err)
		}
		digest := data.Digest()
		if data.Timestamp.IsZero() != !strings.Contains(text, "timestamp") {
			t.Error("the digest changed its data")
		}
		return digest
	}
	for name, c := range map[string]struct {
		before, after string
		same          bool
	}{
		"another time":              {`{"timestamp":1,"cpu":[{"id":1}]}`, `{"timestamp":2,"cpu":[{"id":1}]}`, true},
		"another processor":         {`{"cpu":[{"id":1}]}`, `{"cpu":[{"id":2}]}`, false},
		"an address that came late": {`{"networkInterfaces":[{"name":"a"}]}`, `{"networkInterfaces":[{"name":"a","ipAddresses":["fe80::1"]}]}`, true},
		"a link that went up": {`{"networkInterfaces":[{"name":"a","carrierStatus":"down"}],"nics":[{"mac":"b"}]}`,
			`{"networkInterfaces":[{"name":"a","carrierStatus":"up"}],"nics":[{"mac":"b","speed":"1000Mb/s"}]}`, true},
		"another NIC":              {`{"nics":[{"mac":"a"}]}`, `{"nics":[{"mac":"b"}]}`, false},
		"another place of data":    {`{"storage":[{"content":"Data","contentFound":"GPT"}]}`, `{"storage":[{"content":"Data","contentFound":"byte 9"}]}`, true},
		"a disk that became blank": {`{"storage":[{"content":"Data"}]}`, `{"storage":[{"content":"Blank"}]}`, false},
		"another word of a neighbour": {`{"lldp":[{"name":"a","neighbors":[{"chassisId":"c","systemDescription":"up 1 day"}]}]}`,
			`{"lldp":[{"name":"a","neighbors":[{"chassisId":"c","systemDescription":"up 2 days"}]}]}`, true},
		"a problem in other words": {`{"problems":[{"source":"lldp","message":"1 s"}]}`, `{"problems":[{"source":"lldp","message":"2 s"}]}`, true},
		"another problem":          {`{"problems":[{"source":"lldp"}]}`, `{"problems":[{"source":"module"}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if same := of(c.before) == of(c.after); same != c.same {
				t.Errorf("same digest: %t, want %t", same, c.same)
			}
		})
	}
}

func TestValidateNamesEveryProblem(t *testing.T) {
	long := strings.Repeat("x", maxWord+1)
	for name, c := range map[string]struct {
		report Report
		want   []string
	}{
		"a good report has none": {Report{SystemUUID: uuid}, nil},
		"no UUID":                {Report{SystemUUID: "../etc/passwd"}, []string{`system UUID "../etc/passwd"`}},
		"a long name and a negative size": {
			Report{SystemUUID: uuid, Data: Data{
				NICs:    []policyv1alpha1.NIC{{Name: long}},
				Storage: []policyv1alpha1.BlockDevice{{Path: "/dev/sda", SizeBytes: -1}}}},
			[]string{"data.nics[0]: 257 bytes, at most 256", "data.storage[0]: -1 is negative"}},
		"a word for content that does not exist": {
			Report{SystemUUID: uuid, Data: Data{Storage: []policyv1alpha1.BlockDevice{{Content: "Empty"}}}},
			[]string{`data.storage[0].content: "Empty" is none of Blank, Data, Unreadable`}},
		"a problem without a source": {
			Report{SystemUUID: uuid, Data: Data{Problems: []policyv1alpha1.ProbeProblem{{Message: "m"}}}},
			[]string{"data.problems[0].source: empty"}},
		"a NUL byte":              {Report{SystemUUID: uuid, AgentVersion: "a\x00b"}, []string{"agentVersion: not valid"}},
		"too many disks":          {Report{SystemUUID: uuid, Data: Data{Storage: make([]policyv1alpha1.BlockDevice, MaxDisks+1)}}, []string{"257 entries"}},
		"too many addresses deep": {Report{SystemUUID: uuid, Data: Data{NetworkInterfaces: []policyv1alpha1.ProbeNetworkInterface{{IPAddresses: make([]string, 65)}}}}, []string{"data.networkInterfaces[0].ipAddresses: 65 entries"}},
	} {
		t.Run(name, func(t *testing.T) { expectProblems(t, c.report.Validate(), c.want) })
	}
}

func TestValidateWipeReport(t *testing.T) {
	for name, c := range map[string]struct {
		report WipeReport
		want   []string
	}{
		"a machine without disks is verified":    {WipeReport{SystemUUID: uuid, State: policyv1alpha1.WipeVerified}, nil},
		"a verified disk whose check failed":     {WipeReport{SystemUUID: uuid, State: policyv1alpha1.WipeVerified, Disks: []policyv1alpha1.DiskWipe{{Path: "p", State: policyv1alpha1.DiskVerified, Verification: &policyv1alpha1.EraseVerification{Kind: policyv1alpha1.VerifiedZeros}}}}, []string{"disks[0].verification: it did not pass"}},
		"a verified wipe with an erased disk":    {WipeReport{SystemUUID: uuid, State: policyv1alpha1.WipeVerified, Disks: []policyv1alpha1.DiskWipe{{Path: "p", State: policyv1alpha1.DiskErased}}}, []string{"Verified only when each of its disks is"}},
		"an unknown state":                       {WipeReport{SystemUUID: uuid, State: "Done"}, []string{`state: "Done"`}},
		"an unknown disk state and no UUID":      {WipeReport{State: policyv1alpha1.WipeRunning, Disks: []policyv1alpha1.DiskWipe{{State: "Gone"}}}, []string{"system UUID", `disks[0].state: "Gone"`, "disks[0].path: empty"}},
		"a skipped disk without a path":          {WipeReport{SystemUUID: uuid, State: policyv1alpha1.WipeVerified, Skipped: []policyv1alpha1.SkippedDisk{{SizeBytes: -1}}}, []string{"skipped[0].path: empty", "skipped[0].sizeBytes: -1"}},
		"a failed wipe with a disk not yet done": {WipeReport{SystemUUID: uuid, State: policyv1alpha1.WipeFailed, Disks: []policyv1alpha1.DiskWipe{{Path: "p", State: policyv1alpha1.DiskPending}}}, nil},
	} {
		t.Run(name, func(t *testing.T) { expectProblems(t, c.report.Validate(), c.want) })
	}
}

func TestTrimMakesAnyDataValid(t *testing.T) {
	data := Data{
		CPU:     []CPU{{Vendor: strings.Repeat("é", maxWord), Capabilities: make([]string, maxCapabilities+5)}},
		Storage: append(make([]policyv1alpha1.BlockDevice, MaxDisks+1), policyv1alpha1.BlockDevice{Path: "x"}),
		NICs:    []policyv1alpha1.NIC{{Name: "\xff\x00"}},
	}
	data.Storage[0].SizeBytes = -5
	data.Trim()
	if err := (&Report{SystemUUID: uuid, Data: data}).Validate(); err != nil {
		t.Error(err)
	}
	if got := len(data.CPU[0].Vendor); got != maxWord {
		t.Errorf("vendor has %d bytes, want %d", got, maxWord)
	}
}

func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"systemUUID":"` + uuid + `","data":` + everything + `}`))
	f.Add([]byte(`{"data":{"timestamp":1e300,"lldp":{}}}`))
	f.Add([]byte(`{"data":{"timestamp":"9999-12-31T23:59:59-23:00"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var report Report
		if json.Unmarshal(text, &report) != nil {
			return
		}
		_ = report.Validate()
		if report.Data.Digest() == "" {
			t.Fatal("data that was read cannot be written")
		}
		report.Data.Trim()
		report.SystemUUID, report.AgentVersion = uuid, ""
		if err := report.Validate(); err != nil {
			t.Fatalf("trimmed data is not valid: %v", err)
		}
		encoded, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		var again Report
		if err := json.Unmarshal(encoded, &again); err != nil {
			t.Fatalf("cannot read what was written: %v", err)
		}
		if again.Data.Digest() != report.Data.Digest() {
			t.Fatal("the digest changed on the way")
		}
	})
}

func expectProblems(t *testing.T, err error, want []string) {
	t.Helper()
	if len(want) == 0 {
		if err != nil {
			t.Errorf("unexpected problems: %v", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("no problem found, want %q", want)
	}
	for _, problem := range want {
		if !strings.Contains(err.Error(), problem) {
			t.Errorf("problems %q, want one with %q", err, problem)
		}
	}
}
