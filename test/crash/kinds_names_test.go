// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/redfish/emulator"
)

func TestAKindSaysWhatAWriteIsFor(t *testing.T) {
	const servers = "/apis/metal.ironcore.dev/v1alpha1/servers/a"
	for name, c := range map[string]struct{ method, path, body, want string }{
		"a patch by the fields that matter": {
			http.MethodPatch, servers + "/status",
			`{"metadata":{"resourceVersion":"7"},"status":{"conditions":[],"state":"Available","lifecycle":{"entry":2,"request":null}}}`,
			"api PATCH servers/status status.lifecycle.request=none status.state=Available",
		},
		"a patch of nothing that matters by all its fields": {
			http.MethodPatch, servers + "/status", `{"status":{"conditions":[],"powerState":"On"}}`,
			"api PATCH servers/status status.conditions status.powerState",
		},
		"a power request by its action": {
			http.MethodPatch, servers + "/status", `{"status":{"lifecycle":{"request":{"action":"On","askedAt":"2026-01-01T00:00:00Z"}}}}`,
			"api PATCH servers/status status.lifecycle.request.action=On",
		},
		"a boot configuration by its purpose": {
			http.MethodPost, "/apis/metal.ironcore.dev/v1alpha1/namespaces/x/serverbootconfigurations",
			`{"metadata":{"annotations":{"policy.metalaw.dev/boot-purpose":"Wipe"}}}`, "api POST serverbootconfigurations for Wipe",
		},
		"an event by nothing": {http.MethodPost, "/apis/events.k8s.io/v1/namespaces/x/events", `{"reason":"Wiped"}`, "api POST events"},
		"a lease by its name": {http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/x/leases/beat", `{}`, "api PUT leases beat"},
		"the lease of a replica by no name": {
			http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/x/leases/metalaw-replica-host-1a2b3c4d", `{}`, "api PUT leases metalaw-replica"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
			if got := apiKind(r, []byte(c.body)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	login := emulator.Write{Method: http.MethodPost, Path: "/redfish/v1/SessionService/Sessions", Body: `{"UserName":"a","Password":"***"}`}
	if got := bmcKind(login); got != "bmc POST /SessionService/Sessions" {
		t.Errorf("a login is %q", got)
	}
}
