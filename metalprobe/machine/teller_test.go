// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/metalaw/metalaw/metalprobe"
)

const uuid = "44454c4c-4200-1035-8054-b7c04f4d4d32"

func TestTellerTellsInOrderAndNeverBlocks(t *testing.T) {
	release, asked := make(chan struct{}), make(chan string, 2*maxUntold)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-release
		var report metalprobe.PhaseReport
		if err := json.NewDecoder(r.Body).Decode(&report); err != nil || report.SystemUUID != uuid || r.Header.Get(metalprobe.KeyHeader) == "" {
			t.Errorf("%+v, %v", report, err)
		}
		asked <- report.Phase
		http.NotFound(w, r) // a registry that knows no phases
	}))
	defer server.Close()
	teller := newTeller(&metalprobe.Client{BaseURL: server.URL, Key: metalprobe.NewKey()}, uuid, slog.New(slog.DiscardHandler))
	stop := teller.run(t.Context())
	teller.tell(metalprobe.NetworkPhase, "eth0", 0)
	teller.tell(metalprobe.CollectPhase, "", 0)
	for range 2 * maxUntold {
		teller.tell(metalprobe.WipePhase, "too often", 1)
	}
	close(release)
	for _, want := range []string{metalprobe.NetworkPhase, metalprobe.CollectPhase, metalprobe.WipePhase} {
		if got := <-asked; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	stop()
}
