// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestAFaultHitsTheRequestsThatItNames(t *testing.T) {
	for name, c := range map[string]struct {
		fault Fault
		want  []int // the statuses of six reads of the system
	}{
		"every request":              {Fault{}, []int{503, 503, 503, 503, 503, 503}},
		"a method":                   {Fault{Method: "POST"}, []int{200, 200, 200, 200, 200, 200}},
		"one of several methods":     {Fault{Method: "post, get"}, []int{503, 503, 503, 503, 503, 503}},
		"a path":                     {Fault{Path: "/redfish/v1/Systems/*"}, []int{503, 503, 503, 503, 503, 503}},
		"a path in another case":     {Fault{Path: "/redfish/v1/SYSTEMS/1/"}, []int{503, 503, 503, 503, 503, 503}},
		"a star within a segment":    {Fault{Path: "/redfish/*"}, []int{200, 200, 200, 200, 200, 200}},
		"two stars across segments":  {Fault{Path: "/redfish/**"}, []int{503, 503, 503, 503, 503, 503}},
		"another machine":            {Fault{Machine: "other-*"}, []int{200, 200, 200, 200, 200, 200}},
		"this machine by a glob":     {Fault{Machine: "machine-*"}, []int{503, 503, 503, 503, 503, 503}},
		"the third request":          {Fault{After: 2, Count: 1}, []int{200, 200, 503, 200, 200, 200}},
		"the first two":              {Fault{Count: 2}, []int{503, 503, 200, 200, 200, 200}},
		"two by the dice of seed 0":  {Fault{Name: "dice", Probability: 0.5}, []int{503, 503, 200, 200, 200, 200}},
		"certainty":                  {Fault{Probability: 1}, []int{503, 503, 503, 503, 503, 503}},
		"a pattern with odd letters": {Fault{Path: "[(*+?"}, []int{200, 200, 200, 200, 200, 200}},
	} {
		t.Run(name, func(t *testing.T) {
			f, m := startFleet(t, Options{InMemory: true}, MachineSpec{})
			c.fault.Status = 503
			i := f.Inject(c.fault)
			client := call(t, f, m)
			var got []int
			hits := 0
			for range 6 {
				status := client.try(t.Context(), "GET", m.SystemURI(), nil).status
				got = append(got, status)
				if status == 503 {
					hits++
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("statuses %v, want %v", got, c.want)
			}
			if i.Hits() != hits {
				t.Errorf("%d hits counted, want %d", i.Hits(), hits)
			}
			i.Remove()
			client.do("GET", m.SystemURI(), nil, 200)
		})
	}
}

func TestTheDiceAreFair(t *testing.T) {
	for _, machine := range []string{"machine-000", "machine-001"} {
		hits := 0
		for n := range 10_000 {
			if dice(1, "slow", machine, n) < 0.3 {
				hits++
			}
		}
		if hits < 2_900 || hits > 3_100 {
			t.Errorf("%s: %d of 10000, want about 3000", machine, hits)
		}
	}
}

