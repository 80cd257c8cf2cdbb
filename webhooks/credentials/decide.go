// SPDX-License-Identifier: Apache-2.0

// Package credentials judges who decides where the password of a BMCSecret is sent.
package credentials

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/bmctrust"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/webhooks/review"
)

// Mode says what admission does with a change that takes the verb use, by a user who lacks it.
type Mode string

// The modes. The flag --credential-use has these words.
const (
	Off  Mode = "off"
	Warn Mode = "warn"
	On   Mode = "on"
)

// Modes are the words of the flag, in the order in which they are named.
func Modes() []Mode { return []Mode{Off, Warn, On} }

// Use is a BMCSecret whose password a change sends to a place.
type Use struct {
	Secret string
	// Path is the field by which the change does so.
	Path *field.Path
}

var (
	bmcSecretPath       = field.NewPath("spec", "bmcSecretRef")
	inlineSecretPath    = field.NewPath("spec", "bmc", "bmcSecretRef")
	endpointAddressPath = field.NewPath("spec", "ip")
	endpointMACPath     = field.NewPath("spec", "macAddress")
	endpointNamePath    = field.NewPath("metadata", "name")
	acceptPath          = review.AnnotationsPath.Key(v1alpha1.AcceptCertificateAnnotation)
	oldTLSPath          = review.AnnotationsPath.Key(v1alpha1.OldTLSAnnotation)
)

// ofBMC is what the creation or a change of a BMC uses. was is nil on a creation.
func ofBMC(was, is *v1alpha1.BMC) []Use {
	secret := is.Spec.BMCSecretRef.Name
	_, accepts := review.Written(was, is, v1alpha1.AcceptCertificateAnnotation)
	_, weakens := review.Written(was, is, v1alpha1.OldTLSAnnotation)
	path := bmcSecretPath
	switch {
	case secret == "":
		return nil
	case was == nil:
	case was.Spec.BMCSecretRef != is.Spec.BMCSecretRef:
	case !equality.Semantic.DeepEqual(was.Spec.Access, is.Spec.Access):
		path = field.NewPath("spec", "access")
	case !equality.Semantic.DeepEqual(was.Spec.EndpointRef, is.Spec.EndpointRef):
		path = field.NewPath("spec", "endpointRef")
	case was.Spec.Protocol != is.Spec.Protocol:
		path = field.NewPath("spec", "protocol")
	case was.Spec.Hostname != is.Spec.Hostname:
		path = field.NewPath("spec", "hostname")
	case !equality.Semantic.DeepEqual(was.Spec.Trust, is.Spec.Trust):
		path = field.NewPath("spec", "trust")
	case accepts:
		path = acceptPath
	case weakens:
		path = oldTLSPath
	default:
		return nil
	}
	return []Use{{secret, path}}
}

// ofServer is what the creation or a change of a Server with an inline BMC uses. was is nil on a creation.
func ofServer(was, is *v1alpha1.Server) []Use {
	if is.Spec.BMC == nil || is.Spec.BMC.BMCSecretRef.Name == "" {
		return nil
	}
	if was != nil && was.Spec.BMC != nil && *was.Spec.BMC == *is.Spec.BMC {
		return nil
	}
	return []Use{{is.Spec.BMC.BMCSecretRef.Name, inlineSecretPath}}
}

// reached is what an Endpoint leads to.
type reached struct {
	// bmcs refer to the Endpoint.
	bmcs []v1alpha1.BMC
	// secrets are the BMCSecrets of those and that of the Endpoint's name, by name. One that is not known is left out.
	secrets map[string]*v1alpha1.BMCSecret
	// authority says that the manager's own authority verifies BMCs for which nothing else is named.
	authority bool
}

// ofEndpoint is what the creation or a change of an Endpoint uses. A password that only a verified BMC gets goes
// nowhere else, whatever the address is. Where no BMC refers to the Endpoint, the manager makes one with the BMCSecret of
// its name.
func ofEndpoint(was, is *v1alpha1.Endpoint, to reached) []Use {
	path := endpointAddressPath
	switch {
	case was == nil:
		path = endpointNamePath
	case fieldindex.IPKey(was.Spec.IP) != fieldindex.IPKey(is.Spec.IP):
	case len(to.bmcs) == 0 && fieldindex.MACKey(was.Spec.MACAddress) != fieldindex.MACKey(is.Spec.MACAddress):
		path = endpointMACPath
	default:
		return nil
	}
	if len(to.bmcs) == 0 {
		if own := to.secrets[is.Name]; own != nil && !bmctrust.Named(nil, own) {
			return []Use{{is.Name, path}}
		}
		return nil
	}
	var all []Use
	for i := range to.bmcs {
		b := &to.bmcs[i]
		secret := b.Spec.BMCSecretRef.Name
		verified := bmctrust.Named(b, to.secrets[secret]) ||
			to.authority && b.Spec.Protocol.Scheme != v1alpha1.ProtocolSchemeHTTP
		if secret != "" && !verified && !slices.Contains(all, Use{secret, path}) {
			all = append(all, Use{secret, path})
		}
	}
	return all
}
