// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/metalprobe"
)

const (
	uuid      = "4c4c4544-0042-3510-8054-b7c04f4d4d32"
	swapped   = "44454c4c-4200-1035-8054-b7c04f4d4d32"
	otherUUID = "11111111-1111-1111-1111-111111111111"
	unknown   = "99999999-9999-9999-9999-999999999999"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fleet is a registry with two servers: "srv" (token "mine") and "other" (token "theirs"), both in entry 7.
type fleet struct {
	t        *testing.T
	client   client.Client
	registry *Registry
	events   *events.FakeRecorder
	metrics  *prometheus.Registry
	now      time.Time
}

func serverOf(name, uuid, token string, purpose metalv1alpha1.ProbePurpose) *metalv1alpha1.Server {
	return &metalv1alpha1.Server{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-" + "x"},
		Spec: metalv1alpha1.ServerSpec{
			SystemUUID:           uuid,
			BootConfigurationRef: &metalv1alpha1.ObjectReference{Namespace: "metalaw-system", Name: name},
		},
		Status: metalv1alpha1.ServerStatus{Lifecycle: &metalv1alpha1.LifecycleStatus{
			Entry:      7,
			Credential: &metalv1alpha1.ProbeCredential{Purpose: purpose, Entry: 7, TokenHash: metalprobe.HashToken(token)},
			SeenOnAt:   &metav1.MicroTime{Time: start.Add(-time.Minute)},
		}},
	}
}

// newFleet makes the registry; change alters server "srv" before it is stored.
func newFleet(t *testing.T, change func(*metalv1alpha1.Server, *Options), more ...client.Object) *fleet {
	t.Helper()
	f := &fleet{t: t, events: events.NewFakeRecorder(100), metrics: prometheus.NewRegistry(), now: start}
	options := Options{
		Plaintext: true, Recorder: f.events, Metrics: f.metrics, UnauthorizedDelay: -1,
		Now: func() time.Time { return f.now }, Log: slog.New(slog.DiscardHandler),
	}
	mine := serverOf("srv", uuid, "mine", metalv1alpha1.ProbePurposeProbe)
	if change != nil {
		change(mine, &options)
	}
	theirs := serverOf("other", otherUUID, "theirs", metalv1alpha1.ProbePurposeProbe)
	config := &metalv1alpha1.ServerBootConfiguration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: "srv"},
		Spec:       metalv1alpha1.ServerBootConfigurationSpec{ServerRef: corev1.LocalObjectReference{Name: "srv"}},
		Status: metalv1alpha1.ServerBootConfigurationStatus{
			State:      metalv1alpha1.ServerBootConfigurationStateReady,
			Conditions: []metav1.Condition{{Type: "IgnitionDataFetched", Status: metav1.ConditionTrue, Reason: "Fetched"}},
		},
	}
	f.client = fakeClient(append([]client.Object{mine, theirs, config}, more...)...)
	if options.Reader == nil {
		options.Reader = f.client
	}
	if options.Writer == nil {
		options.Writer = f.client
	}
	registry, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	f.registry = registry
	return f
}

func fakeClient(objects ...client.Object) client.WithWatch {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{metalv1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&metalv1alpha1.Server{}, fieldindex.ServerBySystemUUID, func(o client.Object) []string {
			return []string{o.(*metalv1alpha1.Server).Spec.SystemUUID}
		}).
		WithIndex(&policyv1alpha1.ServerInventory{}, fieldindex.InventoryByDisk, fieldindex.DisksOf).
		WithIndex(&policyv1alpha1.ServerInventory{}, fieldindex.InventoryByMachine, fieldindex.MachinesOf).
		WithStatusSubresource(&metalv1alpha1.ServerBootConfiguration{}).
		WithObjects(objects...).Build()
}

// do sends a request: "POST /register token {body}", where token "-" sends none.
func (f *fleet) do(method, path, token, body string) *httptest.ResponseRecorder {
	f.t.Helper()
	request := httptest.NewRequestWithContext(f.t.Context(), method, path, strings.NewReader(body))
	if token != "-" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	recorder := httptest.NewRecorder()
	f.registry.ServeHTTP(recorder, request)
	return recorder
}

