// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/metalprobe/registry/record"
)

const wipedMachine = "38947555-7742-3448-3784-823347823834"

// twoWipes are the records of a failed wipe 40 days ago and of a verified one an hour ago, with the Server and the inventory.
func twoWipes(t *testing.T) []client.Object {
	t.Helper()
	server := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Annotations: map[string]string{
		v1alpha1.ReleasedClaimAnnotation: "u1", v1alpha1.ClaimEndedByAnnotation: "u1 jane",
	}}, Spec: v1alpha1.ServerSpec{SystemUUID: wipedMachine}}
	server.Status.Manufacturer, server.Status.Model, server.Status.SerialNumber = "Acme", "R3500", "S1"
	server.Status.Lifecycle = &v1alpha1.LifecycleStatus{Revision: "rev-1", History: []v1alpha1.LifecycleMove{
		{From: "Reserved", To: "Cleanup", Rule: "Released", Entry: 4}, {From: "Error", To: "Cleanup", Entry: 6, By: "joe", Reason: "disk replaced"},
	}}
	inventory := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: wipedMachine},
		Spec:    policyv1alpha1.ServerInventorySpec{SystemUUID: wipedMachine},
		Custody: &policyv1alpha1.Custody{LastHolder: &policyv1alpha1.Holder{Namespace: "team", Name: "web", UID: "u1"}},
		Report:  &policyv1alpha1.ProbeReport{Entry: 6, AgentVersion: "0.2.0"}}
	began, ended := metav1.NewTime(noon.Add(-2*time.Hour)), metav1.NewTime(noon.Add(-time.Hour))
	good := policyv1alpha1.DiskWipe{Path: "/dev/nvme0n1", Serial: "D1", WWID: "eui.1", Manufacturer: "Maker", Model: "P5800X", MediaType: "NVMe", SizeBytes: 800e9,
		Firmware: "L0310600", Slot: "0000:01:00.0", Transport: "nvme/pcie", State: policyv1alpha1.DiskVerified, Method: "nvme-format-crypto+zero", Term: policyv1alpha1.TermPurge,
		Steps: []policyv1alpha1.EraseStep{
			{Method: "nvme-sanitize-block", Result: policyv1alpha1.EraseUnsupported},
			{Method: "nvme-format-crypto", Parameters: "ses=2", Result: policyv1alpha1.EraseSucceeded, Answer: "status 0x0"}, {Method: "zero", Result: policyv1alpha1.EraseSucceeded},
		},
		Verification: &policyv1alpha1.EraseVerification{Kind: policyv1alpha1.VerifiedZeros, ReadBytes: 800e9, Passed: true, Limits: "cells that the drive retired cannot be read"},
		StartedAt:    &began, FinishedAt: &ended}
	bad := policyv1alpha1.DiskWipe{Path: "/dev/sda", Serial: "D2", State: policyv1alpha1.DiskFailed, Message: "input/output error\x1b[31m"}
	objects := []client.Object{server, inventory}
	for _, wipe := range []struct {
		ago  time.Duration
		wipe policyv1alpha1.WipeReport
	}{
		{40 * 24 * time.Hour, policyv1alpha1.WipeReport{Entry: 4, State: policyv1alpha1.WipeFailed, Disks: []policyv1alpha1.DiskWipe{bad}, Message: "1 disk failed"}},
		{time.Hour, policyv1alpha1.WipeReport{Entry: 6, State: policyv1alpha1.WipeVerified, Disks: []policyv1alpha1.DiskWipe{good},
			Skipped: []policyv1alpha1.SkippedDisk{{Path: "/dev/sr0", Reason: "optical drive"}}}},
	} {
		wipe.wipe.StartedAt = metav1.NewMicroTime(noon.Add(-wipe.ago - time.Hour))
		made, err := record.Of(record.Input{Server: server, Inventory: inventory, Wipe: &wipe.wipe, PolicyDigest: "sha256:p",
			AgentImage: "probe@sha256:i", Previous: inventory.LastRecord, Now: noon.Add(-wipe.ago)})
		if err != nil {
			t.Fatal(err)
		}
		inventory.LastRecord = record.Reference(made)
		objects = append(objects, made)
	}
	return objects
}

