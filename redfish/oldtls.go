// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// Since Go 1.22 a client offers no cipher suite with RSA key exchange by default. Since 1.23 it cannot read a certificate
// with a negative serial number. go.mod has such a certificate read (x509negativeserial), so that it can be refused here,
// for one BMC and with a reason.

var errNegativeSerial = errors.New("its certificate has a negative serial number, which TLS no longer takes; " +
	"renew the certificate, or set the annotation policy.metalaw.dev/old-tls of the BMC to negative-serial")

// oldSuites are those that a client offers by default, and those with RSA key exchange and AES.
func oldSuites() []uint16 {
	suites := []uint16{
		tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_256_CBC_SHA, tls.TLS_RSA_WITH_AES_128_CBC_SHA256,
	}
	for _, suite := range tls.CipherSuites() {
		if !slices.Contains(suites, suite.ID) {
			suites = append(suites, suite.ID)
		}
	}
	return suites
}

// checkSerials ends a handshake in which a certificate has a negative serial number, before any request is sent.
func checkSerials(state tls.ConnectionState) error {
	for _, c := range state.PeerCertificates {
		if c.SerialNumber != nil && c.SerialNumber.Sign() < 0 {
			return errNegativeSerial
		}
	}
	return nil
}

// alerted reports whether the BMC ended the handshake itself: it answers, and not by TLS as it is asked.
func alerted(err error) bool {
	ended, ok := errors.AsType[*net.OpError](err)
	return ok && ended.Op == "remote error"
}

// explainAlert names what the alert of a BMC stands for.
func explainAlert(err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "handshake failure"):
		return fmt.Errorf("the BMC takes no cipher suite that is offered; if it knows RSA key exchange alone, set its "+
			"annotation policy.metalaw.dev/old-tls to rsa-key-exchange, else update its firmware: %w", err)
	case strings.Contains(text, "protocol version"):
		return fmt.Errorf("the BMC knows no TLS 1.2; update its firmware: %w", err)
	}
	return err
}
