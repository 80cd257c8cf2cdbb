// SPDX-License-Identifier: Apache-2.0

package env

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// User is somebody the API server knows by a client certificate. Rights come from RBAC alone.
type User struct {
	Name   string
	Groups []string
}

// Manager is the service account that the shipped manifests run the manager under.
var Manager = ServiceAccount("metalaw-system", "metalaw-manager")

// ServiceAccount is the user that a pod with this service account would be.
func ServiceAccount(namespace, name string) User {
	return User{
		Name:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

// ConfigFor returns a connection as the user, without client-side rate limit. Each call signs a
// new certificate.
func (e *Env) ConfigFor(user User) (*rest.Config, error) {
	certPEM, keyPEM, err := e.pki.client(user)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: e.URL(),
		QPS:  -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   e.pki.caPEM,
			CertData: certPEM,
			KeyData:  keyPEM,
		},
	}, nil
}

// KubeconfigFor writes a kubeconfig for the user and returns its path. A repeated call for the
// same user and groups replaces the file.
func (e *Env) KubeconfigFor(user User) (string, error) {
	certPEM, keyPEM, err := e.pki.client(user)
	if err != nil {
		return "", err
	}
	const name = "metalaw"
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: e.URL(), CertificateAuthorityData: e.pki.caPEM}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: certPEM, ClientKeyData: keyPEM}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
	path := filepath.Join(e.dir, user.fileName()+".kubeconfig")
	if err := clientcmd.WriteToFile(config, path); err != nil {
		return "", fmt.Errorf("write the kubeconfig of %s: %w", user.Name, err)
	}
	return path, os.Chmod(path, 0o600)
}

// fileName is the user's name where that is a plain word, and a digest where it is not.
func (u User) fileName() string {
	if u.Name == "admin" {
		return u.Name
	}
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q", append([]string{u.Name}, u.Groups...))))
	return "user-" + hex.EncodeToString(sum[:6])
}

// URL is the address of the API server; it stays the same across restarts.
func (e *Env) URL() string { return fmt.Sprintf("https://127.0.0.1:%d", e.apiPort.number) }
