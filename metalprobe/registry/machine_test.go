// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

const (
	ownNIC   = "70:b5:e8:00:00:01"
	alienNIC = "94:40:c9:00:00:01"
	// own and alien are what agents on the machine, and on one that shows its UUID, report.
	own   = `{"systemInfo":{"systemInformation":{"serialNumber":"A1B2C3"}},"nics":[{"mac":"` + ownNIC + `"}],"storage":[{"path":"/dev/sda","serial":"S1"}]}`
	alien = `{"systemInfo":{"systemInformation":{"serialNumber":"Z9Y8X7"}},"nics":[{"mac":"` + alienNIC + `"}],"storage":[{"path":"/dev/sda","serial":"S2"}]}`
)

// machineOf is the inventory of a machine whose BMC shows that.
func machineOf(uuid string, bmc policyv1alpha1.BMCIdentity) *policyv1alpha1.ServerInventory {
	return &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: uuid}, Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: uuid},
		Identity: &policyv1alpha1.MachineIdentity{BMC: &bmc}}
}

// asProved is a wipe under a policy that asks for proof.
func asProved(s *metalv1alpha1.Server, o *Options) {
	asWipe(s, o)
	o.IdentityRequired = func(*metalv1alpha1.Server) (bool, error) { return true, nil }
}

// mayErase is what becomes of the question for a disk: Yes, Refused with its outcome, or the code of the answer.
func (f *fleet) mayErase() string {
	f.t.Helper()
	got := f.do("GET", "/wipe/"+uuid+"?serial=S1", "mine", "")
	var status metalprobe.WipeStatus
	if err := json.Unmarshal(got.Body.Bytes(), &status); err == nil && got.Code == http.StatusOK && status.Current && status.RefusedDisk == "" {
		return "yes"
	}
	return http.StatusText(got.Code) + " " + got.Body.String()
}

func TestOnlyTheMachineItselfIsErased(t *testing.T) {
	shows := policyv1alpha1.BMCIdentity{Serials: []string{"A1B2C3"}, PhysicalAddresses: []string{ownNIC}}
	for name, c := range map[string]struct {
		policy  func(*metalv1alpha1.Server, *Options)
		known   []client.Object
		report  string
		code    int
		erases  string
		verdict policyv1alpha1.IdentityVerdict
		// wiped is the state of the wipe afterwards.
		wiped policyv1alpha1.WipeState
	}{
		"which its BMC shows":                           {asProved, []client.Object{machineOf(uuid, shows)}, own, 201, "yes", "Proved", ""},
		"not one that its BMC does not show":            {asProved, []client.Object{machineOf(uuid, shows)}, alien, 403, "", "", ""},
		"not one that contradicts, whatever the policy": {asWipe, []client.Object{machineOf(uuid, shows)}, alien, 403, "yes", "", ""},
		"nor one that the BMC of another server shows": {asWipe, []client.Object{machineOf(uuid, policyv1alpha1.BMCIdentity{}),
			machineOf(otherUUID, policyv1alpha1.BMCIdentity{Serials: []string{"Z9Y8X7"}})}, alien, 403, "yes", "", ""},
		"which nothing proves, where the policy reports":    {asWipe, []client.Object{machineOf(uuid, policyv1alpha1.BMCIdentity{})}, own, 201, "yes", "Unproven", ""},
		"not one that nothing proves, where it asks for it": {asProved, []client.Object{machineOf(uuid, policyv1alpha1.BMCIdentity{})}, own, 201, "Forbidden", "Unproven", "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, c.policy, c.known...)
			if got := f.do("POST", "/register", "mine", report(uuid, c.report)); got.Code != c.code {
				t.Fatalf("report: %d %s", got.Code, got.Body)
			}
			stored := f.inventory(uuid)
			switch {
			case c.code == 201 && (stored.Report == nil || stored.Report.Identity == nil || stored.Report.Identity.Verdict != c.verdict):
				t.Errorf("stored report: %+v", stored.Report)
			case c.code == 403 && (stored.Report != nil || stored.Identity.Refused == nil || stored.Custody != nil):
				t.Errorf("a refused report fills nothing, and is noted: %+v", stored)
			}
			if proved := stored.Identity.Proved != nil; proved != (c.verdict == "Proved") {
				t.Errorf("proved: %+v", stored.Identity.Proved)
			}
			if c.erases == "" {
				return // such an agent stops
			}
			if got := f.mayErase(); !strings.HasPrefix(got, c.erases) {
				t.Errorf("may it erase? %s", got)
			}
			stored = f.inventory(uuid)
			if c.wiped != "" && (stored.Wipe == nil || stored.Wipe.State != c.wiped || !strings.Contains(stored.Wipe.Message, "metalaw server prove")) {
				t.Errorf("wipe %+v", stored.Wipe)
			}
			if c.wiped == "" && stored.Wipe != nil {
				t.Errorf("wipe %+v", stored.Wipe)
			}
		})
	}
}

