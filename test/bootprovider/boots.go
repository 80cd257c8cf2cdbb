// SPDX-License-Identifier: Apache-2.0

package bootprovider

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// prepared is what boot-operator keeps of a boot configuration in objects of its own (IPXEBootConfig, HTTPBootConfig): the
// server as it was when the configuration was last judged. What changes in the Server later is not seen.
type prepared struct {
	key    types.NamespacedName
	server string
	uuid   string
	image  string
	// secret is the name of the ignition's Secret; empty where the boot configuration names none.
	secret string
	// addresses are the IPs and MACs that a UEFI HTTP boot is recognised by.
	addresses []string
}

func prepare(config *metalv1alpha1.ServerBootConfiguration, server *metalv1alpha1.Server) prepared {
	p := prepared{key: client.ObjectKeyFromObject(config), server: server.Name, uuid: server.Spec.SystemUUID, image: config.Spec.Image}
	if ref := config.Spec.IgnitionSecretRef; ref != nil {
		p.secret = ref.Name
	}
	for _, nic := range server.Status.NetworkInterfaces {
		p.addresses = append(p.addresses, nic.IPs...)
		if nic.MACAddress != "" {
			p.addresses = append(p.addresses, nic.MACAddress)
		}
	}
	return p
}

// boots holds what was prepared.
type boots struct {
	mu  sync.Mutex
	all map[types.NamespacedName]prepared
}

func newBoots() *boots { return &boots{all: map[types.NamespacedName]prepared{}} }

func (b *boots) put(p prepared) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[p.key] = p
}

func (b *boots) drop(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, key)
}

// matching lists what was prepared for a machine, in a fixed order.
func (b *boots) matching(is func(prepared) bool) []prepared {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []prepared
	for _, p := range b.all {
		if is(p) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b prepared) int { return cmp.Compare(a.key.String(), b.key.String()) })
	return found
}

// choose picks what a server boots among all that was prepared for it. A single one is served whatever the server names; among
// several, the one for maintenance goes first. boot-operator compares names, without namespaces, and so does this.
func choose(found []prepared, server *metalv1alpha1.Server) (prepared, error) {
	if len(found) == 1 {
		return found[0], nil
	}
	for _, ref := range []*metalv1alpha1.ObjectReference{server.Spec.MaintenanceBootConfigurationRef, server.Spec.BootConfigurationRef} {
		for _, p := range found {
			if ref != nil && ref.Name == p.key.Name {
				return p, nil
			}
		}
	}
	return prepared{}, fmt.Errorf("server %s names none of its %d boot configurations", server.Name, len(found))
}
