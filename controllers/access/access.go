// SPDX-License-Identifier: Apache-2.0

// Package access finds out how a BMC is reached and trusted: its address from the Endpoint or the inline access, the
// credentials from the BMCSecret, and whom to trust from the policy and the manager's options.
package access

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/redfish"
)

// Error says that a BMC cannot be asked as its object stands. An API server that did not answer is another error.
type Error struct {
	// Reason is ReasonSecretMissing, ReasonEndpointMissing or ReasonProtocolUnsupported.
	Reason  string
	Message string
}

func (e *Error) Error() string { return e.Message }

// Option adds what the manager knows beyond the objects.
type Option func(*redfish.Endpoint)

// WithCABundle lets BMCs be trusted by these PEM certificates instead of the system's; empty changes nothing.
func WithCABundle(pem []byte) Option {
	return func(e *redfish.Endpoint) {
		if len(pem) > 0 {
			e.CABundle = pem
		}
	}
}

// Location is where a BMC is.
type Location struct {
	IP string
	// MACAddress is empty where nobody gave it.
	MACAddress string
}

// Locate returns where a BMC is: as its Endpoint says at this moment, or as its inline access says.
func Locate(ctx context.Context, r client.Reader, bmc *v1alpha1.BMC) (Location, error) {
	if inline := bmc.Spec.Access; inline != nil {
		return Location{IP: inline.IP, MACAddress: inline.MACAddress}, nil
	}
	if bmc.Spec.EndpointRef == nil {
		return Location{}, &Error{v1alpha1.ReasonEndpointMissing, "the BMC has neither access nor endpointRef; set one of them"}
	}
	endpoint := &v1alpha1.Endpoint{}
	name := bmc.Spec.EndpointRef.Name
	if err := r.Get(ctx, types.NamespacedName{Name: name}, endpoint); err != nil {
		if apierrors.IsNotFound(err) {
			return Location{}, &Error{v1alpha1.ReasonEndpointMissing,
				fmt.Sprintf("the Endpoint %q that endpointRef names does not exist; create it, or delete the BMC", name)}
		}
		return Location{}, fmt.Errorf("get Endpoint %s: %w", name, err)
	}
	return Location{IP: endpoint.Spec.IP, MACAddress: endpoint.Spec.MACAddress}, nil
}

// Resolve returns how a BMC is reached, from what is written at this moment. It asks no hardware. The error is an *Error
// where an object is missing or unusable.
func Resolve(ctx context.Context, r client.Reader, bmc *v1alpha1.BMC, settings bundle.Settings, options ...Option) (hardware.Target, error) {
	location, err := Locate(ctx, r, bmc)
	if err != nil {
		return hardware.Target{}, err
	}
	endpoint, err := reach(bmc.Spec.Protocol, location.IP, settings, options)
	if err != nil {
		return hardware.Target{}, err
	}
	secret, credentials, err := readSecret(ctx, r, bmc.Spec.BMCSecretRef.Name)
	if err != nil {
		return hardware.Target{}, err
	}
	if endpoint, err = Trust(endpoint, bmc, secret); err != nil {
		return hardware.Target{}, err
	}
	// A certificate is issued for a name; where it is checked, the BMC is asked by that name.
	if bmc.Spec.Hostname != "" && endpoint.Scheme == schemeHTTPS && !endpoint.InsecureSkipVerify && endpoint.CertificateSHA256 == "" {
		endpoint.Address = bmc.Spec.Hostname
	}
	return hardware.Target{Key: string(bmc.UID), Endpoint: endpoint, Credentials: credentials}, nil
}

const (
	schemeHTTPS = string(v1alpha1.ProtocolSchemeHTTPS)
	portHTTPS   = 443
	portHTTP    = 80
)

func reach(p v1alpha1.Protocol, address string, settings bundle.Settings, options []Option) (redfish.Endpoint, error) {
	switch p.Name {
	case v1alpha1.ProtocolRedfish, v1alpha1.ProtocolRedfishLocal, v1alpha1.ProtocolRedfishWithRegistryPatch:
	default:
		return redfish.Endpoint{}, &Error{v1alpha1.ReasonProtocolUnsupported,
			fmt.Sprintf("the protocol %q is reserved and not spoken, so that the BMC is never asked; set spec.protocol.name to Redfish", p.Name)}
	}
	return Reach(address, p.Scheme, p.Port, settings, options...), nil
}

// Reach says how an address is asked: https on 443 unless said otherwise, with certificates checked unless the policy
// says otherwise.
func Reach(address string, scheme v1alpha1.ProtocolScheme, port int32, settings bundle.Settings, options ...Option) redfish.Endpoint {
	e := redfish.Endpoint{Address: address, Port: int(port), Scheme: string(scheme)}
	if e.Scheme == "" {
		e.Scheme = schemeHTTPS
	}
	if e.Port == 0 {
		e.Port = portHTTP
		if e.Scheme == schemeHTTPS {
			e.Port = portHTTPS
		}
	}
	e.InsecureSkipVerify = settings.BMCTLS == bundle.TLSInsecure
	for _, option := range options {
		option(&e)
	}
	return e
}

// readSecret reads a BMCSecret. The error is an *Error where it does not exist or lacks a user name or password.
func readSecret(ctx context.Context, r client.Reader, name string) (*v1alpha1.BMCSecret, redfish.Credentials, error) {
	secret := &v1alpha1.BMCSecret{}
	if err := r.Get(ctx, types.NamespacedName{Name: name}, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, redfish.Credentials{}, &Error{v1alpha1.ReasonSecretMissing,
				fmt.Sprintf("the BMCSecret %q does not exist; create it with the keys username and password", name)}
		}
		return nil, redfish.Credentials{}, fmt.Errorf("get BMCSecret %s: %w", name, err)
	}
	c := redfish.Credentials{
		Username: value(secret, v1alpha1.BMCSecretUsernameKey),
		Password: value(secret, v1alpha1.BMCSecretPasswordKey),
	}
	if c.Username == "" {
		return nil, redfish.Credentials{}, &Error{v1alpha1.ReasonSecretMissing,
			fmt.Sprintf("the BMCSecret %q has no key username; add it", name)}
	}
	if !has(secret, v1alpha1.BMCSecretPasswordKey) {
		return nil, redfish.Credentials{}, &Error{v1alpha1.ReasonSecretMissing,
			fmt.Sprintf("the BMCSecret %q has no key password; add it", name)}
	}
	return secret, c, nil
}

// value prefers stringData, as an API server would when it merges the two.
func value(s *v1alpha1.BMCSecret, key string) string {
	if text, ok := s.StringData[key]; ok {
		return text
	}
	return string(s.Data[key])
}

func has(s *v1alpha1.BMCSecret, key string) bool {
	_, plain := s.StringData[key]
	_, encoded := s.Data[key]
	return plain || encoded
}