func (f *fleet) inventory(name string) *policyv1alpha1.ServerInventory {
	f.t.Helper()
	found, err := inventory(f.t.Context(), f.client, name)
	if err != nil {
		f.t.Fatal(err)
	}
	return found
}

func (f *fleet) stored() []policyv1alpha1.ServerInventory {
	f.t.Helper()
	var list policyv1alpha1.ServerInventoryList
	if err := f.client.List(f.t.Context(), &list); err != nil {
		f.t.Fatal(err)
	}
	return list.Items
}

func (f *fleet) heard() string {
	select {
	case event := <-f.events.Events:
		return event
	default:
		return ""
	}
}

// least is what an agent that reads anything at all reports.
const least = `{"cpu":[{"id":0}]}`

func report(uuid, data string) string { return `{"systemUUID":"` + uuid + `","data":` + data + `}` }

// asWipe is a server whose holder is recorded as released, and whose agent was booted to wipe it.
func asWipe(s *metalv1alpha1.Server, _ *Options) {
	s.Annotations = map[string]string{metalv1alpha1.ClaimUIDAnnotation: "holder", metalv1alpha1.ReleasedClaimAnnotation: "holder"}
	s.Status.Lifecycle.Credential.Purpose = metalv1alpha1.ProbePurposeWipe
}

func TestRegisterStoresTheReportOfItsEntry(t *testing.T) {
	f := newFleet(t, nil)
	body := `{"systemUUID":"` + strings.ToUpper(uuid) + `","agentVersion":"1.2","new":1,"data":{"timestamp":"2026-01-01T00:00:00Z","cpu":[{"id":0,"totalCores":4,"new":true}],"gpus":[]}}`
	if got := f.do("POST", "/register", "mine", body); got.Code != http.StatusCreated {
		t.Fatalf("got %d %s", got.Code, got.Body)
	}
	got := f.inventory(uuid)
	want := &policyv1alpha1.ProbeReport{
		ReceivedAt: metav1.NewMicroTime(start), Entry: 7, Purpose: "Probe", AgentVersion: "1.2", Digest: got.Report.Digest,
		Data: policyv1alpha1.ProbeData{Timestamp: "2026-01-01T00:00:00.000000Z", CPU: []policyv1alpha1.CPU{{TotalCores: 4}}},
	}
	got.Report.ReceivedAt = metav1.NewMicroTime(got.Report.ReceivedAt.UTC())
	if diff := cmp.Diff(want, got.Report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&policyv1alpha1.Custody{ServerName: "srv"}, got.Custody); diff != "" {
		t.Errorf("custody (-want +got):\n%s", diff)
	}
	if got.Spec.SystemUUID != uuid || got.Wipe != nil {
		t.Errorf("inventory %+v", got)
	}
	if answer := f.do("GET", "/systems/"+uuid, "mine", ""); answer.Code != 200 || !strings.Contains(answer.Body.String(), `"totalCores":4`) {
		t.Errorf("read back %d %s", answer.Code, answer.Body)
	}
}

func TestRegisterAcceptsTheOtherByteOrder(t *testing.T) {
	f := newFleet(t, nil)
	data := `{"systemInfo":{"systemInformation":{"uuid":"` + uuid + `"}},"cpu":[{"id":0}]}`
	if got := f.do("POST", "/register", "mine", report(swapped, data)); got.Code != http.StatusCreated {
		t.Fatalf("got %d %s", got.Code, got.Body)
	}
	if stored := f.stored(); len(stored) != 1 || stored[0].Name != uuid {
		t.Errorf("stored %+v, want one under %s", stored, uuid)
	}
}

