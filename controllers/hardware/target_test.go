// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalaw/metalaw/redfish"
)

// first is a target of which every part is set.
func first(change ...func(*Target)) Target {
	t := Target{Key: "uid-1", URI: "/redfish/v1/Systems/1",
		Credentials: redfish.Credentials{Username: "u", Password: "p"},
		Endpoint:    redfish.Endpoint{Address: "10.0.0.1", Port: 443, Scheme: "https", CABundle: []byte("ca")}}
	for _, c := range change {
		c(&t)
	}
	return t
}

func TestAReadingSaysNothingOfAnotherTarget(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Target)
		kept   bool
	}{
		"the same target":                       {func(*Target) {}, true},
		"the same target asked for more":        {func(t *Target) { t.Detail = true }, true},
		"the same target with a copy of its CA": {func(t *Target) { t.Endpoint.CABundle = []byte("ca") }, true},
		"another BMC":                           {func(t *Target) { t.Key = "uid-2" }, false},
		"another system of the BMC":             {func(t *Target) { t.URI = "/redfish/v1/Systems/2" }, false},
		"another address":                       {func(t *Target) { t.Endpoint.Address = "10.0.0.2" }, false},
		"another port":                          {func(t *Target) { t.Endpoint.Port = 8443 }, false},
		"another scheme":                        {func(t *Target) { t.Endpoint.Scheme = "http" }, false},
		"another CA":                            {func(t *Target) { t.Endpoint.CABundle = []byte("other") }, false},
		"a certificate that need not be checked any more": {func(t *Target) { t.Endpoint.InsecureSkipVerify = true }, false},
		"other credentials": {func(t *Target) { t.Credentials.Password = "q" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &lamp{power: "On"}
				d := l.cache()
				defer d.Close()
				d.Refresh("a", first(), time.Minute)
				time.Sleep(2 * time.Second)
				r, fresh := d.Refresh("a", first(c.change), time.Minute)
				if fresh != c.kept || r.Reachable() != c.kept || (r.Value == "On") != c.kept {
					t.Errorf("fresh %t, reading %+v, want it kept: %t", fresh, r, c.kept)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if want := map[bool]int{true: 1, false: 2}[c.kept]; l.reads != want {
					t.Errorf("%d reads, want %d", l.reads, want)
				}
			})
		})
	}
}

func TestAReadingBegunBeforeTheTargetChangedSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lamp{power: "On"} // the former machine
		d := l.cache()
		defer d.Close()
		d.Refresh("a", first(), 0)
		time.Sleep(500 * time.Millisecond)
		second := first(func(t *Target) { t.Endpoint.Address = "10.0.0.2" })
		if r, _ := d.Refresh("a", second, time.Minute); r.Tried {
			t.Errorf("before any read of it the answer is %+v", r)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if r := d.Reading("a"); r.Tried || r.Value != "" {
			t.Errorf("the answer of the former target is taken for one of the new: %+v", r)
		}
		if l.wakes != 1 {
			t.Fatalf("%d wakes: whoever waits for a reading of the new target is not told to ask again", l.wakes)
		}
		l.becomes("Off", nil) // the machine that took its place
		d.Refresh("a", second, time.Minute)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if r := d.Reading("a"); !r.Reachable() || r.Value != "Off" {
			t.Errorf("got %+v", r)
		}
	})
}

func TestAFailureOfTheFormerTargetDelaysNoReadOfTheNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lamp{err: context.DeadlineExceeded}
		d := l.cache()
		defer d.Close()
		for range 60 { // long enough for the longest pause
			d.Refresh("a", first(), 0)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		l.becomes("On", nil)
		before := l.reads
		second := first(func(t *Target) { t.Credentials.Password = "q" })
		for range 3 { // a read of the former target may still be under way
			d.Refresh("a", second, time.Minute)
			time.Sleep(1100 * time.Millisecond)
		}
		synctest.Wait()
		if r := d.Reading("a"); !r.Reachable() || !r.FailingSince.IsZero() || l.reads > before+2 {
			t.Errorf("%d reads more, %+v", l.reads-before, r)
		}
	})
}

func TestAJobForAnotherTargetDropsTheReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lamp{power: "On"}
		d := l.cache()
		defer d.Close()
		d.Refresh("a", first(), 0)
		time.Sleep(2 * time.Second)
		began := time.Now()
		d.Do("a", first(func(t *Target) { t.Key = "uid-2" }), "1/off", func(context.Context, redfish.BMC) error {
			if r := d.Reading("a"); r.Tried {
				t.Errorf("while the job runs the answer is %+v", r)
			}
			l.becomes("Off", nil)
			return nil
		})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if r := d.Reading("a"); r.Value != "Off" || r.Begun.Before(began) {
			t.Errorf("after the job the answer is %+v", r)
		}
	})
}

func TestAJobOfTheFormerTargetLeavesTheReadingOfTheNewAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lamp{power: "On"}
		d := l.cache()
		defer d.Close()
		d.Do("a", first(), "1/off", func(context.Context, redfish.BMC) error { time.Sleep(3 * time.Second); return nil })
		second := first(func(t *Target) { t.Key = "uid-2" })
		d.Refresh("a", second, 0)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		l.becomes("Off", nil) // what the former machine shows once the job has ended
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if r := d.Reading("a"); r.Value != "On" {
			t.Errorf("got %+v", r)
		}
	})
}
