// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/metalprobe"
	"github.com/metalaw/metalaw/policies"
)

// The keys of an ignition Secret. A format is for text that is not Ignition JSON, such as Butane; we write JSON and name none.
const (
	ignitionKey = "ignition"
	formatKey   = "format"
)

// agentBoot is one of the two boots that are ours: the probe and the wipe.
type agentBoot struct {
	purpose string
	action  fleet.Action
	agent   metalprobe.Purpose
	token   policyv1alpha1.AgentPurpose
	name    string
	image   string
}

func (v *scope) probeBoot() agentBoot {
	return agentBoot{purpose: v1alpha1.BootPurposeProbe, action: fleet.Setting, agent: metalprobe.PurposeProbe, token: policyv1alpha1.PurposeProbe,
		name: v.server.Name, image: v.ProbeImage}
}

func (v *scope) wipeBoot() agentBoot {
	return agentBoot{purpose: v1alpha1.BootPurposeWipe, action: fleet.Wipe, agent: metalprobe.PurposeWipe, token: policyv1alpha1.PurposeWipe,
		name: v.server.Name + "-wipe", image: v.WipeImage}
}

// bootAgent writes the ignition with a token for this server, purpose and entry, then the boot configuration, then the
// reference. Each step is looked up before it is done, so that a crash between two of them costs nothing.
func (v *scope) bootAgent(ctx context.Context, b agentBoot) loop.Progress {
	if p, ok := v.interfacesKnown(); !ok {
		return p
	}
	if v.bootStands(b) {
		return v.mendStandingIgnition(ctx, b)
	}
	l := v.server.Status.Lifecycle
	if minted := v.memory.mintedFor(v.server, v1alpha1.ProbePurpose(b.token)); minted != nil && v.isBoot(b) {
		l.Credential = minted // it was not stored yet; see Defers
		return loop.Holds()
	}
	if p, ok := v.powerKnown(); !ok { // somebody may have switched it on since it was last read
		return p
	}
	if p, ok := v.confirm(ctx, b.action); !ok {
		return p
	}
	token, err := v.ensureIgnition(ctx, b)
	if errors.Is(err, errTaken) {
		return loop.Failing(v1alpha1.ReasonBootConfigurationTaken, fmt.Sprintf(
			"the Secret %s/%s belongs to something else; it is not touched; name the server otherwise", v.Namespace, b.name), time.Minute)
	}
	if err != nil {
		return loop.Broken(err)
	}
	l.Credential = &v1alpha1.ProbeCredential{Purpose: v1alpha1.ProbePurpose(b.token), Entry: l.Entry, TokenHash: metalprobe.HashToken(token)}
	if p, ok := v.ensureAgentBoot(ctx, b); !ok {
		return p
	}
	v.memory.mint(v.server, *l.Credential)
	v.server.Spec.BootConfigurationRef = &v1alpha1.ObjectReference{Namespace: v.Namespace, Name: b.name}
	return loop.Holds()
}

// bootStands says that the cache shows the boot configuration of this entry and purpose, and the server its token.
func (v *scope) bootStands(b agentBoot) bool {
	l := v.server.Status.Lifecycle
	return v.isBoot(b) && l.Credential != nil && l.Credential.Entry == l.Entry && string(l.Credential.Purpose) == string(b.token)
}

// isBoot says that the cache shows the boot configuration of this entry and purpose.
func (v *scope) isBoot(b agentBoot) bool {
	return v.boot != nil && v.boot.Name == b.name && v.boot.Annotations[v1alpha1.BootPurposeAnnotation] == b.purpose
}

// errTaken says that an object of the name that a boot needs belongs to somebody else.
var errTaken = errors.New("taken")

// ensureIgnition returns the token of the ignition that stands for this entry, or mints one. A token of another entry or
// purpose is replaced.
func (v *scope) ensureIgnition(ctx context.Context, b agentBoot) (string, error) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: v.Namespace, Name: b.name}
	err := v.Reader.Get(ctx, key, secret)
	exists := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	if exists && !metav1.IsControlledBy(secret, v.server) {
		return "", errTaken
	}
	entry := v.server.Status.Lifecycle.Entry
	if exists {
		if config, parseErr := metalprobe.ParseIgnition(secret.Data[ignitionKey]); parseErr == nil &&
			config.Entry == entry && config.Purpose == b.agent && config.ServerUUID == v.server.Spec.SystemUUID && config.Token != "" {
			return config.Token, v.dropFormat(ctx, secret)
		}
	}
	token, err := mint()
	if err != nil {
		return "", err
	}
	ignition, err := metalprobe.BuildIgnition(metalprobe.Config{RegistryURL: v.RegistryURL, CABundle: string(v.RegistryCA()),
		ServerUUID: v.server.Spec.SystemUUID, Token: token, Purpose: b.agent, Entry: entry}, metalprobe.IgnitionOptions{})
	if err != nil {
		return "", fmt.Errorf("ignition of %s: %w", b.name, err)
	}
	secret.Namespace, secret.Name = key.Namespace, key.Name
	secret.Data = map[string][]byte{ignitionKey: ignition}
	if err := controllerutil.SetControllerReference(v.server, secret, v.Client.Scheme()); err != nil {
		return "", err
	}
	if exists {
		return token, v.Client.Update(ctx, secret)
	}
	return token, v.Client.Create(ctx, secret)
}

