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

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/metalprobe"
	"github.com/metalaw/metalaw/policies"
)

func (v bootShell) probe() boots.Agent { return boots.Probe(v.server, v.Namespace, v.ProbeImage) }

func (v bootShell) wipe() boots.Agent { return boots.Wipe(v.server, v.Namespace, v.WipeImage) }

// agent writes the ignition with a token for this server, purpose and entry, then the boot configuration, then the
// reference. Each step is looked up before it is done, so that a crash between two of them costs nothing.
func (v bootShell) agent(ctx context.Context, b boots.Agent) loop.Progress {
	if p, held := v.rivalHolds(ctx); held {
		return p
	}
	if p, ok := v.interfacesKnown(); !ok {
		return p
	}
	if b.Stands(v.server, v.boot) {
		return v.mendStandingIgnition(ctx, b)
	}
	l := v.server.Status.Lifecycle
	if minted := v.remembered().credential(v.server, v1alpha1.ProbePurpose(b.Token)); minted != nil && b.Is(v.boot) {
		l.Credential = minted // it was not stored yet; see Defers
		return loop.Holds()
	}
	if p, ok := v.powerKnown(); !ok { // somebody may have switched it on since it was last read
		return p
	}
	if p, ok := v.identityStored(ctx); !ok {
		return p
	}
	if p, ok := v.confirm(ctx, b.Action); !ok {
		return p
	}
	token, err := v.ensureIgnition(ctx, b)
	if errors.Is(err, errTaken) {
		return loop.Failing(v1alpha1.ReasonBootConfigurationTaken, fmt.Sprintf(
			"the Secret %s/%s belongs to something else; it is not touched; name the server otherwise", v.Namespace, b.Name), time.Minute)
	}
	if err != nil {
		return boots.Unwritten(err, boots.Secret, v.Namespace, b.Name)
	}
	l.Credential = &v1alpha1.ProbeCredential{Purpose: v1alpha1.ProbePurpose(b.Token), Entry: l.Entry, TokenHash: metalprobe.HashToken(token)}
	if p, ok := v.ensureConfiguration(ctx, b); !ok {
		return p
	}
	v.remembered().mint(v.server, *l.Credential)
	v.server.Spec.BootConfigurationRef = &v1alpha1.ObjectReference{Namespace: v.Namespace, Name: b.Name}
	return loop.Holds()
}

// errTaken says that an object of the name that a boot needs belongs to somebody else.
var errTaken = errors.New("taken")

// ensureIgnition returns the token of the ignition that stands for this entry, or mints one. A token of another entry or
// purpose is replaced. It creates first: most entries find no Secret, and the API server says where there is one.
func (v bootShell) ensureIgnition(ctx context.Context, b boots.Agent) (string, error) {
	token, minted := mint(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: b.Name}}
	ignition, err := v.ignition(b, token)
	if err != nil {
		return "", fmt.Errorf("ignition of %s: %w", b.Name, err)
	}
	minted.Data = map[string][]byte{boots.IgnitionKey: ignition}
	if err := controllerutil.SetControllerReference(v.server, minted, v.Client.Scheme()); err != nil {
		return "", err
	}
	if err := v.Client.Create(ctx, minted); !apierrors.IsAlreadyExists(err) {
		v.remembered().ignition = minted.ObjectMeta
		return token, err
	}
	secret := &corev1.Secret{}
	if err := v.Reader.Get(ctx, client.ObjectKeyFromObject(minted), secret); err != nil {
		return "", err
	}
	if !metav1.IsControlledBy(secret, v.server) {
		return "", errTaken
	}
	if token, stands := b.TokenOf(secret, v.server); stands {
		return token, v.dropFormat(ctx, secret)
	}
	secret.Data = minted.Data
	return token, v.Client.Update(ctx, secret)
}

// ignition is what the agent of this entry boots with.
func (v bootShell) ignition(b boots.Agent, token string) ([]byte, error) {
	config := metalprobe.Config{RegistryURL: v.RegistryURL, CABundle: string(v.RegistryCA()),
		ServerUUID: v.server.Spec.SystemUUID, Token: token, Purpose: b.Program, Entry: v.server.Status.Lifecycle.Entry}
	if b.Program == metalprobe.PurposeWipe {
		config.Wipe = boots.WipePolicy(v.settings().Wipe, v.inventory)
	}
	return metalprobe.BuildIgnition(config)
}

// mendStandingIgnition looks once in the life of this process at the ignition of a boot that another process wrote. Before
// version 0.1 the manager named a format there, and the boot operator answers such a text with an error for ever.
func (v bootShell) mendStandingIgnition(ctx context.Context, b boots.Agent) loop.Progress {
	credential := v.server.Status.Lifecycle.Credential
	if v.remembered().credential(v.server, credential.Purpose) != nil {
		return loop.Holds()
	}
	secret, err := find[corev1.Secret](ctx, v.Reader, v.Namespace, b.Name)
	if secret != nil && metav1.IsControlledBy(secret, v.server) {
		err = client.IgnoreNotFound(v.dropFormat(ctx, secret))
	}
	if err != nil {
		return loop.Broken(err)
	}
	v.remembered().mint(v.server, *credential)
	return loop.Holds()
}

