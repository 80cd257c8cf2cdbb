// SPDX-License-Identifier: Apache-2.0

// Package bootservice prepares boot configurations for metalaw boot, and tells its server what is prepared. All state is in the
// API objects, so that every replica gives the same answers; the layers of images are kept by each replica for itself.
package bootservice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/bootserver"
	"github.com/metalaw/metalaw/internal/bootserver/ignition"
	"github.com/metalaw/metalaw/internal/bootserver/images"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/metalprobe"
)

// The keys of an ignition Secret.
const (
	ignitionKey = "ignition"
	formatKey   = "format"
)

// Source answers from the API objects.
type Source struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads Secrets, which are never kept; translations of Butane are, by the version of the Secret.
	Live client.Reader
	// Images resolves the image that a boot configuration records.
	Images *images.Store

	renderer ignition.Renderer
}

var _ bootserver.Source = (*Source)(nil)

// ByUUID finds the boot configuration that the server of a machine names.
func (s *Source) ByUUID(ctx context.Context, uuid string, exact bool) (bootserver.Boot, error) {
	lower := strings.ToLower(uuid)
	if exact && uuid != lower {
		return bootserver.Boot{}, bootserver.ErrUnknown
	}
	var servers v1alpha1.ServerList
	if err := s.Client.List(ctx, &servers, client.MatchingFields{fieldindex.ServerBySystemUUID: lower}); err != nil {
		return bootserver.Boot{}, err
	}
	if len(servers.Items) > 1 {
		return bootserver.Boot{}, fmt.Errorf("%w: %d servers have this UUID", bootserver.ErrUnclear, len(servers.Items))
	}
	for i := range servers.Items {
		return s.ofServer(ctx, &servers.Items[i])
	}
	return bootserver.Boot{}, bootserver.ErrUnknown
}

func (s *Source) ofServer(ctx context.Context, server *v1alpha1.Server) (bootserver.Boot, error) {
	var list v1alpha1.ServerBootConfigurationList
	if err := s.Client.List(ctx, &list, client.MatchingFields{fieldindex.BootConfigurationByServer: server.Name}); err != nil {
		return bootserver.Boot{}, err
	}
	prepared := 0
	for i := range list.Items {
		boot := &list.Items[i]
		if !ready(boot) {
			continue
		}
		prepared++
		if named(server, boot) {
			return s.boot(ctx, server, boot)
		}
	}
	if prepared > 1 {
		return bootserver.Boot{}, bootserver.ErrUnclear
	}
	return bootserver.Boot{}, bootserver.ErrUnknown
}

// named reports that a boot configuration is in force: its server names it. That for maintenance goes first.
func named(server *v1alpha1.Server, boot *v1alpha1.ServerBootConfiguration) bool {
	ref := server.Spec.MaintenanceBootConfigurationRef
	if ref == nil {
		ref = server.Spec.BootConfigurationRef
	}
	return ref != nil && ref.Name == boot.Name && ref.Namespace == boot.Namespace && boot.Spec.ServerRef.Name == server.Name
}

// ready reports that a boot configuration was prepared by this service, as it is.
func ready(boot *v1alpha1.ServerBootConfiguration) bool {
	return boot.DeletionTimestamp.IsZero() && boot.Status.State == v1alpha1.ServerBootConfigurationStateReady &&
		boot.Annotations[v1alpha1.BootImageAnnotation] != ""
}

func (s *Source) boot(ctx context.Context, server *v1alpha1.Server, boot *v1alpha1.ServerBootConfiguration) (bootserver.Boot, error) {
	image, err := s.Images.Resolve(ctx, boot.Annotations[v1alpha1.BootImageAnnotation])
	if err != nil {
		return bootserver.Boot{}, err
	}
	address, err := s.bmcAddress(ctx, server)
	if err != nil {
		return bootserver.Boot{}, err
	}
	return bootserver.Boot{Name: client.ObjectKeyFromObject(boot).String(), UUID: strings.ToLower(server.Spec.SystemUUID), Image: image,
		Ignition: boot.Spec.IgnitionSecretRef != nil, Tenant: boundToMachine(server, boot), Machine: machineOf(server),
		Closed: closed(boot), BMC: address}, nil
}

// bmcAddress is where a server's BMC sends from; the zero value where that is not known.
func (s *Source) bmcAddress(ctx context.Context, server *v1alpha1.Server) (netip.Addr, error) {
	text := ""
	if server.Spec.BMC != nil {
		text = server.Spec.BMC.Address
	}
	if server.Spec.BMCRef != nil {
		var bmc v1alpha1.BMC
		if err := s.Client.Get(ctx, client.ObjectKey{Name: server.Spec.BMCRef.Name}, &bmc); err != nil {
			return netip.Addr{}, client.IgnoreNotFound(err)
		}
		text = bmc.Status.IP
		if bmc.Spec.Access != nil {
			text = bmc.Spec.Access.IP
		}
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, nil //nolint:nilerr // a host name says nothing of where requests come from
	}
	return address.Unmap().WithZone(""), nil
}

