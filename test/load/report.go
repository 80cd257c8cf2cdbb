// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"time"
)

// settings is what was measured, and how.
type settings struct {
	Servers      int     `json:"servers"`
	Claims       int     `json:"claims"`
	Maintenances int     `json:"maintenances"`
	Manager      string  `json:"manager"`
	Cores        int     `json:"cores"`
	Webhooks     bool    `json:"webhooks"`
	PowerDelay   float64 `json:"power_delay_seconds"`
	BootDelay    float64 `json:"boot_delay_seconds"`
	Latency      float64 `json:"latency_seconds"`
	RegistryTLS  bool    `json:"registry_tls"`
	AgentToken   bool    `json:"agent_token"`
	MemoryLimit  string  `json:"memory_limit"`
}

// report is the result. docs/load.md says what each key means; a figure that was not measured is null.
type report struct {
	Servers                   int      `json:"servers"`
	OnboardSeconds            float64  `json:"onboard_seconds"`
	ManagerCPUSeconds         float64  `json:"manager_cpu_seconds"`
	ManagerPeakRSSMiB         float64  `json:"manager_peak_rss_mib"`
	APIServerCPUSeconds       float64  `json:"apiserver_cpu_seconds"`
	RedfishRequestsPerServer  float64  `json:"redfish_requests_per_server"`
	APIWritesPerServer        float64  `json:"api_writes_per_server"`
	APIEventsPerServer        float64  `json:"api_events_per_server"`
	APIReadsPerServer         float64  `json:"api_reads_per_server"`
	APIReads404PerServer      float64  `json:"api_reads_404_per_server"`
	IdleRedfishPerServerHour  *float64 `json:"idle_redfish_requests_per_server_hour"`
	IdleWindowSeconds         *float64 `json:"idle_window_seconds"`
	Claims                    int      `json:"claims"`
	ClaimsBoundSeconds        *float64 `json:"claims_bound_seconds"`
	APIServerCPUUntilBound    *float64 `json:"apiserver_cpu_seconds_until_bound"`
	ClaimsBoundMultiple       *float64 `json:"claims_bound_multiple"`
	ClaimsRunningSeconds      *float64 `json:"claims_running_seconds"`
	ManagerCPUSecondsPerClaim *float64 `json:"manager_cpu_seconds_per_claim"`
	APIReadsPerClaim          *float64 `json:"api_reads_per_claim"`
	ReleaseSeconds            *float64 `json:"release_seconds"`
	Conflicts                 int      `json:"conflicts"`
	DoubleBinds               int      `json:"double_binds"`
	LogBytes                  int64    `json:"log_bytes"`

	Maintenance *maintenanceCost `json:"maintenance"`
	Settings    settings         `json:"settings"`
	Phases      []phaseCost      `json:"phases"`
}

// phaseCost is what one phase cost, in all.
type phaseCost struct {
	Name                string  `json:"name"`
	Seconds             float64 `json:"seconds"`
	ManagerCPUSeconds   float64 `json:"manager_cpu_seconds"`
	APIServerCPUSeconds float64 `json:"apiserver_cpu_seconds"`
	HostCPUSeconds      float64 `json:"host_cpu_seconds"`
	RedfishRequests     int     `json:"redfish_requests"`
	APIWrites           int     `json:"api_writes"`
	APIEvents           int     `json:"api_events"`
	APIReads            int     `json:"api_reads"`
	APIReads404         int     `json:"api_reads_404"`
	Conflicts           int     `json:"conflicts"`
}

// The names of the phases.
const (
	phaseOnboard     = "onboard"
	phaseIdle        = "idle"
	phaseClaim       = "claim"
	phaseMaintenance = "maintenance"
	phaseRelease     = "release"
)

// sampleOf is what all counters said at one moment.
type sampleOf struct {
	at      time.Time
	manager processCost
	// host is the CPU time of everything on this host, in seconds.
	host    float64
	api     apiMetrics
	redfish requests
	logSize int64
}

// phase is one phase between two samples. took is the time until its goal was reached, a little before the second.
type phase struct {
	name          string
	per           share
	took          time.Duration
	before, after sampleOf
}

