// SPDX-License-Identifier: Apache-2.0

package lldp

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mdlayher/packet"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

const (
	etherType = 0x88cc
	// lookEvery is the pause between two looks for new ports.
	lookEvery = time.Second
	// maxFrame bounds what is read of a frame.
	maxFrame = 9216
	// maxNeighbors bounds the neighbours of one port; what comes beyond is not kept.
	maxNeighbors = 32
)

// nearestBridge is the group address that LLDP frames go to. No bridge passes them on.
var nearestBridge = net.HardwareAddr{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}

// Listener hears neighbours on all ports of the machine. It is safe for concurrent use.
type Listener struct {
	now func() time.Time

	mu        sync.Mutex
	neighbors map[string]map[string]heard
	failed    map[string]error
	listening map[string]bool
}

// heard is a neighbour and how long what it said is valid.
type heard struct {
	neighbor policyv1alpha1.LLDPNeighbor
	until    time.Time
}

// Listen begins to listen in the background until ctx ends, also on ports that appear later.
func Listen(ctx context.Context) *Listener {
	l := newListener(time.Now)
	go l.watch(ctx)
	return l
}

func newListener(now func() time.Time) *Listener {
	return &Listener{now: now, neighbors: map[string]map[string]heard{}, failed: map[string]error{}, listening: map[string]bool{}}
}

// Neighbors lists what was heard so far and is still valid, sorted by port. It waits for nothing: a neighbour that speaks later is
// part of the next answer. The error names the ports on which the machine cannot listen.
func (l *Listener) Neighbors() (ports []policyv1alpha1.LLDPInterface, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.neighbors)) {
		port := policyv1alpha1.LLDPInterface{Name: name}
		for _, key := range slices.Sorted(maps.Keys(l.neighbors[name])) {
			if known := l.neighbors[name][key]; l.now().Before(known.until) {
				port.Neighbors = append(port.Neighbors, known.neighbor)
			}
		}
		if len(port.Neighbors) > 0 {
			ports = append(ports, port)
		}
	}
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(l.failed)) {
		problems = append(problems, fmt.Sprintf("%s: %v", name, l.failed[name]))
	}
	if len(problems) > 0 {
		err = fmt.Errorf("listening for LLDP: %s", strings.Join(problems, "; "))
	}
	return ports, err
}

// watch opens each port once it is there and up: a socket on a port that is down ends at once.
func (l *Listener) watch(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		ports, _ := net.Interfaces() // asked again in a second
		for _, port := range ports {
			if port.Flags&net.FlagUp != 0 && isPort(port.Name) && l.begin(port.Name) {
				go l.listen(ctx, port)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// isPort says whether an interface has hardware behind it.
func isPort(name string) bool {
	_, err := os.Stat("/sys/class/net/" + name + "/device")
	return err == nil
}

// begin marks a port as listened to; false where it is already.
func (l *Listener) begin(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh := !l.listening[name]
	l.listening[name] = true
	return fresh
}

// listen reads frames of one port until ctx ends, or the port goes down or away; then watch may begin anew.
func (l *Listener) listen(ctx context.Context, port net.Interface) {
	err := l.receive(ctx, port)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.listening, port.Name)
	if err != nil && ctx.Err() == nil {
		l.failed[port.Name] = err
	}
}

func (l *Listener) receive(ctx context.Context, port net.Interface) error {
	conn, err := packet.Listen(&port, packet.Datagram, etherType, nil)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing was written
	if err := conn.JoinGroup(nearestBridge); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	l.mu.Lock()
	delete(l.failed, port.Name)
	l.mu.Unlock()
	frame := make([]byte, maxFrame)
	for {
		n, _, err := conn.ReadFrom(frame)
		if err != nil {
			return err
		}
		l.take(port.Name, frame[:n])
	}
}

// take remembers what a frame says. A frame that is no LLDP is dropped.
func (l *Listener) take(name string, pdu []byte) {
	neighbor, valid, err := Parse(pdu)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.neighbors[name]
	if known == nil {
		known = map[string]heard{}
		l.neighbors[name] = known
	}
	now := l.now()
	maps.DeleteFunc(known, func(_ string, h heard) bool { return !now.Before(h.until) })
	key := neighbor.ChassisID + "\x00" + neighbor.PortID
	if _, again := known[key]; !again && len(known) >= maxNeighbors {
		return
	}
	known[key] = heard{neighbor: neighbor, until: now.Add(valid)}
}
