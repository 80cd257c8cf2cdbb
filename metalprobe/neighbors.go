// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"time"
)

const (
	// neighborWait is how long the first report waits for LLDP: switches speak every 30 seconds unless they are told otherwise.
	neighborWait = 31 * time.Second
	// neighborLook is how often the agent looks whether all ports have heard a neighbour.
	neighborLook = time.Second
)

// AwaitNeighbors waits until each port with a link has heard a neighbour by LLDP, for half a minute at most: a machine may be switched
// off right after its first report. It does not wait on a virtual machine, whose host passes no LLDP on.
func (h *Host) AwaitNeighbors(ctx context.Context) {
	if h.Neighbors == nil || h.virtualMachine() {
		return
	}
	for end := time.Now().Add(neighborWait); time.Now().Before(end) && h.deafPorts() > 0; {
		if !Wait(ctx, neighborLook) {
			return
		}
	}
}

// deafPorts counts the ports with a link that have heard no neighbour.
func (h *Host) deafPorts() int {
	heard := map[string]bool{}
	ports, err := h.Neighbors()
	for _, port := range ports {
		heard[port.Name] = true
	}
	names, wrong := h.list("sys/class/net")
	if wrong != nil || (err != nil && len(ports) == 0) {
		return 0 // nothing will be heard
	}
	deaf := 0
	for _, name := range names {
		dir := "sys/class/net/" + name
		if !heard[name] && h.exists(dir+"/device") && h.word(dir+"/carrier") == "1" {
			deaf++
		}
	}
	return deaf
}