// mendStandingIgnition looks once in the life of this process at the ignition of a boot that another process wrote. Before
// version 0.1 the manager named a format there, and the boot operator answers such a text with an error for ever.
func (v *scope) mendStandingIgnition(ctx context.Context, b agentBoot) loop.Progress {
	credential := v.server.Status.Lifecycle.Credential
	if v.memory.mintedFor(v.server, credential.Purpose) != nil {
		return loop.Holds()
	}
	secret := &corev1.Secret{}
	err := v.Reader.Get(ctx, types.NamespacedName{Namespace: v.Namespace, Name: b.name}, secret)
	if err == nil && metav1.IsControlledBy(secret, v.server) {
		err = v.dropFormat(ctx, secret)
	}
	if client.IgnoreNotFound(err) != nil {
		return loop.Broken(err)
	}
	v.memory.mint(v.server, *credential)
	return loop.Holds()
}

// dropFormat removes the format from a Secret that holds Ignition JSON: the token and the text stay as they are.
func (v *scope) dropFormat(ctx context.Context, secret *corev1.Secret) error {
	if _, named := secret.Data[formatKey]; !named {
		return nil
	}
	mended := secret.DeepCopy()
	delete(mended.Data, formatKey)
	return v.Client.Update(ctx, mended)
}

// mint makes a token of 256 bits.
func mint() (string, error) {
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("mint token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

// ensureAgentBoot writes the boot configuration anew for each entry, so that a Ready of a former entry never boots this
// one.
func (v *scope) ensureAgentBoot(ctx context.Context, b agentBoot) (loop.Progress, bool) {
	existing := &v1alpha1.ServerBootConfiguration{}
	err := v.Reader.Get(ctx, types.NamespacedName{Namespace: v.Namespace, Name: b.name}, existing)
	switch {
	case err == nil && v.isOurs(existing) && existing.Annotations[v1alpha1.BootPurposeAnnotation] == b.purpose:
		return loop.Progress{}, true
	case err == nil && !metav1.IsControlledBy(existing, v.server):
		return loop.Failing(v1alpha1.ReasonBootConfigurationTaken, fmt.Sprintf(
			"the boot configuration %s/%s belongs to another object; it is not touched",
			v.Namespace, b.name), time.Minute), false
	case err == nil:
		uid := existing.UID
		if err := client.IgnoreNotFound(v.Client.Delete(ctx, existing, client.Preconditions{UID: &uid})); err != nil {
			return loop.Broken(err), false
		}
	case !apierrors.IsNotFound(err):
		return loop.Broken(err), false
	}
	boot := &v1alpha1.ServerBootConfiguration{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: b.name, Annotations: v.bootAnnotations(b.purpose)},
		Spec:       v1alpha1.ServerBootConfigurationSpec{Image: b.image, IgnitionSecretRef: &corev1.LocalObjectReference{Name: b.name}},
	}
	boot.Annotations[v1alpha1.TypeAnnotation] = v1alpha1.TypeInternal
	boot.Annotations[v1alpha1.IsDefaultOSImageAnnotation] = "true"
	boot.Spec.ServerRef.Name = v.server.Name
	if err := controllerutil.SetControllerReference(v.server, boot, v.Client.Scheme()); err != nil {
		return loop.Broken(err), false
	}
	if err := v.Client.Create(ctx, boot); err != nil {
		if apierrors.IsAlreadyExists(err) { // the former one has not gone yet
			return loop.Waiting(power.WaitsForBoot, "a former boot configuration to go", time.Second), false
		}
		return loop.Broken(err), false
	}
	return loop.Progress{}, true
}

// clearBoot takes away the boot configurations that are ours, and their tokens. A machine that is not ours keeps a
// reference to what is not ours either.
func (v *scope) clearBoot(ctx context.Context) loop.Progress {
	ref := v.server.Spec.BootConfigurationRef
	if ref != nil {
		if p, ok := v.permitted(ctx, fleet.Setting); !ok {
			return p
		}
	}
	clears := v.facts.Operation.Consented || slices.Contains(v.facts.Lifecycle.Marks, policies.MarkManaged)
	for _, b := range []agentBoot{v.probeBoot(), v.wipeBoot()} {
		clears = clears || (ref != nil && ref.Namespace == v.Namespace && ref.Name == b.name)
		key := types.NamespacedName{Namespace: v.Namespace, Name: b.name}
		found, err := v.deleteOwn(ctx, v.Client, key, &v1alpha1.ServerBootConfiguration{})
		if err != nil {
			return loop.Broken(err)
		}
		if found || (ref != nil && ref.Namespace == v.Namespace && ref.Name == b.name) {
			if _, err := v.deleteOwn(ctx, v.Reader, key, &corev1.Secret{}); err != nil {
				return loop.Broken(err)
			}
		}
	}
	if clears {
		v.unbooted = ref != nil
		v.server.Spec.BootConfigurationRef = nil
	}
	v.server.Status.Lifecycle.Credential = nil
	return loop.Holds()
}

// deleteOwn deletes an object that this server controls, and no other of that name.
func (v *scope) deleteOwn(ctx context.Context, from client.Reader, key types.NamespacedName, object client.Object) (bool, error) {
	if err := from.Get(ctx, key, object); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(object, v.server) {
		return false, nil
	}
	uid := object.GetUID()
	return true, client.IgnoreNotFound(v.Client.Delete(ctx, object, client.Preconditions{UID: &uid}))
}

// specHandedOver says that the state of a boot configuration speaks of its present spec.
func specHandedOver(boot *v1alpha1.ServerBootConfiguration) bool { return policies.Armed(boot) }
