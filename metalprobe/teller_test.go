// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestTellerTellsInOrderAndNeverBlocks(t *testing.T) {
	release, asked := make(chan struct{}), make(chan string, 2*maxUntold)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-release
		var report PhaseReport
		if err := json.NewDecoder(r.Body).Decode(&report); err != nil || report.SystemUUID != uuid || r.Header.Get(KeyHeader) == "" {
			t.Errorf("%+v, %v", report, err)
		}
		asked <- report.Phase
		http.NotFound(w, r) // a registry that knows no phases
	}))
	defer server.Close()
	teller := newTeller(&Client{BaseURL: server.URL, Key: NewKey()}, uuid, slog.New(slog.DiscardHandler))
	stop := teller.run(t.Context())
	teller.tell(NetworkPhase, "eth0", 0)
	teller.tell(CollectPhase, "", 0)
	for range 2 * maxUntold {
		teller.tell(WipePhase, "too often", 1)
	}
	close(release)
	for _, want := range []string{NetworkPhase, CollectPhase, WipePhase} {
		if got := <-asked; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	stop()
}
