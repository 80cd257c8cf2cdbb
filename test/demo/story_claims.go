// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// The claims of config/samples.
const (
	web     = "web"
	storage = "storage"
	spare   = "spare"
)

// newImage is what the claim web is changed to.
const newImage = "ghcr.io/ironcore-dev/os-images/gardenlinux:1877"

// claims binds the claims of config/samples, and changes one while it has its server.
func claims(w *world) chapter {
	var boots int
	return chapter{title: "Claim", steps: []step{
		{
			name:  "the claims of config/samples each get a server",
			do:    w.applySamples,
			await: w.bound(web, storage, spare),
		},
		{name: "the policy's choice is on record", do: w.tellBindings},
		{name: "web boots: its image runs on the machine", await: w.runs(web)},
		{name: "storage boots: its image runs on the machine", await: w.runs(storage)},
		{name: "spare asks for power Off: its server is reserved and stays off", await: w.off(spare, v1alpha1.ReasonPoweredOff)},
		{
			name:  "web is switched off: the machine stops, the claim keeps it",
			do:    w.change("power", "Off"),
			await: w.off(web, v1alpha1.ReasonPoweredOff),
		},
		{
			name:  "and on again: it boots once more",
			do:    w.change("power", "On"),
			await: w.runs(web),
		},
		{
			name: "web asks for another image: it is prepared, and the running machine is left alone",
			do: func(ctx context.Context) error {
				m, err := w.machineOf(ctx, web)
				boots = m.Boots
				if err != nil {
					return err
				}
				return w.change("image", newImage)(ctx)
			},
			await: func(ctx context.Context) (sight, error) { return w.preparedUntouched(ctx, &boots) },
		},
		{
			name:  "web is switched off",
			do:    w.change("power", "Off"),
			await: w.off(web, v1alpha1.ReasonPoweredOff),
		},
		{
			name:  "its next boot runs the new image",
			do:    w.change("power", "On"),
			await: w.runs(web),
		},
	}}
}

// applySamples is what a user types, so that the same command later finds what it left.
func (w *world) applySamples(ctx context.Context) error {
	command := exec.CommandContext(ctx, w.plane.Kubectl(), "--kubeconfig="+w.kubeconfig(), "apply", "-k", "config/samples")
	command.Dir = w.root
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply -k config/samples: %w: %s", err, said)
	}
	return nil
}

// machineOf is the emulated machine that a claim has.
func (w *world) machineOf(ctx context.Context, claim string) (machine, error) {
	server, err := w.serverOf(ctx, claim)
	if err != nil {
		return machine{}, err
	}
	return w.machines.of(ctx, server)
}

// bound waits until claims are bound, in both directions.
func (w *world) bound(names ...string) func(context.Context) (sight, error) {
	return func(ctx context.Context) (sight, error) {
		have, other := 0, ""
		for _, name := range names {
			claim, err := w.claim(ctx, name)
			if client.IgnoreNotFound(err) != nil {
				return sight{}, err
			}
			if err == nil && claim.Status.Phase == v1alpha1.PhaseBound && claim.Spec.ServerRef != nil {
				have++
			} else {
				other += "; " + name + ": " + condition(claim.Status.Conditions, v1alpha1.ConditionBound)
			}
		}
		now := counted(have, len(names), "claims bound")
		now.seen += other
		return now, nil
	}
}

// tellBindings says who got which server, and how close it was.
func (w *world) tellBindings(ctx context.Context) error {
	for _, name := range []string{web, storage, spare} {
		server, err := w.serverOf(ctx, name)
		if err != nil {
			return err
		}
		var record struct {
			Score     json.Number `json:"score"`
			RunnersUp int         `json:"runnersUp"`
			Revision  string      `json:"revision"`
		}
		text := server.Annotations[v1alpha1.BindingAnnotation]
		if err := json.Unmarshal([]byte(text), &record); err != nil {
			return fmt.Errorf("server %s: annotation %s is %q: %w", server.Name, v1alpha1.BindingAnnotation, text, err)
		}
		w.view.say(fmt.Sprintf("%-8s %s, rack %s: score %s by %s, %d others would have done",
			name, server.Name, server.Labels[rackLabel], record.Score, record.Revision, record.RunnersUp))
	}
	return nil
}

// runs waits until a claim's machine is on and wrote the image's name to its drives, which only the booted image does.
func (w *world) runs(name string) func(context.Context) (sight, error) {
	return func(ctx context.Context) (sight, error) {
		claim, err := w.claim(ctx, name)
		if err != nil {
			return sight{}, err
		}
		m, err := w.machineOf(ctx, name)
		if err != nil {
			return sight{}, err
		}
		booted := m.Boots > w.bootsBefore[name] // a machine shows On before its self test is over
		ready := stands(claim.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonRunning)
		return sight{
			done: ready && booted && m.Power == "On" && m.holds("written by "+claim.Spec.Image),
			seen: w.stand(ctx, claim) + "; machine " + m.String(),
		}, nil
	}
}

// off waits until a claim's machine is off while the claim keeps it.
func (w *world) off(name, reason string) func(context.Context) (sight, error) {
	return func(ctx context.Context) (sight, error) {
		claim, err := w.claim(ctx, name)
		if err != nil {
			return sight{}, err
		}
		server, err := w.serverOf(ctx, name)
		if err != nil {
			return sight{}, err
		}
		m, err := w.machines.of(ctx, server)
		if err != nil {
			return sight{}, err
		}
		w.bootsBefore[name] = m.Boots
		return sight{
			done: stands(claim.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue, reason) &&
				server.Status.State == v1alpha1.StateReserved && m.Power == "Off",
			seen: w.stand(ctx, claim) + "; machine " + m.String(),
		}, nil
	}
}

// stand says how a claim and its server stand.
func (w *world) stand(ctx context.Context, claim *v1alpha1.ServerClaim) string {
	text := claim.Name + ": " + condition(claim.Status.Conditions, v1alpha1.ConditionReady)
	if claim.Spec.ServerRef == nil {
		return text + "; " + condition(claim.Status.Conditions, v1alpha1.ConditionBound)
	}
	if server, err := w.server(ctx, claim.Spec.ServerRef.Name); err == nil {
		text += "; " + describe(server)
	}
	return text
}

// preparedUntouched waits until the new image is ready to boot, on a machine that did not notice.
func (w *world) preparedUntouched(ctx context.Context, boots *int) (sight, error) {
	config := &v1alpha1.ServerBootConfiguration{}
	if err := w.watch.Get(ctx, client.ObjectKey{Namespace: tenant, Name: web}, config); err != nil {
		return sight{}, err
	}
	m, err := w.machineOf(ctx, web)
	if err != nil {
		return sight{}, err
	}
	if m.Boots != *boots || m.Power != "On" {
		return sight{}, fmt.Errorf("the running machine was touched: %s", m)
	}
	return sight{
		done: config.Spec.Image == newImage && config.Status.State == v1alpha1.ServerBootConfigurationStateReady &&
			strings.HasPrefix(m.Override, "Disabled"),
		seen: fmt.Sprintf("boot configuration %s: image %s, state %s", config.Name, config.Spec.Image, config.Status.State),
	}, nil
}
