// SPDX-License-Identifier: Apache-2.0

package machineid

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

const (
	nic1  = "70:b5:e8:00:00:01"
	nic2  = "70:b5:e8:00:00:02"
	alien = "94:40:c9:00:00:01"
)

func report(system, board string, addresses ...string) policyv1alpha1.ReportedIdentity {
	return policyv1alpha1.ReportedIdentity{SystemSerial: system, BoardSerial: board, PhysicalAddresses: addresses}
}

type known struct {
	serials, addresses []string
	incomplete         bool
	proved             *policyv1alpha1.ReportedIdentity
	settled            bool
}

func (k known) identity() *policyv1alpha1.MachineIdentity {
	id := &policyv1alpha1.MachineIdentity{BMC: &policyv1alpha1.BMCIdentity{Serials: k.serials, PhysicalAddresses: k.addresses, Incomplete: k.incomplete}}
	if k.proved != nil {
		id.Proved = &policyv1alpha1.ProvedIdentity{ReportedIdentity: *k.proved}
	}
	if k.settled {
		id.Settled = &policyv1alpha1.SettledIdentity{By: "eve", Reason: "new board"}
	}
	return id
}

func TestJudge(t *testing.T) {
	was := report("MXQ9990001", "PWXXX0AB1", nic1, nic2)
	serial := []string{"MXQ9990001"}
	for name, c := range map[string]struct {
		known  known
		report policyv1alpha1.ReportedIdentity
		others []Other
		want   Kind
		says   string
	}{
		"the BMC's serial number is the DMI system's":         {known{serials: serial}, report("MXQ9990001", ""), nil, Agrees, "serial number MXQ9990001"},
		"the BMC's serial number is the DMI board's":          {known{serials: serial}, report("", "mxq9990001 "), nil, Agrees, "serial number"},
		"an address agrees, beside another serial number":     {known{serials: serial, addresses: []string{nic1}}, report("OTHER1", "", nic1), nil, Agrees, nic1},
		"both DMI serial numbers were proved":                 {known{proved: &was}, report("MXQ9990001", "PWXXX0AB1"), nil, Agrees, "proved before"},
		"an address was proved":                               {known{proved: &was}, report("", "", nic2), nil, Agrees, "proved before"},
		"a serial number agrees and the BMC names no address": {known{serials: serial}, report("MXQ9990001", "", alien), nil, Agrees, ""},
		"a serial number agrees and the BMC's addresses have gaps": {known{serials: serial, addresses: []string{nic1}, incomplete: true},
			report("MXQ9990001", "", alien), nil, Agrees, ""},
		"a person answers for the next report": {known{serials: serial, addresses: []string{nic1}, settled: true}, report("NEW1", "", alien), nil, Agrees, "eve"},
		"a disk of addresses moved in, and the serial number is its own": {known{serials: serial}, report("MXQ9990001", "", alien),
			[]Other{{Name: "Server b", Addresses: []string{alien}}}, Agrees, ""},
		"one proved by its address, though another BMC shows its serial number": {known{proved: &was}, was,
			[]Other{{Name: "BMC liar", Serials: serial}}, Agrees, nic2},

		"another serial number than proved, and no address":         {known{proved: &was}, report("CZJ1230001", "PWXXX0AB1", alien), nil, Contradicts, "system has serial number CZJ1230001"},
		"another board than proved, and no address":                 {known{serials: serial, proved: &was}, report("MXQ9990001", "PWXXX0AB2", alien), nil, Contradicts, "board has serial number"},
		"other addresses than the BMC shows, and no serial number":  {known{addresses: []string{nic1}}, report("", "", alien), nil, Contradicts, "shows the addresses " + nic1},
		"other addresses, and another serial number":                {known{serials: serial, addresses: []string{nic1}}, report("CZJ1230001", "", alien), nil, Contradicts, alien},
		"a serial number that the BMC of another server shows":      {known{serials: serial}, report("CZJ1230001", ""), []Other{{Name: "Server b", Serials: []string{"CZJ1230001"}}}, Contradicts, "that of Server b"},
		"an address that the BMC of another server shows":           {known{}, report("", "", alien), []Other{{Name: "Server b", Addresses: []string{strings.ToUpper(alien)}}}, Contradicts, "that of Server b"},
		"the serial number of another server, in spite of a person": {known{settled: true}, report("CZJ1230001", ""), []Other{{Name: "Server b", Serials: []string{"CZJ1230001"}}}, Contradicts, "Server b"},
		"one serial number, and only the addresses of another":      {known{serials: serial, addresses: []string{nic1}}, report("MXQ9990001", "", alien), []Other{{Name: "BMC twin", Serials: serial}}, Contradicts, "addresses"},

		"the BMC shows nothing":                          {known{}, report("MXQ9990001", "", nic1), nil, Unproven, "neither a serial number nor an address"},
		"the machine reports nothing":                    {known{serials: serial}, report("", ""), nil, Unproven, "reports neither"},
		"a placeholder on both sides":                    {known{serials: []string{"Default string"}}, report("Default string", "To be filled by O.E.M."), nil, Unproven, ""},
		"a local address on both sides":                  {known{addresses: []string{"02:00:00:00:00:01"}}, report("", "", "02:00:00:00:00:01"), nil, Unproven, ""},
		"a serial number that another BMC shows too":     {known{serials: serial}, report("MXQ9990001", ""), []Other{{Name: "Server b", Serials: serial}}, Unproven, "Server b too"},
		"a serial number that another agent reports too": {known{serials: serial}, report("MXQ9990001", ""), []Other{{Name: "Server b", Reported: serial}}, Unproven, "Server b too"},
		"another serial number, and nothing was proved":  {known{serials: serial}, report("CZJ1230001", ""), nil, Unproven, "neither"},
		"an address that both BMCs show":                 {known{addresses: []string{nic1}}, report("", "", nic1), []Other{{Name: "Server b", Addresses: []string{nic1}}}, Unproven, ""},
		"the serial number of the machine, and none of the addresses that its BMC shows": {known{serials: serial, addresses: []string{nic1}},
			report("MXQ9990001", "", alien), nil, Unproven, "no address that the BMC shows"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(Input{Identity: c.known.identity(), Report: c.report, Others: c.others})
			if got.Kind != c.want || !strings.Contains(got.Reason, c.says) || got.Reason == "" {
				t.Errorf("%+v", got)
			}
		})
	}
	if got := Judge(Input{Report: was}); got.Kind != Unproven || !strings.Contains(got.Reason, "not stored yet") {
		t.Errorf("nothing known: %+v", got)
	}
}

