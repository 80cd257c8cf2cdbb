// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

func TestADiskOfAnotherMachineIsRefused(t *testing.T) {
	of := func(uuid string, change func(*policyv1alpha1.ServerInventory)) *policyv1alpha1.ServerInventory {
		i := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: uuid}, Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: uuid}}
		change(i)
		return i
	}
	reports := func(d policyv1alpha1.BlockDevice) func(*policyv1alpha1.ServerInventory) {
		return func(i *policyv1alpha1.ServerInventory) {
			i.Report = &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{Storage: []policyv1alpha1.BlockDevice{d}}}
		}
	}
	remembers := func(d policyv1alpha1.CustodyDisk) func(*policyv1alpha1.ServerInventory) {
		return func(i *policyv1alpha1.ServerInventory) {
			i.Custody = &policyv1alpha1.Custody{Disks: []policyv1alpha1.CustodyDisk{d}}
		}
	}
	for name, c := range map[string]struct {
		query   string
		machine *policyv1alpha1.ServerInventory
		refused bool
	}{
		"by its wwid in a report":                   {"wwid=w", of(otherUUID, reports(policyv1alpha1.BlockDevice{WWID: "w"})), true},
		"by its wwid in a custody":                  {"wwid=w&serial=s", of(otherUUID, remembers(policyv1alpha1.CustodyDisk{WWID: "w"})), true},
		"by serial number and model":                {"serial=s&model=m", of(otherUUID, reports(policyv1alpha1.BlockDevice{Serial: "s", Model: "m"})), true},
		"by a serial number that is all it has":     {"serial=s&model=m&size=5", of(otherUUID, remembers(policyv1alpha1.CustodyDisk{Serial: "s", SizeBytes: 5})), true},
		"but not by a serial number of other model": {"serial=s&model=m", of(otherUUID, reports(policyv1alpha1.BlockDevice{Serial: "s", Model: "other"})), false},
		"nor of other size":                         {"serial=s&size=5", of(otherUUID, reports(policyv1alpha1.BlockDevice{Serial: "s", SizeBytes: 6})), false},
		"nor where the wwids differ":                {"wwid=w&serial=s", of(otherUUID, reports(policyv1alpha1.BlockDevice{WWID: "v", Serial: "s"})), false},
		"by one wwid, where the serial numbers may be of two ports": {
			"wwid=w&serial=s1", of(otherUUID, reports(policyv1alpha1.BlockDevice{WWID: "w", Serial: "s2", Transport: "sas"})), true},
		"but not by the wwid of a batch": {
			"wwid=w&serial=s1", of(otherUUID, reports(policyv1alpha1.BlockDevice{WWID: "w", Serial: "s2", Transport: "sata"})), false},
		"nor by that of a batch in a custody": {
			"wwid=w&serial=s1", of(otherUUID, remembers(policyv1alpha1.CustodyDisk{WWID: "w", Serial: "s2", Transport: "nvme/pcie"})), false},
		"nor by zeros": {
			"wwid=000&serial=0", of(otherUUID, reports(policyv1alpha1.BlockDevice{WWID: "000", Serial: "0"})), false},
		"nor one of the machine itself":         {"wwid=w", of(swapped, reports(policyv1alpha1.BlockDevice{WWID: "w"})), false},
		"nor one of a machine without a Server": {"wwid=w", of(unknown, reports(policyv1alpha1.BlockDevice{WWID: "w"})), false},
		"nor one without any identity":          {"model=m&size=5", of(otherUUID, reports(policyv1alpha1.BlockDevice{Model: "m", SizeBytes: 5})), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, asWipe, c.machine)
			got := f.do("GET", "/wipe/"+uuid+"?"+c.query, "mine", "")
			var status metalprobe.WipeStatus
			if err := json.Unmarshal(got.Body.Bytes(), &status); err != nil || got.Code != http.StatusOK || !status.Current {
				t.Fatalf("got %d %s", got.Code, got.Body)
			}
			if (status.RefusedDisk != "") != c.refused || c.refused && !strings.Contains(status.RefusedDisk, "Server other has this disk") {
				t.Errorf("refused: %q", status.RefusedDisk)
			}
		})
	}
}

func TestAQuestionAboutADiskThatCannotBeRead(t *testing.T) {
	for name, query := range map[string]string{
		"a size in words": "size=big", "a size below zero": "size=-1", "a long serial": "serial=" + strings.Repeat("x", 257),
	} {
		if got := newFleet(t, asWipe).do("GET", "/wipe/"+uuid+"?"+query, "mine", ""); got.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
	}
}

func FuzzAskedDisk(f *testing.F) {
	f.Add("wwid=a&serial=b&model=c&size=5")
	f.Fuzz(func(t *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		if disk, asked, refused := askedDisk(query); refused == nil && (disk.SizeBytes < 0 || !asked && disk != (metalprobe.DiskIdentity{})) {
			t.Errorf("%q: %+v, %t", text, disk, asked)
		}
	})
}