func TestWhatAFaultDoesIsWhatAClientSees(t *testing.T) {
	for name, c := range map[string]struct {
		fault Fault
		see   func(result) bool
	}{
		"503 with Retry-After":    {ServiceUnavailable(), func(r result) bool { return r.status == 503 && r.header.Get("Retry-After") == "5" }},
		"429 with Retry-After":    {TooManyRequests(), func(r result) bool { return r.status == 429 && r.header.Get("Retry-After") == "5" }},
		"a Redfish error as body": {InternalError(), func(r result) bool { return field(r.doc, "error", "code") != nil }},
		"a connection reset":      {ConnectionReset(), func(r result) bool { return r.err != nil }},
		"a body that breaks off":  {TruncatedJSON(), func(r result) bool { return r.err != nil && len(r.raw) == 100 }},
		"a page for people":       {HTMLErrorPage(), func(r result) bool { return r.header.Get("Content-Type") == "text/html" && r.raw[0] == '<' }},
		"null":                    {BodyNull(), func(r result) bool { return string(r.raw) == "null" && r.status == 200 }},
		"zero bytes":              {BodyEmpty(), func(r result) bool { return len(r.raw) == 0 && r.status == 200 }},
		"wrong types":             {WrongTypes(), func(r result) bool { return r.doc["Id"] == 7.0 && field(r.doc, "ProcessorSummary", "Count") == "2" }},
		"power null":              {PowerReads(nil), func(r result) bool { v, there := r.doc["PowerState"]; return there && v == nil }},
		"power missing":           {PowerMissing(), func(r result) bool { _, there := r.doc["PowerState"]; return !there && r.status == 200 }},
		"a redirect to itself":    {RedirectLoop(), func(r result) bool { return r.status == 302 && r.header.Get("Location") == "/redfish/v1/Systems/1" }},
		"a redirect to another host": {RedirectElsewhere("http://evil.example{path}"), func(r result) bool {
			return r.status == 307 && r.header.Get("Location") == "http://evil.example/redfish/v1/Systems/1"
		}},
		"no keep-alive":            {NoKeepAlive(), func(r result) bool { return r.status == 200 && r.close }},
		"an entity tag of a proxy": {SuffixedETag(), func(r result) bool { return strings.HasSuffix(r.header.Get("ETag"), `-gzip"`) }},
		"a body of 300000 bytes":   {Fault{Action: Action{PadTo: 300_000}}, func(r result) bool { return len(r.raw) >= 300_000 && r.doc["UUID"] != nil }},
		"nothing taken from a list that is none": {Fault{Action: Action{Remove: []string{"Status/9/x", "Nothing/at/all"}}},
			func(r result) bool { return r.status == 200 && r.doc["Nothing"] == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			f, m := startFleet(t, Options{InMemory: true}, MachineSpec{})
			client := call(t, f, m)
			m.Inject(c.fault)
			if res := client.try(short(t), "GET", m.SystemURI(), nil); !c.see(res) {
				t.Errorf("saw %d %v %v %.200s", res.status, res.err, res.header, res.raw)
			}
		})
	}
}

func TestAResetMayHappenWithoutAnAnswerAndAnAnswerWithoutAReset(t *testing.T) {
	for name, c := range map[string]struct {
		fault  Fault
		power  PowerState
		status int
	}{
		"executed, then silence":    {ResetTimesOutButHappens(), PowerOn, 0},
		"executed, then a reset":    {ResetBreaksButHappens(), PowerOn, 0},
		"accepted and not executed": {ResetIgnored(), PowerOff, 204},
		"refused":                   {ResetConflict(), PowerOff, 409},
		"executed as a task":        {ResetAsTask(), PowerOn, 202},
	} {
		t.Run(name, func(t *testing.T) {
			f, m := startFleet(t, Options{InMemory: true, Delays: instant}, MachineSpec{})
			f.Inject(c.fault)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			client := call(t, f, m)
			answered := make(chan result)
			go func() {
				answered <- client.try(ctx, "POST", m.SystemURI()+"/Actions/ComputerSystem.Reset", map[string]any{"ResetType": "On"})
			}()
			if c.power == PowerOn {
				if err := m.WaitPower(short(t), PowerOn); err != nil {
					t.Fatal(err)
				}
			}
			if c.fault.Drop {
				cancel()
			}
			if res := <-answered; res.status != c.status || (res.err == nil) != (c.status != 0) {
				t.Errorf("answer %d, error %v", res.status, res.err)
			}
			w := m.Writes()
			if len(w) != 1 || w[0].Status != c.status || w[0].Executed != (c.power == PowerOn) || w[0].Power != PowerOff || !slices.Equal(w[0].Faults, []string{c.fault.Name}) {
				t.Errorf("logged %+v", w)
			}
			if m.Power() != c.power {
				t.Errorf("power %s, want %s", m.Power(), c.power)
			}
		})
	}
}

