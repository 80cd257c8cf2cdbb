// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

func TestTheFirstReportWaitsForNeighbors(t *testing.T) {
	machine := func(vendor string) fstest.MapFS {
		return fstest.MapFS{
			"sys/class/dmi/id/sys_vendor":   {Data: []byte(vendor)},
			"sys/class/net/eth0/device/x":   {},
			"sys/class/net/eth0/carrier":    {Data: []byte("1\n")},
			"sys/class/net/eth1/device/x":   {},
			"sys/class/net/eth1/carrier":    {Data: []byte("0\n")},
			"sys/class/net/bond0/carrier":   {Data: []byte("1\n")},
			"sys/class/net/eth2/device/x":   {},
			"sys/class/net/eth2/carrier":    {Data: []byte("1\n")},
			"sys/class/net/eth2/operstate":  {Data: []byte("up\n")},
			"sys/class/net/lo/carrier":      {Data: []byte("1\n")},
			"sys/class/net/bonding_masters": {Data: []byte("bond0\n")},
		}
	}
	for name, c := range map[string]struct {
		vendor string
		heard  map[string]time.Duration
		err    error
		want   time.Duration
	}{
		"until all ports with a link have heard one": {"ACME", map[string]time.Duration{"eth0": 3 * time.Second, "eth2": 7 * time.Second}, nil, 7 * time.Second},
		"for half a minute at most":                  {"ACME", map[string]time.Duration{"eth0": 3 * time.Second}, nil, 31 * time.Second},
		"not on a virtual machine":                   {"QEMU", nil, nil, 0},
		"not where it cannot listen":                 {"ACME", nil, errors.New("no raw sockets"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				waited := false
				h := &metalprobe.Host{Root: machine(c.vendor), Neighbors: func() (ports []policyv1alpha1.LLDPInterface, err error) {
					for name, after := range c.heard {
						if time.Since(began) >= after {
							ports = append(ports, policyv1alpha1.LLDPInterface{Name: name})
						}
					}
					return ports, c.err
				}}
				awaitNeighbors(t.Context(), h, func() { waited = true })
				if got := time.Since(began); got != c.want || waited != (c.want > 0) {
					t.Errorf("waited %s (told %t), want %s", got, waited, c.want)
				}
			})
		})
	}
}
