// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/controller-runtime/pkg/client"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

func TestBadInputIsRefusedAndChangesNothing(t *testing.T) {
	good := report(uuid, least)
	disks := `{"systemUUID":"` + uuid + `","state":"Running","disks":[{"path":"/dev/sda","state":"Erasing"}]}`
	lifecycle := func(change func(*metalv1alpha1.LifecycleStatus)) func(*metalv1alpha1.Server, *Options) {
		return func(s *metalv1alpha1.Server, _ *Options) { change(s.Status.Lifecycle) }
	}
	old := lifecycle(func(l *metalv1alpha1.LifecycleStatus) { l.Entry = 8 })
	for name, c := range map[string]struct {
		change             func(*metalv1alpha1.Server, *Options)
		method, path       string
		token, body        string
		status             int
		message, eventSays string
	}{
		"a forged token":                 {nil, "POST", "/register", "forged", good, 401, "no valid credential", "Unauthorized POST /register"},
		"no token":                       {nil, "POST", "/register", "-", good, 401, "no valid credential", ""},
		"an unknown server":              {nil, "POST", "/register", "mine", report(unknown, least), 401, "no valid credential", ""},
		"another server's report":        {nil, "POST", "/register", "theirs", good, 401, "no valid credential", "Unauthorized"},
		"a report about another machine": {nil, "POST", "/register", "mine", report(uuid, `{"systemInfo":{"systemInformation":{"uuid":"`+otherUUID+`"}}}`), 422, "another machine", "Invalid"},
		"a report of nothing":            {nil, "POST", "/register", "mine", report(uuid, `{}`), 422, "no processor, memory, disk or network interface", "Invalid"},
		"a report of a board alone":      {nil, "POST", "/register", "mine", report(uuid, `{"systemInfo":{"boardInformation":{"product":"x"}},"lldp":[]}`), 422, "no processor", "Invalid"},
		"a late report":                  {old, "POST", "/register", "mine", good, 409, "earlier entry", "OldEntry"},
		"a server that expects none":     {lifecycle(func(l *metalv1alpha1.LifecycleStatus) { l.Credential = nil }), "POST", "/register", "mine", good, 401, "no valid credential", "Unauthorized"},
		"a server without a lifecycle":   {func(s *metalv1alpha1.Server, _ *Options) { s.Status.Lifecycle = nil }, "POST", "/register", "mine", good, 401, "no valid credential", "Unauthorized"},
		"an oversized report":            {nil, "POST", "/register", "mine", report(uuid, `{"x":"`+strings.Repeat("x", metalprobe.MaxBody)+`"}`), 413, "larger than 1048576", ""},
		"a token of a former boot": {lifecycle(func(l *metalv1alpha1.LifecycleStatus) {
			l.Entry, l.Credential.Entry, l.Credential.TokenHash = 8, 8, metalprobe.HashToken("anew")
		}), "POST", "/register", "mine", good, 401, "no valid credential", "Unauthorized"},
		"the stored hash in place of the token":    {nil, "POST", "/register", metalprobe.HashToken("mine"), good, 401, "no valid credential", "Unauthorized"},
		"a token of two kilobytes":                 {nil, "POST", "/register", strings.Repeat("x", 2<<10), good, 401, "no valid credential", "Unauthorized"},
		"brackets without an end":                  {nil, "POST", "/register", "mine", strings.Repeat("[", 64<<10), 422, "not the JSON", ""},
		"objects without an end":                   {nil, "POST", "/register", "mine", strings.Repeat(`{"data":`, 8<<10), 422, "not the JSON", ""},
		"a number that nothing can hold":           {nil, "POST", "/register", "mine", report(uuid, `{"cpu":[{"id":1e999}]}`), 422, "not the JSON", ""},
		"text that is no JSON":                     {nil, "POST", "/register", "mine", `<xml/>`, 422, "not the JSON", ""},
		"two reports in one body":                  {nil, "POST", "/register", "mine", good + good, 422, "more after", ""},
		"a string where a number belongs":          {nil, "POST", "/register", "mine", report(uuid, `{"cpu":[{"id":"one"}]}`), 422, "not the JSON", ""},
		"a UUID that is none":                      {nil, "POST", "/register", "mine", report("../"+uuid, least), 422, "system UUID", ""},
		"a name that is too long":                  {nil, "POST", "/register", "mine", report(uuid, `{"nics":[{"name":"`+strings.Repeat("x", 257)+`"}]}`), 422, "data.nics[0]", "Invalid"},
		"an empty body":                            {nil, "POST", "/register", "mine", ``, 422, "not the JSON", ""},
		"an inventory read without a token":        {nil, "GET", "/systems/" + uuid, "-", ``, 401, "no valid credential", ""},
		"an inventory read by another":             {nil, "GET", "/systems/" + uuid, "theirs", ``, 401, "no valid credential", "Unauthorized"},
		"an inventory before any report":           {nil, "GET", "/systems/" + uuid, "mine", ``, 404, "has not reported", ""},
		"a deletion without a token":               {nil, "DELETE", "/delete/" + uuid, "-", ``, 401, "no valid credential", ""},
		"a deletion before any report":             {nil, "DELETE", "/delete/" + uuid, "mine", ``, 404, "has not reported", ""},
		"a wipe by a probe's token":                {nil, "POST", "/wipe", "mine", disks, 403, "purpose Probe", "WrongPurpose POST /wipe"},
		"a wipe without a token":                   {asWipe, "POST", "/wipe", "-", disks, 401, "no valid credential", ""},
		"a wipe of another server":                 {asWipe, "POST", "/wipe", "theirs", disks, 401, "no valid credential", "Unauthorized"},
		"a wipe by a forged token":                 {asWipe, "POST", "/wipe", "forged", disks, 401, "no valid credential", "Unauthorized"},
		"a wipe of a former entry":                 {func(s *metalv1alpha1.Server, o *Options) { asWipe(s, o); old(s, o) }, "POST", "/wipe", "mine", verified, 409, "earlier entry", "OldEntry"},
		"an oversized wipe":                        {asWipe, "POST", "/wipe", "mine", `{"systemUUID":"` + strings.Repeat("x", metalprobe.MaxBody), 413, "larger than 1048576", ""},
		"a wipe of more disks than there can be":   {asWipe, "POST", "/wipe", "mine", `{"systemUUID":"` + uuid + `","state":"Running","disks":[{"path":"/dev/a","state":"Erasing"}` + strings.Repeat(`,{"path":"/dev/a","state":"Erasing"}`, metalprobe.MaxDisks) + `]}`, 422, "disks", "Invalid"},
		"an oversized boot state":                  {nil, "POST", "/bootstate", "mine", `{"systemUUID":"` + strings.Repeat("x", metalprobe.MaxBody), 413, "larger than 1048576", ""},
		"a boot state by a forged token":           {nil, "POST", "/bootstate", "forged", `{"systemUUID":"` + uuid + `","booted":true}`, 401, "no valid credential", "Unauthorized"},
		"a question by a probe's token":            {nil, "GET", "/wipe/" + uuid, "mine", ``, 403, "purpose Probe", "WrongPurpose"},
		"a question of a former entry":             {old, "GET", "/wipe/" + uuid, "mine", ``, 409, `"current":false`, "OldEntry"},
		"a wipe in an unknown state":               {asWipe, "POST", "/wipe", "mine", strings.Replace(disks, "Running", "Done", 1), 422, "Done", "Invalid"},
		"a verified wipe before any report":        {asWipe, "POST", "/wipe", "mine", `{"systemUUID":"` + uuid + `","state":"Verified"}`, 409, "before the server reported", "NotExpected"},
		"a boot state without configuration":       {func(s *metalv1alpha1.Server, _ *Options) { s.Spec.BootConfigurationRef = nil }, "POST", "/bootstate", "mine", `{"systemUUID":"` + uuid + `","booted":true}`, 409, "no boot configuration", "NotExpected"},
		"a boot state for another's configuration": {func(s *metalv1alpha1.Server, _ *Options) { s.Name = "renamed" }, "POST", "/bootstate", "mine", `{"systemUUID":"` + uuid + `","booted":true}`, 409, "belongs to another server", "NotExpected"},
		"an unknown endpoint":                      {nil, "GET", "/admin", "mine", ``, 404, "no such endpoint", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, c.change)
			got := f.do(c.method, c.path, c.token, c.body)
			if got.Code != c.status || !strings.Contains(got.Body.String(), c.message) {
				t.Errorf("got %d %s, want %d with %q", got.Code, got.Body, c.status, c.message)
			}
			if strings.Contains(got.Body.String(), "mine") || strings.Contains(got.Body.String(), metalprobe.HashToken("mine")) {
				t.Error("the answer shows the credential")
			}
			if stored := f.stored(); len(stored) != 0 {
				t.Errorf("stored %+v", stored)
			}
			event := f.heard()
			if (event == "") != (c.eventSays == "") || !strings.Contains(event, c.eventSays) {
				t.Errorf("event %q, want one with %q", event, c.eventSays)
			}
			if event != "" && !strings.HasPrefix(event, "Warning ProbeReportRefused ") {
				t.Errorf("event %q", event)
			}
		})
	}
}

