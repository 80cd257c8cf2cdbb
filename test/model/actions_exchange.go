// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// exchangeActions is what happens when hardware is exchanged behind a BMC that is known: the newcomer has drives of its own, and
// waits until somebody accepts it, or until the former machine is back.
func exchangeActions() map[string]action {
	return map[string]action{
		"exchange": {weight: 2, words: onMachine("switched off, and exchanged for another"), do: func(ctx context.Context, r *run, s step) error {
			return r.exchange(ctx, s.machine, true)
		}},
		"accept": {weight: 4, do: acceptSystem, words: onMachine("the one in its place is accepted")},
	}
}

// stranger is the identity of the machine that answers in a machine's place.
func (r *run) stranger(machine int) emulator.Identity {
	return emulator.Identity{UUID: fmt.Sprintf("0badcafe-0000-4000-8000-%012d", r.world.runs*machines+machine),
		SerialNumber: "STRANGER" + r.machines[machine].Name()}
}

// exchange puts another machine in the place of one, or that one back, with the drives that belong to it.
func (r *run) exchange(ctx context.Context, machine int, away bool) error {
	m := r.machines[machine]
	if away == r.exchanged[machine] {
		return errNothing
	}
	m.PowerBehindBack(false)
	if err := m.WaitPower(ctx, emulator.PowerOff); err != nil {
		return err
	}
	kept := map[string]string{}
	for _, d := range m.Drives() {
		kept[d.Name] = d.Contents()
		d.Write(r.shelf[machine][d.Name])
	}
	r.shelf[machine], r.exchanged[machine] = kept, away
	r.swap(machine, away)
	return nil
}

// acceptSystem accepts the one in a machine's place, by the annotation on the BMC.
func acceptSystem(ctx context.Context, r *run, s step) error {
	if !r.exchanged[s.machine] {
		return errNothing
	}
	own, err := r.server(ctx, s.machine)
	if err != nil {
		return err
	}
	if !strings.EqualFold(own.Spec.SystemUUID, r.own[s.machine].UUID) || !own.DeletionTimestamp.IsZero() {
		return errNothing // its Server is for the other one already
	}
	uuid := r.stranger(s.machine).UUID
	r.log.mu.Lock()
	r.log.accepted[uuid] = true
	r.log.mu.Unlock()
	return r.changeBMC(ctx, s.machine, func(b *v1alpha1.BMC) {
		metav1.SetMetaDataAnnotation(&b.ObjectMeta, v1alpha1.AcceptSystemAnnotation, uuid)
	})
}

func (r *run) changeBMC(ctx context.Context, machine int, change func(*v1alpha1.BMC)) error {
	return again(func() error {
		b := &v1alpha1.BMC{}
		if err := r.world.admin.Get(ctx, key("", r.machines[machine].Name()), b); err != nil {
			return err
		}
		change(b)
		return r.world.admin.Update(ctx, b)
	})
}

// restore puts a machine back in its place, and takes back what was not yet accepted.
func (r *run) restore(ctx context.Context, machine int) error {
	if err := r.exchange(ctx, machine, false); err != nil && !errors.Is(err, errNothing) {
		return err
	}
	r.swap(machine, false)
	return nil
}
