// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/test/bootprovider"
	"github.com/metalaw/metalaw/test/env"
)

const (
	startLimit = 3 * time.Minute
	// How long emulated hardware takes; real machines need minutes for the same.
	powerDelay, bootDelay = 500 * time.Millisecond, time.Second
)

// bringUp starts everything that a cluster and a row of racks would be.
func bringUp(w *world) chapter {
	return chapter{title: "Bring up", steps: []step{
		{
			name:  "a control plane with RBAC runs; config/default is applied without a warning",
			limit: startLimit,
			do:    w.startControlPlane,
		},
		{name: "a boot provider stands in for boot-operator", limit: startLimit, do: w.startBootProvider},
		{
			name:  fmt.Sprintf("%d %s servers listen, each with a BMC address of its own", w.options.servers, w.sort()),
			limit: startLimit,
			do:    w.startServers,
		},
		{
			name:  "the manager runs as its service account, with the rights it ships with",
			limit: startLimit,
			do:    w.startManager,
		},
		{name: "admission answers over TLS, with a certificate it made itself", limit: startLimit, await: w.admissionAnswers},
		{name: "the policy that came with the manager is on record and governs", await: w.governs(policies.DefaultBundle)},
		{
			name:  "a bundle of the demo's own says how to talk to emulated BMCs; it is promoted, and governs",
			do:    w.promoteEmulated,
			await: w.governs(testkit.EmulatorBundle),
		},
	}}
}

func (w *world) startControlPlane(ctx context.Context) error {
	if err := os.MkdirAll(w.planeDir(), 0o755); err != nil {
		return err
	}
	if err := w.pickPorts(ctx); err != nil {
		return err
	}
	var err error
	w.plane, err = env.Start(ctx, env.Options{Dir: w.planeDir(), Kustomize: []string{"config/default"}, StartTimeout: 2 * time.Minute})
	if err != nil {
		return err
	}
	if err := w.plane.PointWebhooksAt(ctx, local(w.ports.webhook), nil); err != nil {
		return err
	}
	return w.connect(ctx)
}

func (w *world) startBootProvider(ctx context.Context) error {
	known, err := w.bootImages()
	if err != nil {
		return err
	}
	listening := make(chan string, 1)
	go func() {
		err := bootprovider.Run(w.life, w.plane.Config, bootprovider.Options{
			ListenAddress: local(0), Images: known, Listening: func(address string) { listening <- address },
		})
		if err != nil && w.life.Err() == nil {
			w.report(err)
		}
	}()
	select {
	case address := <-listening:
		w.providerURL = "http://" + address
		return nil
	case err := <-w.trouble:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sort says what kind of servers the demo shows.
func (w *world) sort() string {
	if w.options.vm {
		return "virtual"
	}
	return "emulated"
}

func (w *world) startServers(ctx context.Context) error {
	if w.options.vm {
		return w.startVirtual(ctx)
	}
	return w.startEmulator(ctx)
}

func (w *world) startEmulator(ctx context.Context) error {
	w.machines.url = "http://" + local(w.ports.control)
	child, err := w.start("redfish-emulator",
		"--machines="+strconv.Itoa(w.options.servers),
		"--addresses="+w.ports.bmcs.String(),
		"--base-port="+strconv.Itoa(bmcPort),
		"--endpoints-out="+w.endpointsFile,
		"--boot-provider="+w.providerURL,
		"--control-addr="+local(w.ports.control),
		"--power-delay="+powerDelay.String(),
		"--boot-delay="+bootDelay.String(),
	)
	if err != nil {
		return err
	}
	return child.AwaitReady(ctx, startLimit, func(ctx context.Context) error {
		_, err := w.machines.all(ctx)
		return err
	})
}

// startManager runs the manager. Where somebody may play with it, it survives its own end; otherwise that is a failure.
func (w *world) startManager(ctx context.Context) error {
	rights, err := w.plane.KubeconfigFor(env.Manager)
	if err != nil {
		return err
	}
	p := program{name: "metalaw", ready: func(ctx context.Context) error {
		return w.answers(ctx, "http://"+local(w.ports.health)+"/readyz")
	}}
	p.args = []string{
		"manager",
		"--kubeconfig=" + rights,
		"--namespace=" + managerNamespace,
		"--webhook-host=127.0.0.1",
		"--webhook-port=" + strconv.Itoa(w.ports.webhook),
		"--webhook-cert-dir=" + w.mount.dir,
		"--extra-dns-names=localhost",
		"--registry-bind-address=" + local(w.ports.registry),
		fmt.Sprintf("--registry-url=https://localhost:%d", w.ports.registry),
		"--health-probe-bind-address=" + local(w.ports.health),
		"--metrics-bind-address=" + local(w.ports.metrics),
		"--metrics-secure=false",
		"--no-release-grace", "--maintenance=on",
	}
	if w.options.vm {
		more, err := w.virtualManager()
		if err != nil {
			return err
		}
		p.args = append(p.args, more...)
	}
	run := w.launch
	if w.options.once {
		run = w.start
	}
	child, err := run(p.name, p.args...)
	if err != nil {
		return err
	}
	if err := child.AwaitReady(ctx, startLimit, p.ready); err != nil || w.options.once {
		return err
	}
	w.manager.Store(child)
	go w.keep(p, child)
	return nil
}

func (w *world) answers(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %w: %s", url, errNotUp, response.Status)
	}
	return nil
}

// admissionAnswers tries what only the webhooks can do: another spelling of a MAC address becomes the one that counts.
func (w *world) admissionAnswers(ctx context.Context) (sight, error) {
	endpoint := &v1alpha1.Endpoint{
		ObjectMeta: metav1.ObjectMeta{Name: "spelling"},
		Spec:       v1alpha1.EndpointSpec{MACAddress: "02-00-00-00-00-AB", IP: "127.0.0.2"},
	}
	if err := w.client.Create(ctx, endpoint, client.DryRunAll); err != nil {
		return sight{seen: err.Error()}, nil //nolint:nilerr // It is what this step waits to be over.
	}
	return sight{done: endpoint.Spec.MACAddress == "02:00:00:00:00:ab", seen: "the MAC address is stored as " + endpoint.Spec.MACAddress}, nil
}

// governs waits until a bundle is a PolicyRevision in force.
func (w *world) governs(name string) func(context.Context) (sight, error) {
	return func(ctx context.Context) (sight, error) {
		var list policyv1alpha1.PolicyRevisionList
		if err := w.watch.List(ctx, &list); err != nil {
			return sight{}, err
		}
		now := sight{seen: "there is no PolicyRevision of bundle " + name + "; the manager's log says why"}
		for i := range list.Items {
			revision := &list.Items[i]
			if revision.Spec.Bundle != name {
				continue
			}
			now.seen = "policyrevision " + revision.Name + ": " + condition(revision.Status.Conditions, policyv1alpha1.ConditionActive)
			if meta.IsStatusConditionTrue(revision.Status.Conditions, policyv1alpha1.ConditionActive) {
				now.done = true
				w.view.say("PolicyRevision " + revision.Name)
				return now, nil
			}
		}
		return now, nil
	}
}

// promoteEmulated stores and promotes the bundle by which the Endpoints of emulated BMCs are known.
func (w *world) promoteEmulated(ctx context.Context) error {
	cm, err := testkit.EmulatorConfigMap(managerNamespace)
	if err != nil {
		return err
	}
	return w.client.Create(ctx, cm)
}
