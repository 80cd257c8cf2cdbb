// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

const (
	runLabel     = "model.metalaw.dev/run"
	machineLabel = "model.metalaw.dev/machine"
	// poll is how often a state that is waited for is looked at.
	poll = 100 * time.Millisecond
	// stranger is the machine that is found running, and byEndpoint the one that is found by an Endpoint.
	stranger, byEndpoint = machines - 1, 0
)

// run is one plan carried out on machines and claims of its own.
type run struct {
	world    *world
	name     string
	log      *record
	machines []*emulator.Machine
	// own are the machines' own identities, faults what their BMCs suffer from, absent those whose BMC object has to be made.
	own    []emulator.Identity
	faults [][]*emulator.Injected
	absent []bool
	// exchanged are the machines in whose place another one is, shelf the contents of the drives that lie beside each place.
	exchanged []bool
	shelf     []map[string]string
	// generation counts claims, versions images.
	generation, versions int
	done                 int
	// idle are the steps that found nothing to do.
	idle map[int]bool
}

// newRun makes machines and lets them be found.
func newRun(ctx context.Context, w *world) (*run, error) {
	w.runs++
	r := &run{world: w, name: fmt.Sprintf("r%d", w.runs), log: newRecord(), versions: 1, idle: map[int]bool{}}
	w.log.Store(r.log)
	for i := range machines {
		spec := emulator.MachineSpec{Name: fmt.Sprintf("%s-%d", r.name, i+1), Username: "admin", Password: "password"}
		if i == stranger {
			spec.Power = emulator.PowerOn
		}
		if i%2 == 1 {
			spec.Tweak = func(p *emulator.Profile) { p.SessionTimeout = 30 * time.Second }
		}
		m := w.fleet.Add(spec)
		if m.Err() != nil {
			return nil, m.Err()
		}
		w.names.Store(m.Identity().UUID, m.Name())
		r.machines = append(r.machines, m)
		r.own = append(r.own, m.Identity())
		r.absent = append(r.absent, true)
		note(r, r.log.answering, i, m.Identity().UUID)
		note(r, r.log.lying, i, false)
	}
	r.faults, r.exchanged, r.shelf = make([][]*emulator.Injected, machines), make([]bool, machines), make([]map[string]string, machines)
	err := r.announce(ctx)
	return r, err
}

// found waits until every machine is free, but the one that was found running.
func (r *run) found(ctx context.Context) error {
	return r.until(ctx, time.Minute, "every machine to be found", func() error {
		if err := r.announce(ctx); err != nil {
			return err
		}
		for i := range r.machines {
			s, err := r.server(ctx, i)
			if err != nil {
				return err
			}
			want := v1alpha1.StateAvailable
			if i == stranger {
				want = v1alpha1.StateObserving
			}
			off := s.Status.PowerState == v1alpha1.PowerStateOff || i == stranger
			if s.Status.State != want || !off || s.Labels[machineLabel] == "" {
				return fmt.Errorf("machine %d: %s", i+1, describeServer(s))
			}
		}
		return nil
	})
}

// announce makes the objects by which the operator finds machines, as far as they are absent.
func (r *run) announce(ctx context.Context) error {
	for i, m := range r.machines {
		labels := map[string]string{runLabel: r.name, machineLabel: m.Name()}
		if !r.absent[i] {
			continue
		}
		var err error
		if i == byEndpoint {
			err = r.world.admin.Create(ctx, &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: m.Name(), Labels: labels},
				Spec: v1alpha1.EndpointSpec{MACAddress: m.BMCMAC(), IP: m.Address()}})
		} else {
			err = r.createBMC(ctx, m, labels)
		}
		if err == nil {
			r.absent[i] = false
		} else if !apierrors.IsAlreadyExists(err) && r.world.operator.Ready() { // one that exists is about to go
			return err
		}
	}
	return nil
}