// retried is a server in the wipe after one that failed, and what is stored of that.
func retried() (func(*metalv1alpha1.Server, *Options), *policyv1alpha1.ServerInventory) {
	move := func(entry int64, to metalv1alpha1.ServerState) metalv1alpha1.LifecycleMove {
		return metalv1alpha1.LifecycleMove{To: to, Entry: entry, Rule: "r"}
	}
	at := func(d time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: start.Add(d)} }
	i := emptyInventory()
	i.Report = &policyv1alpha1.ProbeReport{Entry: 5, Purpose: policyv1alpha1.PurposeWipe}
	i.Custody = &policyv1alpha1.Custody{LastHolder: &policyv1alpha1.Holder{Namespace: "a", Name: "b", UID: "holder"}, DirtiedAt: at(-48 * time.Hour)}
	i.Wipe = &policyv1alpha1.WipeReport{Entry: 5, State: policyv1alpha1.WipeFailed, StartedAt: *at(-2 * time.Hour), Disks: []policyv1alpha1.DiskWipe{
		{Path: "/dev/sda", Serial: "A", State: policyv1alpha1.DiskVerified}, {Path: "/dev/sdb", WWID: "B", State: policyv1alpha1.DiskFailed},
		{Path: "/dev/sdc", State: policyv1alpha1.DiskVerified},
	}}
	return func(s *metalv1alpha1.Server, o *Options) {
		asWipe(s, o)
		l := s.Status.Lifecycle
		l.BootedAt = l.SeenOnAt
		l.History = []metalv1alpha1.LifecycleMove{move(4, "Reserved"), move(5, "Cleanup"), move(6, "Error"), move(7, "Cleanup")}
	}, i
}

func TestWhatAFormerWipeProvedIsNamedOnlyWhereNothingElseRan(t *testing.T) {
	type server = metalv1alpha1.Server
	type inventory = policyv1alpha1.ServerInventory
	for name, c := range map[string]struct {
		change func(*server, *inventory)
		named  bool
	}{
		"as it was":                       {func(*server, *inventory) {}, true},
		"not where the wipe runs already": {func(_ *server, i *inventory) { i.Wipe.Entry, i.Wipe.State = 7, policyv1alpha1.WipeRunning }, false},
		"not where it never ended":        {func(_ *server, i *inventory) { i.Wipe.State = policyv1alpha1.WipeRunning }, false},
		"not where another held it since": {func(_ *server, i *inventory) { i.Custody.LastHolder.UID = "later" }, false},
		"not where data came since":       {func(_ *server, i *inventory) { i.Custody.DirtiedAt = &i.Wipe.StartedAt }, false},
		"not where that is not known":     {func(_ *server, i *inventory) { i.Custody.DirtiedAt = nil }, false},
		"not where a probe reported":      {func(_ *server, i *inventory) { i.Report.Purpose, i.Report.Entry = policyv1alpha1.PurposeProbe, 6 }, false},
		"not where no report is left":     {func(_ *server, i *inventory) { i.Report = nil }, false},
		"not where the machine was on before our boot": {func(s *server, _ *inventory) {
			s.Status.Lifecycle.BootedAt = &metav1.MicroTime{Time: s.Status.Lifecycle.SeenOnAt.Add(time.Second)}
		}, false},
		"not where our boot is not seen":   {func(s *server, _ *inventory) { s.Status.Lifecycle.BootedAt = nil }, false},
		"not past another state":           {func(s *server, _ *inventory) { s.Status.Lifecycle.History[2].To = "Discovery" }, false},
		"not where a person forced it":     {func(s *server, _ *inventory) { s.Status.Lifecycle.History[3].By = "jane" }, false},
		"not where a move is not known":    {func(s *server, _ *inventory) { s.Status.Lifecycle.History = s.Status.Lifecycle.History[2:] }, false},
		"not where a move is missing":      {func(s *server, _ *inventory) { s.Status.Lifecycle.History[2].Entry = 5 }, false},
		"not where the state is another":   {func(s *server, _ *inventory) { s.Status.Lifecycle.History[3].To = "Sanitizing" }, false},
		"not where the server was adopted": {func(s *server, _ *inventory) { s.Status.Lifecycle.History[2].Rule = metalv1alpha1.RuleAdopted }, false},
	} {
		t.Run(name, func(t *testing.T) {
			change, stored := retried()
			f := newFleet(t, func(s *metalv1alpha1.Server, o *Options) {
				change(s, o)
				c.change(s, stored)
			}, stored)
			got := f.do("GET", "/wipe/"+uuid, "mine", "")
			var status metalprobe.WipeStatus
			if err := json.Unmarshal(got.Body.Bytes(), &status); err != nil || !status.Current {
				t.Fatalf("got %d %s", got.Code, got.Body)
			}
			if named := len(status.Proved) == 1 && status.Proved[0].Serial == "A"; named != c.named || !named && len(status.Proved) > 0 {
				t.Errorf("proved %+v", status.Proved)
			}
			if got := f.do("GET", "/wipe/"+uuid+"?wwid=x", "mine", ""); strings.Contains(got.Body.String(), "proved") {
				t.Errorf("a question about a disk names what is proved: %s", got.Body)
			}
		})
	}
}
