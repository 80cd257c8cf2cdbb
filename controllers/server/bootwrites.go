// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/leftover"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/internal/stored"
	"github.com/metalaw/metalaw/metalprobe"
)

// writeIgnition writes the ignition of an agent's boot, and has the server know its token.
func (x *executor) writeIgnition(ctx context.Context, a plan.Ignition) loop.Progress {
	token, p := x.ensureIgnition(ctx, a)
	if p.Phase == loop.Done {
		l := x.server.Status.Lifecycle
		l.Credential = &v1alpha1.ProbeCredential{Purpose: v1alpha1.ProbePurpose(a.Agent.Token), Entry: l.Entry,
			TokenHash: metalprobe.HashToken(token)}
	}
	return p
}

// ensureIgnition returns the token of the ignition that stands for this entry, or mints one. A token of another entry or
// purpose is replaced (order 6). It creates first: most entries find no Secret, and the API server says if there is one.
func (x *executor) ensureIgnition(ctx context.Context, a plan.Ignition) (string, loop.Progress) {
	b, config := a.Agent, a.Config
	unwritten := func(err error) loop.Progress { return boots.Unwritten(err, boots.Secret, b.Namespace, b.Name) }
	config.CABundle, config.Token = string(x.RegistryCA()), mint()
	ignition, err := metalprobe.BuildIgnition(config)
	if err != nil {
		return "", loop.Broken(fmt.Errorf("ignition of %s: %w", b.Name, err))
	}
	minted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: x.Namespace, Name: b.Name},
		Data: map[string][]byte{boots.IgnitionKey: ignition}}
	if err := controllerutil.SetControllerReference(x.server, minted, x.Client.Scheme()); err != nil {
		return "", loop.Broken(err)
	}
	if err := x.Client.Create(ctx, minted); !apierrors.IsAlreadyExists(err) {
		x.seen.Memory.Ignition = minted.ObjectMeta
		return config.Token, unwritten(err)
	}
	secret := &corev1.Secret{}
	if err := x.Reader.Get(ctx, client.ObjectKeyFromObject(minted), secret); err != nil {
		return "", unwritten(err)
	}
	if !metav1.IsControlledBy(secret, x.server) {
		return "", loop.Failing(v1alpha1.ReasonBootConfigurationTaken, fmt.Sprintf(
			"the Secret %s/%s belongs to something else; it is not touched; name the server otherwise", x.Namespace, b.Name), time.Minute)
	}
	if token, stands := b.TokenOf(secret, x.server); stands {
		return token, unwritten(x.dropFormat(ctx, secret))
	}
	secret.Data = minted.Data
	return config.Token, unwritten(x.Client.Update(ctx, secret))
}

// done is the progress of a call to the API server.
func done(err error) loop.Progress {
	if err != nil {
		return loop.Broken(err)
	}
	return loop.Holds()
}

// mendIgnition takes the format away that a manager before version 0.1 named.
func (x *executor) mendIgnition(ctx context.Context, b boots.Agent) loop.Progress {
	secret, err := stored.One[corev1.Secret](ctx, x.Reader, x.Namespace, b.Name)
	if secret != nil && metav1.IsControlledBy(secret, x.server) {
		err = client.IgnoreNotFound(x.dropFormat(ctx, secret))
	}
	if err == nil {
		x.seen.Memory.Mint(x.server, *x.server.Status.Lifecycle.Credential)
	}
	return done(err)
}

// dropFormat removes the format from a Secret that holds Ignition JSON: the token and the text stay as they are.
func (x *executor) dropFormat(ctx context.Context, secret *corev1.Secret) error {
	if _, named := secret.Data[boots.FormatKey]; !named {
		return nil
	}
	mended := secret.DeepCopy()
	delete(mended.Data, boots.FormatKey)
	return x.Client.Update(ctx, mended)
}

