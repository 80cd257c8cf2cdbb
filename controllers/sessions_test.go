// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalaw/metalaw/controllers/heartbeat"
	"github.com/metalaw/metalaw/redfish"
)

func TestTheNextManagerIsToldOfASessionThatMayBeLeft(t *testing.T) {
	for name, c := range map[string]struct {
		end    int // how the BMC answers the end of the session
		killed bool
	}{
		"it was ended":             {http.StatusNoContent, false},
		"the BMC failed to end it": {http.StatusInternalServerError, true},
	} {
		t.Run(name, func(t *testing.T) {
			bmc := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.Method {
				case http.MethodPost:
					w.Header().Set("X-Auth-Token", "token")
					w.Header().Set("Location", "/redfish/v1/SessionService/Sessions/1")
					w.WriteHeader(http.StatusCreated)
				case http.MethodDelete:
					w.WriteHeader(c.end)
				default:
					_, _ = w.Write([]byte(`{"@odata.id":"/redfish/v1/","@odata.type":"#ServiceRoot.v1_9_0.ServiceRoot","RedfishVersion":"1.11.0",
						"Managers":{"@odata.id":"/redfish/v1/Managers"},"Links":{"Sessions":{"@odata.id":"/redfish/v1/SessionService/Sessions"}}}`))
				}
			}))
			defer bmc.Close()
			at := netip.MustParseAddrPort(bmc.Listener.Addr().String())
			pool := redfish.NewPool(redfish.PoolOptions{})
			// What the read says does not matter; it logs in.
			_, _ = pool.Get("bmc", redfish.Endpoint{Address: at.Addr().String(), Port: int(at.Port()), Scheme: "http"},
				redfish.Credentials{Username: "admin", Password: "x"}).Manager(t.Context())

			api := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
			beat := &heartbeat.Heartbeat{Client: api, Reader: api, Namespace: "metalaw-system"}
			beat.Outage()
			stopped, stop := context.WithCancel(t.Context())
			stop()
			if err := givingSessionsBack(pool, beat).Start(stopped); err != nil {
				t.Error(err)
			}
			next := &heartbeat.Heartbeat{Client: api, Reader: api, Namespace: "metalaw-system"}
			if got := next.FormerWasKilled(); got != c.killed {
				t.Errorf("taken for killed: %t, want %t", got, c.killed)
			}
		})
	}
}
