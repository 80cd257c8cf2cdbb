// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestNothingIsWrittenToAnotherSystem(t *testing.T) {
	others := map[string]Identity{
		"another UUID":        {UUID: "4c4c4544-0035-3410-8050-c6c04f314734"},
		"nothing to compare":  {},
		"a serial beside it":  {UUID: "11111111-0035-3410-8050-c6c04f314734", SerialNumber: "S1"},
		"another serial only": {SerialNumber: "S2"},
	}
	writes := map[string]func(context.Context, BMC, Identity) error{
		"Reset": func(ctx context.Context, c BMC, id Identity) error { return c.Reset(ctx, systemURI, id, ActionOn) },
		"ForceOff although Off already": func(ctx context.Context, c BMC, id Identity) error {
			return c.Reset(ctx, systemURI, id, ActionForceOff)
		},
		"PowerOnOnce": func(ctx context.Context, c BMC, id Identity) error { return c.PowerOnOnce(ctx, systemURI, id, "Pxe") },
		"ClearBoot":   func(ctx context.Context, c BMC, id Identity) error { return c.ClearBoot(ctx, systemURI, id) },
		"SetBootOrder": func(ctx context.Context, c BMC, id Identity) error {
			return c.SetBootOrder(ctx, systemURI, id, []string{"Boot2"})
		},
		"InsertMedia": func(ctx context.Context, c BMC, id Identity) error {
			return c.InsertMedia(ctx, systemURI, id, MediaRequest{URL: imageOne})
		},
		"EjectMedia": func(ctx context.Context, c BMC, id Identity) error { return c.EjectMedia(ctx, systemURI, id, "") },
		"SetLED":     func(ctx context.Context, c BMC, id Identity) error { return c.SetLED(ctx, systemURI, id, LEDLit) },
	}
	for name, id := range others {
		for call, write := range writes {
			f := newFake(t)
			err := write(t.Context(), f.warm(t), id)
			var identity *IdentityError
			if !errors.As(err, &identity) || MayHaveHappened(err) {
				t.Errorf("%s, %s: error %v", call, name, err)
			}
			wantLines(t, f.seen(), "GET "+systemURI)
		}
	}
}

func TestResetSendsWhatTheBMCHasForTheAction(t *testing.T) {
	inline := systemJSON
	offering := func(power, types string) string {
		return strings.Replace(systemJSON(power), `["On","ForceOff","GracefulShutdown","GracefulRestart","ForceRestart"]`, types, 1)
	}
	for name, c := range map[string]struct {
		doc    string
		action PowerAction
		sent   string // ResetType; empty for nothing
		says   string // in the error; empty for none
	}{
		"on from off":                           {inline("Off"), ActionOn, "On", ""},
		"on when on is nothing":                 {inline("On"), ActionOn, "", ""},
		"on when powering on is nothing":        {inline("PoweringOn"), ActionOn, "", ""},
		"on from unknown is sent":               {inline(""), ActionOn, "On", ""},
		"shutdown of a running one":             {inline("On"), ActionGracefulShutdown, "GracefulShutdown", ""},
		"shutdown when off is nothing":          {inline("Off"), ActionGracefulShutdown, "", ""},
		"shutdown under way is nothing":         {inline("PoweringOff"), ActionGracefulShutdown, "", ""},
		"force off while powering off":          {inline("PoweringOff"), ActionForceOff, "ForceOff", ""},
		"force off when unknown is sent":        {inline("bogus"), ActionForceOff, "ForceOff", ""},
		"restart of one that is off":            {inline("Off"), ActionForceRestart, "", "nothing to restart"},
		"restart of a running one":              {inline("On"), ActionGracefulRestart, "GracefulRestart", ""},
		"no power cycle offered":                {inline("On"), ActionPowerCycle, "", "does not support PowerCycle; it offers On, ForceOff"},
		"no shutdown offered":                   {offering("On", `["On","ForceOff"]`), ActionGracefulShutdown, "", "ForceOff would cut the power"},
		"the gentle Off beside ForceOff":        {offering("On", `["On","Off","ForceOff"]`), ActionGracefulShutdown, "Off", ""},
		"ForceOff before Off":                   {offering("On", `["On","Off","ForceOff"]`), ActionForceOff, "ForceOff", ""},
		"nothing said: the plain word is tried": {offering("On", `null`), ActionPowerCycle, "PowerCycle", ""},
		"no reset action":                       {`{"Id":"1","UUID":"` + systemUUID + `","PowerState":"On"}`, ActionForceOff, "", "no Reset action"},
		"an action nobody knows":                {inline("On"), PowerAction("Explode"), "", "does not support the action Explode"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			client := f.warm(t)
			f.set(systemURI, c.doc)
			err := client.Reset(t.Context(), systemURI, self, c.action)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want %q", err, c.says)
			}
			var want []string
			if c.sent != "" {
				want = []string{"POST " + resetURI + ` {"ResetType":"` + c.sent + `"}`}
			}
			wantLines(t, f.seen("POST", "PATCH"), want...)
		})
	}
}

