// SPDX-License-Identifier: Apache-2.0

package emulated

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/metalaw/metalaw/redfish/emulator"
)

const (
	maxISO    = 256 << 20
	isoWithin = time.Minute
)

// readISO reads an ISO as the BMC of a machine does: from the BMC's own address.
func readISO(m *emulator.Machine, url string) func(context.Context) ([]byte, error) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(m.Address())}, Timeout: isoWithin}
	return func(ctx context.Context) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, isoWithin)
		defer cancel()
		transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return nil, err
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return nil, err
		}
		defer func() { _ = response.Body.Close() }() // it was only read
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("the ISO was answered with status %d", response.StatusCode)
		}
		return io.ReadAll(io.LimitReader(response.Body, maxISO))
	}
}
