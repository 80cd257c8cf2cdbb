// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"context"
	"io/fs"
	"time"

	"github.com/metalaw/metalaw/metalprobe"
)

const (
	// neighborWait is how long the first report waits for LLDP: switches speak every 30 seconds unless they are told otherwise.
	neighborWait = 31 * time.Second
	// neighborLook is how often the agent looks whether all ports have heard a neighbour.
	neighborLook = time.Second
)

// awaitNeighbors waits until each port with a link has heard a neighbour by LLDP, for half a minute at most: a machine may be switched
// off right after its first report. It does not wait on a virtual machine, whose host passes no LLDP on. begin is told that it waits.
func awaitNeighbors(ctx context.Context, h *metalprobe.Host, begin func()) {
	if h.Neighbors == nil || h.VirtualMachine() || deafPorts(h) == 0 {
		return
	}
	begin()
	for end := time.Now().Add(neighborWait); time.Now().Before(end) && deafPorts(h) > 0; {
		if !metalprobe.Wait(ctx, neighborLook) {
			return
		}
	}
}

// deafPorts counts the ports with a link that have heard no neighbour.
func deafPorts(h *metalprobe.Host) int {
	heard := map[string]bool{}
	ports, err := h.Neighbors()
	if err != nil && len(ports) == 0 {
		return 0 // nothing will be heard
	}
	for _, port := range ports {
		heard[port.Name] = true
	}
	linked, _ := fs.Glob(h.Root, "sys/class/net/*/carrier") // the pattern is right
	deaf := 0
	for _, file := range linked {
		name := file[len("sys/class/net/") : len(file)-len("/carrier")]
		state, err := fs.ReadFile(h.Root, file)
		if err != nil || heard[name] || !bytes.HasPrefix(state, []byte("1")) {
			continue
		}
		if _, err := fs.Stat(h.Root, "sys/class/net/"+name+"/device"); err == nil {
			deaf++
		}
	}
	return deaf
}
