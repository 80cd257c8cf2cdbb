// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

const uuid = "4c4c4544-0042-3510-8054-b7c04f4d4d32"

var start = time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)

func input() Input {
	return Input{
		Server: &metalv1alpha1.Server{
			ObjectMeta: metav1.ObjectMeta{Name: "srv", Annotations: map[string]string{
				metalv1alpha1.ReleasedClaimAnnotation: "u1", metalv1alpha1.ClaimEndedByAnnotation: "u1 system:serviceaccount:a:b",
			}},
			Status: metalv1alpha1.ServerStatus{SerialNumber: "S1", Lifecycle: &metalv1alpha1.LifecycleStatus{Revision: "rev", History: []metalv1alpha1.LifecycleMove{
				{From: "Reserved", To: "Cleanup", Rule: "released", Entry: 7},
			}}},
		},
		Inventory: &policyv1alpha1.ServerInventory{
			Spec:    policyv1alpha1.ServerInventorySpec{SystemUUID: uuid},
			Custody: &policyv1alpha1.Custody{LastHolder: &policyv1alpha1.Holder{Namespace: "team", Name: "web", UID: "u1"}},
			Report: &policyv1alpha1.ProbeReport{Entry: 7, AgentVersion: "1.2", Data: policyv1alpha1.ProbeData{
				SystemInfo: policyv1alpha1.SystemInfo{SystemInformation: policyv1alpha1.SystemInformation{Manufacturer: "Maker", SerialNumber: "other"}},
				Storage: []policyv1alpha1.BlockDevice{
					{Path: "/dev/nvme0n1", WWID: "w", Vendor: "v", Model: "m", Firmware: "f", PCIAddress: "0000:01:00.0", SizeBytes: 9},
					{Path: "/dev/sda", Rotational: true, Serial: "d"},
				},
			}},
		},
		Wipe: &policyv1alpha1.WipeReport{
			Entry: 7, State: policyv1alpha1.WipeVerified, StartedAt: metav1.NewMicroTime(start),
			Disks: []policyv1alpha1.DiskWipe{
				{Path: "/dev/nvme1n1", WWID: "w", State: policyv1alpha1.DiskVerified, Model: "<own>", Method: "nvme-sanitize-block",
					Verification: &policyv1alpha1.EraseVerification{Kind: policyv1alpha1.VerifiedSamplesGone, Passed: true}},
				{Path: "/dev/sda", State: policyv1alpha1.DiskVerified, Term: policyv1alpha1.TermClear, Verification: &policyv1alpha1.EraseVerification{Kind: policyv1alpha1.VerifiedZeros}},
			},
		},
		PolicyDigest: "sha256:p", AgentImage: "probe@sha256:i", Now: start.Add(time.Hour),
	}
}

