// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

const (
	twoDisks = `{"storage":[{"path":"/dev/sda","serial":"A"},{"path":"/dev/sdb","wwid":"B"},{"path":"/dev/sdc","removable":true}]}`
	running  = `{"systemUUID":"` + uuid + `","state":"Running","disks":[{"path":"/dev/sda","state":"Erasing"}]}`
	verified = `{"systemUUID":"` + uuid + `","state":"Verified","disks":[{"path":"/dev/sdx","serial":"A","state":"Verified"},{"path":"/dev/sdy","wwid":"B","state":"Verified"}]}`
)

func TestAWipeIsFollowedToItsEnd(t *testing.T) {
	f := newFleet(t, asWipe)
	if got := f.do("GET", "/wipe/"+swapped, "mine", ""); got.Code != 200 || strings.TrimSpace(got.Body.String()) != `{"current":true,"entry":7}` {
		t.Fatalf("may it go on? %d %s", got.Code, got.Body)
	}
	f.do("POST", "/register", "mine", report(uuid, twoDisks))
	f.do("POST", "/wipe", "mine", running)
	f.now = start.Add(time.Hour)
	if got := f.do("POST", "/wipe", "mine", verified); got.Code != http.StatusOK {
		t.Fatalf("got %d %s", got.Code, got.Body)
	}
	got := f.inventory(uuid)
	if got.Report.Purpose != "Wipe" || got.Report.Entry != 7 {
		t.Errorf("report %+v", got.Report)
	}
	wipe := got.Wipe
	if wipe.State != "Verified" || wipe.Entry != 7 || !wipe.StartedAt.Time.Equal(start) || !wipe.UpdatedAt.Time.Equal(f.now) || len(wipe.Disks) != 2 {
		t.Errorf("wipe %+v", wipe)
	}
}

func TestARefusedDiskIsStoredWithItsTransportAndReason(t *testing.T) {
	f := newFleet(t, asWipe)
	f.do("POST", "/register", "mine", report(uuid, twoDisks))
	const failed = `{"systemUUID":"` + uuid + `","state":"Failed","message":"1 of 2 disks may still hold data: /dev/sdb: not erased: it is remote",
		"disks":[{"path":"/dev/sda","serial":"A","transport":"sata","state":"Verified"},
		{"path":"/dev/sdb","wwid":"B","transport":"iscsi","state":"Failed","message":"not erased: it is remote"}],
		"skipped":[{"path":"/dev/sr0","transport":"sata","reason":"optical or floppy drive"}]}`
	if got := f.do("POST", "/wipe", "mine", failed); got.Code != http.StatusOK {
		t.Fatalf("got %d %s", got.Code, got.Body)
	}
	wipe := f.inventory(uuid).Wipe
	wantDisk := policyv1alpha1.DiskWipe{Path: "/dev/sdb", WWID: "B", Transport: "iscsi", State: "Failed", Message: "not erased: it is remote"}
	wantSkipped := policyv1alpha1.SkippedDisk{Path: "/dev/sr0", Transport: "sata", Reason: "optical or floppy drive"}
	if wipe.State != "Failed" || len(wipe.Disks) != 2 || !reflect.DeepEqual(wipe.Disks[1], wantDisk) || len(wipe.Skipped) != 1 || wipe.Skipped[0] != wantSkipped {
		t.Errorf("the wipe is %+v", wipe)
	}
	if !strings.Contains(wipe.Message, "/dev/sdb") {
		t.Errorf("the message is %q", wipe.Message)
	}
}

func TestASkippedDiskCoversNone(t *testing.T) {
	f := newFleet(t, asWipe)
	f.do("POST", "/register", "mine", report(uuid, twoDisks))
	const skips = `{"systemUUID":"` + uuid + `","state":"Verified","disks":[{"path":"/dev/sda","serial":"A","state":"Verified"}],"skipped":[{"path":"/dev/sdb","wwid":"B"}]}`
	f.do("POST", "/wipe", "mine", skips)
	if got := f.inventory(uuid).Wipe; got.State != "Failed" || !strings.Contains(got.Message, "sdb (wwid B)") {
		t.Errorf("the wipe is %+v", got)
	}
}

func TestTheOutcomeOfAWipeStays(t *testing.T) {
	f := newFleet(t, asWipe)
	f.do("POST", "/register", "mine", report(uuid, twoDisks))
	f.do("POST", "/wipe", "mine", verified)
	if got := f.do("POST", "/wipe", "mine", running); got.Code != http.StatusConflict {
		t.Errorf("a late report of progress: %d %s", got.Code, got.Body)
	}
	if got := f.do("POST", "/wipe", "mine", verified); got.Code != http.StatusOK {
		t.Errorf("the same outcome again: %d %s", got.Code, got.Body)
	}
	if got := f.do("GET", "/wipe/"+uuid, "mine", ""); got.Code != http.StatusConflict || !strings.Contains(got.Body.String(), `"current":false`) {
		t.Errorf("may it go on? %d %s", got.Code, got.Body)
	}
	if got := f.inventory(uuid).Wipe.State; got != "Verified" {
		t.Errorf("the wipe is %s", got)
	}
}