func TestPowerReadsMayBeStale(t *testing.T) {
	clock := NewManualClock(time.Unix(1_700_000_000, 0))
	f, m := startFleet(t, Options{InMemory: true, Clock: clock, Delays: instant}, MachineSpec{})
	f.Inject(StalePower())
	c := call(t, f, m)
	c.reset(m, ResetOn)
	for _, step := range []struct {
		wait time.Duration
		want string
	}{{0, "Off"}, {9 * time.Second, "Off"}, {time.Second, "On"}} {
		clock.Advance(step.wait)
		if got := c.get(m.SystemURI())["PowerState"]; got != step.want {
			t.Errorf("after %s more: %v, want %s", step.wait, got, step.want)
		}
	}
}

func TestATaskTakesItsCourse(t *testing.T) {
	for name, c := range map[string]struct {
		fault  Fault
		before int // status of the monitor at once, and after three seconds
		after  int
		state  string
		health string
	}{
		"it completes":         {ResetAsTask(), 202, 200, "Completed", "OK"},
		"its monitor vanishes": {TaskMonitorVanishes(), 202, 404, "Completed", "OK"},
		"it is stuck":          {TaskStuck(), 202, 202, "Running", "OK"},
		"it fails at 100 %":    {TaskFails(), 200, 200, "Completed", "Critical"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := NewManualClock(time.Unix(1_700_000_000, 0))
			f, m := startFleet(t, Options{InMemory: true, Clock: clock, Delays: instant}, MachineSpec{})
			f.Inject(c.fault)
			client := call(t, f, m)
			monitor := client.reset(m, ResetOn).header.Get("Location")
			client.do("GET", monitor, nil, c.before)
			clock.Advance(3 * time.Second)
			client.do("GET", monitor, nil, c.after)
			task := client.get("/redfish/v1/TaskService/Tasks/1")
			if task["TaskState"] != c.state || task["TaskStatus"] != c.health {
				t.Errorf("task is %v, %v", task["TaskState"], task["TaskStatus"])
			}
		})
	}
}

func TestEveryTroubleOfTheCatalogueCanBeArrangedAndUndone(t *testing.T) {
	seen := map[string]bool{}
	for _, trouble := range Catalogue() {
		if seen[trouble.Name] {
			t.Fatalf("%s is listed twice", trouble.Name)
		}
		seen[trouble.Name] = true
		if trouble.Name == "HugeBody" {
			continue // a quarter of a gigabyte is for those who test limits; padding is tested above
		}
		t.Run(trouble.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, m := startFleet(t, Options{InMemory: true, TLS: true}, MachineSpec{})
				undo := trouble.Arrange(m)
				c := call(t, f, m)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				// Whatever the answer is, asking must not hang longer than the caller wants.
				c.try(ctx, "GET", m.SystemURI(), nil)
				c.try(ctx, "PATCH", m.SystemURI(), map[string]any{"Boot": map[string]any{"BootSourceOverrideTarget": "Pxe"}})
				c.try(ctx, "POST", m.SystemURI()+"/Actions/ComputerSystem.Reset", map[string]any{"ResetType": "ForceOff"})
				undo()
				time.Sleep(time.Second) // by the bubble's clock: a BMC that restarts comes back
				c = call(t, f, m)
				if res := c.do("GET", "/redfish/v1/Systems", nil, 200); field(res.doc, "Members", 0) == nil {
					t.Errorf("after all no system: %s", res.raw)
				}
				c.do("GET", m.SystemURI(), nil, 200)
				c.client.CloseIdleConnections()
				f.Close()
			})
		})
	}
}