func TestTheAnswerDoesNotTellWhetherAServerExists(t *testing.T) {
	f := newFleet(t, func(_ *metalv1alpha1.Server, o *Options) {
		o.AllowUnauthenticated = func(*metalv1alpha1.Server) (bool, error) { return false, nil }
	})
	for _, token := range []string{"forged", "-", ""} {
		known := f.do("POST", "/register", token, report(uuid, least))
		unknown := f.do("POST", "/register", token, report(unknown, least))
		if known.Code != http.StatusUnauthorized || known.Code != unknown.Code || known.Body.String() != unknown.Body.String() {
			t.Errorf("token %q: %d %s for a known server, %d %s for an unknown one", token, known.Code, known.Body, unknown.Code, unknown.Body)
		}
		if diff := cmp.Diff(known.Header(), unknown.Header()); diff != "" {
			t.Errorf("token %q: headers differ:\n%s", token, diff)
		}
	}
}

func TestAMachineThatIsLeftRunningIsNoAttacker(t *testing.T) {
	f := newFleet(t, nil)
	if got := f.do("POST", "/register", "mine", report(uuid, least)); got.Code >= 300 {
		t.Fatal(got.Code, got.Body)
	}
	s := &metalv1alpha1.Server{}
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: "srv"}, s); err != nil {
		t.Fatal(err)
	}
	s.Status.Lifecycle.Entry, s.Status.Lifecycle.Credential = 9, nil
	if err := f.client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := f.do("POST", "/register", "mine", report(uuid, least)); got.Code != http.StatusConflict || !strings.Contains(got.Body.String(), "earlier entry") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	if event := f.heard(); event != "" {
		t.Error(event)
	}
	if got := f.do("POST", "/register", "forged", report(uuid, least)); got.Code != http.StatusUnauthorized || f.heard() == "" {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestTheSameRefusalIsToldOnceInAWhile(t *testing.T) {
	f := newFleet(t, nil)
	for range 3 {
		f.do("POST", "/register", "forged", report(uuid, least))
	}
	if f.heard() == "" || f.heard() != "" {
		t.Error("want exactly one event")
	}
	f.now = start.Add(eventPause)
	f.do("POST", "/register", "forged", report(uuid, least))
	if f.heard() == "" {
		t.Error("want another event after the pause")
	}
}

func TestRequestsAreCountedByOutcome(t *testing.T) {
	f := newFleet(t, nil)
	f.do("POST", "/register", "mine", report(uuid, least))
	f.do("POST", "/register", "mine", report(uuid, least))
	f.do("POST", "/register", "forged", report(uuid, least))
	families, err := f.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = metric.GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"metalaw_probe_requests_total POST /register Accepted":     1,
		"metalaw_probe_requests_total POST /register Unchanged":    1,
		"metalaw_probe_requests_total POST /register Unauthorized": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}

func TestASourceThatSendsTooMuchIsHeldOff(t *testing.T) {
	f := newFleet(t, func(_ *metalv1alpha1.Server, o *Options) { o.PerSource, o.Burst = 1, 2 })
	var codes []int
	for range 3 {
		codes = append(codes, f.do("POST", "/register", "mine", report(uuid, least)).Code)
	}
	f.now = start.Add(time.Second)
	codes = append(codes, f.do("POST", "/register", "mine", report(uuid, least)).Code)
	if want := "[201 201 429 201]"; fmt.Sprint(codes) != want {
		t.Errorf("got %v, want %s", codes, want)
	}
}

func TestUnauthenticatedReports(t *testing.T) {
	open := func(_ *metalv1alpha1.Server, o *Options) {
		o.AllowUnauthenticated = func(s *metalv1alpha1.Server) (bool, error) { return s.Name == "srv", nil }
	}
	t.Run("are accepted where the option says so, and say what they are", func(t *testing.T) {
		f := newFleet(t, open)
		if got := f.do("POST", "/register", "-", report(uuid, least)); got.Code != http.StatusCreated {
			t.Fatalf("got %d %s", got.Code, got.Body)
		}
		if got := f.inventory(uuid).Report; !got.Unauthenticated || got.Entry != 7 || got.Purpose != "Probe" {
			t.Errorf("report %+v", got)
		}
	})
	t.Run("are refused for any other server", func(t *testing.T) {
		f := newFleet(t, open)
		if got := f.do("POST", "/register", "-", report(otherUUID, least)); got.Code != http.StatusUnauthorized || len(f.stored()) != 0 {
			t.Errorf("got %d, stored %v", got.Code, f.stored())
		}
	})
	t.Run("are put off while the policy cannot be asked", func(t *testing.T) {
		f := newFleet(t, func(_ *metalv1alpha1.Server, o *Options) {
			o.AllowUnauthenticated = func(*metalv1alpha1.Server) (bool, error) { return true, errors.New("the revision is being tested") }
		})
		got := f.do("POST", "/register", "-", report(uuid, least))
		if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "10" || len(f.stored()) != 0 {
			t.Errorf("got %d, retry after %q, stored %v", got.Code, got.Header().Get("Retry-After"), f.stored())
		}
		if strings.Contains(got.Body.String(), "tested") {
			t.Errorf("the cause is told: %s", got.Body)
		}
		if got := f.do("POST", "/register", "mine", report(uuid, least)); got.Code != http.StatusCreated {
			t.Errorf("with its token: got %d", got.Code)
		}
	})
	t.Run("with a wrong token are refused all the same", func(t *testing.T) {
		f := newFleet(t, open)
		if got := f.do("POST", "/register", "forged", report(uuid, least)); got.Code != http.StatusUnauthorized {
			t.Errorf("got %d", got.Code)
		}
	})
	t.Run("never touch a wipe", func(t *testing.T) {
		f := newFleet(t, func(s *metalv1alpha1.Server, o *Options) { open(s, o); asWipe(s, o) })
		for _, call := range [][2]string{{"POST", "/wipe"}, {"GET", "/wipe/" + uuid}} {
			if got := f.do(call[0], call[1], "-", `{"systemUUID":"`+uuid+`","state":"Verified"}`); got.Code != http.StatusUnauthorized {
				t.Errorf("%s: got %d", call, got.Code)
			}
		}
	})
	t.Run("never replace one of the same entry that showed a token", func(t *testing.T) {
		f := newFleet(t, open)
		f.do("POST", "/register", "mine", report(uuid, `{"cpu":[{"id":1}]}`))
		if got := f.do("POST", "/register", "-", report(uuid, least)); got.Code != http.StatusConflict {
			t.Errorf("got %d", got.Code)
		}
		if got := f.inventory(uuid).Report; got.Unauthenticated || len(got.Data.CPU) != 1 {
			t.Errorf("report %+v", got)
		}
	})
	t.Run("are replaced by one that shows a token", func(t *testing.T) {
		f := newFleet(t, open)
		f.do("POST", "/register", "-", report(uuid, least))
		f.do("POST", "/register", "mine", report(uuid, least))
		if f.inventory(uuid).Report.Unauthenticated {
			t.Error("the report still counts as unauthenticated")
		}
	})
}
