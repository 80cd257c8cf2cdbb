// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/bootprovider"
	"github.com/metalaw/metalaw/test/emulated"
	"github.com/metalaw/metalaw/test/env"
	"github.com/metalaw/metalaw/test/guest"
)

const (
	tenants = "default"
	// bmcPort is the port of every emulated BMC; the MAC prefix database of the default bundle says the same.
	bmcPort = 8000
	// grace is after which time a BMC is asked again.
	grace = 3 * time.Second
)

// binaryVariable names another built manager than bin/metalaw.
const binaryVariable = "METALAW"

// The moments at which a manager is ambushed.
const (
	atPeace int32 = iota
	beforeWrite
	afterWrite
)

var ambushes = map[string]int32{"before": beforeWrite, "after": afterWrite}

// world is what all runs share: a control plane, the built manager under its shipped rights with its webhooks, a boot
// operator, and a fleet of machines.
type world struct {
	plane    *env.Env
	admin    client.Client
	fleet    *emulator.Fleet
	operator *env.Operator
	guests   *guests

	log    atomic.Pointer[record] // of the present run
	ambush atomic.Int32
	// names are the machines by UUID.
	names sync.Map

	dir     string
	life    context.Context
	end     context.CancelFunc
	helpers sync.WaitGroup
	runs    int
}

// newWorld starts everything.
func newWorld(ctx context.Context, dir string) (*world, error) {
	w := &world{dir: dir}
	w.log.Store(newRecord())
	w.life, w.end = context.WithCancel(context.WithoutCancel(ctx))
	err := w.start(ctx)
	if err != nil {
		return nil, errors.Join(err, w.close(true))
	}
	return w, nil
}

func (w *world) start(ctx context.Context) error {
	var err error
	w.plane, err = env.Start(w.life, env.Options{Kustomize: []string{"config/default"}, StartTimeout: 2 * time.Minute})
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	if w.admin, err = client.New(w.plane.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := watch(w.life, &w.helpers, w.plane.Config, scheme, w.log.Load); err != nil {
		return err
	}
	provider, err := w.startBootProvider(ctx)
	if err != nil {
		return err
	}
	if err := w.startFleet(provider); err != nil {
		return err
	}
	return w.startManager(ctx)
}

func (w *world) startManager(ctx context.Context) error {
	binary := os.Getenv(binaryVariable)
	if binary == "" {
		root, err := env.RepoRoot()
		if err != nil {
			return err
		}
		binary = filepath.Join(root, "bin", "metalaw")
	}
	var err error
	w.operator, err = w.plane.NewOperator(ctx, binary, w.dir, "--power-grace="+grace.String(), "--steady-poll=2s", "--log-level=debug",
		"--maintenance=on")
	if err != nil {
		return err
	}
	if err := w.operator.Start(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := w.operator.AwaitReady(limited); err != nil {
		return err
	}
	return w.govern(limited)
}

func (w *world) startBootProvider(ctx context.Context) (string, error) {
	listening, ended := make(chan string, 1), make(chan error, 1)
	w.helpers.Go(func() {
		ended <- bootprovider.Run(w.life, w.plane.Config, bootprovider.Options{ListenAddress: "127.0.0.1:0",
			Listening: func(address string) { listening <- address }})
	})
	select {
	case address := <-listening:
		return "http://" + address, nil
	case err := <-ended:
		return "", fmt.Errorf("the boot provider ended: %w", err)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (w *world) startFleet(provider string) error {
	stand, err := emulated.NewGuest(guest.Options{ProviderURL: provider, Interval: time.Second, OnBoot: w.booted,
		Retry: guest.Retry{First: 50 * time.Millisecond, Max: time.Second}})
	if err != nil {
		return err
	}
	w.guests = &guests{next: stand, muted: map[string]chan struct{}{}}
	for range 20 { // somebody else may use the network
		w.fleet = emulator.New(emulator.Options{Network: fmt.Sprintf("127.%d.0.0/16", 100+rand.IntN(100)), Port: bmcPort, Guest: w.guests,
			Delays: emulator.Delays{Power: 200 * time.Millisecond, Erase: 400 * time.Millisecond, Shutdown: 200 * time.Millisecond,
				BMCReset: time.Second},
			JournalLimit: 1_000_000, Interfere: w.interfere, Witness: func(h emulator.Happening) { w.log.Load().happened(h) }})
		w.fleet.Add(emulator.MachineSpec{Name: "first"}) // it takes the first address, and tells whether the network is free
		if err = w.fleet.Start(w.life); err == nil {
			return nil
		}
	}
	return err
}

// interfere kills the manager at a write to a BMC, where that was asked for.
func (w *world) interfere(write emulator.Write, done bool) bool {
	moment := beforeWrite
	if done {
		moment = afterWrite
	}
	if aboutSessions(write) || !w.ambush.CompareAndSwap(moment, atPeace) {
		return true
	}
	if !w.operator.Kill() {
		return true
	}
	when := map[bool]string{false: "before", true: "after"}[done]
	w.log.Load().did(write.Machine, "the manager was killed %s %s %s", when, write.Method, write.Path)
	return false
}

// aboutSessions says that a write is a login or a logout.
func aboutSessions(write emulator.Write) bool {
	return strings.Contains(strings.ToLower(write.Path), "/sessionservice/")
}

func (w *world) booted(b guest.Boot) {
	if name, known := w.names.Load(b.UUID); known {
		w.log.Load().booted(name.(string), b)
	}
}

// close ends everything. The logs are kept where something failed.
func (w *world) close(failed bool) error {
	if w.operator != nil {
		w.operator.Stop(20 * time.Second)
	}
	if w.fleet != nil {
		w.fleet.Close()
	}
	w.end()
	w.helpers.Wait()
	if w.plane == nil {
		return nil
	}
	w.plane.KeepLogs = failed
	return w.plane.Stop()
}

// guests lets machines hang in their firmware.
type guests struct {
	next emulator.Guest

	mu    sync.Mutex
	muted map[string]chan struct{} // closed once the machine goes on
}

// PoweredOn implements emulator.Guest.
func (g *guests) PoweredOn(ctx context.Context, m *emulator.Machine, boot emulator.BootSelection) {
	g.mu.Lock()
	hangs := g.muted[m.Name()]
	g.mu.Unlock()
	if hangs != nil {
		select {
		case <-hangs:
		case <-ctx.Done():
			return
		}
	}
	g.next.PoweredOn(ctx, m, boot)
}

// PoweredOff implements emulator.Guest.
func (g *guests) PoweredOff(m *emulator.Machine) { g.next.PoweredOff(m) }

func (g *guests) mute(machine string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.muted[machine] == nil {
		g.muted[machine] = make(chan struct{})
	}
}

func (g *guests) unmute(machine string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.muted[machine] != nil {
		close(g.muted[machine])
		delete(g.muted, machine)
	}
}
