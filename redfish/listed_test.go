// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"net/http"
	"testing"
	"time"
)

func TestAListThatIsReadShowsItsSystems(t *testing.T) {
	f := newFake(t)
	c := f.client(t)
	var asked time.Time
	f.once("GET /redfish/v1/Systems", func(w http.ResponseWriter, r *http.Request) {
		asked = time.Now()
		f.usual(w, r)
	})
	got, err := c.Manager(t.Context())
	if err != nil || len(got.Listed) != 1 || got.Listed[0].URI != systemURI || got.Listed[0].Identity.UUID != systemUUID {
		t.Fatalf("listed %+v, %v", got.Listed, err)
	}
	if at := got.Listed[0].TakenAt; at.After(asked) {
		t.Errorf("taken at %s, after the list was asked for at %s", at, asked)
	}
}

func TestAListThatIsRememberedShowsNoSystems(t *testing.T) {
	f := newFake(t)
	c := f.warm(t)
	got, err := c.Manager(t.Context())
	if err != nil || len(got.SystemURIs) != 1 || len(got.Listed) != 0 {
		t.Errorf("listed %+v beside %v, %v; who counts on a new look takes that for one", got.Listed, got.SystemURIs, err)
	}
}

func TestAListThatAWriteRunsIntoStandsForNoRead(t *testing.T) {
	list := "GET /redfish/v1/Systems"
	for name, c := range map[string]struct {
		// during is the request while which the other thing is done.
		during string
		other  func(t *testing.T, c BMC) error
		begin  func(t *testing.T, c BMC) error
	}{
		"a write during the list": {list, lightOn, listAnew},
		"a list during the write": {"PATCH " + systemURI, listAnew, lightOn},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.set(systemURI, wholeSystem)
			bmc := f.warm(t)
			bmc.(*client).forgetTopology()
			f.once(c.during, func(w http.ResponseWriter, r *http.Request) {
				if err := c.other(t, bmc); err != nil {
					t.Error(err)
				}
				f.usual(w, r)
			})
			if err := c.begin(t, bmc); err != nil {
				t.Fatal(err)
			}
			f.seen()
			if _, err := bmc.SystemDetail(t.Context(), systemURI); err != nil {
				t.Fatal(err)
			}
			if reads := f.seen(); len(reads) == 0 || reads[0] != "GET "+systemURI {
				t.Errorf("what was listed before the write ended stands for a read after it: %q", reads)
			}
		})
	}
}

// wholeSystem shows all that is acted upon.
var wholeSystem = systemJSON("Off", `,"EthernetInterfaces":{"@odata.id":"`+nicsURI+`"}`)

func lightOn(t *testing.T, c BMC) error {
	return c.SetLED(t.Context(), systemURI, self, LEDLit)
}

func listAnew(t *testing.T, c BMC) error {
	got, err := c.Manager(t.Context())
	if err == nil && len(got.Listed) != 1 {
		t.Errorf("listed %+v", got.Listed)
	}
	return err
}
