// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

const (
	otherUUID   = "11111111-2222-3333-4444-555555555555"
	resetBMC    = "POST " + managerURI + `/Actions/Manager.Reset {"ResetType":"GracefulRestart"}`
	managerUUID = "8e7365a4-ec9c-4e2d-be63-cf771c45267d"
)

var provenBySystem = ManagerIdentity{Systems: []SystemAt{{URI: systemURI, Identity: self}}}

// naming is the usual manager with further fields.
func naming(fields string) string {
	return strings.Replace(bareFake().docs[managerURI], `"Id":"1"`, `"Id":"1",`+fields, 1)
}

func TestTheBMCItselfIsReset(t *testing.T) {
	f := newFake(t)
	c := f.warm(t)
	if err := c.ResetManager(t.Context(), provenBySystem, true); err != nil {
		t.Fatal(err)
	}
	wantLines(t, f.seen(), "GET "+managerURI, "GET "+systemURI, resetBMC)
	err := c.ResetManager(t.Context(), provenBySystem, false)
	var unsupported *UnsupportedError
	if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "offers GracefulRestart") {
		t.Errorf("error %v", err)
	}
}

func TestOnlyTheBMCThatIsMeantIsReset(t *testing.T) {
	other := SystemAt{URI: systemURI, Identity: Identity{UUID: otherUUID}}
	gone := SystemAt{URI: "/redfish/v1/Systems/gone", Identity: Identity{UUID: otherUUID}}
	for name, c := range map[string]struct {
		says string // of the manager itself
		want ManagerIdentity
		sent bool
	}{
		"its system is there":                             {``, provenBySystem, true},
		"one of its systems is there":                     {``, ManagerIdentity{Systems: []SystemAt{gone, other, provenBySystem.Systems[0]}}, true},
		"another system is there":                         {``, ManagerIdentity{Systems: []SystemAt{other}}, false},
		"its system is gone":                              {``, ManagerIdentity{Systems: []SystemAt{gone}}, false},
		"its UUID, and no system is known":                {`"UUID":"` + managerUUID + `"`, ManagerIdentity{UUID: managerUUID}, true},
		"its serial number, and no system is known":       {`"SerialNumber":"B1"`, ManagerIdentity{SerialNumber: "B1"}, true},
		"another UUID, and no system is known":            {`"UUID":"` + managerUUID + `"`, ManagerIdentity{UUID: otherUUID}, false},
		"another UUID before the same system":             {`"UUID":"` + managerUUID + `"`, ManagerIdentity{UUID: otherUUID, Systems: provenBySystem.Systems}, false},
		"another serial number before the same system":    {`"SerialNumber":"B1"`, ManagerIdentity{SerialNumber: "B2", Systems: provenBySystem.Systems}, false},
		"its UUID before another system":                  {`"UUID":"` + managerUUID + `"`, ManagerIdentity{UUID: managerUUID, Systems: []SystemAt{other}}, false},
		"a UUID that it no longer says, and the system":   {``, ManagerIdentity{UUID: managerUUID, Systems: provenBySystem.Systems}, true},
		"a UUID that it no longer says, and nothing else": {``, ManagerIdentity{UUID: managerUUID}, false},
		"nothing to compare":                              {`"UUID":"` + managerUUID + `"`, ManagerIdentity{}, false},
		"only a placeholder to compare":                   {`"UUID":"00000000-0000-0000-0000-000000000000"`, ManagerIdentity{UUID: "00000000-0000-0000-0000-000000000000"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			if c.says != "" {
				f.set(managerURI, naming(c.says))
			}
			err := f.warm(t).ResetManager(t.Context(), c.want, true)
			var identity *IdentityError
			if c.sent != (err == nil) || !c.sent && (!errors.As(err, &identity) || MayHaveHappened(err)) {
				t.Errorf("error %v", err)
			}
			var want []string
			if c.sent {
				want = []string{resetBMC}
			}
			wantLines(t, f.seen("POST", "PATCH"), want...)
		})
	}
}

func TestABMCWhoseSystemCannotBeReadIsNotReset(t *testing.T) {
	f := newFake(t)
	c := f.warm(t)
	f.on("GET "+systemURI, status(http.StatusServiceUnavailable))
	if err := c.ResetManager(t.Context(), provenBySystem, true); !statusIs(err, 503) || MayHaveHappened(err) {
		t.Errorf("error %v", err)
	}
	wantLines(t, f.seen("POST"))
}