func TestARecordSaysWhatReportServerAndCustodyKnow(t *testing.T) {
	got, err := Of(input())
	if err != nil {
		t.Fatal(err)
	}
	hash := got.Spec.Hash
	got.Spec.Hash = ""
	want := &policyv1alpha1.SanitizationRecord{
		ObjectMeta: metav1.ObjectMeta{Name: uuid + "-000001", Labels: map[string]string{"policy.metalaw.dev/machine": uuid, "policy.metalaw.dev/server": "srv"}},
		Spec: policyv1alpha1.SanitizationRecordSpec{
			Sequence: 1, RecordedAt: metav1.NewTime(time.Date(2026, 1, 2, 4, 4, 5, 0, time.UTC)),
			Machine: policyv1alpha1.SanitizedMachine{SystemUUID: uuid, ServerName: "srv", Manufacturer: "Maker", SerialNumber: "S1"},
			Holder:  &policyv1alpha1.Holder{Namespace: "team", Name: "web", UID: "u1"}, EndedBy: "system:serviceaccount:a:b",
			Reason: "rule released of the policy, from Reserved to Cleanup", Entry: 7, PolicyRevision: "rev", PolicyDigest: "sha256:p",
			AgentVersion: "1.2", AgentImage: "probe@sha256:i", State: "Verified", StartedAt: metav1.NewMicroTime(start),
			Media: []policyv1alpha1.DiskWipe{
				{Path: "/dev/nvme1n1", WWID: "w", State: "Verified", Term: "Purge", Manufacturer: "v", Model: "<own>", Firmware: "f", Slot: "0000:01:00.0", SizeBytes: 9, MediaType: "NVMe",
					Method: "nvme-sanitize-block", Verification: &policyv1alpha1.EraseVerification{Kind: "SamplesGone", Passed: true}},
				{Path: "/dev/sda", Serial: "d", State: "Verified", MediaType: "HDD", Verification: &policyv1alpha1.EraseVerification{Kind: "Zeros"}},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(hash) != 64 {
		t.Errorf("hash %q", hash)
	}
}

func TestWhoAskedAndWhy(t *testing.T) {
	const rule = "rule released of the policy, from Reserved to Cleanup"
	operation := func(name string, entry int64, state metalv1alpha1.OperationState, reason string) func(*metalv1alpha1.Server) {
		return func(s *metalv1alpha1.Server) {
			s.Status.Operation = &metalv1alpha1.OperationStatus{Name: name, Entry: entry, By: "joe", Reason: reason, State: state}
		}
	}
	history := func(moves ...metalv1alpha1.LifecycleMove) func(*metalv1alpha1.Server) {
		return func(s *metalv1alpha1.Server) { s.Status.Lifecycle.History = moves }
	}
	both := func(changes ...func(*metalv1alpha1.Server)) func(*metalv1alpha1.Server) {
		return func(s *metalv1alpha1.Server) {
			for _, change := range changes {
				change(s)
			}
		}
	}
	cleared := metalv1alpha1.LifecycleMove{From: "Error", To: "Initial", Rule: "Cleared", Entry: 6}
	dataLeft := metalv1alpha1.LifecycleMove{From: "Initial", To: "Cleanup", Rule: "DataLeft", Entry: 7}
	const left = "rule DataLeft of the policy, from Initial to Cleanup"
	for name, c := range map[string]struct {
		change     func(*metalv1alpha1.Server)
		by, reason string
	}{
		"a forced move names its author": {history(metalv1alpha1.LifecycleMove{
			From: "Error", To: "Cleanup", Rule: "Forced", Entry: 7, By: "jane", Reason: "audit"}), "jane", "audit"},
		"a release of the entry before does":  {operation("release", 6, "Succeeded", "namespace lost"), "joe", "namespace lost"},
		"a release without a reason is named": {operation("release", 6, "Succeeded", ""), "joe", "operation release"},
		"an erase of data that was found does, by way of Initial": {both(operation("sanitize", 5, "Succeeded", "bought used"),
			history(metalv1alpha1.LifecycleMove{From: "Error", To: "Initial", Rule: "Sanitized", Entry: 6}, dataLeft)), "joe", "bought used"},
		"a release counts still where the boot of the wipe was lost": {both(operation("release", 4, "Succeeded", "namespace lost"), history(
			metalv1alpha1.LifecycleMove{From: "Reserved", To: "Cleanup", Rule: "ClaimEnded", Entry: 5},
			metalv1alpha1.LifecycleMove{From: "Cleanup", To: "Initial", Rule: "WipeBootLost", Entry: 6}, dataLeft)), "joe", "namespace lost"},
		"a force that let the holder go before does": {history(
			metalv1alpha1.LifecycleMove{From: "Error", To: "Released", Rule: "Forced", Entry: 6, By: "jane", Reason: "tenant left", Overrides: []string{"AbsenceIsNotEvidence"}},
			metalv1alpha1.LifecycleMove{From: "Released", To: "Cleanup", Rule: "RetentionEnded", Entry: 7}), "jane", "tenant left"},
		"a force that set nothing aside does not": {history(
			metalv1alpha1.LifecycleMove{From: "Discovery", To: "Error", Rule: "Forced", Entry: 6, By: "jane", Reason: "stuck"},
			metalv1alpha1.LifecycleMove{From: "Error", To: "Cleanup", Rule: "Resumed", Entry: 7}), "", "rule Resumed of the policy, from Error to Cleanup"},
		"a power cycle does not":                {operation("power-cycle-server", 6, "Succeeded", "kernel hangs"), "", rule},
		"a hard restart does not":               {operation("hard-restart-server", 6, "Succeeded", "kernel hangs"), "", rule},
		"a release that was undone does not":    {operation("undo-release", 6, "Succeeded", "deleted by mistake"), "", rule},
		"a retry does not":                      {both(operation("retry", 5, "Succeeded", "DIMM replaced"), history(cleared, dataLeft)), "", left},
		"a refused operation does not":          {operation("sanitize", 6, "Refused", "bought used"), "", rule},
		"a failed operation does not":           {operation("release", 6, "Failed", "namespace lost"), "", rule},
		"a release of a former holder does not": {operation("release", 3, "Succeeded", "namespace lost"), "", rule},
		"nor does one before the server was offered": {both(operation("release", 4, "Succeeded", "namespace lost"), history(
			metalv1alpha1.LifecycleMove{From: "Cleanup", To: "Available", Rule: "Wiped", Entry: 5},
			metalv1alpha1.LifecycleMove{From: "Available", To: "Initial", Rule: "DataFound", Entry: 6}, dataLeft)), "", left},
		"nor does one behind moves that are not known": {both(operation("release", 3, "Succeeded", "namespace lost"), history(
			metalv1alpha1.LifecycleMove{From: "Error", To: "Initial", Rule: "Cleared", Entry: 4}, dataLeft)), "", left},
		"without history nothing is known": {both(operation("release", 6, "Succeeded", "namespace lost"), history()), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := input()
			c.change(in.Server)
			got, err := Of(in)
			if err != nil || got.Spec.RequestedBy != c.by || got.Spec.Reason != c.reason {
				t.Errorf("got %q, %q, %v", got.Spec.RequestedBy, got.Spec.Reason, err)
			}
		})
	}
}

func TestWhoEndedAnotherClaimIsNotNamed(t *testing.T) {
	for name, annotation := range map[string]string{"another UID": "u0 jane", "nothing": "", "a UID without a user": "u1"} {
		in := input()
		in.Server.Annotations[metalv1alpha1.ClaimEndedByAnnotation] = annotation
		if got, err := Of(in); err != nil || got.Spec.EndedBy != "" {
			t.Errorf("%s: %q %v", name, got.Spec.EndedBy, err)
		}
	}
}

// three is a chain as the API server gives it back.
func three(t *testing.T) []policyv1alpha1.SanitizationRecord {
	t.Helper()
	var all []policyv1alpha1.SanitizationRecord
	for range 3 {
		in := input()
		in.Previous = last(all)
		made, err := Of(in)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		var stored policyv1alpha1.SanitizationRecord
		if err := json.Unmarshal(text, &stored); err != nil {
			t.Fatal(err)
		}
		all = append(all, stored)
	}
	return all
}

func TestTamperingIsFound(t *testing.T) {
	type chain = []policyv1alpha1.SanitizationRecord
	rehash := func(r *policyv1alpha1.SanitizationRecord) { r.Spec.Hash, _ = Hash(r.Spec) }
	for name, c := range map[string]struct {
		change func(chain) chain
		says   string
	}{
		"not in a chain as it was made": {func(all chain) chain { return all }, ""},
		"nor in another order":          {func(all chain) chain { return chain{all[2], all[0], all[1]} }, ""},
		"nor among no records":          {func(chain) chain { return nil }, ""},
		"where content was changed": {func(all chain) chain {
			all[1].Spec.Media[0].Serial = "another"
			return all
		}, "-000002: its content has hash"},
		"where the hash was made anew as well": {func(all chain) chain {
			all[1].Spec.Holder.Name = "another"
			rehash(&all[1])
			return all
		}, "-000003: it continues hash"},
		"where the middle is missing": {func(all chain) chain { return chain{all[0], all[2]} }, "record 2 is missing before"},
		"where the first are missing": {func(all chain) chain { return all[2:] }, "records 1 to 2 are missing"},
		"where a sequence stands twice": {func(all chain) chain {
			twin := *all[1].DeepCopy()
			twin.Name, twin.Spec.Reason = "twin", "forged"
			rehash(&twin)
			return append(all, twin)
		}, "there is another record with sequence 2"},
		"where a record was renamed": {func(all chain) chain {
			all[0].Name = uuid + "-000009"
			return all
		}, "its content belongs to " + uuid + "-000001"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Verify(c.change(three(t)))
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

func TestACutTailIsFoundByTheInventory(t *testing.T) {
	all := three(t)
	last := last(all)
	if last.Sequence != 3 || last.Name != uuid+"-000003" {
		t.Errorf("last %+v", last)
	}
	if err := Reaches(all, last); err != nil {
		t.Error(err)
	}
	if err := Reaches(nil, nil); err != nil {
		t.Error(err)
	}
	if err := Reaches(all[:2], last); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("got %v", err)
	}
	forged := *last
	forged.Hash = strings.Repeat("0", 64)
	if err := Reaches(all, &forged); err == nil || !strings.Contains(err.Error(), "remembers") {
		t.Errorf("got %v", err)
	}
}

func TestTwoRecordsTellTheSameEndWhateverTheirPlace(t *testing.T) {
	all := three(t)
	if !Tells(&all[0], &all[1]) {
		t.Error("they differ in their place only")
	}
	other := *all[1].DeepCopy()
	other.Spec.Media[1].Term = "Purge"
	if Tells(&all[0], &other) {
		t.Error("they differ in a term")
	}
}

func TestTheHashIsOverSortedKeysWithoutEscapes(t *testing.T) {
	text, err := Canonical(policyv1alpha1.SanitizationRecordSpec{Sequence: 1, Hash: "h", Reason: "a<b", State: "Failed"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(text), `{"entry":0,"reason":"a<b","sequence":1,"state":"Failed"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// last is the reference to the record with the highest sequence number; nil where there is no record.
func last(records []policyv1alpha1.SanitizationRecord) *policyv1alpha1.RecordReference {
	if len(records) == 0 {
		return nil
	}
	newest := slices.MaxFunc(records, func(a, b policyv1alpha1.SanitizationRecord) int { return int(a.Spec.Sequence - b.Spec.Sequence) })
	return Reference(&newest)
}