func (r *run) createBMC(ctx context.Context, m *emulator.Machine, labels map[string]string) error {
	user, password := m.Credentials()
	secret := &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: m.Name()},
		Data: map[string][]byte{"username": []byte(user), "password": []byte(password)}}
	if err := client.IgnoreAlreadyExists(r.world.admin.Create(ctx, secret)); err != nil {
		return err
	}
	b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: m.Name(), Labels: labels}}
	b.Spec.Access = &v1alpha1.InlineEndpoint{IP: m.Address()}
	b.Spec.BMCSecretRef.Name = m.Name()
	b.Spec.Protocol = v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish, Port: bmcPort, Scheme: v1alpha1.ProtocolSchemeHTTP}
	return r.world.admin.Create(ctx, b)
}

// forget deletes the object by which a machine was found; announce makes it again.
func (r *run) forget(ctx context.Context, machine int) error {
	name := r.machines[machine].Name()
	r.absent[machine] = true
	if machine == byEndpoint {
		return r.world.admin.Delete(ctx, &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return r.world.admin.Delete(ctx, &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// resolve gives a step about a claim the next one that has a server, at best the machine of the step where that is asked, or
// else that exists, and a new claim the next free name. Where the API server does not answer, the step stays as it is.
func (r *run) resolve(ctx context.Context, s step) step {
	if !strings.HasPrefix(s.String(), "claim") {
		return s
	}
	best, rank := s.claim, 0
	for offset := range claims {
		number := (s.claim + offset) % claims
		c, err := r.claim(ctx, number)
		suits := 0
		switch {
		case s.action == "claim" && apierrors.IsNotFound(err):
			suits = 1
		case s.action != "claim" && err == nil && c.Spec.ServerRef == nil:
			suits = 1
		case s.action != "claim" && err == nil && s.holder && c.Spec.ServerRef.Name == serverOf(r.machines[s.machine].Name()):
			suits = 3
		case s.action != "claim" && err == nil:
			suits = 2
		}
		if suits > rank {
			best, rank = number, suits
		}
	}
	s.claim = best
	return s
}

// perform carries out one step. What was refused is noted and no failure.
func (r *run) perform(ctx context.Context, s step) error {
	limited, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	about := ""
	if strings.HasPrefix(s.String(), "machine") {
		about = r.machines[s.machine].Name()
	}
	r.log.did(about, "step %d: %s", r.done+1, s)
	if err := actions[s.action].do(limited, r, s); err != nil {
		r.idle[r.done] = apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errNothing)
		r.log.did(about, "step %d came to nothing: %v", r.done+1, err)
	}
	r.done++
	if err := r.announce(ctx); err != nil {
		r.log.did("", "machines cannot be announced: %v", err)
	}
	return r.pause(ctx, s.pause)
}

func (r *run) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// until polls until there is no error left, and returns the last one where that takes too long.
func (r *run) until(ctx context.Context, limit time.Duration, what string, there func() error) error {
	for end := time.Now().Add(limit); ; {
		err := there()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("waited %s for %s: %w", limit, what, err)
		}
		if stop := r.pause(ctx, poll); stop != nil {
			return stop
		}
	}
}

// settle waits a while until a server rests.
func (r *run) settle(ctx context.Context, machine int, limit time.Duration) error {
	return r.until(ctx, limit, "rest", func() error {
		s, err := r.server(ctx, machine)
		if err != nil {
			return err
		}
		switch s.Status.State { //nolint:exhaustive // in every other state a server goes on
		case v1alpha1.StateAvailable, v1alpha1.StateReleased:
			if s.Status.PowerState == v1alpha1.PowerStateOff && s.Spec.ServerClaimRef == nil {
				return nil
			}
		case v1alpha1.StateObserving, v1alpha1.StateError, v1alpha1.StateParked:
			return nil
		case v1alpha1.StateReserved:
			if meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady) {
				return nil
			}
		}
		return errors.New(describeServer(s))
	})
}

// awaitClaim waits a while until a claim runs.
func (r *run) awaitClaim(ctx context.Context, claim int, limit time.Duration) error {
	begun := time.Now()
	return r.until(ctx, limit, "the claim to run", func() error {
		c, err := r.claim(ctx, claim)
		if apierrors.IsNotFound(err) || (err == nil && meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady)) {
			return nil
		}
		if err == nil && c.Spec.ServerRef == nil && time.Since(begun) > 2*time.Second {
			return nil // nobody has a machine for it
		}
		return errors.Join(errors.New("it does not run"), err)
	})
}

