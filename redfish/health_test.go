// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const chassisURI = "/redfish/v1/Chassis/1"

// criticalSystem is a system in critical health, with further fields.
func criticalSystem(more string) string {
	return `{"@odata.id":"` + systemURI + `","UUID":"` + systemUUID + `","PowerState":"Off","Status":{"Health":"OK","HealthRollup":"Critical"},
		"Links":{"Chassis":[{"@odata.id":"` + chassisURI + `"}]}` + more + `}`
}

// The shapes are those of iDRAC9 6.00 (DellSystem), iLO5 2.46 (AggregateHealthStatus), XCC and OpenBMC (Status.Conditions), with
// words that none of the captured machines showed.
func TestCriticalHealthNamesItsParts(t *testing.T) {
	for name, c := range map[string]struct {
		system, chassis, second string
		want                    []HealthPart
		reads                   int
		health                  Health
	}{
		"a summary of the system": {system: criticalSystem(`,"MemorySummary":{"Status":{"Health":"OK","HealthRollup":"Critical"}},"ProcessorSummary":{"Status":{"Health":"OK"}}`),
			want: []HealthPart{{"Memory", true}}, reads: 1, health: HealthCritical},
		"aggregates of HPE": {system: criticalSystem(`,"Oem":{"Hpe":{"AggregateHealthStatus":{"Fans":{"Status":{"Health":"OK"}},"Storage":{"Status":{"Health":"Critical"}}}}}`),
			want: []HealthPart{{"Storage", true}}, reads: 1, health: HealthCritical},
		"roll-ups of Dell": {system: criticalSystem(`,"Oem":{"Dell":{"DellSystem":{"IntrusionRollupStatus":"Error","SELRollupStatus":"Critical","CPURollupStatus":"OK"}}}`),
			want: []HealthPart{{"Intrusion", false}, {"SEL", false}}, reads: 1, health: HealthCritical},
		"a sum of Dell beside an open lid and an old log entry": {system: criticalSystem(`,"Oem":{"Dell":{"DellSystem":{"SystemHealthRollupStatus":"Error",
			"RollupStatus":"Error","PrimaryStatus":"Error","IntrusionRollupStatus":"Error","SELRollupStatus":"Critical"}}}`),
			want: []HealthPart{{"Intrusion", false}, {"SEL", false}}, reads: 1, health: HealthCritical},
		"the electric current and the memory of Dell are parts": {system: criticalSystem(`,"Oem":{"Dell":{"DellSystem":{"SystemHealthRollupStatus":"Critical",
			"CurrentRollupStatus":"Critical","SysMemPrimaryStatus":"Critical"}}}`),
			want: []HealthPart{{"Current", true}, {"SysMem", true}}, reads: 1, health: HealthCritical},
		"a sum of Dell alone names no part": {system: criticalSystem(`,"Oem":{"Dell":{"DellSystem":{"SystemHealthRollupStatus":"Critical"}}}`),
			chassis: `{"Status":{"Health":"OK"}}`, reads: 2, health: HealthCritical},
		"what is critical by its roll-up alone is a sum of what is named in it": {system: criticalSystem(`,"Oem":{"Maker":{"Enclosure":{"Status":{"Health":"OK",
			"HealthRollup":"Critical"},"Intrusion":{"Status":{"Health":"Critical"}}}}}`),
			want: []HealthPart{{"Intrusion", false}}, reads: 1, health: HealthCritical},
		"what is critical itself is a part beside what is named in it": {system: criticalSystem(`,"Oem":{"Maker":{"Enclosure":{"Status":{"Health":"Critical"},
			"Intrusion":{"Status":{"Health":"Critical"}}}}}`),
			want: []HealthPart{{"Enclosure", true}, {"Intrusion", false}}, reads: 1, health: HealthCritical},
		"conditions": {system: `{"@odata.id":"` + systemURI + `","PowerState":"Off","Status":{"Health":"Critical","Conditions":[
			{"Severity":"Critical","OriginOfCondition":{"@odata.id":"/redfish/v1/Systems/1/LogServices/SEL/Entries/7"}},
			{"Severity":"Critical","OriginOfCondition":{"@odata.id":"/redfish/v1/Systems/1/Processors/CPU_0"}},{"Severity":"OK"}]}}`,
			want: []HealthPart{{"CPU_0", true}, {"Log", false}}, reads: 1, health: HealthCritical},
		"the intrusion sensor of the chassis": {system: criticalSystem(""), chassis: `{"Status":{"Health":"Critical"},"PhysicalSecurity":{"IntrusionSensor":"HardwareIntrusion"}}`,
			want: []HealthPart{{"Intrusion", false}}, reads: 2, health: HealthCritical},
		"a chassis that is critical itself": {system: criticalSystem(""), chassis: `{"Status":{"HealthRollup":"Critical"}}`,
			want: []HealthPart{{"Chassis", true}}, reads: 2, health: HealthCritical},
		"the second chassis names the hardware": {system: strings.Replace(criticalSystem(""), `"}]}`, `"},{"@odata.id":"`+chassisURI+`2"}]}`, 1),
			chassis: `{"PhysicalSecurity":{"IntrusionSensor":"HardwareIntrusion"}}`, second: `{"Fans":[{"Status":{"Health":"Critical"}}]}`,
			want: []HealthPart{{"Fans", true}, {"Intrusion", false}}, reads: 3, health: HealthCritical},
		"a second chassis that fails leaves an open lid untold": {system: strings.Replace(criticalSystem(""), `"}]}`, `"},{"@odata.id":"`+chassisURI+`2"}]}`, 1),
			chassis: `{"PhysicalSecurity":{"IntrusionSensor":"HardwareIntrusion"}}`, second: "no JSON",
			want: []HealthPart{{"Intrusion", false}}, reads: 3, health: HealthUnknown},
		"what names nothing beside a log may be hardware": {system: `{"@odata.id":"` + systemURI + `","PowerState":"Off","Status":{"Health":"Critical","Conditions":[
			{"Severity":"Critical","OriginOfCondition":{"@odata.id":"/redfish/v1/Systems/1/LogServices/SEL/Entries/7"}},{"Severity":"Critical"}]}}`,
			want: []HealthPart{{"unnamed", true}, {"Log", false}}, reads: 1, health: HealthCritical},
		"a chassis in good health names nothing":     {system: criticalSystem(""), chassis: `{"Status":{"Health":"OK"}}`, reads: 2, health: HealthCritical},
		"no chassis names nothing":                   {system: criticalSystem(""), reads: 2, health: HealthCritical},
		"a chassis that fails is not in good health": {system: criticalSystem(""), chassis: "no JSON", reads: 2, health: HealthUnknown},
		"good health costs nothing":                  {system: systemJSON("Off"), reads: 1, health: HealthWarning},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			bmc := f.warm(t)
			f.set(systemURI, c.system)
			if c.chassis != "" {
				f.set(chassisURI, c.chassis)
			}
			if c.second != "" {
				f.set(chassisURI+"2", c.second)
			}
			got, err := bmc.System(t.Context(), systemURI)
			if diff := cmp.Diff(c.want, got.Critical); err != nil || diff != "" || got.Health != c.health {
				t.Errorf("%v, health %s, %s", err, got.Health, diff)
			}
			if reads := len(f.seen(http.MethodGet)); reads != c.reads {
				t.Errorf("%d reads, want %d", reads, c.reads)
			}
		})
	}
}

