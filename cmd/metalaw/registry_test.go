// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// The registry stores signs of life for as long as the policies listen for them.
func TestThePoliciesWaitAsLongForAWipeAsTheAPISays(t *testing.T) {
	now := time.Unix(1, 0)
	inventory := &policyv1alpha1.ServerInventory{
		Wipe: &policyv1alpha1.WipeReport{State: policyv1alpha1.WipeRunning, UpdatedAt: metav1.NewMicroTime(now)},
	}
	if got := policies.WipeQuietIn(inventory, time.Time{}, now); got != policyv1alpha1.WipeSilence {
		t.Errorf("silent after %s, want %s", got, policyv1alpha1.WipeSilence)
	}
}

func TestTheRegistryIsServedByTheHostOfItsURL(t *testing.T) {
	for name, c := range map[string]struct {
		url          string
		extra        []string
		hosts, names []string
	}{
		"an address":         {"https://10.0.0.5:10000", nil, []string{"10.0.0.5"}, nil},
		"an address of IPv6": {"https://[2001:db8::5]:10000", nil, []string{"2001:db8::5"}, nil},
		"a name and an address": {"https://lb.example/metalaw", []string{"10.0.0.5", "*.example"},
			[]string{"lb.example", "10.0.0.5", "*.example"}, []string{"*.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{extraDNSNames: c.extra}
			o.RegistryURL, o.Namespace = c.url, "metal"
			if got := o.registryHosts(); !slices.Equal(got, c.hosts) {
				t.Errorf("hosts %q", got)
			}
			if got := o.certificateNames(); !slices.Equal(got, append([]string{"metalaw-registry.metal.svc"}, c.names...)) {
				t.Errorf("names %q", got)
			}
		})
	}
}
