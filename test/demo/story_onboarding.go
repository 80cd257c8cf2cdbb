// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// onboarding is the way from an Endpoint to a server that can be claimed.
func onboarding(w *world) chapter {
	n := w.options.servers
	return chapter{title: "Onboard", steps: []step{
		{
			name:  fmt.Sprintf("%d Endpoints become BMCs: the MAC prefix says how to talk to them", n),
			limit: fleetLimit,
			do:    w.applyEndpoints,
			await: w.bmcs(func(*v1alpha1.BMC) bool { return true }, "BMCs"),
		},
		{
			name:  "every BMC answers and accepts its credentials",
			limit: fleetLimit,
			await: w.bmcs(func(b *v1alpha1.BMC) bool {
				return stands(b.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonConnected)
			}, "BMCs connected"),
		},
		{
			name:  "their servers appear, and bear the rack label of their BMC",
			limit: fleetLimit,
			do:    w.labelRacks,
			await: w.fleet(func(s *v1alpha1.Server) bool { return s.Labels[rackLabel] != "" }, "servers in a rack"),
		},
		{
			name:  "each boots the probe image once, which reports over TLS with a token of its own",
			limit: fleetLimit,
			await: w.inventories,
		},
		{
			name:  "all are Available and powered off",
			limit: fleetLimit,
			await: w.fleet(func(s *v1alpha1.Server) bool {
				return s.Status.State == v1alpha1.StateAvailable && s.Status.PowerState == v1alpha1.PowerStateOff
			}, "servers Available and off"),
		},
		{name: "the machines themselves agree: off, booted once, no boot override left", limit: fleetLimit, await: w.machinesRest},
	}}
}

func (w *world) applyEndpoints(ctx context.Context) error {
	text, err := os.ReadFile(w.endpointsFile)
	if err != nil {
		return err
	}
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return w.plane.Apply(ctx, objects)
}

// bmcs waits until all BMCs are as asked.
func (w *world) bmcs(ok func(*v1alpha1.BMC) bool, what string) func(context.Context) (sight, error) {
	return func(ctx context.Context) (sight, error) {
		var list v1alpha1.BMCList
		if err := w.watch.List(ctx, &list); err != nil {
			return sight{}, err
		}
		have, other := 0, ""
		for i := range list.Items {
			if ok(&list.Items[i]) {
				have++
			} else if other == "" {
				other = "; " + list.Items[i].Name + ": " + condition(list.Items[i].Status.Conditions, v1alpha1.ConditionReady)
			}
		}
		now := counted(have, w.options.servers, what)
		now.seen += other
		if len(list.Items) < w.options.servers {
			now.seen += w.endpointTrouble(ctx)
		}
		return now, nil
	}
}

// endpointTrouble is what the first Endpoint without a BMC says.
func (w *world) endpointTrouble(ctx context.Context) string {
	var list v1alpha1.EndpointList
	if err := w.watch.List(ctx, &list); err != nil {
		return "; " + err.Error()
	}
	for _, e := range list.Items {
		if !stands(e.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonBMCCreated) {
			return "; endpoint " + e.Name + ": " + condition(e.Status.Conditions, v1alpha1.ConditionReady)
		}
	}
	return ""
}

// labelRacks puts the BMCs into two racks, in turn.
func (w *world) labelRacks(ctx context.Context) error {
	var list v1alpha1.BMCList
	if err := w.watch.List(ctx, &list); err != nil {
		return err
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.BMC) int { return strings.Compare(a.Name, b.Name) })
	for i := range list.Items {
		rack := []string{"r1", "r2"}[i%2]
		labels := map[string]any{"metadata": map[string]any{"labels": map[string]string{rackLabel: rack}}}
		if err := w.patch(ctx, &list.Items[i], labels); err != nil {
			return err
		}
	}
	return nil
}

// fleet waits until all servers are as asked.
func (w *world) fleet(ok func(*v1alpha1.Server) bool, what string) func(context.Context) (sight, error) {
	return func(ctx context.Context) (sight, error) {
		all, err := w.servers(ctx)
		if err != nil {
			return sight{}, err
		}
		have, other := 0, ""
		for i := range all {
			if ok(&all[i]) {
				have++
			} else if other == "" {
				other = "; " + describe(&all[i])
			}
		}
		now := counted(have, w.options.servers, what)
		now.seen += other
		return now, nil
	}
}

// inventories waits for the reports of all probes.
func (w *world) inventories(ctx context.Context) (sight, error) {
	var list policyv1alpha1.ServerInventoryList
	if err := w.watch.List(ctx, &list); err != nil {
		return sight{}, err
	}
	have := 0
	for i := range list.Items {
		if report := list.Items[i].Report; report != nil && !report.Unauthenticated {
			have++
		}
	}
	now := counted(have, w.options.servers, "reports")
	if all, err := w.servers(ctx); err == nil && !now.done {
		for i := range all {
			if all[i].Status.State != v1alpha1.StateAvailable {
				now.seen += "; " + describe(&all[i])
				break
			}
		}
	}
	return now, nil
}

// machinesRest looks past the API.
func (w *world) machinesRest(ctx context.Context) (sight, error) {
	all, err := w.machines.all(ctx)
	if err != nil {
		return sight{}, err
	}
	have, other := 0, ""
	for _, m := range all {
		if m.Power == "Off" && m.Boots == 1 && strings.HasPrefix(m.Override, "Disabled") {
			have++
		} else if other == "" {
			other = fmt.Sprintf("; %s, override %s", m, m.Override)
		}
	}
	now := counted(have, w.options.servers, "machines")
	now.seen += other
	return now, nil
}