func TestAnInventoryInTheOtherByteOrderIsTheMachinesOwn(t *testing.T) {
	former := func() *policyv1alpha1.ServerInventory {
		return &policyv1alpha1.ServerInventory{
			ObjectMeta: metav1.ObjectMeta{Name: swapped}, Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: swapped},
			Custody: &policyv1alpha1.Custody{Marks: []string{"Dirty"}},
		}
	}
	stale := func(s *metalv1alpha1.Server, o *Options) { // the cache does not know the inventory yet
		o.Reader = fakeClient(s)
	}
	for name, change := range map[string]func(*metalv1alpha1.Server, *Options){
		"and is added to": nil, "though the cache does not know it yet": stale,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, change, former())
			f.registry.options.Live = f.client
			if got := f.do("POST", "/register", "mine", report(uuid, `{"cpu":[{"id":1}]}`)); got.Code != http.StatusCreated {
				t.Fatalf("got %d %s", got.Code, got.Body)
			}
			stored := f.stored()
			if len(stored) != 1 || stored[0].Name != swapped || stored[0].Report == nil {
				t.Fatalf("stored %+v, want one with the report under %s", stored, swapped)
			}
			want := &policyv1alpha1.Custody{Marks: []string{"Dirty"}, ServerName: "srv"}
			if diff := cmp.Diff(want, stored[0].Custody); diff != "" {
				t.Errorf("custody (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAWipeSettledUnderTheOtherByteOrderIsNotBegunAgain(t *testing.T) {
	f := newFleet(t, asWipe, &policyv1alpha1.ServerInventory{
		ObjectMeta: metav1.ObjectMeta{Name: swapped}, Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: swapped},
		Wipe: &policyv1alpha1.WipeReport{Entry: 7, State: policyv1alpha1.WipeVerified},
	})
	if got := f.do("GET", "/wipe/"+uuid, "mine", ""); got.Code != http.StatusConflict || !strings.Contains(got.Body.String(), `"current":false`) {
		t.Errorf("may it go on? %d %s", got.Code, got.Body)
	}
}

