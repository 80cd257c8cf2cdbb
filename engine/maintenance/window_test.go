// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"strings"
	"testing"
	"time"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	moment, err := time.Parse("2006-01-02T15:04Z07:00", text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func window(t *testing.T, w Window) Window {
	t.Helper()
	if w.Name == "" {
		w.Name = "w"
	}
	complete, err := NewWindow(w)
	if err != nil {
		t.Fatal(err)
	}
	return complete
}

const berlin = "Europe/Berlin"

func TestWhenAWindowIsOpen(t *testing.T) {
	nights := Window{Opens: "0 22 * * 1-5", Lasts: 8 * time.Hour, Zone: berlin}
	spring := Window{Opens: "30 2 * * *", Lasts: time.Hour, Zone: berlin} // the clocks skip 02:00 to 03:00 on 2026-03-29
	for name, c := range map[string]struct {
		window               Window
		now                  string
		open                 bool
		closesAt, opensAgain string
	}{
		"before it opens":                             {nights, "2026-11-27T20:59Z", false, "", "2026-11-27T21:00Z"},
		"at the moment at which it opens":             {nights, "2026-11-27T21:00Z", true, "2026-11-28T05:00Z", "2026-11-30T21:00Z"},
		"after midnight of the next day":              {nights, "2026-11-28T04:59Z", true, "2026-11-28T05:00Z", "2026-11-30T21:00Z"},
		"at the moment at which it closes":            {nights, "2026-11-28T05:00Z", false, "", "2026-11-30T21:00Z"},
		"in summer it opens an hour earlier in UTC":   {nights, "2026-07-01T20:00Z", true, "2026-07-02T04:00Z", "2026-07-02T20:00Z"},
		"over the skipped hour it lasts 8 hours":      {Window{Opens: "0 22 * * *", Lasts: 8 * time.Hour, Zone: berlin}, "2026-03-28T22:00Z", true, "2026-03-29T05:00Z", "2026-03-29T20:00Z"},
		"over the hour that comes twice it does too":  {Window{Opens: "0 22 * * *", Lasts: 8 * time.Hour, Zone: berlin}, "2026-10-24T21:00Z", true, "2026-10-25T04:00Z", "2026-10-25T21:00Z"},
		"a skipped time is when the clocks skip it":   {spring, "2026-03-29T00:59Z", false, "", "2026-03-29T01:00Z"},
		"it is open from then on":                     {spring, "2026-03-29T01:00Z", true, "2026-03-29T02:00Z", "2026-03-30T00:30Z"},
		"a time that comes twice is the first of two": {spring, "2026-10-25T00:30Z", true, "2026-10-25T01:30Z", "2026-10-26T01:30Z"},
		"and not the second":                          {spring, "2026-10-25T01:30Z", false, "", "2026-10-26T01:30Z"},
		"the day before":                              {spring, "2026-10-25T00:29Z", false, "", "2026-10-25T00:30Z"},
		"where the clocks are set by half an hour":    {Window{Opens: "15 2 * * *", Lasts: time.Hour, Zone: "Australia/Lord_Howe"}, "2026-10-03T15:30Z", true, "2026-10-03T16:30Z", "2026-10-04T15:15Z"},
		"where a day is left out":                     {Window{Opens: "0 12 30 12 *", Lasts: time.Hour, Zone: "Pacific/Apia"}, "2011-12-30T10:00Z", true, "2011-12-30T11:00Z", "2012-12-29T22:00Z"},
		"windows that touch are one":                  {Window{Opens: "0 0,8 * * *", Lasts: 8 * time.Hour, Zone: "UTC"}, "2026-01-01T07:00Z", true, "2026-01-01T16:00Z", "2026-01-02T00:00Z"},
		"windows that never end have no end":          {Window{Opens: "0 * * * *", Lasts: time.Hour, Zone: "UTC"}, "2026-01-01T07:10Z", true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := window(t, c.window)
			h := w.at(at(t, c.now))
			if h.open != c.open || !h.closes.Equal(at(t, c.closesAt)) || !h.opens.Equal(at(t, c.opensAgain)) {
				t.Errorf("open %t, closes %s, opens %s", h.open, h.closes.UTC(), h.opens.UTC())
			}
		})
	}
}

func TestAWindowThatIsNoneIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ opens, zone, want string }{
		"four fields":                         {"0 22 * *", "UTC", "expected exactly 5 fields"},
		"a minute that there is not":          {"60 22 * * *", "UTC", "above maximum"},
		"a zone in the expression":            {"TZ=UTC 0 22 * * *", "UTC", "no cron expression"},
		"a word for an expression":            {"@daily", "UTC", "no cron expression"},
		"the other star":                      {"0 22 ? * 1", "UTC", "no cron expression"},
		"every few minutes":                   {"*/10 22 * * *", "UTC", "opens 6 times an hour"},
		"30 February":                         {"0 22 30 2 *", "UTC", "never opens"},
		"29 February":                         {"0 22 29 2 *", "UTC", "years in which it never opens"},
		"a zone that there is not":            {"0 22 * * *", "Europe/Bonn", "no time zone"},
		"the zone of the machine it runs on":  {"0 22 * * *", "Local", "no time zone"},
		"nothing":                             {"", "UTC", "empty"},
		"a zone file outside of the database": {"0 22 * * *", "../UTC", "no time zone"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewWindow(Window{Opens: c.opens, Zone: c.zone, Lasts: time.Hour}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
}

func TestWhatWindowsSay(t *testing.T) {
	nights := window(t, Window{Name: "nights", Opens: "0 22 * * *", Zone: "UTC", Lasts: 2 * time.Hour})
	noon := window(t, Window{Name: "noon", Opens: "0 12 * * *", Zone: "UTC", Lasts: 30 * time.Minute})
	least := window(t, Window{Name: "least", Opens: "0 22 * * *", Zone: "UTC", Lasts: 2 * time.Hour, Least: 90 * time.Minute})
	rack := window(t, Window{Name: "rack", Opens: "0 22 * * *", Zone: "UTC", Lasts: 2 * time.Hour, MatchLabels: Selector{"rack": "r1"}})
	urgent := window(t, Window{Name: "urgent", Opens: "0 * * * *", Zone: "UTC", Lasts: time.Hour, When: must(t, "maintenance.priority >= 100")})
	wrong := window(t, Window{Name: "wrong", Opens: "0 * * * *", Zone: "UTC", Lasts: time.Hour, When: must(t, `claim.labels["a"] == "b"`)})
	for name, c := range map[string]struct {
		windows []Window
		now     string
		need    time.Duration
		want    Opening
	}{
		"without windows it is open":                {nil, "2026-01-01T10:00Z", time.Hour, Opening{Open: true}},
		"with windows of other servers it is":       {[]Window{rack}, "2026-01-01T10:00Z", time.Hour, Opening{Open: true}},
		"one that is closed opens later":            {[]Window{nights}, "2026-01-01T10:00Z", time.Hour, Opening{Name: "nights", Opens: at(t, "2026-01-01T22:00Z")}},
		"one that is open with time enough":         {[]Window{nights}, "2026-01-01T23:00Z", time.Hour, Opening{Open: true, Name: "nights", Closes: at(t, "2026-01-02T00:00Z")}},
		"one that closes too soon":                  {[]Window{nights}, "2026-01-01T23:01Z", time.Hour, Opening{TooShort: true, Name: "nights", Closes: at(t, "2026-01-02T00:00Z"), Opens: at(t, "2026-01-02T22:00Z")}},
		"less than its least is too short as well":  {[]Window{least}, "2026-01-01T23:00Z", time.Minute, Opening{TooShort: true, Name: "least", Closes: at(t, "2026-01-02T00:00Z"), Opens: at(t, "2026-01-02T22:00Z")}},
		"one that is never long enough":             {[]Window{nights}, "2026-01-01T22:00Z", 3 * time.Hour, Opening{Never: true, Name: "nights"}},
		"another may be long enough":                {[]Window{noon, nights}, "2026-01-01T10:00Z", time.Hour, Opening{Name: "nights", Opens: at(t, "2026-01-01T22:00Z")}},
		"of several, one open is enough":            {[]Window{nights, noon}, "2026-01-01T12:00Z", 30 * time.Minute, Opening{Open: true, Name: "noon", Closes: at(t, "2026-01-01T12:30Z")}},
		"one that is not for this maintenance":      {[]Window{urgent}, "2026-01-01T10:00Z", time.Hour, Opening{Open: true}},
		"of several closed, the first to open":      {[]Window{nights, noon}, "2026-01-01T10:00Z", time.Minute, Opening{Name: "noon", Opens: at(t, "2026-01-01T12:00Z")}},
		"a window that cannot be evaluated is none": {[]Window{wrong}, "2026-01-01T10:00Z", time.Minute, Opening{Name: "wrong"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Policy{Windows: c.windows}
			got := p.Window(&Facts{Labels: map[string]string{"rack": "r2"}}, at(t, c.now), c.need)
			failed := got.Err != nil
			got.Err, got.Closes, got.Opens = nil, got.Closes.UTC(), got.Opens.UTC()
			if c.want.Closes, c.want.Opens = c.want.Closes.UTC(), c.want.Opens.UTC(); got != c.want || failed != (c.want.Name == "wrong") {
				t.Errorf("%+v, failed %t", got, failed)
			}
		})
	}
}

func must(t *testing.T, text string) *Expression {
	t.Helper()
	e, err := Condition(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func FuzzWindow(f *testing.F) {
	f.Add("0 22 * * 1-5", "Europe/Berlin", int64(1793000000), int64(8*3600))
	f.Add("30 2 * * *", "Australia/Lord_Howe", int64(1774740600), int64(3600))
	f.Add("0 */2 1,15 jan-mar *", "Pacific/Apia", int64(1325200000), int64(7*24*3600))
	f.Fuzz(func(t *testing.T, opens, zone string, now, lasts int64) {
		if lasts < 60 || lasts > int64(MaxLasts/time.Second) || now < 0 || now > 4e9 || len(opens) > 100 {
			return
		}
		w, err := NewWindow(Window{Opens: opens, Zone: zone, Lasts: time.Duration(lasts) * time.Second})
		if err != nil {
			return
		}
		moment := time.Unix(now, 0)
		h := w.at(moment)
		switch {
		case h.open && !h.closes.IsZero() && !h.closes.After(moment):
			t.Errorf("it is open and closed at %s", h.closes)
		case !h.opens.IsZero() && !h.opens.After(moment):
			t.Errorf("it opens at %s, which is over", h.opens)
		case !h.open && !h.opens.IsZero() && !w.at(h.opens).open:
			t.Errorf("it says that it opens at %s, and is closed then", h.opens)
		case h.open && !h.closes.IsZero() && w.at(h.closes).open:
			t.Errorf("it says that it closes at %s, and is open then", h.closes)
		}
	})
}
