// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
)

func (e *Env) etcdSocket() string { return filepath.Join(e.dir, "etcd.sock") }

// startEtcd listens on a socket file, which needs no port and is closed to other users.
func (e *Env) startEtcd(ctx context.Context) error {
	if err := os.Remove(e.etcdSocket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	client := "unix://" + e.etcdSocket()
	var err error
	e.etcd, err = startProcess("etcd", e.LogDir(), e.bins.etcd,
		"--data-dir="+filepath.Join(e.dir, "etcd"),
		"--listen-client-urls="+client,
		"--advertise-client-urls="+client,
		"--listen-peer-urls=http://127.0.0.1:0",
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
	if err != nil {
		return err
	}
	return e.etcd.awaitReady(ctx, e.opts.StartTimeout, func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", e.etcdSocket())
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func (e *Env) startAPIServer(ctx context.Context) error {
	args, err := e.apiServerArgs()
	if err != nil {
		return err
	}
	if e.apiserver, err = startProcess("kube-apiserver", e.LogDir(), e.bins.apiserver, args...); err != nil {
		return err
	}
	httpClient, err := rest.HTTPClientFor(e.Config)
	if err != nil {
		return err
	}
	return e.apiserver.awaitReady(ctx, e.opts.StartTimeout, func(ctx context.Context) error {
		return askHealth(ctx, httpClient, e.URL()+"/readyz")
	})
}

func (e *Env) apiServerArgs() ([]string, error) {
	tlsCert, tlsKey, err := e.servingPair("kube-apiserver", "kubernetes.default.svc")
	if err != nil {
		return nil, err
	}
	tokenKey, err := e.serviceAccountKey()
	if err != nil {
		return nil, err
	}
	args := []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", e.apiPort.number),
		"--permit-port-sharing",
		"--etcd-servers=unix://" + e.etcdSocket(),
		"--tls-cert-file=" + tlsCert,
		"--tls-private-key-file=" + tlsKey,
		"--client-ca-file=" + e.pki.path("ca.crt"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + tokenKey,
		"--service-account-signing-key-file=" + tokenKey,
		"--service-cluster-ip-range=10.0.0.0/24",
		"--allow-privileged",
		// The kubernetes Service cannot have a loopback address as its endpoint.
		"--endpoint-reconciler-type=none",
	}
	return append(args, e.opts.APIServerArgs...), nil
}

// startControllers runs the program of test/controlplane/controllers: without it an API server would behave unlike a
// cluster towards an operator. It has no controller that makes pods.
func (e *Env) startControllers(ctx context.Context) error {
	kubeconfig, err := e.KubeconfigFor(User{Name: "system:kube-controller-manager", Groups: []string{"system:masters"}})
	if err != nil {
		return err
	}
	ready := filepath.Join(e.dir, "controllers.ready")
	if err := os.Remove(ready); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	e.controllers, err = startProcess("controllers", e.LogDir(), e.bins.controllers, "--kubeconfig="+kubeconfig, "--ready="+ready)
	if err != nil {
		return err
	}
	return e.controllers.awaitReady(ctx, e.opts.StartTimeout, func(context.Context) error {
		_, err := os.Stat(ready)
		return err
	})
}

// RestartAPIServer kills the API server and starts it again at the same address. Every watch and
// every request in flight is cut, as in a crash.
func (e *Env) RestartAPIServer(ctx context.Context) error {
	e.apiserver.kill()
	return e.startAPIServer(ctx)
}

// RestartEtcd kills etcd and starts it again on the same data. What the API server acknowledged is
// still there: only a crash of the whole machine could lose it.
func (e *Env) RestartEtcd(ctx context.Context) error {
	e.etcd.kill()
	return e.startEtcd(ctx)
}

// restartControllers makes the garbage collector see kinds at once that were added while it ran. By itself it looks
// every 30 seconds.
func (e *Env) restartControllers(ctx context.Context) error {
	e.controllers.kill()
	return e.startControllers(ctx)
}

func askHealth(ctx context.Context, httpClient *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	return fmt.Errorf("GET %s: %s: %s", url, resp.Status, body)
}

// servingPair is the component's certificate, made at its first start.
func (e *Env) servingPair(name string, dnsNames ...string) (certPath, keyPath string, err error) {
	certPath, keyPath = e.pki.path(name+".crt"), e.pki.path(name+".key")
	if _, err := os.Stat(keyPath); err == nil {
		return certPath, keyPath, nil
	}
	certPEM, keyPEM, err := e.pki.server(dnsNames...)
	if err != nil {
		return "", "", err
	}
	return e.pki.write(name, certPEM, keyPEM)
}

// serviceAccountKey is the key that signs and verifies service account tokens, made once, so that
// tokens survive restarts.
func (e *Env) serviceAccountKey() (string, error) {
	_, keyPath, err := e.servingPair("service-account", "service-account")
	return keyPath, err
}