func TestAReportNamesTheServerThatStandsForTheMachine(t *testing.T) {
	open := func(_ *metalv1alpha1.Server, o *Options) {
		o.AllowUnauthenticated = func(*metalv1alpha1.Server) (bool, error) { return true, nil }
	}
	formerly := func(name string) *policyv1alpha1.ServerInventory {
		i := emptyInventory()
		i.Custody = &policyv1alpha1.Custody{Marks: []string{"Dirty"}, ServerName: name}
		return i
	}
	for name, c := range map[string]struct {
		change func(*metalv1alpha1.Server, *Options)
		before *policyv1alpha1.ServerInventory
		token  string
		want   policyv1alpha1.Custody
	}{
		"in an inventory that has no custody":      {nil, emptyInventory(), "mine", policyv1alpha1.Custody{ServerName: "srv"}},
		"in a custody that names none":             {nil, formerly(""), "mine", policyv1alpha1.Custody{Marks: []string{"Dirty"}, ServerName: "srv"}},
		"in place of one that stood for it":        {nil, formerly("former"), "mine", policyv1alpha1.Custody{Marks: []string{"Dirty"}, ServerName: "srv"}},
		"though the agent has no token":            {open, emptyInventory(), "-", policyv1alpha1.Custody{ServerName: "srv"}},
		"but not where the report is not accepted": {nil, formerly("former"), "forged", policyv1alpha1.Custody{Marks: []string{"Dirty"}, ServerName: "former"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, c.change, c.before)
			f.do("POST", "/register", c.token, report(uuid, least))
			if diff := cmp.Diff(&c.want, f.inventory(uuid).Custody); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryFieldOfAReportIsStored(t *testing.T) {
	data := `{
 "timestamp":"2026-01-02T03:04:05.000006Z",
 "systemInfo":{"biosInformation":{"vendor":"v","version":"1","date":"d"},
  "systemInformation":{"manufacturer":"m","productName":"p","version":"1","serialNumber":"s","uuid":"` + uuid + `","skuNumber":"k","family":"f"},
  "boardInformation":{"manufacturer":"m","product":"p","version":"1","serialNumber":"s","assetTag":"a"}},
 "cpu":[{"id":1,"totalCores":2,"totalHardwareThreads":4,"vendor":"v","model":"m","capabilities":["fpu"]}],
 "networkInterfaces":[{"name":"eth0","ipAddresses":["10.0.0.1"],"macAddress":"00:11:22:33:44:55","carrierStatus":"up"}],
 "lldp":[{"name":"eth0","neighbors":[{"chassisId":"c","portId":"p","portDescription":"pd","systemName":"s","systemDescription":"sd","mgmtIp":"10.0.0.9","capabilities":["Bridge"],"vlanId":"7"}]}],
 "storage":[{"path":"/dev/sda","name":"sda","rotational":true,"removable":true,"readOnly":true,"vendor":"v","model":"m","serial":"s","wwid":"w","physicalBlockSize":4096,"logicalBlockSize":512,"hWSectorSize":512,"sizeBytes":1024,"numaNodeID":-1}],
 "memory":[{"size":1024,"deviceSet":"d","deviceLocator":"l","bankLocator":"b","memoryType":"t","speed":"s","vendor":"v","serialNumber":"n","assetTag":"a","partNumber":"p","configuredMemorySpeed":"c","minimumVoltage":"1","maximumVoltage":"2","configuredVoltage":"1"}],
 "nics":[{"name":"eth0","mac":"m","pciAddress":"0000:00:01.0","speed":"25000Mb/s","linkModes":["l"],"supportedPorts":["FIBRE"],"firmwareVersion":"f"}],
 "pciDevices":[{"address":"0000:00:01.0","vendor":"v","vendorID":"8086","product":"p","productID":"1572","numaNodeID":1}]}`
	f := newFleet(t, nil)
	f.do("POST", "/register", "mine", report(uuid, data))
	var got, want any
	if err := json.Unmarshal(f.do("GET", "/systems/"+uuid, "mine", "").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(data), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestAnUnchangedReportIsWrittenAgainOnlyAfterTenMinutes(t *testing.T) {
	f := newFleet(t, nil)
	version := func() string { return f.inventory(uuid).ResourceVersion }
	send := func(data string) { f.do("POST", "/register", "mine", report(uuid, data)) }
	send(`{"timestamp":1,"cpu":[{"id":0}]}`)
	first := version()
	f.now = start.Add(9 * time.Minute)
	if send(`{"timestamp":2,"cpu":[{"id":0}]}`); version() != first {
		t.Error("the same report was written again")
	}
	f.now = start.Add(10 * time.Minute)
	if send(`{"timestamp":3,"cpu":[{"id":0}]}`); version() == first {
		t.Error("a report of ten minutes was not refreshed")
	}
	second := version()
	if send(`{"cpu":[{"id":1}]}`); version() == second {
		t.Error("a changed report was not written")
	}
}

func TestCustodyAndWipeAreNotTouchedByAReport(t *testing.T) {
	custody := &policyv1alpha1.Custody{Marks: []string{"Dirty"}, ServerName: "srv"}
	wipe := &policyv1alpha1.WipeReport{Entry: 3, State: "Verified"}
	f := newFleet(t, nil, &policyv1alpha1.ServerInventory{
		ObjectMeta: metav1.ObjectMeta{Name: uuid}, Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: uuid}, Custody: custody, Wipe: wipe})
	for _, call := range [][2]string{{"POST", "/register"}, {"DELETE", "/delete/" + uuid}} {
		if got := f.do(call[0], call[1], "mine", report(uuid, least)); got.Code >= 300 {
			t.Fatalf("%s: %d %s", call[1], got.Code, got.Body)
		}
		got := f.inventory(uuid)
		if diff := cmp.Diff(custody, got.Custody); diff != "" {
			t.Errorf("%s: custody (-want +got):\n%s", call[1], diff)
		}
		if got.Wipe == nil || got.Wipe.State != "Verified" {
			t.Errorf("%s: wipe %+v", call[1], got.Wipe)
		}
	}
	if f.inventory(uuid).Report != nil {
		t.Error("the report was not deleted")
	}
}