func TestResetTypesOfAnActionInfoAreReadOnce(t *testing.T) {
	f := newFake(t)
	f.set(systemURI, `{"Id":"1","UUID":"`+systemUUID+`","PowerState":"On","Actions":{"#ComputerSystem.Reset":{"target":"`+resetURI+`","@Redfish.ActionInfo":"/info"}}}`)
	f.set("/info", `{"Parameters":[{"Name":"Other","AllowableValues":["x"]},{"Name":"ResetType","AllowableValues":["On","ForceOff"]}]}`)
	c := f.warm(t)
	for range 2 {
		if err := c.Reset(t.Context(), systemURI, self, ActionForceOff); err != nil {
			t.Fatal(err)
		}
	}
	post := "POST " + resetURI + ` {"ResetType":"ForceOff"}`
	wantLines(t, f.seen(), "GET "+systemURI, "GET /info", post, "GET "+systemURI, post)
	if got, err := c.System(t.Context(), systemURI); err != nil || strings.Join(got.ResetTypes, " ") != "On ForceOff" {
		t.Errorf("snapshot offers %v, %v", got.ResetTypes, err)
	}
}

func TestARefusedResetIsFineWhereTheStateIsThereBynow(t *testing.T) {
	f := newFake(t)
	c := f.warm(t)
	f.on("POST "+resetURI, func(w http.ResponseWriter, _ *http.Request) {
		f.set(systemURI, systemJSON("On"))
		w.WriteHeader(http.StatusConflict)
	})
	if err := c.Reset(t.Context(), systemURI, self, ActionOn); err != nil {
		t.Errorf("error %v", err)
	}
	f.set(systemURI, systemJSON("Off"))
	f.on("POST "+resetURI, status(http.StatusConflict))
	if err := c.Reset(t.Context(), systemURI, self, ActionOn); !statusIs(err, 409) || MayHaveHappened(err) {
		t.Errorf("error %v", err)
	}
}

func TestAWriteWithoutAnAnswerMayHaveHappenedAndIsNotRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		h   http.HandlerFunc
		may bool
	}{
		"timed out":      {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, true},
		"reset":          {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		"internal error": {status(500), true},
		"bad gateway":    {status(502), true},
		"bad request":    {status(400), false},
		"no such action": {status(404), false},
		"too many":       {status(429), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			client := f.warm(t, PoolOptions{RequestTimeout: 300 * time.Millisecond})
			f.on("POST "+resetURI, c.h)
			err := client.Reset(t.Context(), systemURI, self, ActionOn)
			if err == nil || MayHaveHappened(err) != c.may {
				t.Errorf("error %v, may have happened: %v, want %v", err, MayHaveHappened(err), c.may)
			}
			if n := len(f.seen("POST")); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

func TestAnAcceptedWriteIsDoneWhateverItsBody(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"a task": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/task/1")
			w.WriteHeader(202)
		},
		"nothing":         status(204),
		"an HTML page":    body("<html>ok</html>"),
		"a success error": body(`{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.4.Success"}]}}`),
		"a cut-off body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		},
	} {
		f := newFake(t)
		f.on("POST "+resetURI, h)
		if err := f.client(t).Reset(t.Context(), systemURI, self, ActionOn); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnActionGoesWithoutIfMatchUntilTheBMCDemandsIt(t *testing.T) {
	f := newFake(t)
	f.etags[systemURI] = `W/"7"`
	var tags []string
	f.on("POST "+resetURI, func(w http.ResponseWriter, r *http.Request) {
		tags = append(tags, r.Header.Get("If-Match"))
		if r.Header.Get("If-Match") == "" {
			w.WriteHeader(http.StatusPreconditionRequired)
		}
	})
	c := f.client(t)
	for range 2 {
		if err := c.Reset(t.Context(), systemURI, self, ActionOn); err != nil {
			t.Fatal(err)
		}
	}
	wantLines(t, tags, "", `"7"`, `"7"`)
	f.on("POST "+resetURI, func(w http.ResponseWriter, r *http.Request) { // firmware update: now it refuses it
		if r.Header.Get("If-Match") != "" {
			w.WriteHeader(http.StatusPreconditionFailed)
		}
	})
	if err := c.Reset(t.Context(), systemURI, self, ActionOn); err != nil {
		t.Error(err)
	}
}
