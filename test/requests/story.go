// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

const (
	// steadyPoll is so long that no reading of a BMC at rest falls into a phase.
	steadyPoll = time.Hour
	// quiet is how long nothing is asked before a phase counts as over, look how often that is seen.
	quiet, look = 3 * time.Second, 50 * time.Millisecond
	// patience is how long a phase may take.
	patience = 2 * time.Minute
)

// tell brings one new machine through all phases. The claim may get a server that was released before.
func (w *world) tell(ctx context.Context, n int) ([]phase, error) {
	m := w.fleet.Add(emulator.MachineSpec{})
	if err := m.Err(); err != nil {
		return nil, err
	}
	claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: fmt.Sprintf("claim-%d", n)}}
	claim.Spec.Power, claim.Spec.Image = v1alpha1.PowerOn, "os:1"
	claimed := ""
	var phases []phase
	for _, step := range []struct {
		name string
		do   func() error
		of   func(*v1alpha1.Server) bool
		want standing
	}{
		{"onboarding", func() error { return w.plug(ctx, m) },
			func(s *v1alpha1.Server) bool { return strings.EqualFold(s.Spec.SystemUUID, m.Identity().UUID) }, free},
		{"claim", func() error { return w.admin.Create(ctx, claim) },
			func(s *v1alpha1.Server) bool {
				return s.Spec.ServerClaimRef != nil && s.Spec.ServerClaimRef.Name == claim.Name
			}, given},
		{"release", func() error { return w.admin.Delete(ctx, claim) },
			func(s *v1alpha1.Server) bool { return s.Name == claimed }, free},
	} {
		began := w.count()
		if err := step.do(); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		var err error
		if claimed, err = w.becomes(ctx, step.of, step.want); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		if err := w.rests(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		phases = append(phases, phase{step.name, w.since(began)})
	}
	return phases, nil
}

// standing is the state and power of a Server.
type standing struct {
	state v1alpha1.ServerState
	power v1alpha1.PowerState
}

var (
	free  = standing{v1alpha1.StateAvailable, v1alpha1.PowerStateOff}
	given = standing{v1alpha1.StateReserved, v1alpha1.PowerStateOn}
)

// plug makes the object by which the operator finds the machine.
func (w *world) plug(ctx context.Context, m *emulator.Machine) error {
	endpoint := &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: m.Name()}}
	endpoint.Spec.MACAddress, endpoint.Spec.IP = m.BMCMAC(), m.Address()
	return w.admin.Create(ctx, endpoint)
}

// becomes waits until a Server is as wanted and at rest, and returns its name.
func (w *world) becomes(ctx context.Context, of func(*v1alpha1.Server) bool, want standing) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var got standing
	for {
		var all v1alpha1.ServerList
		err := w.admin.List(ctx, &all)
		for i := range all.Items {
			s := &all.Items[i]
			if !of(s) {
				continue
			}
			got = standing{s.Status.State, s.Status.PowerState}
			if got == want && meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady) {
				return s.Name, nil
			}
		}
		if err == nil {
			err = w.pause(ctx)
		}
		if err != nil {
			return "", fmt.Errorf("waited for %v, it is %v: %w", want, got, err)
		}
	}
}

// rests waits until the manager asks nothing any more.
func (w *world) rests(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for n, since := w.count(), time.Now(); time.Since(since) < quiet; {
		if err := w.pause(ctx); err != nil {
			return fmt.Errorf("the manager does not come to rest: %w", err)
		}
		if now := w.count(); now != n {
			n, since = now, time.Now()
		}
	}
	return nil
}

func (w *world) pause(ctx context.Context) error {
	select {
	case <-time.After(look):
		return nil
	case err := <-w.trouble:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
