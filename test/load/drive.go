// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// ignitionName is the Secret that every claim names.
	ignitionName = "ignition"
	// claimImage is what the claims boot.
	claimImage = "registry.example/load/os:1"
	// senders is how many requests of the driver are under way at once.
	senders = 8
	// look is how often changes are looked at, machines are how often machines are asked that are not yet as wanted.
	look, askMachines = 5 * time.Millisecond, 50 * time.Millisecond
	// settle is how long a phase's counts go on after its goal was reached, for what the manager does last.
	settle = 2 * time.Second
	// tellEvery is how often progress is told.
	tellEvery = 10 * time.Second
	// shortIdle is the idle window below which a figure may miss the polls of a manager altogether.
	shortIdle = 200 * time.Second
)

// drive runs the phases.
func (w *world) drive(ctx context.Context) (figures, error) {
	var f figures
	var err error
	if f.last, err = w.sample(ctx); err != nil {
		return f, err
	}
	n, claims := w.options.servers, w.options.claims
	perServer, perClaim := share{"server", n}, share{"claim", claims}
	err = w.phase(ctx, &f, phaseOnboard, perServer, func(ctx context.Context, began time.Time) error {
		if err := w.createEndpoints(ctx); err != nil {
			return err
		}
		return w.await(ctx, began, allAvailable(n, ""))
	})
	if err == nil && w.options.idle > 0 {
		if w.options.idle < shortIdle {
			w.progress.say("idle: %s may be shorter than a poll period of the manager; the hourly figure then says nothing", w.options.idle)
		}
		err = w.phase(ctx, &f, phaseIdle, perServer, func(ctx context.Context, _ time.Time) error { return w.rest(ctx, w.options.idle) })
	}
	if err == nil && claims > 0 {
		err = w.phase(ctx, &f, phaseClaim, perClaim, func(ctx context.Context, began time.Time) error { return w.claim(ctx, &f, began) })
	}
	if err == nil && w.options.maintenances > 0 {
		visits := share{"maintenance", w.options.maintenances}
		err = w.phase(ctx, &f, phaseMaintenance, visits, func(ctx context.Context, began time.Time) error { return w.maintain(ctx, &f, began) })
	}
	if err == nil && claims > 0 {
		err = w.phase(ctx, &f, phaseRelease, perClaim, func(ctx context.Context, began time.Time) error {
			if err := w.deleteClaims(ctx); err != nil {
				return err
			}
			return w.await(ctx, began, allAvailable(n, kindClaim))
		})
	}
	f.doubleBinds = w.fleet.doubleBinds()
	return f, err
}

// phase runs one phase. Its counts begin where those of the phase before end.
func (w *world) phase(ctx context.Context, f *figures, name string, per share, do func(context.Context, time.Time) error) error {
	w.progress.say("%s: begins", name)
	began := time.Now()
	if err := do(ctx, began); err != nil {
		return fmt.Errorf("phase %s: %w", name, err)
	}
	p := phase{name: name, per: per, took: time.Since(began), before: f.last}
	if name != phaseIdle {
		if err := w.rest(ctx, settle); err != nil {
			return err
		}
	}
	var err error
	if p.after, err = w.sample(ctx); err != nil {
		return err
	}
	f.last = p.after
	w.progress.say("%s: done in %.2f s, manager used %.2f CPU s", name, p.seconds(), p.after.manager.CPUSeconds-p.before.manager.CPUSeconds)
	f.phases = append(f.phases, p)
	return nil
}

// sample reads all counters.
func (w *world) sample(ctx context.Context) (sampleOf, error) {
	s := sampleOf{at: time.Now()}
	var err error
	if s.manager, err = readCost(w.manager.PID()); err != nil {
		return s, err
	}
	if s.host, err = readHost(); err != nil {
		return s, err
	}
	if s.redfish, err = w.bmcs.requests(ctx); err != nil {
		return s, err
	}
	if s.api, err = w.api.metrics(ctx); err != nil {
		return s, err
	}
	log, err := os.Stat(filepath.Join(w.plane.LogDir(), managerLog+".log"))
	if err != nil {
		return s, err
	}
	s.logSize = log.Size()
	return s, nil
}

// claim makes the claims and waits until they have what they asked for.
func (w *world) claim(ctx context.Context, f *figures, began time.Time) error {
	before, err := readCost(w.manager.PID())
	if err != nil {
		return err
	}
	if err := w.createClaims(ctx); err != nil {
		return err
	}
	if err := w.await(ctx, began, allBound(w.options.claims)); err != nil {
		return err
	}
	f.bound = time.Since(began)
	after, err := readCost(w.manager.PID())
	if err != nil {
		return err
	}
	api, err := w.api.metrics(ctx)
	if err != nil {
		return err
	}
	f.boundCPU, f.boundAPICPU = after.CPUSeconds-before.CPUSeconds, api.CPUSeconds-f.last.api.CPUSeconds
	w.progress.say("%s: all Bound after %.2f s", phaseClaim, f.bound.Seconds())
	return w.await(ctx, began, allRunning(w.options.claims))
}

// rest lets time pass.
func (w *world) rest(ctx context.Context, long time.Duration) error {
	select {
	case <-time.After(long):
		return nil
	case err := <-w.trouble:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *world) createEndpoints(ctx context.Context) error {
	machines, err := w.bmcs.machines(ctx)
	if err != nil {
		return err
	}
	return forEach(len(machines), func(i int) error {
		m := machines[i]
		ip, _, _ := strings.Cut(strings.TrimPrefix(m.URL, "http://"), ":")
		return w.api.create(ctx, apiRoot+string(kindEndpoint), map[string]any{
			"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": "Endpoint", "metadata": map[string]any{"name": m.Name},
			"spec": map[string]any{"macAddress": m.BMCMAC, "ip": ip},
		})
	})
}

// claimPath is the collection of the claims.
const claimPath = "/apis/metal.ironcore.dev/v1alpha1/namespaces/" + tenant + "/serverclaims"

func claimName(i int) string { return fmt.Sprintf("claim-%05d", i) }

func (w *world) createClaims(ctx context.Context) error {
	return forEach(w.options.claims, func(i int) error {
		return w.api.create(ctx, claimPath, map[string]any{
			"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": "ServerClaim", "metadata": map[string]any{"name": claimName(i)},
			"spec": map[string]any{"power": on, "image": claimImage, "ignitionSecretRef": map[string]any{"name": ignitionName}},
		})
	})
}

func (w *world) deleteClaims(ctx context.Context) error {
	return forEach(w.options.claims, func(i int) error { return w.api.delete(ctx, claimPath+"/"+claimName(i)) })
}

// forEach calls do for 0 to n-1, several at once, and returns the first error.
func forEach(n int, do func(i int) error) error {
	var group sync.WaitGroup
	next := make(chan int)
	failed := make(chan error, senders)
	for range senders {
		group.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	var err error
	for i := 0; i < n && err == nil; i++ {
		select {
		case next <- i:
		case err = <-failed:
		}
	}
	close(next)
	group.Wait()
	select {
	case late := <-failed:
		if err == nil {
			err = late
		}
	default:
	}
	return err
}
