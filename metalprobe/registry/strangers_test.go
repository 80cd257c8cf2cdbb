// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/peers"
	"github.com/metalaw/metalaw/metalprobe"
)

// dialFrom connects from an address of this host.
func dialFrom(t *testing.T, source, to string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// beginBody sends the headers of a report, and waits until the registry asks for the body.
func beginBody(t *testing.T, conn net.Conn) *bufio.Reader {
	t.Helper()
	headers := strings.Replace(post(metalprobe.MaxBody), "\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n", 1)
	if _, err := io.WriteString(conn, headers); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("the registry answers %q, %v", line, err)
	}
	if _, err := answers.ReadString('\n'); err != nil { // the empty line after it
		t.Fatal(err)
	}
	return answers
}

// Four addresses send 256 bodies, and none of the bodies ends before the agent is answered.
func TestATrueAgentIsAnsweredWhileOthersSendSlowly(t *testing.T) {
	f, address := serving(t, func(o *Options) { o.Plaintext = true })
	for i := range 256 {
		conn := dialFrom(t, fmt.Sprintf("127.0.0.%d", 2+i%4), address)
		beginBody(t, conn)
		if _, err := io.WriteString(conn, " "); err != nil {
			t.Fatal(err)
		}
	}
	whole := report(uuid, least)
	if got := ask(t, dialFrom(t, "127.0.0.1", address), post(len(whole))+whole); got != http.StatusCreated {
		t.Errorf("the agent got %d", got)
	}
	if f.inventory(uuid).Report == nil {
		t.Error("the report was not stored")
	}
}

// One source fills its room for bodies. It is refused at once, and another one is served.
func TestTheBodiesOfOneSourceTakeTheirRoomAndNoMore(t *testing.T) {
	f, address := serving(t, func(o *Options) { o.Plaintext = true })
	f.registry.bodies = peers.NewBudget(8*bodyStep, 2*bodyStep)
	first := dialFrom(t, "127.0.0.2", address)
	answers := beginBody(t, first)
	go func() { _, _ = io.WriteString(first, strings.Repeat(" ", metalprobe.MaxBody)) }()
	response, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("a body beyond the room got %d", response.StatusCode)
	}
	for range 2 {
		beginBody(t, dialFrom(t, "127.0.0.2", address))
	}
	whole := report(uuid, least)
	if got := ask(t, dialFrom(t, "127.0.0.2", address), post(len(whole))+whole); got != http.StatusServiceUnavailable {
		t.Errorf("the source whose room is full got %d", got)
	}
	if got := ask(t, dialFrom(t, "127.0.0.1", address), post(len(whole))+whole); got != http.StatusCreated {
		t.Errorf("another source got %d", got)
	}
}

// asksForDisk says whether the agent of a wipe is refused a disk because of another machine.
func (f *fleet) asksForDisk(query string) bool {
	f.t.Helper()
	got := f.do("GET", "/wipe/"+uuid+"?"+query, "mine", "")
	var status metalprobe.WipeStatus
	if err := json.Unmarshal(got.Body.Bytes(), &status); err != nil || got.Code != http.StatusOK {
		f.t.Fatalf("%d %s", got.Code, got.Body)
	}
	return status.RefusedDisk != ""
}

func TestAReportThatIsNotBelievedBlocksNoDisk(t *testing.T) {
	disk := policyv1alpha1.BlockDevice{WWID: "w"}
	for name, c := range map[string]struct {
		change  func(*policyv1alpha1.ServerInventory)
		refused bool
	}{
		"a report with a token":         {func(*policyv1alpha1.ServerInventory) {}, true},
		"a report without a token":      {func(i *policyv1alpha1.ServerInventory) { i.Report.Unauthenticated = true }, false},
		"a report of a voided entry":    {func(i *policyv1alpha1.ServerInventory) { i.Report.Voided = true }, false},
		"a disk that an agent told of":  {remembersAlone(policyv1alpha1.CustodyDisk{WWID: "w", Entry: 3}), true},
		"one that is remembered of old": {remembersAlone(policyv1alpha1.CustodyDisk{WWID: "w"}), true},
		"one of a voided entry alone":   {remembersAlone(policyv1alpha1.CustodyDisk{WWID: "w", Entry: 3, Voided: true}), false},
	} {
		t.Run(name, func(t *testing.T) {
			other := emptyInventory()
			other.Name, other.Spec.SystemUUID = otherUUID, otherUUID
			other.Report = &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{Storage: []policyv1alpha1.BlockDevice{disk}}}
			c.change(other)
			if got := newFleet(t, asWipe, other).asksForDisk("wwid=w"); got != c.refused {
				t.Errorf("refused: %t", got)
			}
		})
	}
}

func remembersAlone(d policyv1alpha1.CustodyDisk) func(*policyv1alpha1.ServerInventory) {
	return func(i *policyv1alpha1.ServerInventory) {
		i.Report, i.Custody = nil, &policyv1alpha1.Custody{Disks: []policyv1alpha1.CustodyDisk{d}}
	}
}

// A stranger with the token of a server names the disks of others. The entry is voided when the true agent reports.
func TestWhatAVoidedEntryAddedIsDoubtedAndKept(t *testing.T) {
	known := disk{Name: "sda", WWID: "A", SizeBytes: 7, Entry: 2}
	f := newFleet(t, nil, custodyOf(known))
	f.says("POST", "/register", forged, report(uuid, storage("sda A -", "sdb VICTIM -")))
	if got := f.says("POST", "/register", ours, report(uuid, storage("sda A -"))); got.Code != http.StatusForbidden {
		t.Fatalf("the second agent: %d %s", got.Code, got.Body)
	}
	want := []disk{known, {Name: "sdb", WWID: "VICTIM", SizeBytes: 7, Entry: 7, Voided: true}}
	if diff := cmp.Diff(want, f.inventory(uuid).Custody.Disks); diff != "" {
		t.Error(diff)
	}
	stored := f.inventory(uuid)
	if !hasDisk(stored, metalprobe.DiskIdentity{WWID: "A"}) || hasDisk(stored, metalprobe.DiskIdentity{WWID: "VICTIM"}) {
		t.Error("the disk of the machine does not count, or that of a stranger does")
	}
}

func TestADiskIsBelievedOnceALaterAgentSeesIt(t *testing.T) {
	doubted := disk{Name: "sdb", WWID: "B", SizeBytes: 7, Entry: 2, Voided: true}
	f := newFleet(t, nil, custodyOf(doubted, disk{Name: "sdc", WWID: "C", SizeBytes: 7, Entry: 2, Voided: true}))
	f.says("POST", "/register", ours, report(uuid, storage("sdb B -")))
	want := []disk{{Name: "sdb", WWID: "B", SizeBytes: 7, Entry: 7}, {Name: "sdc", WWID: "C", SizeBytes: 7, Entry: 2, Voided: true}}
	if diff := cmp.Diff(want, f.inventory(uuid).Custody.Disks); diff != "" {
		t.Error(diff)
	}
}