// What captured trees show, with the DMI fields that machines of the make report. The last characters are made up.
func TestJudgeByWhatMakesShow(t *testing.T) {
	for name, c := range map[string]struct {
		known  known
		report policyv1alpha1.ReportedIdentity
		want   Kind
	}{
		"Dell: the service tag is the SKU, and the serial number that of the board": {known{serials: []string{"CNIVC0014M0001", "F54P1X0"}},
			report("F54P1X0", ".F54P1X0.CNIVC0014M0001."), Agrees},
		"HPE": {known{serials: []string{"MXQ9990002"}, addresses: []string{"14:02:ec:00:00:01"}}, report("MXQ9990002", "PWUFK0ARHDE001", "14:02:ec:00:00:01"), Agrees},
		"Lenovo whose only interface leads to the BMC": {known{serials: []string{"J101RZ40"}}, report("J101RZ40", "R1SH160001", "00:62:0b:00:00:01"), Agrees},
		"Supermicro whose host interface is local":     {known{serials: []string{"S889914X0000001"}, addresses: []string{"BE:3A:F2:00:00:01"}}, report("S889914X0000001", "OM21AS000001", "be:3a:f2:00:00:01"), Agrees},
		"NVIDIA DGX":                      {known{serials: []string{"1662923610002"}, addresses: []string{"5c:ff:35:00:00:01"}}, report("1662923610002", "1662923610999", "5c:ff:35:00:00:01"), Agrees},
		"NVIDIA GB200 shows nothing":      {known{}, report("1333024020001", "1583124820001", "5c:25:73:00:00:01"), Unproven},
		"OpenBMC shows nothing":           {known{}, report("QTFCQ57140001", "", "d8:c4:97:00:00:01"), Unproven},
		"one of two Cray nodes":           {known{serials: []string{"DP20300010"}, addresses: []string{"00:40:a6:00:00:01"}}, report("DP20300010", "", "00:40:a6:00:00:01"), Agrees},
		"the other of the two Cray nodes": {known{serials: []string{"DP20300010"}, addresses: []string{"00:40:a6:00:00:01"}}, report("CZ9999", "", "00:40:a6:00:00:02"), Contradicts},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Judge(Input{Identity: c.known.identity(), Report: c.report}); got.Kind != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestSerialsThatIdentifyNothing(t *testing.T) {
	for _, text := range []string{"", " ", "To be filled by O.E.M.", "0123456789", "1234567890", "Not Specified", "00000000", "None", "........", "XXXXXXX",
		"System Serial Number", "Default string", "N/A", "unknown", "01234567890123456789AB", "-"} {
		if got := Serial(text); got != "" {
			t.Errorf("%q: %q", text, got)
		}
	}
	for text, want := range map[string]string{" mxq9990001 ": "MXQ9990001", "1662923610001": "1662923610001", "0123A": "", "VM-1": "VM-1"} {
		if got := Serial(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestAddressesThatIdentifyNothing(t *testing.T) {
	got := Addresses("70-B5-E8-00-00-01", "70b5.e800.0001", "Not Available", "02:00:00:00:00:01", "01:00:5e:00:00:01", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff",
		"00:11:22:33:44:55:66:77", "")
	if diff := cmp.Diff([]string{nic1}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPassedAndSettled(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	was, next := report("A1B2C3", "", nic1), report("D4E5F6", "", alien)
	settled := policyv1alpha1.SettledIdentity{By: "eve", Reason: "new board", At: metav1.NewMicroTime(now)}
	stored := func(id *policyv1alpha1.MachineIdentity) *policyv1alpha1.ServerInventory {
		return &policyv1alpha1.ServerInventory{Identity: id, Report: &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{
			SystemInfo:        policyv1alpha1.SystemInfo{SystemInformation: policyv1alpha1.SystemInformation{SerialNumber: "A1B2C3"}},
			NetworkInterfaces: []policyv1alpha1.ProbeNetworkInterface{{MACAddress: nic1}}}}}
	}

	got := Settle(stored(&policyv1alpha1.MachineIdentity{BMC: &policyv1alpha1.BMCIdentity{}}), settled)
	if got.Settled != nil || got.Proved == nil || got.Proved.By != "eve" || got.Proved.SystemSerial != "A1B2C3" {
		t.Errorf("the last report was unproven: %+v", got)
	}
	if v := Judge(Input{Identity: got, Report: was}); !v.Proves() || v.ByBMC {
		t.Errorf("what a person settled is proved: %+v", v)
	}
	got = Settle(stored(&policyv1alpha1.MachineIdentity{BMC: &policyv1alpha1.BMCIdentity{Serials: []string{"A1B2C3"}}}), settled)
	if got.Settled == nil || got.Proved != nil {
		t.Errorf("the last report was proved, so the word is for the next: %+v", got)
	}
	got = Passed(got, next, Judge(Input{Identity: got, Report: next}), now)
	if got.Settled != nil || got.Proved == nil || got.Proved.By != "eve" || got.Proved.SystemSerial != "D4E5F6" {
		t.Errorf("the next report takes the word: %+v", got)
	}
	if again := Passed(got, next, Verdict{Kind: Agrees}, now.Add(time.Hour)); !cmp.Equal(got, again) {
		t.Errorf("the same report changes nothing: %s", cmp.Diff(got, again))
	}
	if byBMC := Passed(got, was, Verdict{Kind: Agrees, ByBMC: true}, now); byBMC.Proved.By != "" {
		t.Errorf("what the BMC proves needs no person: %+v", byBMC.Proved)
	}
}

func FuzzSerialAndAddress(f *testing.F) {
	f.Add("MXQ9990001")
	f.Add("70:b5:e8:00:00:01")
	f.Fuzz(func(t *testing.T, text string) {
		if s := Serial(text); s != "" && Serial(s) != s {
			t.Errorf("serial %q of %q", s, text)
		}
		if a := Address(text); a != "" && (Address(a) != a || len(a) != 17) {
			t.Errorf("address %q of %q", a, text)
		}
	})
}

func TestOnlyAReportThatIsBelievedSharesASerialNumber(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*policyv1alpha1.ProbeReport)
		want   int
	}{
		"with a token":             {func(*policyv1alpha1.ProbeReport) {}, 1},
		"without a token":          {func(r *policyv1alpha1.ProbeReport) { r.Unauthenticated = true }, 0},
		"of an entry that is void": {func(r *policyv1alpha1.ProbeReport) { r.Voided = true }, 0},
	} {
		report := &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{SystemInfo: policyv1alpha1.SystemInfo{
			SystemInformation: policyv1alpha1.SystemInformation{SerialNumber: "MXQ9990001"}}}}
		c.change(report)
		if got := OtherOf("Server b", &policyv1alpha1.ServerInventory{Report: report}); len(got.Reported) != c.want {
			t.Errorf("%s: %v", name, got.Reported)
		}
	}
	if got := OtherOf("Server b", &policyv1alpha1.ServerInventory{}); len(got.Reported) != 0 {
		t.Errorf("without a report: %v", got.Reported)
	}
}