// share is what a phase's counts are divided by.
type share struct {
	of    string
	count int
}

func (p *phase) seconds() float64 { return p.took.Seconds() }

// figures is everything that was measured in the phases.
type figures struct {
	phases []phase
	// last is the newest sample.
	last sampleOf
	// bound is how long it took until all claims were Bound. boundCPU and boundAPICPU are what the manager and the API server
	// used until then, in seconds.
	bound                 time.Duration
	boundCPU, boundAPICPU float64
	doubleBinds           int
	// visits are the maintenances, givenBack how long it took until every server had left state Maintenance, and passes what the
	// scheduler did meanwhile.
	visits    []*visit
	givenBack time.Duration
	passes    passes
}

// summarize makes the report; one sheet for each phase.
func summarize(s settings, f figures, sheets []sheet) report {
	r := report{Servers: s.Servers, Claims: s.Claims, DoubleBinds: f.doubleBinds, Settings: s}
	for i := range sheets {
		sheet, p := &sheets[i], &f.phases[i]
		cost := phaseCost{
			Name: p.name, Seconds: rounded(p.seconds()),
			ManagerCPUSeconds:   rounded(p.after.manager.CPUSeconds - p.before.manager.CPUSeconds),
			APIServerCPUSeconds: rounded(p.after.api.CPUSeconds - p.before.api.CPUSeconds),
			HostCPUSeconds:      rounded(p.after.host - p.before.host),
			RedfishRequests:     sheet.Redfish.total(), APIWrites: sheet.of(classWrite), APIEvents: sheet.of(classEvent),
			APIReads: sheet.of(classRead), APIReads404: sheet.absent(), Conflicts: sheet.conflicts(),
		}
		r.Phases = append(r.Phases, cost)
		r.Conflicts += cost.Conflicts
		r.ManagerPeakRSSMiB = rounded(float64(p.after.manager.PeakRSS) / (1 << 20))
		r.LogBytes = p.after.logSize
		r.take(cost, p.after.at.Sub(p.before.at).Seconds(), f)
	}
	return r
}

// take fills the keys that speak of one phase, whose counts cover window seconds.
func (r *report) take(cost phaseCost, window float64, f figures) {
	per := func(n int) float64 { return rounded(float64(n) / float64(r.Servers)) }
	switch cost.Name {
	case phaseOnboard:
		r.OnboardSeconds, r.ManagerCPUSeconds, r.APIServerCPUSeconds = cost.Seconds, cost.ManagerCPUSeconds, cost.APIServerCPUSeconds
		r.RedfishRequestsPerServer, r.APIWritesPerServer, r.APIEventsPerServer = per(cost.RedfishRequests), per(cost.APIWrites), per(cost.APIEvents)
		r.APIReadsPerServer, r.APIReads404PerServer = per(cost.APIReads), per(cost.APIReads404)
	case phaseIdle:
		hourly, seconds := rounded(float64(cost.RedfishRequests)/float64(r.Servers)*3600/window), rounded(window)
		r.IdleRedfishPerServerHour, r.IdleWindowSeconds = &hourly, &seconds
	case phaseClaim:
		bound, each := rounded(f.bound.Seconds()), rounded(f.boundCPU/float64(r.Claims))
		r.ClaimsBoundSeconds, r.ClaimsRunningSeconds, r.ManagerCPUSecondsPerClaim = &bound, &cost.Seconds, &each
		reads, cpu := rounded(float64(cost.APIReads)/float64(r.Claims)), rounded(f.boundAPICPU)
		r.APIReadsPerClaim, r.APIServerCPUUntilBound = &reads, &cpu
		if cpu > 0 {
			multiple := rounded(bound * float64(r.Settings.Cores) / cpu)
			r.ClaimsBoundMultiple = &multiple
		}
	case phaseRelease:
		r.ReleaseSeconds = &cost.Seconds
	}
}

// rounded keeps what is above the noise.
func rounded(v float64) float64 { return math.Round(v*1e4) / 1e4 }