// dropFormat removes the format from a Secret that holds Ignition JSON: the token and the text stay as they are.
func (v bootShell) dropFormat(ctx context.Context, secret *corev1.Secret) error {
	if _, named := secret.Data[boots.FormatKey]; !named {
		return nil
	}
	mended := secret.DeepCopy()
	delete(mended.Data, boots.FormatKey)
	return v.Client.Update(ctx, mended)
}

// mint makes a token of 256 bits.
func mint() string {
	raw := make([]byte, 32)
	rand.Read(raw) // it never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

// ensureConfiguration writes the boot configuration of an agent where none stands for this entry. Where the cache shows none, it
// creates one before it looks: the API server says where there is one.
func (v bootShell) ensureConfiguration(ctx context.Context, b boots.Agent) (loop.Progress, bool) {
	unwritten := func(err error) (loop.Progress, bool) {
		return boots.Unwritten(err, boots.Configuration, b.Namespace, b.Name), false
	}
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	found, err := v.findBoot(ctx, key)
	if err == nil && found == nil {
		err = v.create(ctx, v.server, boots.ForAgent(boots.AgentInput{Agent: b, Server: v.server}).Boot)
		if err == nil {
			return loop.Progress{}, true
		}
		if apierrors.IsAlreadyExists(err) { // the cache did not show it yet
			found, err = find[v1alpha1.ServerBootConfiguration](ctx, v.Reader, key.Namespace, key.Name)
		}
	}
	if err != nil {
		return unwritten(err)
	}
	in := boots.AgentInput{Agent: b, Server: v.server, Found: found, Ours: found != nil && readShell(v).isOurs(found)}
	out := boots.ForAgent(in)
	switch out.Step {
	case boots.Refer:
		return loop.Progress{}, true
	case boots.Replace:
		uid := in.Found.UID
		if err := client.IgnoreNotFound(v.Client.Delete(ctx, in.Found, client.Preconditions{UID: &uid})); err != nil {
			return unwritten(err)
		}
	case boots.Create:
	default:
		return out.Progress, false
	}
	if err := v.create(ctx, v.server, out.Boot); apierrors.IsAlreadyExists(err) { // the former one has not gone yet
		return loop.Waiting(power.WaitsForBoot, "a former boot configuration to go", time.Second), false
	} else if err != nil {
		return unwritten(err)
	}
	return loop.Progress{}, true
}

// clear takes away the boot configurations that are ours, and their tokens. A machine that is not ours keeps a
// reference to what is not ours either.
func (v bootShell) clear(ctx context.Context) loop.Progress {
	ref := v.server.Spec.BootConfigurationRef
	if ref != nil {
		if p, ok := v.permitted(ctx, fleet.Setting); !ok {
			return p
		}
	}
	clears := v.facts.Operation.Consented || slices.Contains(v.facts.Lifecycle.Marks, policies.MarkManaged)
	for _, b := range []boots.Agent{v.probe(), v.wipe()} {
		named := b.Named(v.server)
		clears = clears || named
		key := types.NamespacedName{Namespace: v.Namespace, Name: b.Name}
		found, err := v.deleteOwn(ctx, v.Client, key, &v1alpha1.ServerBootConfiguration{})
		if err != nil {
			return loop.Broken(err)
		}
		if found || named {
			if err := v.deleteIgnition(ctx, key); err != nil {
				return loop.Broken(err)
			}
		}
	}
	if clears {
		v.out.unbooted = ref != nil
		v.server.Spec.BootConfigurationRef = nil
	}
	v.server.Status.Lifecycle.Credential = nil
	return v.ejectMedia(ctx)
}

// deleteIgnition deletes the Secret of a boot of the agent. The one that this process made is deleted by its UID, without a look.
func (v bootShell) deleteIgnition(ctx context.Context, key types.NamespacedName) error {
	if made := v.remembered().ignition; made.UID != "" && made.Name == key.Name && metav1.IsControlledBy(&made, v.server) {
		v.remembered().ignition = metav1.ObjectMeta{}
		err := v.Client.Delete(ctx, &corev1.Secret{ObjectMeta: made}, client.Preconditions{UID: &made.UID})
		if !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
	}
	_, err := v.deleteOwn(ctx, v.Reader, key, &corev1.Secret{})
	return err
}

// deleteOwn deletes an object that this server controls, and no other of that name.
func (v bootShell) deleteOwn(ctx context.Context, from client.Reader, key types.NamespacedName, object client.Object) (bool, error) {
	if err := from.Get(ctx, key, object); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(object, v.server) {
		return false, nil
	}
	uid := object.GetUID()
	return true, client.IgnoreNotFound(v.Client.Delete(ctx, object, client.Preconditions{UID: &uid}))
}
