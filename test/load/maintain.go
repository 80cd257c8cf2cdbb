// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/policies"
)

const (
	inMaintenance = string(v1alpha1.StateMaintenance)
	stateServed   = string(v1alpha1.ServerMaintenanceStateInMaintenance)
	neededLabel   = v1alpha1.MaintenanceNeededLabel
	// bundleName is the bundle of the driver.
	bundleName = "load"
	// scheduler is the controller that grants maintenances, as the manager's metrics name it.
	scheduler = "maintenance-scheduler"
	// maintenancePath is the collection of the maintenances.
	maintenancePath = apiRoot + "namespaces/" + tenant + "/" + string(kindMaintenance)
)

func maintenanceName(i int) string { return fmt.Sprintf("maintenance-%05d", i) }

// promote puts the default bundle in force that knows emulated BMCs, with a limit of its own on maintenance, and waits until it is.
func (w *world) promote(ctx context.Context) error {
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		return err
	}
	manifest, err := limited(files["bundle.yaml"], w.options.atOnce)
	if err != nil {
		return err
	}
	testkit.KnowEmulator(files)
	err = w.api.create(ctx, "/api/v1/namespaces/"+w.options.namespace+"/configmaps", map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{
			bundle.BundleFile: string(manifest), bundle.MACPrefixesFile: string(files[bundle.MACPrefixesFile])},
		"metadata": map[string]any{"name": "bundle-" + bundleName,
			"labels": map[string]any{policyv1alpha1.BundleLabel: bundleName, policyv1alpha1.StageLabel: policyv1alpha1.LabelActive}},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		active, err := w.api.activeBundle(ctx)
		if err != nil || active == bundleName {
			return err
		}
		if err := w.rest(ctx, askMachines); err != nil {
			return fmt.Errorf("bundle %s does not become active: %w", bundleName, err)
		}
	}
}

// limited is a bundle.yaml of the driver's name, in which only most bounds how many servers are down at a time.
func limited(manifest []byte, most int) ([]byte, error) {
	var all map[string]any
	if err := yaml.Unmarshal(manifest, &all); err != nil {
		return nil, err
	}
	settings, _ := all["settings"].(map[string]any)
	of, _ := settings["maintenance"].(map[string]any)
	if of == nil {
		return nil, errors.New("bundle.yaml has no settings.maintenance")
	}
	all["name"], of["limits"] = bundleName, []any{map[string]any{"name": "fleet", "most": most}}
	return yaml.Marshal(all)
}

// maintain has the servers visited and waits until each is what it was before.
func (w *world) maintain(ctx context.Context, f *figures, began time.Time) error {
	before, err := w.passes(ctx)
	if err != nil {
		return err
	}
	v := w.fleet.visit(w.options.maintenances)
	err = forEach(len(v.all), func(i int) error {
		return w.api.create(ctx, maintenancePath, map[string]any{
			"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": "ServerMaintenance", "metadata": map[string]any{"name": maintenanceName(i)},
			"spec": map[string]any{"policy": v1alpha1.ServerMaintenancePolicyOwnerApproval, "serverRef": map[string]any{"name": v.all[i].server}},
		})
	})
	if err != nil {
		return err
	}
	if err := w.attend(ctx, began, v); err != nil {
		return err
	}
	f.visits, f.givenBack = v.all, v.lastLeft().Sub(began)
	w.progress.say("%s: all given back after %.2f s", phaseMaintenance, f.givenBack.Seconds())
	if err := w.await(ctx, began, allBack(w.options.servers)); err != nil {
		return err
	}
	after, err := w.passes(ctx)
	f.passes = passes{after.count - before.count, after.seconds - before.seconds}
	return err
}

// attend approves what claims ask for, and deletes each maintenance that has its server, until all are over.
func (w *world) attend(ctx context.Context, began time.Time, v *visits) error {
	ctx, cancel := context.WithDeadline(ctx, began.Add(w.options.timeout))
	defer cancel()
	told := time.Now()
	for {
		changed := w.fleet.next()
		var approve, remove []*visit
		var s standing
		w.fleet.readMaintenances(func(claims, maintenances map[string]object) {
			approve, remove = v.due(claims, maintenances)
			s = v.standing(maintenances)
		})
		if s.reached() {
			return nil
		}
		if err := w.answer(ctx, approve, remove); err != nil {
			return err
		}
		if time.Since(told) >= tellEvery {
			told = time.Now()
			w.progress.say("%s", s.String())
		}
		if err := w.wait(ctx, changed, tellEvery); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return w.stalled(context.WithoutCancel(ctx), s)
			}
			return err
		}
	}
}

// answer approves for some claims, and deletes some maintenances.
func (w *world) answer(ctx context.Context, approve, remove []*visit) error {
	approval := map[string]any{"metadata": map[string]any{"labels": map[string]any{v1alpha1.MaintenanceApprovedLabel: "true"}}}
	err := forEach(len(approve), func(i int) error {
		return w.api.patch(ctx, claimPath+"/"+nameOf(approve[i].claim), approval)
	})
	if err != nil {
		return err
	}
	return forEach(len(remove), func(i int) error { return w.api.delete(ctx, maintenancePath+"/"+nameOf(remove[i].maintenance)) })
}

func nameOf(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// passes is how often the manager looked at all maintenances, and how long that took with all that it wrote.
type passes struct{ count, seconds float64 }

// passes asks the manager's metrics. Both are zero where they do not tell, as those of another manager.
func (w *world) passes(ctx context.Context) (passes, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+local(w.metrics)+"/metrics", http.NoBody)
	if err != nil {
		return passes{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return passes{}, ctx.Err()
	}
	defer func() { _ = response.Body.Close() }()
	return readPasses(io.LimitReader(response.Body, maxMetrics))
}