// clusterOf has the objects.
func clusterOf(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// printed is what the command prints of a cluster.
func printed(t *testing.T, objects []client.Object, name string, age time.Duration, output terminal.Output) string {
	t.Helper()
	found, err := sanitizations(t.Context(), clusterOf(t, objects...), name)
	if err != nil {
		t.Fatal(err)
	}
	found.keepSince(noon, age)
	var out, notes bytes.Buffer
	page := &terminal.Terminal{Out: &out, Err: &notes, Now: noon}
	output.Show(page, found, func() { found.text(page) })
	return out.String() + notes.String()
}

const lastCertificate = `Certificate of sanitization: D1
  Result         erased and checked
  NIST SP 800-88 Purge
  Disk           Maker P5800X NVMe 800.0 GB
  Serial         D1
  WWID           eui.1
  Firmware       L0310600
  Slot           0000:01:00.0
  Path           /dev/nvme0n1 nvme/pcie
  Method         nvme-format-crypto+zero
  Step           nvme-sanitize-block Unsupported
  Step           nvme-format-crypto ses=2 Succeeded (status 0x0)
  Step           zero Succeeded
  Verification   Zeros, all of it read, passed
  Limits         cells that the drive retired cannot be read
  Erased         2026-01-31 10:00:00 UTC to 2026-01-31 11:00:00 UTC, by the agent's clock
  Machine        Acme R3500 serial S1 UUID 38947555-7742-3448-3784-823347823834
  Server         node-1
  Holder         claim team/web UID u1
  Claim ended by jane
  Asked by       joe
  Reason         disk replaced
  Wipe           Verified, entry 6, 2026-01-31 10:00:00 UTC to 2026-01-31 11:00:00 UTC
  Policy         rev-1 (sha256:p)
  Agent          0.2.0 probe@sha256:i
  Left alone     /dev/sr0 optical drive
  Record         38947555-7742-3448-3784-823347823834-000002, SHA-256 HASH2

`

const firstCertificate = `Certificate of sanitization: D2
  Result         NOT proved to be erased (Failed)
  NIST SP 800-88 no term
  Serial         D2
  Path           /dev/sda
  Message        input/output error\x1b[31m
  Machine        Acme R3500 serial S1 UUID 38947555-7742-3448-3784-823347823834
  Server         node-1
  Holder         claim team/web UID u1
  Claim ended by jane
  Reason         rule Released of the policy, from Reserved to Cleanup
  Wipe           Failed, entry 4, 2025-12-22 11:00:00 UTC to 2025-12-22 12:00:00 UTC
  Says           1 disk failed
  Policy         rev-1 (sha256:p)
  Agent          probe@sha256:i
  Record         38947555-7742-3448-3784-823347823834-000001, SHA-256 HASH1

`

func TestTheCertificatesOfAMachine(t *testing.T) {
	const chainHolds = "Chain: holds, 2 records checked.\n"
	const notCompared = "note: ServerInventory 38947555-7742-3448-3784-823347823834 could not be read (serverinventories.policy.metalaw.dev " +
		"\"38947555-7742-3448-3784-823347823834\" not found): whether the last record is missing cannot be told\n"
	month := 30 * 24 * time.Hour
	for name, c := range map[string]struct {
		named  string
		age    time.Duration
		change func([]client.Object) []client.Object
		want   string
	}{
		"of a Server":                       {"node-1", 0, nil, firstCertificate + lastCertificate + chainHolds},
		"of the last month":                 {"node-1", month, nil, lastCertificate + chainHolds},
		"of a UUID":                         {wipedMachine, month, nil, lastCertificate + chainHolds},
		"of a UUID in the other byte order": {"55759438-4277-4834-3784-823347823834", month, nil, lastCertificate + chainHolds},
		"of a Server that is gone": {"node-1", month, func(all []client.Object) []client.Object { return all[2:] },
			lastCertificate + chainHolds + notCompared},
		"of a Server without any": {"node-1", 0, func(all []client.Object) []client.Object { return all[:1] }, "No wipe is recorded for node-1.\n"},
		"of a machine without any": {"55759438-4277-4834-3784-823347823834", 0, func(all []client.Object) []client.Object { return all[1:2] },
			"No wipe is recorded for 55759438-4277-4834-3784-823347823834.\n"},
		"with a record that was changed": {"node-1", month, func(all []client.Object) []client.Object {
			all[2].(*policyv1alpha1.SanitizationRecord).Spec.Media[0].State = policyv1alpha1.DiskVerified
			return all
		}, lastCertificate + "Chain: does NOT hold.\n  record 38947555-7742-3448-3784-823347823834-000001: its content has hash CHANGED, but it states HASH1: it was changed\n"},
		"with the last record taken away": {"node-1", month, func(all []client.Object) []client.Object { return all[:3] },
			"Chain: does NOT hold.\n  record 38947555-7742-3448-3784-823347823834-000002 is missing, which the ServerInventory remembers as the last\n"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := twoWipes(t)
			hashes := []string{}
			for i, o := range objects[2:] {
				hashes = append(hashes, o.(*policyv1alpha1.SanitizationRecord).Spec.Hash, "HASH"+string(rune('1'+i)))
			}
			if c.change != nil {
				objects = c.change(objects)
				for _, o := range objects {
					if r, is := o.(*policyv1alpha1.SanitizationRecord); is {
						if hash, err := record.Hash(r.Spec); err != nil || hash != r.Spec.Hash {
							hashes = append(hashes, hash, "CHANGED")
						}
					}
				}
			}
			got := strings.NewReplacer(hashes...).Replace(printed(t, objects, c.named, c.age, terminal.OutputAs(terminal.Text)))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestANameOfNothingIsNoMachineWithoutRecords(t *testing.T) {
	for _, name := range []string{"node-2", "aaaaaaaa-7742-3448-3784-823347823834"} {
		found, err := sanitizations(t.Context(), clusterOf(t, twoWipes(t)...), name)
		want := `there is no server or machine "` + name + `": neither a Server nor a ServerInventory has this name, and no record of a wipe; ` +
			"see kubectl get servers,serverinventories"
		if err == nil || err.Error() != want {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
}

func TestTheRecordsAsJSONCanBeCheckedAgain(t *testing.T) {
	var got sanitization
	if err := json.Unmarshal([]byte(printed(t, twoWipes(t), "node-1", 0, terminal.OutputAs(terminal.AsJSON))), &got); err != nil {
		t.Fatal(err)
	}
	if err := record.Verify(got.Records); err != nil || len(got.Records) != 2 || !got.Chain.Holds || got.Name != "node-1" {
		t.Errorf("%+v: %v", got.Chain, err)
	}
}

func TestTheTimeOfSince(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "30d": 720 * time.Hour, "12h": 12 * time.Hour, "90m": 90 * time.Minute,
		"0d": -1, "-1h": -1, "d": -1, "1.5d": -1, "month": -1, "99999999d": -1,
	} {
		got, err := parseAge(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

func TestACertificateNamesTheDisksForWhichAPersonAnswers(t *testing.T) {
	at := metav1.NewMicroTime(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC))
	for name, c := range map[string]struct {
		disk policyv1alpha1.AttestedDisk
		want string
	}{
		"one that was destroyed": {policyv1alpha1.AttestedDisk{CustodyDisk: policyv1alpha1.CustodyDisk{Name: "sda", Serial: "S1", WWID: "naa.1"}, Method: "destroy", By: "jane", Reason: "shredded", At: at},
			"disk S1: destroyed, as jane answers since 2026-01-31 12:00:00 UTC: shredded"},
		"one that was taken out, known by its name": {policyv1alpha1.AttestedDisk{CustodyDisk: policyv1alpha1.CustodyDisk{Name: "sda"}, Method: "removed", By: "jane", Reason: "sent back", At: at},
			"disk sda: taken out of the machine, as jane answers since 2026-01-31 12:00:00 UTC: sent back"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &policyv1alpha1.SanitizationRecord{}
			r.Spec.Attested = []policyv1alpha1.AttestedDisk{c.disk}
			rows := wipe(r)
			if got := rows[len(rows)-2]; got != (row{"Not erased", c.want}) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