func TestTheBoundLeavesOutNoHardware(t *testing.T) {
	var parts []HealthPart
	for i := range maxHealthParts {
		parts = append(parts, HealthPart{Name: "A licence " + string(rune('a'+i))})
	}
	if got := hardwareFirst(append(parts, HealthPart{"Storage", true})); len(got) != maxHealthParts || got[0] != (HealthPart{"Storage", true}) {
		t.Errorf("got %v", got)
	}
}

func FuzzParts(f *testing.F) {
	f.Add(criticalSystem(`,"Oem":{"Dell":{"DellSystem":{"CPURollupStatus":"Error"}}}`))
	f.Add(`{"Status":{"Health":"Critical","Conditions":[{"Severity":"Critical"},null,1]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var doc map[string]any
		if json.Unmarshal([]byte(text), &doc) != nil {
			return
		}
		parts := partsOf(doc, "Chassis")
		for _, p := range parts {
			if p.Name == "" || len(p.Name) > maxPartName+len("...") {
				t.Errorf("%q: %q", text, p.Name)
			}
		}
		if len(parts) > maxHealthParts {
			t.Errorf("%q: %d parts", text, len(parts))
		}
	})
}

// A machine whose lid is open, and whose log is red, on the captured iDRAC: nothing that it names is hardware.
func TestTheTreeOfDellShowsAnOpenLidAsNoBrokenPart(t *testing.T) {
	folder := os.Getenv(treesVariable)
	if folder == "" {
		t.Skipf("set %s to a folder with captured Redfish trees (*.tar.gz) to run this test", treesVariable)
	}
	const uri = "/redfish/v1/Systems/System.Embedded.1"
	f := loadTree(t, filepath.Join(folder, "dell-r750-idrac9.tar.gz"))
	var system map[string]any
	if err := json.Unmarshal([]byte(f.docs[uri]), &system); err != nil {
		t.Fatal(err)
	}
	dell := system["Oem"].(map[string]any)["Dell"].(map[string]any)["DellSystem"].(map[string]any)
	system["Status"] = map[string]any{"Health": "Critical", "HealthRollup": "Critical"}
	dell["SystemHealthRollupStatus"], dell["IntrusionRollupStatus"], dell["SELRollupStatus"] = "Error", "Error", "Critical"
	changed, err := json.Marshal(system)
	if err != nil {
		t.Fatal(err)
	}
	f.set(uri, string(changed))
	got, err := f.client(t).System(t.Context(), uri)
	if diff := cmp.Diff([]HealthPart{{"Intrusion", false}, {"SEL", false}}, got.Critical); err != nil || diff != "" || got.Health != HealthCritical {
		t.Errorf("%v, health %s, %s", err, got.Health, diff)
	}
}
