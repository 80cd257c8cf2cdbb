// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/metalaw/metalaw/internal/peers"
	"github.com/metalaw/metalaw/internal/servingcert"
)

const (
	// drainTime is how long running requests may take once the manager stops.
	drainTime = 10 * time.Second
	// headerTime is how long a connection may take for its handshake and for the headers of a request, requestTime for a
	// whole request, and idleTime for the next one.
	headerTime  = 5 * time.Second
	requestTime = 20 * time.Second
	idleTime    = 90 * time.Second
	// maxHeader bounds the headers of a request, in bytes.
	maxHeader = 16 << 10
	// certificateRetry is how often a certificate that is not there yet is looked for.
	certificateRetry = time.Second
)

// getCertificate gives a serving certificate, as tls.Config.GetCertificate does.
type getCertificate = servingcert.Get

var errNoCertificate = errors.New("probe registry: no serving certificate yet; is the certificate directory being filled?")

// servingCertificate implements tls.Config.GetCertificate, once there is a certificate.
func (r *Registry) servingCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if get := r.certificate.Load(); get != nil {
		return (*get)(hello)
	}
	return nil, errNoCertificate
}

// Ready is a readiness check: it fails as long as there is no certificate to serve with.
func (r *Registry) Ready(*http.Request) error {
	if r.options.Plaintext || r.certificate.Load() != nil {
		return nil
	}
	return errNoCertificate
}

// watchCertificate waits for the files of the certificate directory and follows their changes until ctx ends.
func (r *Registry) watchCertificate(ctx context.Context) {
	dir := r.options.CertDir
	for told := false; ; told = true {
		watcher, err := certwatcher.New(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		if err == nil {
			get := servingcert.For(dir, r.options.Hosts, watcher.GetCertificate, r.options.Log)
			r.certificate.Store(&get)
			if err = watcher.Start(ctx); err == nil || ctx.Err() != nil {
				return
			}
		}
		if !told {
			r.options.Log.Warn("no serving certificate yet", "dir", dir, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(certificateRetry):
		}
	}
}

// Start listens and serves until ctx ends, then lets running requests finish.
func (r *Registry) Start(ctx context.Context) error {
	listener := r.options.Listener
	if listener == nil {
		var err error
		if listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", r.options.Address); err != nil {
			return fmt.Errorf("probe registry: %w", err)
		}
	}
	listener = peers.Listen(listener, r.options.Connections)
	server := &http.Server{
		Handler:           r,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       requestTime,
		WriteTimeout:      requestTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		// Port scans and broken handshakes are no news.
		ErrorLog: slog.NewLogLogger(r.options.Log.Handler(), slog.LevelDebug),
	}
	background, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { r.storePhases(background) })
	if r.options.GetCertificate != nil || r.options.CertDir != "" {
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: r.servingCertificate}
		if r.options.GetCertificate == nil {
			running.Go(func() { r.watchCertificate(background) })
		}
	}
	running.Go(func() {
		<-background.Done()
		draining, cancel := context.WithTimeout(context.WithoutCancel(background), drainTime)
		defer cancel()
		if err := server.Shutdown(draining); err != nil {
			_ = server.Close()
		}
	})
	var err error
	if server.TLSConfig != nil {
		err = server.ServeTLS(listener, "", "")
	} else {
		err = server.Serve(listener)
	}
	stop()
	running.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("probe registry: %w", err)
}
