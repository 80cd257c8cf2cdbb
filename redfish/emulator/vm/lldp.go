// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"time"
)

// Neighbour is a switch at the other end of a cable.
type Neighbour struct {
	ChassisID  string
	PortID     string
	SystemName string
}

// announceEvery is how often a neighbour speaks. Switches take 30 s; a boot in a test does not wait for that.
const announceEvery = time.Second

// frame is the Ethernet frame in which the neighbour announces itself.
func (n Neighbour) frame() []byte {
	frame := []byte{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e, 0x02, 0x00, 0x5e, 0x00, 0x00, 0x01, 0x88, 0xcc}
	tlv := func(kind int, value []byte) {
		frame = binary.BigEndian.AppendUint16(frame, uint16(kind<<9|len(value)))
		frame = append(frame, value...)
	}
	tlv(1, append([]byte{7}, n.ChassisID...)) // locally assigned
	tlv(2, append([]byte{5}, n.PortID...))    // interface name
	tlv(3, []byte{0, 120})
	if n.SystemName != "" {
		tlv(5, []byte(n.SystemName))
	}
	tlv(0, nil)
	if short := 60 - len(frame); short > 0 {
		frame = append(frame, make([]byte, short)...)
	}
	return frame
}

// announce sends the neighbour's frames into a guest until ctx ends. What cannot be sent is lost, as on a wire. It takes what
// the guest sends and drops it: QEMU uses a whole core to repeat a frame that nobody takes.
func (n Neighbour) announce(ctx context.Context, own, guest string) error {
	wire, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: own, Net: "unixgram"})
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, wire) // until wire is closed
	}()
	go func() {
		defer func() { _ = wire.Close() }()
		ticker := time.NewTicker(announceEvery)
		defer ticker.Stop()
		for frame, to := n.frame(), (&net.UnixAddr{Name: guest, Net: "unixgram"}); ; {
			_, _ = wire.WriteToUnix(frame, to)
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return nil
}