func TestAnAgentThatDidNotReportErasesNothingWhereProofIsAskedFor(t *testing.T) {
	f := newFleet(t, asProved, machineOf(uuid, policyv1alpha1.BMCIdentity{Serials: []string{"A1B2C3"}}))
	if got := f.mayErase(); !strings.HasPrefix(got, "Forbidden") || !strings.Contains(got, "has not reported") {
		t.Errorf("got %s", got)
	}
}

func TestThePolicyThatCannotBeAskedHoldsTheDisk(t *testing.T) {
	f := newFleet(t, func(s *metalv1alpha1.Server, o *Options) {
		asWipe(s, o)
		o.IdentityRequired = func(*metalv1alpha1.Server) (bool, error) { return false, http.ErrAbortHandler }
	}, machineOf(uuid, policyv1alpha1.BMCIdentity{}))
	f.do("POST", "/register", "mine", report(uuid, own))
	if got := f.mayErase(); !strings.HasPrefix(got, "Service Unavailable") {
		t.Errorf("got %s", got)
	}
}

func TestAWipeOfAMachineThatNothingProvesIsNotVerified(t *testing.T) {
	f := newFleet(t, asProved, machineOf(uuid, policyv1alpha1.BMCIdentity{}))
	f.do("POST", "/register", "mine", report(uuid, own))
	got := f.do("POST", "/wipe", "mine", `{"systemUUID":"`+uuid+`","state":"Verified","disks":[{"path":"/dev/sda","serial":"S1","state":"Verified"}]}`)
	if w := f.inventory(uuid).Wipe; got.Code != http.StatusForbidden || w == nil || w.State != policyv1alpha1.WipeFailed {
		t.Errorf("%d %s, stored %+v", got.Code, got.Body, w)
	}
}

// A twin that was refused does not keep the machine from being heard: the entry is not bound to the key that it showed first.
func TestATwinThatIsRefusedDoesNotTakeTheEntry(t *testing.T) {
	f := newFleet(t, asProved, machineOf(uuid, policyv1alpha1.BMCIdentity{Serials: []string{"A1B2C3"}, PhysicalAddresses: []string{ownNIC}}))
	twin, mine := strings.Repeat("a", 64), strings.Repeat("b", 64)
	f.keyed("POST", "/phase", twin, `{"systemUUID":"`+uuid+`","phase":"collect"}`)
	if got := f.keyed("POST", "/register", twin, report(uuid, alien)); got != http.StatusForbidden {
		t.Fatalf("the twin: %d", got)
	}
	if got := f.keyed("POST", "/register", mine, report(uuid, own)); got != http.StatusCreated {
		t.Fatalf("the machine: %d", got)
	}
	if got := f.keyed("POST", "/register", twin, report(uuid, alien)); got != http.StatusForbidden {
		t.Fatalf("the twin again: %d", got)
	}
	if e := f.inventory(uuid).Enrolment; e == nil || e.Voided || e.KeyHash != metalprobe.HashToken(mine) {
		t.Errorf("enrolment %+v", e)
	}
	if got := f.keyed("GET", "/wipe/"+uuid+"?serial=S1", mine, ""); got != http.StatusOK {
		t.Errorf("the machine may erase: %d", got)
	}
}

func TestTheWordOfAPersonCountsForTheNextReport(t *testing.T) {
	machine := machineOf(uuid, policyv1alpha1.BMCIdentity{Serials: []string{"A1B2C3"}, PhysicalAddresses: []string{ownNIC}})
	machine.Identity.Settled = &policyv1alpha1.SettledIdentity{By: "eve", Reason: "new board", At: metav1.NewMicroTime(start)}
	f := newFleet(t, asProved, machine)
	if got := f.do("POST", "/register", "mine", report(uuid, alien)); got.Code != http.StatusCreated {
		t.Fatalf("report: %d %s", got.Code, got.Body)
	}
	if id := f.inventory(uuid).Identity; id.Settled != nil || id.Proved == nil || id.Proved.By != "eve" || id.Proved.SystemSerial != "Z9Y8X7" {
		t.Errorf("identity %+v", id)
	}
	if got := f.mayErase(); got != "yes" {
		t.Errorf("may it erase? %s", got)
	}
}

// keyed sends a request with the token of "srv" and a key.
func (f *fleet) keyed(method, path, key, body string) int {
	f.t.Helper()
	request := httptest.NewRequestWithContext(f.t.Context(), method, path, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer mine")
	request.Header.Set(metalprobe.KeyHeader, key)
	recorder := httptest.NewRecorder()
	f.registry.ServeHTTP(recorder, request)
	return recorder.Code
}
