// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// dreamer is a claim that nothing can satisfy.
const dreamer = "dreamer"

// stranger has a locally administered address that no row of the prefix database speaks for.
var stranger = &v1alpha1.Endpoint{
	ObjectMeta: metav1.ObjectMeta{Name: "stranger"},
	Spec:       v1alpha1.EndpointSpec{MACAddress: "06:00:00:00:00:01", IP: "127.0.0.2"},
}

// refusals shows that whatever cannot be says what and why, in words.
func refusals(w *world) chapter {
	return chapter{title: "Refuse", steps: []step{
		{
			name: "a claim that no server can satisfy is stored with a warning, and waits with a reason",
			do: func(ctx context.Context) error {
				return w.create(ctx, dreamer, v1alpha1.ServerClaimSpec{
					Power: v1alpha1.PowerOn, Image: newImage,
					ServerSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "h100"}},
				})
			},
			await: w.waits(dreamer, v1alpha1.ReasonNoServers),
		},
		{
			name:  "it is given up",
			do:    func(ctx context.Context) error { return w.drop(ctx, dreamer) },
			await: w.gone(dreamer),
		},
		{
			name:  "an Endpoint with a MAC prefix that nobody knows is left alone and says so",
			do:    func(ctx context.Context) error { return w.client.Create(ctx, stranger.DeepCopy()) },
			await: w.strangerWaits,
		},
		{name: "it is taken away", do: func(ctx context.Context) error { return w.client.Delete(ctx, stranger.DeepCopy()) }},
		{
			name: "denied: a claim for a server by a name that no server can have",
			do: w.denied(func(ctx context.Context) error {
				return w.create(ctx, "ghost", v1alpha1.ServerClaimSpec{
					Power: v1alpha1.PowerOn, Image: newImage, ServerRef: &corev1.LocalObjectReference{Name: "no_such_server"},
				})
			}, "no Server has such a name"),
		},
		{name: "denied: an Endpoint with a MAC address that another one has, spelt differently", do: w.denied(w.duplicateMAC, "spec.MACAddress")},
		{name: "denied: an Endpoint with a malformed MAC address", do: w.denied(func(ctx context.Context) error {
			return w.client.Create(ctx, &v1alpha1.Endpoint{
				ObjectMeta: metav1.ObjectMeta{Name: "malformed"},
				Spec:       v1alpha1.EndpointSpec{MACAddress: "02:4d:4c:no:00:00", IP: "127.0.0.2"},
			})
		}, "02:4d:4c:no:00:00")},
		{name: "denied: a state that no rule leads to, also for the administrator", do: w.denied(w.forgeState, "status.state")},
		{name: "denied: the deletion of a server that holds somebody's data", do: w.denied(func(ctx context.Context) error {
			server, err := w.serverOf(ctx, storage)
			if err != nil {
				return err
			}
			return w.client.Delete(ctx, server)
		}, "holds data")},
	}}
}

// waits expects a claim to stay unbound for a reason, and tells its words.
func (w *world) waits(name, reason string) func(context.Context) (sight, error) {
	return func(ctx context.Context) (sight, error) {
		claim, err := w.claim(ctx, name)
		if client.IgnoreNotFound(err) != nil {
			return sight{}, err
		}
		now := sight{seen: name + ": " + condition(claim.Status.Conditions, v1alpha1.ConditionBound)}
		if claim.Spec.ServerRef != nil {
			return now, fmt.Errorf("claim %s got server %s, which it must not have", name, claim.Spec.ServerRef.Name)
		}
		now.done = stands(claim.Status.Conditions, v1alpha1.ConditionBound, metav1.ConditionFalse, reason)
		if now.done {
			c := meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.ConditionBound)
			w.view.say(fmt.Sprintf("Bound=False %s: %s", c.Reason, c.Message))
		}
		return now, nil
	}
}

// denied expects a refusal with certain words, and tells it verbatim.
func (w *world) denied(try func(context.Context) error, words string) func(context.Context) error {
	return func(ctx context.Context) error {
		err := try(ctx)
		switch {
		case err == nil:
			return fmt.Errorf("it was let through")
		case !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsConflict(err):
			return fmt.Errorf("it was not denied, something else went wrong: %w", err)
		case !strings.Contains(err.Error(), words):
			return fmt.Errorf("the refusal does not say %q: %w", words, err)
		}
		w.view.say(err.Error())
		return nil
	}
}

func (w *world) duplicateMAC(ctx context.Context) error {
	var list v1alpha1.EndpointList
	if err := w.watch.List(ctx, &list, client.Limit(1)); err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return fmt.Errorf("there is no Endpoint")
	}
	return w.client.Create(ctx, &v1alpha1.Endpoint{
		ObjectMeta: metav1.ObjectMeta{Name: "duplicate"},
		Spec: v1alpha1.EndpointSpec{
			MACAddress: strings.ToUpper(strings.ReplaceAll(list.Items[0].Spec.MACAddress, ":", "-")), IP: "127.0.0.2",
		},
	})
}

// forgeState tries to offer a server with a tenant's data on it.
func (w *world) forgeState(ctx context.Context) error {
	server, err := w.serverOf(ctx, storage)
	if err != nil {
		return err
	}
	return w.client.Status().Patch(ctx, server.DeepCopy(),
		client.RawPatch("application/merge-patch+json", []byte(`{"status":{"state":"Available"}}`)))
}

// strangerWaits expects the Endpoint to say that it is not known.
func (w *world) strangerWaits(ctx context.Context) (sight, error) {
	endpoint := &v1alpha1.Endpoint{}
	err := w.watch.Get(ctx, client.ObjectKeyFromObject(stranger), endpoint)
	if client.IgnoreNotFound(err) != nil {
		return sight{}, err
	}
	now := sight{
		done: stands(endpoint.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonUnknownPrefix),
		seen: condition(endpoint.Status.Conditions, v1alpha1.ConditionReady),
	}
	if now.done {
		w.view.say(now.seen)
	}
	return now, nil
}