// mint makes a token of 256 bits.
func mint() string {
	raw := make([]byte, 32)
	rand.Read(raw) // it never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

// writeAgentBoot writes the boot configuration of an agent if none stands for this entry. If the cache shows none, it creates
// one before it looks: the API server says if there is one.
func (x *executor) writeAgentBoot(ctx context.Context, b boots.Agent) loop.Progress {
	unwritten := func(err error) loop.Progress { return boots.Unwritten(err, boots.Configuration, b.Namespace, b.Name) }
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	found, err := x.findBoot(ctx, key)
	if err == nil && found == nil {
		err = x.create(ctx, x.server, boots.ForAgent(boots.AgentInput{Agent: b, Server: x.server}).Boot)
		if err == nil {
			return x.minted()
		}
		if apierrors.IsAlreadyExists(err) { // the cache did not show it yet
			found, err = stored.One[v1alpha1.ServerBootConfiguration](ctx, x.Reader, key.Namespace, key.Name)
		}
	}
	if err != nil {
		return unwritten(err)
	}
	out := boots.ForAgent(boots.AgentInput{Agent: b, Server: x.server, Found: found, Ours: found != nil && x.seen.Ours(found)})
	switch out.Step {
	case boots.Refer:
		return x.minted()
	case boots.Replace:
		if err := x.delete(ctx, found); err != nil {
			return unwritten(err)
		}
	case boots.Create:
	default:
		return out.Progress
	}
	if err := x.create(ctx, x.server, out.Boot); apierrors.IsAlreadyExists(err) { // the former one has not gone yet
		return loop.Waiting(power.WaitsForBoot, "a former boot configuration to go", time.Second)
	} else if err != nil {
		return unwritten(err)
	}
	return x.minted()
}

// minted remembers the credential of the boot that was written.
func (x *executor) minted() loop.Progress {
	x.seen.Memory.Mint(x.server, *x.server.Status.Lifecycle.Credential)
	return loop.Holds()
}

// dropAgentBoot deletes what is ours.
func (x *executor) dropAgentBoot(ctx context.Context, a plan.DropAgentBoot) loop.Progress {
	key := types.NamespacedName{Namespace: a.Agent.Namespace, Name: a.Agent.Name}
	found, err := x.deleteOwn(ctx, x.Client, key, &v1alpha1.ServerBootConfiguration{})
	if err == nil && (found || a.Named) {
		err = x.deleteIgnition(ctx, key)
	}
	return done(err)
}

// deleteIgnition deletes the Secret of a boot of the agent. The one that this process made is deleted by its UID, without a
// look.
func (x *executor) deleteIgnition(ctx context.Context, key types.NamespacedName) error {
	if made := x.seen.Memory.Ignition; made.UID != "" && made.Name == key.Name && metav1.IsControlledBy(&made, x.server) {
		x.seen.Memory.Ignition = metav1.ObjectMeta{}
		err := x.Client.Delete(ctx, &corev1.Secret{ObjectMeta: made}, client.Preconditions{UID: &made.UID})
		if !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
	}
	_, err := x.deleteOwn(ctx, x.Reader, key, &corev1.Secret{})
	return err
}

// deleteOwn deletes an object that this server controls, and no other of that name.
func (x *executor) deleteOwn(ctx context.Context, from client.Reader, key types.NamespacedName, object client.Object) (bool, error) {
	if err := from.Get(ctx, key, object); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(object, x.server) {
		return false, nil
	}
	return true, x.delete(ctx, object)
}

// delete deletes an object, and no other that has come to bear its name.
func (x *executor) delete(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	return client.IgnoreNotFound(x.Client.Delete(ctx, object, client.Preconditions{UID: &uid}))
}

// findBoot reads a boot configuration past the cache if the cache shows one. If it shows none there may be one all the same:
// then creating it fails.
func (x *executor) findBoot(ctx context.Context, key client.ObjectKey) (*v1alpha1.ServerBootConfiguration, error) {
	found, err := stored.One[v1alpha1.ServerBootConfiguration](ctx, x.Client, key.Namespace, key.Name)
	if found == nil || err != nil {
		return nil, err
	}
	return stored.One[v1alpha1.ServerBootConfiguration](ctx, x.Reader, key.Namespace, key.Name)
}

// followOwner takes the steps that bring the boot configuration of an owner to what the owner asks.
func (x *executor) followOwner(ctx context.Context, in boots.OwnedInput) loop.Progress {
	owner, ok := in.Owner.Object.(client.Object)
	if !ok {
		return loop.Broken(fmt.Errorf("the %s is no object of the API", in.Owner.Called))
	}
	if key := client.ObjectKeyFromObject(owner); in.Found == nil || client.ObjectKeyFromObject(in.Found) != key {
		var err error
		if in.Found, err = x.findBoot(ctx, key); err != nil {
			return loop.Broken(err)
		}
	}
	unwritten := func(err error) loop.Progress {
		return boots.Unwritten(err, boots.Configuration, owner.GetNamespace(), owner.GetName())
	}
	for {
		switch out := boots.ForOwner(in); out.Step {
		case boots.Create:
			var p loop.Progress
			if in.Found, p = x.createOwned(ctx, in.Owner.Purpose, owner, out.Boot); p.Phase != loop.Done {
				return p
			}
		case boots.Replace:
			if err := x.delete(ctx, in.Found); err != nil {
				return unwritten(err)
			}
			in.Found = nil
		case boots.Update:
			if err := x.Client.Update(ctx, out.Boot); err != nil {
				return unwritten(err)
			}
			in.Found, in.Updated = out.Boot, true
		case boots.HandOver:
			err := x.Client.Status().Patch(ctx, out.Boot, mergepatch.Locked(in.Found))
			if err != nil {
				return unwritten(err)
			}
			return out.Progress
		case boots.Refer:
			return loop.Holds()
		default:
			return out.Progress
		}
	}
}

// createOwned makes the boot configuration of an owner, and takes away what a former holder left. It returns the one that
// exists by now.
func (x *executor) createOwned(ctx context.Context, purpose string, owner client.Object, boot *v1alpha1.ServerBootConfiguration) (
	*v1alpha1.ServerBootConfiguration, loop.Progress) {
	made, err := boot, leftover.Drop(ctx, x.Client, x.server.Name, purpose)
	if err == nil {
		err = x.create(ctx, owner, boot)
	}
	if apierrors.IsAlreadyExists(err) { // the cache did not show it yet
		made, err = stored.One[v1alpha1.ServerBootConfiguration](ctx, x.Reader, boot.Namespace, boot.Name)
	}
	if err != nil {
		return nil, boots.Unwritten(err, boots.Configuration, boot.Namespace, boot.Name)
	}
	if made == nil { // it went between the two
		return nil, loop.Waiting(lostRace, "another program wrote first", 100*time.Millisecond)
	}
	return made, loop.Holds()
}

// create makes a boot configuration that goes with its owner.
func (x *executor) create(ctx context.Context, owner client.Object, boot *v1alpha1.ServerBootConfiguration) error {
	if err := controllerutil.SetControllerReference(owner, boot, x.Client.Scheme()); err != nil {
		return err
	}
	return x.Client.Create(ctx, boot)
}
