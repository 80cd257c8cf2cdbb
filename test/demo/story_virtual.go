// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator/vm"
	"github.com/metalaw/metalaw/test/vm/images"
)

// virtualClaims are one for each virtual machine.
var virtualClaims = []string{"first", "second"}

// tenancy claims the virtual machines and looks at what their workload wrote.
func tenancy(w *world) chapter {
	return chapter{title: "Claim", steps: []step{
		{name: "two claims each get a server", do: w.claimVirtual, await: w.bound(virtualClaims...)},
		{name: "the machines boot the claims' image, which writes to three disks of each", limit: fleetLimit, await: w.workloadsDone},
		{name: "the disks' images hold what it wrote", do: w.imagesMarked},
	}}
}

// cleaning ends the claims and reads every byte of the disks.
func cleaning(w *world) chapter {
	return chapter{title: "Release", steps: []step{
		{name: "the claims are deleted: the machines hear the power button and switch themselves off", do: w.dropVirtual, await: w.goodByes},
		{name: "the agent boots, erases and verifies each disk; both servers are Available again", limit: fleetLimit, await: w.cleaned},
		{name: "every byte of every disk is zero", do: w.imagesBlank},
	}}
}

func (w *world) claimVirtual(ctx context.Context) error {
	err := w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}})
	if client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	for _, name := range virtualClaims {
		if err := w.create(ctx, name, v1alpha1.ServerClaimSpec{Power: v1alpha1.PowerOn, Image: images.Workload + ":1"}); err != nil {
			return err
		}
	}
	return nil
}

// consoles waits until each machine's console says something.
func (w *world) consoles(words string) (sight, error) {
	have, other := 0, ""
	for _, m := range w.virtual.machines {
		var console string
		for boot := m.Boots(); boot > 0 && !strings.Contains(console, words); boot-- {
			console = m.ConsoleOf(boot)
		}
		if strings.Contains(console, words) {
			have++
		} else {
			lines := strings.Split(strings.TrimSpace(m.Console()), "\n")
			other += fmt.Sprintf("; console of %s: %s", m.Description().Name, lines[len(lines)-1])
		}
	}
	now := counted(have, len(w.virtual.machines), "consoles say "+words)
	now.seen += other
	return now, nil
}

func (w *world) workloadsDone(context.Context) (sight, error) {
	return w.consoles("workload: done, 3 disks")
}

func (w *world) goodByes(context.Context) (sight, error) { return w.consoles("workload: power button") }

func (w *world) dropVirtual(ctx context.Context) error {
	for _, name := range virtualClaims {
		if err := w.drop(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// cleaned waits until the wipe of each machine is verified and its server is offered.
func (w *world) cleaned(ctx context.Context) (sight, error) {
	servers, err := w.servers(ctx)
	if err != nil {
		return sight{}, err
	}
	have, other := 0, ""
	var said []string
	for i := range servers {
		server, inventory := &servers[i], &policyv1alpha1.ServerInventory{}
		if err := w.watch.Get(ctx, client.ObjectKey{Name: server.Spec.SystemUUID}, inventory); err != nil {
			return sight{}, err
		}
		wiped := slices.ContainsFunc(server.Status.Lifecycle.History, func(move v1alpha1.LifecycleMove) bool { return move.Rule == "Wiped" })
		if !wiped || server.Status.State != v1alpha1.StateAvailable || server.Status.PowerState != v1alpha1.PowerStateOff {
			other += "; " + describe(server)
			continue
		}
		have++
		for _, d := range inventory.Wipe.Disks {
			said = append(said, fmt.Sprintf("wipe report of %s: %s %s, %s (method %s)", server.Name, d.Path, d.Serial, d.State, d.Method))
		}
	}
	now := counted(have, len(w.virtual.machines), "servers wiped and offered")
	now.seen += other
	if now.done {
		for _, text := range said {
			w.view.say(text)
		}
	}
	return now, nil
}

// eachImage looks at the image of each disk.
func (w *world) eachImage(look func(disk vm.Disk, marked bool, firstUsed int64) error) error {
	for _, m := range w.virtual.machines {
		for _, disk := range m.Description().Disks {
			marked, used, err := images.Scan(disk.Path)
			if err != nil {
				return err
			}
			if err := look(disk, marked, used); err != nil {
				return fmt.Errorf("%s: disk %s: %w", m.Description().Name, disk.Serial, err)
			}
		}
	}
	return nil
}

func (w *world) imagesMarked(context.Context) error {
	return w.eachImage(func(_ vm.Disk, marked bool, _ int64) error {
		if !marked {
			return fmt.Errorf("the workload's marker is not on it")
		}
		return nil
	})
}

func (w *world) imagesBlank(context.Context) error {
	return w.eachImage(func(_ vm.Disk, _ bool, firstUsed int64) error {
		if firstUsed >= 0 {
			return fmt.Errorf("byte %d is not zero", firstUsed)
		}
		return nil
	})
}
