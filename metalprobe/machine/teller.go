// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/metalaw/metalaw/metalprobe"
)

const (
	// maxUntold is how many phases wait for a registry that is slow; further ones are not told.
	maxUntold = 32
	// tellAttempts and tellTimeout bound how long one phase is tried: half a minute. The registry takes none before the BMC has shown
	// the machine on, and the first phase must outlast that.
	tellAttempts, tellTimeout = 8, 5 * time.Second
)

// teller tells the registry what the agent does, in the background: a registry that does not listen holds nothing up.
type teller struct {
	client *metalprobe.Client
	uuid   string
	log    *slog.Logger
	queue  chan metalprobe.PhaseReport
}

func newTeller(client *metalprobe.Client, uuid string, log *slog.Logger) *teller {
	patient := *client
	patient.Attempts, patient.Timeout = tellAttempts, tellTimeout
	return &teller{client: &patient, uuid: uuid, log: log, queue: make(chan metalprobe.PhaseReport, maxUntold)}
}

// tell never blocks.
func (t *teller) tell(phase, detail string, percent int32) {
	report := metalprobe.PhaseReport{Phase: phase, Detail: detail, Percent: percent, UptimeSeconds: uptimeSeconds()}
	select {
	case t.queue <- report:
	default:
	}
}

// run tells phases until ctx ends or the returned function is called.
func (t *teller) run(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		refused := false
		for {
			select {
			case <-ctx.Done():
				return
			case report := <-t.queue:
				err := t.client.Phase(ctx, t.uuid, report)
				if err != nil && !refused && ctx.Err() == nil {
					refused = true
					t.log.Info("the registry does not take the phase; the agent goes on", "phase", report.Phase, "error", err)
				}
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}
