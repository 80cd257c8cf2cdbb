// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"

	"sigs.k8s.io/controller-runtime/pkg/client"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

func phase(name string, percent int) string {
	return fmt.Sprintf(`{"systemUUID":%q,"phase":%q,"percent":%d}`, uuid, name, percent)
}

// told gives the stored phase as "name percent since received", times in seconds after the start.
func (f *fleet) told() string {
	i := f.inventory(uuid)
	if i == nil || i.Phase == nil {
		return ""
	}
	p := i.Phase
	return fmt.Sprintf("%s %d %.0f %.0f", p.Name, p.Percent, p.Since.Sub(start).Seconds(), p.ReceivedAt.Sub(start).Seconds())
}

func TestAPhaseIsStoredAtMostOnceAMinuteButNeverLost(t *testing.T) {
	f := newFleet(t, nil)
	for _, step := range []struct {
		at   time.Duration
		body string
		want string
	}{
		{0, phase("network", 0), "network 0 0 0"},
		{10 * time.Second, phase("network", 0), "network 0 0 0"},
		{20 * time.Second, phase("collect", 0), "network 0 0 0"},
		{30 * time.Second, phase("report", 0), "network 0 0 0"},
		{59 * time.Second, "", "network 0 0 0"},
		{60 * time.Second, "", "report 0 30 30"},
		{100 * time.Second, phase("wipe", 1), "wipe 1 100 100"},
		{110 * time.Second, phase("wipe", 24), "wipe 1 100 100"},
		{111 * time.Second, phase("wipe", 25), "wipe 25 100 111"},
		{112 * time.Second, phase("wipe", 50), "wipe 50 100 112"},
		{300 * time.Second, "", "wipe 50 100 112"},
	} {
		f.now = start.Add(step.at)
		if step.body == "" {
			f.registry.storeDue(t.Context())
		} else if got := f.do("POST", "/phase", "mine", step.body); got.Code != http.StatusOK {
			t.Fatalf("at %s: %d %s", step.at, got.Code, got.Body)
		}
		if got := f.told(); got != step.want {
			t.Errorf("at %s: stored %q, want %q", step.at, got, step.want)
		}
	}
}

func TestAHeldPhaseOfAFormerEntryIsDropped(t *testing.T) {
	f := newFleet(t, nil)
	f.do("POST", "/phase", "mine", phase("network", 0))
	f.do("POST", "/phase", "mine", phase("collect", 0))
	var server metalv1alpha1.Server
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: "srv"}, &server); err != nil {
		t.Fatal(err)
	}
	server.Status.Lifecycle.Entry++
	if err := f.client.Update(t.Context(), &server); err != nil {
		t.Fatal(err)
	}
	f.now = start.Add(time.Hour)
	if f.registry.storeDue(t.Context()); f.told() != "network 0 0 0" {
		t.Errorf("stored %q", f.told())
	}
}

func TestAPhaseIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		token, body string
		wants       int
		says        string
	}{
		"without a token":    {"-", phase("network", 0), http.StatusUnauthorized, ""},
		"with a forged one":  {"forged", phase("network", 0), http.StatusUnauthorized, ""},
		"without a name":     {"mine", phase("", 0), http.StatusUnprocessableEntity, "phase: empty"},
		"beyond the end":     {"mine", phase("wipe", 101), http.StatusUnprocessableEntity, "101"},
		"with a long name":   {"mine", phase(strings.Repeat("x", 65), 0), http.StatusUnprocessableEntity, "phase: 65 bytes"},
		"of another machine": {"mine", strings.Replace(phase("wipe", 0), uuid, otherUUID, 1), http.StatusUnauthorized, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, nil)
			if got := f.do("POST", "/phase", c.token, c.body); got.Code != c.wants || !strings.Contains(got.Body.String(), c.says) || len(f.stored()) != 0 {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
		})
	}
}

func TestAPhaseOfAMachineThatIsNotShownOnIsRefused(t *testing.T) {
	f := newFleet(t, func(s *metalv1alpha1.Server, _ *Options) { s.Status.Lifecycle.SeenOnAt = nil })
	if got := f.do("POST", "/phase", "mine", phase("network", 0)); got.Code != http.StatusServiceUnavailable {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

func TestTheClientSendsPhaseAndKey(t *testing.T) {
	f := newFleet(t, nil)
	agent := metalprobe.Client{BaseURL: serve(t, f), Token: "mine", Key: metalprobe.NewKey()}
	if !metalprobe.ValidKey(agent.Key) || metalprobe.NewKey() == agent.Key {
		t.Errorf("key %q", agent.Key)
	}
	if err := agent.Phase(t.Context(), uuid, metalprobe.PhaseReport{Phase: "collect", Detail: "disks"}); err != nil {
		t.Fatal(err)
	}
	if got := f.inventory(uuid); got.Phase.Detail != "disks" || got.Enrolment.KeyHash != metalprobe.HashToken(agent.Key) {
		t.Errorf("stored %+v, bound %+v", got.Phase, got.Enrolment)
	}
}

func serve(t *testing.T, f *fleet) string {
	t.Helper()
	server := httptest.NewServer(f.registry)
	t.Cleanup(server.Close)
	return server.URL
}

func TestThePhaseThatIsStoredCommandsNoTerminal(t *testing.T) {
	for name, c := range map[string]struct {
		phase, detail string
		want          string // name and detail as stored; empty where it is refused
	}{
		"an escape sequence":                   {"wipe\x1b[2J", "\x1b]0;gone\x07disk 1", "wipe[2J|]0;gonedisk 1"},
		"line breaks":                          {"wipe\r\nok", "a\n\tb", "wipe  ok|a  b"},
		"C1 controls and a turn of direction":  {"wi\u009bpe", "a\u202eb\u2066c", "wipe|abc"},
		"words of other alphabets stay":        {"löschen", "диск 1, 50 %", "löschen|диск 1, 50 %"},
		"a name without any printed character": {"\x1b\x07 ", "x", ""},
	} {
		f := newFleet(t, nil)
		body, err := json.Marshal(map[string]string{"systemUUID": uuid, "phase": c.phase, "detail": c.detail})
		if err != nil {
			t.Fatal(err)
		}
		code, got := f.do("POST", "/phase", "mine", string(body)).Code, ""
		if i := f.inventory(uuid); i != nil && i.Phase != nil {
			got = i.Phase.Name + "|" + i.Phase.Detail
		}
		if got != c.want || (c.want == "") != (code == http.StatusUnprocessableEntity) {
			t.Errorf("%s: %d, stored %q, want %q", name, code, got, c.want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("wipe\x1b[2J\u202e\xff")
	f.Fuzz(func(t *testing.T, text string) {
		got := printable(text)
		if len(got) > 3*len(text) || strings.ContainsFunc(got, func(c rune) bool { return c != ' ' && !unicode.IsPrint(c) }) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