// ByMedia finds the boot configuration in force whose ISO has a name.
func (s *Source) ByMedia(ctx context.Context, name string) (bootserver.Boot, error) {
	var list v1alpha1.ServerBootConfigurationList
	if err := s.Client.List(ctx, &list, client.MatchingFields{byMedia: name}); err != nil {
		return bootserver.Boot{}, err
	}
	if len(list.Items) != 1 || !ready(&list.Items[0]) { // two of one name were not written by this service
		return bootserver.Boot{}, bootserver.ErrUnknown
	}
	boot := &list.Items[0]
	var server v1alpha1.Server
	err := s.Client.Get(ctx, client.ObjectKey{Name: boot.Spec.ServerRef.Name}, &server)
	switch {
	case apierrors.IsNotFound(err), err == nil && !named(&server, boot):
		return bootserver.Boot{}, bootserver.ErrUnknown
	case err != nil:
		return bootserver.Boot{}, err
	}
	return s.boot(ctx, &server, boot)
}

// Serves finds an image that a prepared boot configuration records.
func (s *Source) Serves(ctx context.Context, repository, digest string) (images.Image, error) {
	reference := repository + "@" + digest
	var list v1alpha1.ServerBootConfigurationList
	if err := s.Client.List(ctx, &list, client.MatchingFields{byImage: reference}); err != nil {
		return images.Image{}, err
	}
	for i := range list.Items {
		if ready(&list.Items[i]) {
			return s.Images.Resolve(ctx, reference)
		}
	}
	return images.Image{}, bootserver.ErrUnknown
}

// IgnitionOf reads the Secret of a boot configuration.
func (s *Source) IgnitionOf(ctx context.Context, boot bootserver.Boot) ([]byte, error) {
	config, err := s.configuration(ctx, boot)
	if err != nil {
		return nil, err
	}
	return s.ignition(ctx, config)
}

func (s *Source) configuration(ctx context.Context, boot bootserver.Boot) (*v1alpha1.ServerBootConfiguration, error) {
	namespace, name, _ := strings.Cut(boot.Name, "/")
	config := &v1alpha1.ServerBootConfiguration{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, config)
	if apierrors.IsNotFound(err) {
		return nil, bootserver.ErrUnknown
	}
	return config, err
}

// ignition is the text of a boot configuration as it is served; nil where it names no Secret.
func (s *Source) ignition(ctx context.Context, config *v1alpha1.ServerBootConfiguration) ([]byte, error) {
	if config.Spec.IgnitionSecretRef == nil {
		return nil, nil
	}
	key := client.ObjectKey{Namespace: config.Namespace, Name: config.Spec.IgnitionSecretRef.Name}
	var secret corev1.Secret
	err := s.Live.Get(ctx, key, &secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: there is no Secret %s; create it with the key %s", bootserver.ErrMissing, key, ignitionKey)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	text, has := secret.Data[ignitionKey]
	if !has {
		return nil, fmt.Errorf("%w: Secret %s has no key %s; add it", bootserver.ErrMissing, key, ignitionKey)
	}
	version := ignition.Version{UID: string(secret.UID), ResourceVersion: secret.ResourceVersion}
	rendered, err := s.renderer.Render(version, text, string(secret.Data[formatKey]))
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", key, err)
	}
	return rendered, nil
}

// The labels of ISO images. The agent knows a USB medium by the first, operating systems a configuration drive by the second.
const (
	volumeAgent = "METALPROBE"
	volumeClaim = "config-2"
)

// ContentOf reads what goes into the ISO of a boot configuration: the agent's configuration, or the ignition of a claim for
// operating systems that read a configuration drive.
func (s *Source) ContentOf(ctx context.Context, boot bootserver.Boot) (bootserver.Content, error) {
	config, err := s.configuration(ctx, boot)
	if err != nil {
		return bootserver.Content{}, err
	}
	text, err := s.ignition(ctx, config)
	if err != nil {
		return bootserver.Content{}, err
	}
	return content(text, boot)
}

func content(text []byte, boot bootserver.Boot) (bootserver.Content, error) {
	if text == nil {
		return bootserver.Content{VolumeID: volumeAgent}, nil
	}
	agent, err := metalprobe.ParseIgnition(text)
	if err == nil {
		file, err := json.Marshal(agent)
		return bootserver.Content{VolumeID: volumeAgent, Files: map[string][]byte{"metalprobe/config.json": file}}, err
	}
	if !errors.Is(err, metalprobe.ErrNoConfig) && json.Valid(text) && strings.Contains(string(text), metalprobe.ConfigPath) {
		return bootserver.Content{}, err
	}
	metadata, err := json.Marshal(map[string]string{"uuid": boot.UUID, "name": boot.Name})
	return bootserver.Content{VolumeID: volumeClaim, Files: map[string][]byte{
		"ignition.json":                   text,
		"openstack/latest/user_data":      text,
		"openstack/latest/meta_data.json": metadata,
	}}, err
}

// Fetched writes a condition, and ends the one of a refusal once the ignition was served. A write that fails is left: the machine has what it needs.
func (s *Source) Fetched(ctx context.Context, boot bootserver.Boot, document bootserver.Document) {
	kind, reason := v1alpha1.ConditionIPXEScriptFetched, "IPXEScriptDelivered"
	if document == bootserver.DocumentIgnition {
		kind, reason = v1alpha1.ConditionIgnitionDataFetched, "IgnitionDataDelivered"
	}
	s.tell(ctx, boot, func(config *v1alpha1.ServerBootConfiguration) bool {
		served := document == bootserver.DocumentIgnition && // a former refusal was a stranger's, or is over
			meta.RemoveStatusCondition(&config.Status.Conditions, v1alpha1.ConditionIgnitionRefused)
		return meta.SetStatusCondition(&config.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason,
			Message: "a machine with the system UUID " + boot.UUID + " asked for it", ObservedGeneration: config.Generation}) || served
	})
}
