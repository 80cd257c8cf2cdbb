// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestABreakerThatIsOpenStillNamesTheCertificate(t *testing.T) {
	f := newTLSFake(t)
	endpoint := f.endpoint()
	endpoint.CertificateSHA256 = strings.Repeat("0", 64)
	client := poolOf(t, PoolOptions{BreakerThreshold: 1, BreakerBase: time.Hour, BreakerMax: time.Hour}).Get("bmc", endpoint, login0)
	for range 2 {
		_, err := client.Manager(t.Context())
		var refused *CertificateError
		if !errors.As(err, &refused) || refused.Shown == "" {
			t.Errorf("error %v", err)
		}
	}
}
