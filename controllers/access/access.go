// SPDX-License-Identifier: Apache-2.0

// Package access finds out how a BMC is reached and trusted: its address from the Endpoint or the inline access, the
// credentials from the BMCSecret, and whom to trust from the policy and the manager's options.
package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/bmctrust"
	"github.com/metalaw/metalaw/redfish"
)

// Error says that a BMC cannot be asked as its object stands. An API server that did not answer is another error.
type Error struct {
	// Reason is ReasonSecretMissing, ReasonEndpointMissing or ReasonProtocolUnsupported.
	Reason  string
	Message string
}

func (e *Error) Error() string { return e.Message }

// Location is where a BMC is.
type Location struct {
	IP string
	// MACAddress may be empty.
	MACAddress string
}

// Locate returns where a BMC is: as its Endpoint says at this moment, or as its inline access says.
func Locate(ctx context.Context, r client.Reader, bmc *v1alpha1.BMC) (Location, error) {
	if inline := bmc.Spec.Access; inline != nil {
		if inline.IP == "" {
			return Location{}, &Error{v1alpha1.ReasonEndpointMissing, "the BMC has no address (spec.access.ip is empty), so " +
				"that it is never asked; access is immutable: delete the BMC and create it with an address"}
		}
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
// where an object is missing or unusable. The BMC is trusted by the PEM certificates of caBundle instead of the system's;
// empty changes nothing.
func Resolve(ctx context.Context, r client.Reader, bmc *v1alpha1.BMC, settings bundle.Settings, caBundle []byte) (hardware.Target, error) {
	location, err := Locate(ctx, r, bmc)
	if err != nil {
		return hardware.Target{}, err
	}
	p := bmc.Spec.Protocol
	switch p.Name {
	case v1alpha1.ProtocolRedfish, v1alpha1.ProtocolRedfishLocal, v1alpha1.ProtocolRedfishWithRegistryPatch:
	default:
		return hardware.Target{}, &Error{v1alpha1.ReasonProtocolUnsupported,
			fmt.Sprintf("the protocol %q is reserved and not spoken, so that the BMC is never asked; set spec.protocol.name to Redfish", p.Name)}
	}
	endpoint := Reach(location.IP, p.Scheme, p.Port, settings, caBundle)
	secret, credentials, err := readSecret(ctx, r, bmc.Spec.BMCSecretRef.Name)
	if err != nil {
		return hardware.Target{}, err
	}
	if endpoint, err = Trust(endpoint, bmc, secret); err != nil {
		return hardware.Target{}, err
	}
	if endpoint.OldTLS, err = oldTLS(bmc); err != nil {
		return hardware.Target{}, err
	}
	// A certificate is issued for a name; where it is checked, the BMC is asked by that name.
	if bmc.Spec.Hostname != "" && endpoint.Scheme == schemeHTTPS && !endpoint.InsecureSkipVerify && endpoint.CertificateSHA256 == "" {
		endpoint.Address = bmc.Spec.Hostname
	}
	return hardware.Target{Key: string(bmc.UID), Endpoint: endpoint, Credentials: credentials}, nil
}

const schemeHTTPS = string(v1alpha1.ProtocolSchemeHTTPS)

// Reach says how an address is asked: https on 443 unless said otherwise, with certificates checked unless the policy
// says otherwise.
func Reach(address string, scheme v1alpha1.ProtocolScheme, port int32, settings bundle.Settings, caBundle []byte) redfish.Endpoint {
	scheme = cmp.Or(scheme, v1alpha1.ProtocolSchemeHTTPS)
	usual := int32(80)
	if scheme == v1alpha1.ProtocolSchemeHTTPS {
		usual = 443
	}
	e := redfish.Endpoint{Address: address, Port: int(cmp.Or(port, usual)), Scheme: string(scheme),
		InsecureSkipVerify: settings.BMCTLS == bundle.TLSInsecure}
	if len(caBundle) > 0 {
		e.CABundle = caBundle
	}
	return e
}

// readSecret reads a BMCSecret, without white space around its credentials: a file or an echo leaves a line break
// there. The error is an *Error where it does not exist or lacks a user name or password.
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
		Username: strings.TrimSpace(bmctrust.Value(secret, v1alpha1.BMCSecretUsernameKey)),
		Password: strings.TrimSpace(bmctrust.Value(secret, v1alpha1.BMCSecretPasswordKey)),
	}
	var missing string
	switch {
	case c.Username == "":
		missing = v1alpha1.BMCSecretUsernameKey
	case !has(secret, v1alpha1.BMCSecretPasswordKey):
		missing = v1alpha1.BMCSecretPasswordKey
	default:
		return secret, c, nil
	}
	return nil, redfish.Credentials{}, &Error{v1alpha1.ReasonSecretMissing, fmt.Sprintf("the BMCSecret %q has no key %s; add it", name, missing)}
}

func has(s *v1alpha1.BMCSecret, key string) bool {
	_, plain := s.StringData[key]
	_, encoded := s.Data[key]
	return plain || encoded
}

// ephemeral is our own end of a connection, whose port differs from one attempt to the next.
var ephemeral = regexp.MustCompile(`(\d+\.\d+\.\d+\.\d+|\[[:.%\w]*\]):\d+->`)

// Describe says why a BMC cannot be used, in words that stay the same while the cause does, so that a status which holds
// them is not written again with every attempt. news is false where the BMC was not even asked, because of what
// happened before: whatever was said then says more.
func Describe(err error) (message string, news bool) {
	var unreachable *redfish.UnreachableError
	var auth *redfish.AuthError
	switch {
	case err == nil:
		return "", true
	case errors.As(err, &unreachable):
		plain := *unreachable
		plain.RetryAt = time.Time{}
		return ephemeral.ReplaceAllString(plain.Error(), ""), unreachable.RetryAt.IsZero()
	case errors.As(err, &auth):
		plain := *auth
		plain.Until = time.Time{}
		message = plain.Error()
		if !auth.Until.IsZero() {
			message += "; correct the BMCSecret, which is then tried at once; so that no account is locked, " +
				"the same credentials are tried again only after " + toTheMinute(auth.Until)
		}
		return message, true
	}
	return err.Error(), true
}

// toTheMinute is the end of the minute in which a moment lies, so that a text which holds it changes seldom.
func toTheMinute(at time.Time) string {
	return at.UTC().Add(time.Minute - 1).Truncate(time.Minute).Format("2006-01-02 15:04 MST")
}

// Retry says how refused credentials that were put right at the BMC are tried before their pause has ended: by an annotation
// on the BMC object of that name. It says nothing of another error, nor where there is no such object.
func Retry(err error, bmc string) string {
	var auth *redfish.AuthError
	if bmc == "" || !errors.As(err, &auth) || auth.Until.IsZero() {
		return ""
	}
	return "; if they were corrected at the BMC, have them tried sooner by annotation " +
		v1alpha1.OperationAnnotation + "=" + v1alpha1.OperationRetry + " on BMC " + bmc
}