func (r *run) claimName(number int) string { return fmt.Sprintf("%s-%c", r.name, 'a'+number) }

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (r *run) claim(ctx context.Context, number int) (*v1alpha1.ServerClaim, error) {
	c := &v1alpha1.ServerClaim{}
	return c, r.world.admin.Get(ctx, key(tenants, r.claimName(number)), c)
}

func (r *run) server(ctx context.Context, machine int) (*v1alpha1.Server, error) {
	s := &v1alpha1.Server{}
	return s, r.world.admin.Get(ctx, key("", serverOf(r.machines[machine].Name())), s)
}

// again repeats a change that came at the same time as another.
func again(change func() error) error {
	for range 10 {
		if err := change(); !apierrors.IsConflict(err) {
			return err
		}
	}
	return change()
}

func (r *run) changeClaim(ctx context.Context, number int, change func(*v1alpha1.ServerClaim)) error {
	return again(func() error {
		c, err := r.claim(ctx, number)
		if err != nil {
			return err
		}
		change(c)
		return r.world.admin.Update(ctx, c)
	})
}

func (r *run) changeServer(ctx context.Context, machine int, change func(*v1alpha1.Server)) error {
	return again(func() error {
		s, err := r.server(ctx, machine)
		if err != nil {
			return err
		}
		change(s)
		return r.world.admin.Update(ctx, s)
	})
}

// control changes what is allowed in the fleet at present.
func (r *run) control(ctx context.Context, change func(*policyv1alpha1.FleetControlSpec)) error {
	return again(func() error {
		c := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
		err := r.world.admin.Get(ctx, client.ObjectKeyFromObject(c), c)
		if apierrors.IsNotFound(err) {
			change(&c.Spec)
			return r.world.admin.Create(ctx, c)
		}
		if err != nil {
			return err
		}
		change(&c.Spec)
		return r.world.admin.Update(ctx, c)
	})
}

// meddle notes that the binding of a server was broken by hand.
func (r *run) meddle(server string) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.log.meddled[server] = true
}

// takeFrom notes that a server was taken from its holder by hand.
func (r *run) takeFrom(server string) {
	r.meddle(server)
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.log.handed[server] = true
}

// waive notes that the rules which guard a machine's data were set aside by somebody who may do that.
func (r *run) waive(machine int) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	name := r.machines[machine].Name()
	r.log.waived[name] = append(r.log.waived[name], span{from: time.Now()})
}

func (r *run) trouble(machine int, f emulator.Fault) {
	r.suffers(machine)
	r.faults[machine] = append(r.faults[machine], r.machines[machine].Inject(f))
	if lies(f) {
		note(r, r.log.lying, machine, true)
	}
}

// suffers notes that a BMC does not always answer.
func (r *run) suffers(machine int) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.log.troubled[r.machines[machine].Name()] = true
}

// suffered says that a BMC did not always answer, or lied.
func (r *record) suffered(machine string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.troubled[machine]
}

func (r *run) heal(machine int) {
	for _, f := range r.faults[machine] {
		f.Remove()
	}
	r.faults[machine] = nil
	note(r, r.log.lying, machine, false)
}

func (r *run) swap(machine int, away bool) {
	to := r.own[machine]
	if away {
		to = r.stranger(machine)
	}
	r.machines[machine].SwapIdentity(to)
	r.world.names.Store(to.UUID, r.machines[machine].Name())
	note(r, r.log.answering, machine, to.UUID)
}

func note[T any](r *run, in map[string]history[T], machine int, value T) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	put(in, r.machines[machine].Name(), time.Now(), value)
}
