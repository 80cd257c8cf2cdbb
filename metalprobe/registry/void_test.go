// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"net/http"
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/registry/record"
)

func TestAVoidedEntryProvesNothingWhateverCameFirst(t *testing.T) {
	for name, c := range map[string]struct {
		first []string // what the first agent says of its wipe before the second agent comes
		state policyv1alpha1.WipeState
		// records are the states of the records, and voids the number of the record that the last one takes back.
		records []policyv1alpha1.WipeState
		voids   int64
	}{
		"before a wipe began":   {nil, "", nil, 0},
		"while it runs":         {[]string{running}, "Running", []policyv1alpha1.WipeState{"Failed"}, 0},
		"after it was verified": {[]string{running, verified}, "Failed", []policyv1alpha1.WipeState{"Verified", "Failed"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, asWipe)
			f.says("POST", "/register", ours, report(uuid, twoDisks))
			for _, body := range c.first {
				if got := f.says("POST", "/wipe", ours, body); got.Code != http.StatusOK {
					t.Fatalf("%d %s", got.Code, got.Body)
				}
			}
			for range 2 { // the second agent comes, and comes again
				if got := f.says("POST", "/register", forged, report(uuid, twoDisks)); got.Code != http.StatusForbidden {
					t.Fatalf("%d %s", got.Code, got.Body)
				}
			}
			if got := f.says("POST", "/wipe", ours, verified); got.Code != http.StatusForbidden {
				t.Errorf("the first agent: %d %s", got.Code, got.Body)
			}
			stored := f.inventory(uuid)
			if !stored.Enrolment.Voided || !stored.Report.Voided {
				t.Errorf("the entry is voided: %t, the report %t", stored.Enrolment.Voided, stored.Report.Voided)
			}
			if got := stored.Wipe; (got == nil) != (c.state == "") || got != nil && got.State != c.state {
				t.Errorf("the wipe is %+v, want %q", got, c.state)
			}
			all := f.records()
			var states []policyv1alpha1.WipeState
			for i := range all {
				states = append(states, all[i].Spec.State)
			}
			if len(states) != len(c.records) {
				t.Fatalf("records %v, want %v", states, c.records)
			}
			for i := range states {
				if states[i] != c.records[i] {
					t.Errorf("records %v, want %v", states, c.records)
				}
			}
			if err := errors.Join(record.Verify(all), record.Reaches(all, stored.LastRecord)); err != nil {
				t.Error(err)
			}
			if len(all) == 0 {
				return
			}
			last := all[len(all)-1].Spec
			if (last.Voids == nil) != (c.voids == 0) || last.Voids != nil && last.Voids.Sequence != c.voids || last.Message != voidedWords {
				t.Errorf("the last record takes back %+v and says %q", last.Voids, last.Message)
			}
		})
	}
}

func TestTheRecordOfAVoidedEntryIsMadeUpForOnceTheSinkTakesIt(t *testing.T) {
	f := newFleet(t, asWipe)
	f.says("POST", "/register", ours, report(uuid, twoDisks))
	f.says("POST", "/wipe", ours, verified)
	away := errors.New("disk full")
	f.registry.options.Sink = sinkFunc(func(*policyv1alpha1.SanitizationRecord) error { return away })
	if got := f.says("GET", "/wipe/"+uuid, forged, ""); got.Code != http.StatusForbidden {
		t.Errorf("the second agent: %d", got.Code)
	}
	if stored := f.inventory(uuid); !stored.Enrolment.Voided || stored.Enrolment.Recorded || stored.Wipe.State != "Failed" {
		t.Fatalf("without a record the entry counts: %+v, %+v", stored.Enrolment, stored.Wipe)
	}
	if got := f.says("GET", "/wipe/"+uuid, ours, ""); got.Code != http.StatusServiceUnavailable {
		t.Errorf("the first agent does not come again: %d", got.Code)
	}
	f.registry.options.Sink = nil
	if got := f.says("GET", "/wipe/"+uuid, ours, ""); got.Code != http.StatusForbidden {
		t.Errorf("the first agent: %d", got.Code)
	}
	if stored := f.inventory(uuid); !stored.Enrolment.Recorded || stored.LastRecord.Sequence != 2 {
		t.Errorf("the record is owed still: %+v", stored.LastRecord)
	}
}

func TestTheTermOfAWipeComesFromItsMethods(t *testing.T) {
	f := newFleet(t, asWipe)
	f.says("POST", "/register", ours, report(uuid, twoDisks))
	claims := `{"systemUUID":"` + uuid + `","state":"Verified","disks":[` +
		`{"path":"/dev/sda","serial":"A","state":"Verified","term":"Purge","method":"zero",` +
		`"steps":[{"method":"zero","result":"Succeeded"}],"verification":{"kind":"Zeros","passed":true}},` +
		`{"path":"/dev/sdb","wwid":"B","state":"Verified","term":"Purge"}]}`
	if got := f.says("POST", "/wipe", ours, claims); got.Code != http.StatusOK {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	terms := func(disks []policyv1alpha1.DiskWipe) [2]policyv1alpha1.SanitizationTerm {
		return [2]policyv1alpha1.SanitizationTerm{disks[0].Term, disks[1].Term}
	}
	want := [2]policyv1alpha1.SanitizationTerm{"Clear", ""}
	if got := terms(f.inventory(uuid).Wipe.Disks); got != want {
		t.Errorf("the inventory states %q, want %q", got, want)
	}
	if got := terms(f.records()[0].Spec.Media); got != want {
		t.Errorf("the record states %q, want %q", got, want)
	}
}