func TestAnAddressMayRefuseStaySilentAndComeBack(t *testing.T) {
	for name, inMemory := range map[string]bool{"on sockets": false, "in memory": true} {
		t.Run(name, func(t *testing.T) {
			f, m := startFleet(t, Options{TLS: true, InMemory: inMemory}, MachineSpec{})
			c := call(t, f, m)
			c.do("GET", m.SystemURI(), nil, 200)
			url := m.URL()
			if err := m.SetReachability(Refusing); err != nil {
				t.Fatal(err)
			}
			if res := c.try(short(t), "GET", m.SystemURI(), nil); !errors.Is(res.err, syscall.ECONNREFUSED) {
				t.Errorf("refusing: %v", res.err)
			}
			if err := m.SetReachability(Silent); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			if res := c.try(ctx, "GET", m.SystemURI(), nil); !errors.Is(res.err, context.DeadlineExceeded) {
				t.Errorf("silent: %v", res.err)
			}
			if err := m.SetReachability(Reachable); err != nil {
				t.Fatal(err)
			}
			c.do("GET", m.SystemURI(), nil, 200)
			if m.URL() != url {
				t.Errorf("moved from %s to %s", url, m.URL())
			}
		})
	}
}

func TestCertificatesMayBeWrong(t *testing.T) {
	f, m := startFleet(t, Options{TLS: true}, MachineSpec{})
	for kind, says := range map[Certificate]string{
		CertificateFleet: "", CertificateSelfSigned: "unknown authority", CertificateRotated: "unknown authority",
		CertificateExpired: "expired", CertificateWrongName: "doesn't contain any IP SANs",
	} {
		m.SetCertificate(kind)
		res := call(t, f, m).try(short(t), "GET", "/redfish/v1/", nil)
		if says == "" && res.err != nil || says != "" && (res.err == nil || !strings.Contains(res.err.Error(), says)) {
			t.Errorf("%q: %v, want %q", kind, res.err, says)
		}
	}
	if !strings.Contains(string(f.CA()), "BEGIN CERTIFICATE") {
		t.Error("the CA is no PEM")
	}
}

func TestAnAddressMayAnswerAsAnotherBMC(t *testing.T) {
	f := New(Options{InMemory: true})
	first, second := f.Add(MachineSpec{}), f.Add(MachineSpec{})
	if err := f.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := call(t, f, first)
	f.SwapAddresses(first, second)
	if got := c.get(first.SystemURI())["UUID"]; got != second.Identity().UUID {
		t.Errorf("the address still answers as %v", got)
	}
	former := second.SwapIdentity(Identity{UUID: "00000000-0000-4000-8000-000000000001"})
	if got := c.get(first.SystemURI())["UUID"]; got != "00000000-0000-4000-8000-000000000001" || former.UUID == got {
		t.Errorf("the board was not exchanged: %v", got)
	}
}

func TestNodesOfOneChassisShareABMCAndASerialNumber(t *testing.T) {
	f := New(Options{InMemory: true, Delays: instant})
	first := f.Add(MachineSpec{Tweak: func(p *Profile) { p.ExtraSystems = []string{"HGX_Baseboard_0"} }})
	second := f.Add(MachineSpec{Behind: first})
	if err := f.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := call(t, f, second)
	if n := c.get("/redfish/v1/Systems")["Members@odata.count"]; n != 3.0 {
		t.Errorf("%v systems", n)
	}
	if first.Identity().SerialNumber != second.Identity().SerialNumber || first.Identity().UUID == second.Identity().UUID {
		t.Errorf("%+v %+v", first.Identity(), second.Identity())
	}
	c.reset(second, ResetOn)
	if first.Power() != PowerOff || second.Power() != PowerOn {
		t.Errorf("power %s and %s", first.Power(), second.Power())
	}
	if tray := c.get("/redfish/v1/Systems/HGX_Baseboard_0"); tray["UUID"] != nil || tray["Actions"] != nil {
		t.Errorf("the tray has %v %v", tray["UUID"], tray["Actions"])
	}
}