func TestAWipeThatLeavesAReportedDiskOutHasFailed(t *testing.T) {
	f := newFleet(t, asWipe)
	f.do("POST", "/register", "mine", report(uuid, twoDisks))
	one := `{"systemUUID":"` + uuid + `","state":"Verified","disks":[{"path":"/dev/sda","serial":"A","state":"Verified"}]}`
	for _, name := range []string{"first", "repeated"} {
		if got := f.do("POST", "/wipe", "mine", one); got.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
	}
	if got := f.inventory(uuid).Wipe; got == nil || got.State != "Failed" || !strings.Contains(got.Message, "sdb (wwid B)") {
		t.Errorf("the wipe is %+v", got)
	}
	if got := f.do("POST", "/wipe", "mine", verified); got.Code != http.StatusConflict {
		t.Errorf("another outcome: %d %s", got.Code, got.Body)
	}
}

func TestAWipeIsNotVerifiedBeforeTheServerReportedItsDisks(t *testing.T) {
	f := newFleet(t, asWipe)
	if got := f.do("POST", "/wipe", "mine", verified); got.Code != http.StatusConflict || len(f.stored()) != 0 {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

// An agent speaks every WipeReportInterval while it erases. Whatever it says, the time since the last stored sign of
// life must stay far from the silence after which power may be cut.
func TestARunningWipeNeverLooksSilent(t *testing.T) {
	if metalprobe.MaxWipeInterval > policyv1alpha1.WipeReportInterval || 3*policyv1alpha1.WipeReportInterval > policyv1alpha1.WipeSilence {
		t.Fatal("the agent speaks too seldom for what others take for silence")
	}
	f := newFleet(t, asWipe)
	jitter := []time.Duration{0, -2 * time.Second, time.Second}
	for i := range 60 {
		f.now = start.Add(time.Duration(i)*policyv1alpha1.WipeReportInterval + jitter[i%3])
		if got := f.do("POST", "/wipe", "mine", running); got.Code != http.StatusOK {
			t.Fatalf("got %d %s", got.Code, got.Body)
		}
		if age := f.now.Sub(f.inventory(uuid).Wipe.UpdatedAt.Time); age > 0 {
			t.Fatalf("report %d was dropped; the last sign of life is %s old", i, age)
		}
	}
	if got := f.inventory(uuid).Wipe.StartedAt; !got.Time.Equal(start) {
		t.Errorf("started at %s", got)
	}
}

func TestAnAgentThatTalksWithoutNeedIsNotWrittenEachTime(t *testing.T) {
	f := newFleet(t, asWipe)
	f.do("POST", "/wipe", "mine", running)
	first := f.inventory(uuid).ResourceVersion
	f.now = start.Add(14 * time.Second)
	if f.do("POST", "/wipe", "mine", running); f.inventory(uuid).ResourceVersion != first {
		t.Error("the same progress was written again")
	}
}

func TestBootStateSetsOneConditionAndKeepsTheOthers(t *testing.T) {
	f := newFleet(t, nil)
	for booted, want := range map[string]metav1.ConditionStatus{"true": metav1.ConditionTrue, "false": metav1.ConditionFalse} {
		if got := f.do("POST", "/bootstate", "mine", `{"systemUUID":"`+uuid+`","booted":`+booted+`}`); got.Code != http.StatusOK {
			t.Fatalf("got %d %s", got.Code, got.Body)
		}
		var config metalv1alpha1.ServerBootConfiguration
		if err := f.client.Get(t.Context(), client.ObjectKey{Namespace: "metalaw-system", Name: "srv"}, &config); err != nil {
			t.Fatal(err)
		}
		if got := meta.FindStatusCondition(config.Status.Conditions, "BootStateReceived"); got == nil || got.Status != want {
			t.Errorf("booted %s: condition %+v", booted, got)
		}
		if meta.FindStatusCondition(config.Status.Conditions, "IgnitionDataFetched") == nil || config.Status.State != "Ready" {
			t.Errorf("the boot provider's status was lost: %+v", config.Status)
		}
	}
}

func TestBootStateWithoutATokenNeedsTheOption(t *testing.T) {
	body := `{"systemUUID":"` + uuid + `","booted":true}`
	if got := newFleet(t, nil).do("POST", "/bootstate", "-", body); got.Code != http.StatusUnauthorized {
		t.Errorf("got %d", got.Code)
	}
	f := newFleet(t, func(_ *metalv1alpha1.Server, o *Options) {
		o.AllowUnauthenticatedBootState = func(*metalv1alpha1.Server) (bool, error) { return true, nil }
	})
	if got := f.do("POST", "/bootstate", "-", body); got.Code != http.StatusOK {
		t.Errorf("got %d", got.Code)
	}
	if got := f.do("POST", "/register", "-", report(uuid, least)); got.Code != http.StatusUnauthorized {
		t.Errorf("a report: got %d", got.Code)
	}
}
