// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"net/http"
)

// MaxPhase bounds the name of a phase, in bytes.
const MaxPhase = 64

// PhaseReport is the body of POST /phase: what the agent is doing. The agent sends one when a phase begins; a wipe sends one at
// 25, 50 and 75 percent besides. A phase that is sent again says nothing new.
type PhaseReport struct {
	SystemUUID string `json:"systemUUID"`
	// Phase is a short name, such as network, collect, report, wipe.
	Phase string `json:"phase"`
	// Detail says more, for example the disk that is erased.
	Detail string `json:"detail,omitempty"`
	// Percent is how much of a wipe is done, in percent of its bytes; 0 in other phases.
	Percent int32 `json:"percent,omitempty"`
	// UptimeSeconds is how long the machine has been up.
	UptimeSeconds int64 `json:"uptimeSeconds,omitempty"`
}

// Validate says everything that is wrong with a phase. It changes nothing.
func (p *PhaseReport) Validate() error {
	var b bounds
	if _, err := NormalizeUUID(p.SystemUUID); err != nil {
		b.note("%w", err)
	}
	if p.Phase == "" {
		b.note("phase: empty")
	}
	b.text("phase", &p.Phase, MaxPhase)
	b.text("detail", &p.Detail, maxText)
	if p.Percent < 0 || p.Percent > 100 {
		b.note("percent: %d is not between 0 and 100", p.Percent)
	}
	natural(&b, "uptimeSeconds", &p.UptimeSeconds)
	return errors.Join(b.problems...)
}

// Phase tells what the agent is doing. A repeated call is harmless.
func (c *Client) Phase(ctx context.Context, uuid string, report PhaseReport) error {
	report.SystemUUID, report.Detail = uuid, shorten(report.Detail)
	return c.call(ctx, http.MethodPost, "/phase", report, nil)
}
