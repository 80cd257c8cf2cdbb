// SPDX-License-Identifier: Apache-2.0

package bootserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/metalaw/metalaw/internal/peers"
)

// TLSConfig is for machines and BMCs. The firmware of many machines offers RSA key exchange only, which Go leaves out unless
// it is named: Debian's OVMF of 2022 has DHE and RSA, and Go has no DHE.
func TLSConfig(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: certificate,
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
			tls.TLS_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_RSA_WITH_AES_128_GCM_SHA256, //nolint:gosec // clients that have better ones use those
		},
	}
}

const (
	headerLimit = 10 * time.Second
	idleLimit   = 2 * time.Minute
	// writeLimit bounds one answer: a BMC with 1 MB/s takes a minute for an ISO of 60 MB.
	writeLimit = 30 * time.Minute
)

// connectionLimit bounds the connections that are open at once, of which one source may hold half.
const connectionLimit = 2048

// Serve answers until ctx ends, which is no error. A nil configuration serves without TLS.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, config *tls.Config, log *slog.Logger) error {
	return serve(ctx, peers.Listen(listener, connectionLimit), handler, config, log)
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler, config *tls.Config, log *slog.Logger) error {
	server := &http.Server{
		Handler: quiet(steady(handler)), ReadHeaderTimeout: headerLimit, ReadTimeout: headerLimit, WriteTimeout: writeLimit,
		IdleTimeout: idleLimit, MaxHeaderBytes: 16 << 10, TLSConfig: config, Protocols: new(http.Protocols),
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	server.Protocols.SetHTTP1(true) // a connection of HTTP/2 has many requests at once, which no limit of connections bounds
	ended := make(chan error, 1)
	go func() {
		if config != nil {
			ended <- server.ServeTLS(listener, "", "")
		} else {
			ended <- server.Serve(listener)
		}
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("serving boots on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(closing); err != nil {
		_ = server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// quiet keeps paths with secrets in them out of what intermediaries may store, and answers nothing but GET and HEAD.
func quiet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}
