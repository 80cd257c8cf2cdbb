// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"testing"
	"time"
)

func TestARefusalIsWhatWouldBeRefusedAgain(t *testing.T) {
	wrote := func(status int) error { return &ResponseError{Method: "PATCH", Status: status} }
	said := func(id string) error { return &ResponseError{Method: "POST", Status: 400, MessageID: id} }
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                                  {nil, false},
		"a bad request":                             {wrote(400), true},
		"a method that is not allowed":              {wrote(405), true},
		"an action that there is not":               {wrote(501), true},
		"a refused If-Match":                        {wrote(412), false},
		"a conflict, as in the self test":           {wrote(409), false},
		"a system that is not there yet":            {wrote(404), false},
		"too many requests":                         {wrote(429), false},
		"an internal error, which may have done it": {wrote(500), false},
		"a busy BMC":                                {wrote(503), false},
		"a self test, told with 400":                {&ResponseError{Method: "POST", Status: 400, MessageID: "iLO.2.14.InvalidOperationForSystemState"}, false},
		"another message with 400":                  {&ResponseError{Method: "POST", Status: 400, MessageID: "Base.1.8.PropertyNotWritable"}, true},
		"a read that was refused":                   {&ResponseError{Method: "GET", Status: 400}, false},
		"an iLO that cannot be changed right now":   {said("iLO.2.14.UnableToModifyRightNow"), false},
		"an iLO whose resource is not ready":        {said("iLO.2.14.ResourceNotReadyRetry"), false},
		"an iLO in its self test":                   {said("iLO.2.14.UnableToModifyDuringSystemPOST"), false},
		"an iDRAC with a job":                       {said("IDRAC.2.8.RED014"), false},
		"an iDRAC whose Lifecycle Controller works": {said("IDRAC.2.8.LC062"), false},
		"an iDRAC that is not ready":                {said("IDRAC.1.6.SWC0700"), false},
		"an iDRAC that tells of something else":     {said("IDRAC.2.8.SYS428"), true},
		"an account without the right":              {&AuthError{Status: 403}, false},
		"an account that is left alone":             {&AuthError{Status: 403, Until: time.Unix(1, 0)}, false},
		"a wrong password":                          {&AuthError{Status: 401}, false},
		"an action that is not offered":             {&UnsupportedError{}, true},
		"an override that is ignored":               {&OverrideError{}, true},
		"an override that is a task":                {&OverrideError{Later: true}, false},
		"a guard":                                   {&NotAskedError{Err: wrote(400)}, false},
		"a refusal after a write that is open":      {afterOpen(wrote(500), wrote(400)), false},
		"no connection":                             {&UnreachableError{Method: "PATCH"}, false},
		"a system that is not Off":                  {ErrNotOff, false},
		"another error":                             {errors.New("x"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Refused(c.err); got != c.want {
				t.Errorf("%v: %t", c.err, got)
			}
		})
	}
}
