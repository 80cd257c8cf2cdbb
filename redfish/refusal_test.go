// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"testing"
	"time"
)

func TestARefusalIsWhatWouldBeRefusedAgain(t *testing.T) {
	wrote := func(status int) error { return &ResponseError{Method: "PATCH", Status: status} }
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                                  {nil, false},
		"a bad request":                             {wrote(400), true},
		"a method that is not allowed":              {wrote(405), true},
		"an action that there is not":               {wrote(501), true},
		"a refused If-Match":                        {wrote(412), true},
		"a conflict, as in the self test":           {wrote(409), false},
		"a system that is not there yet":            {wrote(404), false},
		"too many requests":                         {wrote(429), false},
		"an internal error, which may have done it": {wrote(500), false},
		"a busy BMC":                                {wrote(503), false},
		"a self test, told with 400":                {&ResponseError{Method: "POST", Status: 400, MessageID: "iLO.2.14.InvalidOperationForSystemState"}, false},
		"another message with 400":                  {&ResponseError{Method: "POST", Status: 400, MessageID: "Base.1.8.PropertyNotWritable"}, true},
		"a read that was refused":                   {&ResponseError{Method: "GET", Status: 400}, false},
		"an account without the right":              {&AuthError{Status: 403}, true},
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
