// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// expiry tells when certificates end, as they are on disk at the time of the scrape.
type expiry struct {
	// files are the PEM files by what their certificate is for.
	files map[string]string
	desc  *prometheus.Desc
}

// NewExpiry makes a collector of the ends of the certificates in PEM files, by what each is for. A file that cannot be read
// has no figure: before the first certificate there is none.
func NewExpiry(files map[string]string) prometheus.Collector {
	return &expiry{files: files, desc: prometheus.NewDesc("metalaw_certificate_expiry_timestamp_seconds",
		"When a certificate of the manager ends, in seconds since 1970: those of the webhooks and of the registry, and their "+
			"authorities; the earliest where there are several.", []string{"certificate"}, nil)}
}

// Describe implements prometheus.Collector.
func (e *expiry) Describe(to chan<- *prometheus.Desc) { to <- e.desc }

// Collect implements prometheus.Collector.
func (e *expiry) Collect(to chan<- prometheus.Metric) {
	for name, file := range e.files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if end, found := earliestEnd(text); found {
			to <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, float64(end.Unix()), name)
		}
	}
}

// earliestEnd is when the first of the certificates in a PEM text ends.
func earliestEnd(text []byte) (end time.Time, found bool) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		if !found || certificate.NotAfter.Before(end) {
			end, found = certificate.NotAfter, true
		}
	}
	return end, found
}
