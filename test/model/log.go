// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/guest"
)

// boot is what a machine booted, and what its drives held at that moment.
type boot struct {
	guest.Boot
	drives map[string]string
}

// deed is something that was done to the world.
type deed struct {
	at      time.Time
	machine string // empty where it is about no machine in particular
	text    string
}

// record is everything that became known in one run: what the API showed, what truly happened to the machines, and what
// was done. It is the oracle's only source besides the log of writes.
type record struct {
	mu      sync.Mutex
	begun   time.Time
	servers map[string]history[*v1alpha1.Server]
	// claims are by tenant, see tenantOf.
	claims  map[string]history[*v1alpha1.ServerClaim]
	tenants map[types.UID]string
	control history[*policyv1alpha1.FleetControl]
	// maintenances are by UID, so that one that is made again under a name is another one.
	maintenances map[types.UID]history[*v1alpha1.ServerMaintenance]

	power  map[string]history[emulator.PowerState]
	drives map[string]map[string]history[string] // contents, by machine and drive
	erases map[string][]emulator.Happening       // begun
	boots  map[string][]boot

	// answering is the UUID of the machine that answers in a machine's place, lying that its BMC does not tell its power.
	answering map[string]history[string]
	lying     map[string]history[bool]
	// forebears are tenants whose claim was restored, by that of the restored claim.
	forebears map[string]string
	// waived are the times in which the rules that guard a machine's data are set aside, by somebody who may do that; each
	// ends with the next erasure.
	waived map[string][]span
	// releases are the moments at which somebody asked for a release by hand, by server.
	releases map[string][]time.Time
	// troubled are machines whose BMC did not always answer.
	troubled map[string]bool
	// accepted are the systems that somebody accepted behind a BMC that had shown another, by UUID.
	accepted map[string]bool
	// lifted are the moments at which somebody began to end that a server is left alone.
	lifted map[string]time.Time
	// meddled are the servers whose binding was broken by hand.
	meddled map[string]bool
	// handed are the servers that were taken from their holder by hand: their reference was cleared, or they were forced.
	handed map[string]bool

	deeds    []deed
	breaches []breach
}

// span is a time; one without an end lasts.
type span struct{ from, to time.Time }

func newRecord() *record {
	return &record{begun: time.Now(),
		maintenances: map[types.UID]history[*v1alpha1.ServerMaintenance]{},
		servers:      map[string]history[*v1alpha1.Server]{}, claims: map[string]history[*v1alpha1.ServerClaim]{}, tenants: map[types.UID]string{},
		power: map[string]history[emulator.PowerState]{}, drives: map[string]map[string]history[string]{},
		erases: map[string][]emulator.Happening{}, boots: map[string][]boot{},
		answering: map[string]history[string]{}, lying: map[string]history[bool]{}, forebears: map[string]string{},
		waived: map[string][]span{}, releases: map[string][]time.Time{}, meddled: map[string]bool{}, handed: map[string]bool{},
		troubled: map[string]bool{}, accepted: map[string]bool{}, lifted: map[string]time.Time{}}
}

// did notes a deed.
func (r *record) did(machine, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deeds = append(r.deeds, deed{at: time.Now(), machine: machine, text: fmt.Sprintf(format, args...)})
}

// happened is the emulator's witness.
func (r *record) happened(h emulator.Happening) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch h.What {
	case emulator.PowerChanged:
		put(r.power, h.Machine, h.At, h.Power)
	case emulator.EraseBegun:
		r.erases[h.Machine] = append(r.erases[h.Machine], h)
	case emulator.DriveWritten, emulator.DriveErased:
		if r.drives[h.Machine] == nil {
			r.drives[h.Machine] = map[string]history[string]{}
		}
		put(r.drives[h.Machine], h.Drive, h.At, h.Contents)
		if h.What == emulator.DriveErased {
			for i := range r.waived[h.Machine] {
				if r.waived[h.Machine][i].to.IsZero() {
					r.waived[h.Machine][i].to = h.At
				}
			}
		}
	}
}

// booted hears what a machine boots, before that does anything.
func (r *record) booted(machine string, b guest.Boot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	on := boot{Boot: b, drives: map[string]string{}}
	for drive, h := range r.drives[machine] {
		on.drives[drive], _ = h.last()
	}
	r.boots[machine] = append(r.boots[machine], on)
}

// lastBoot is what a machine booted last.
func (r *record) lastBoot(machine string) boot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if all := r.boots[machine]; len(all) > 0 {
		return all[len(all)-1]
	}
	return boot{}
}

// put appends a version to one of several histories.
func put[K comparable, T any](all map[K]history[T], name K, at time.Time, object T) {
	h := all[name]
	h.put(at, object)
	all[name] = h
}

// saw notes a version of an object.
func (r *record) saw(object any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := time.Now()
	switch o := object.(type) {
	case *v1alpha1.Server:
		r.judgeServer(at, o)
		put(r.servers, o.Name, at, o)
	case *v1alpha1.ServerClaim:
		tenant := tenantOf(o.Spec.Image)
		r.judgeClaim(at, tenant, o)
		r.tenants[o.UID] = tenant
		put(r.claims, tenant, at, o)
	case *policyv1alpha1.FleetControl:
		r.control.put(at, o)
	case *v1alpha1.ServerMaintenance:
		r.judgeHolders(at, o)
		put(r.maintenances, o.UID, at, o)
	}
}

// lost notes that an object is gone.
func (r *record) lost(object any) {
	if last, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = last.Obj
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := time.Now()
	switch o := object.(type) {
	case *v1alpha1.Server:
		h := r.servers[o.Name]
		h.end(at)
		r.servers[o.Name] = h
	case *v1alpha1.ServerClaim:
		h := r.claims[tenantOf(o.Spec.Image)]
		h.end(at)
		r.claims[tenantOf(o.Spec.Image)] = h
	case *policyv1alpha1.FleetControl:
		r.control.end(at)
	case *v1alpha1.ServerMaintenance:
		h := r.maintenances[o.UID]
		h.end(at)
		r.maintenances[o.UID] = h
	}
}

// watch tells a record, which may change from run to run, every version of the objects that matter.
func watch(ctx context.Context, running *sync.WaitGroup, config *rest.Config, scheme *runtime.Scheme, to func() *record) error {
	objects, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	for _, kind := range []client.Object{&v1alpha1.Server{}, &v1alpha1.ServerClaim{}, &v1alpha1.ServerMaintenance{}, &policyv1alpha1.FleetControl{}} {
		informer, err := objects.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { to().saw(o) }, UpdateFunc: func(_, o any) { to().saw(o) }, DeleteFunc: func(o any) { to().lost(o) },
		})
		if err != nil {
			return err
		}
	}
	running.Go(func() { _ = objects.Start(ctx) }) // it ends with ctx
	if !objects.WaitForCacheSync(ctx) {
		return context.Cause(ctx)
	}
	return nil
}

// image is what a claim boots. It names the tenant, so that what is found on a disk tells whose it is.
func image(tenant string, version int) string { return fmt.Sprintf("os-%s:v%d", tenant, version) }

// tenantOf is the tenant that an image, or what it wrote to a disk, belongs to; empty where it is nobody's.
func tenantOf(text string) string {
	_, after, found := strings.Cut(text, "os-")
	if !found {
		return ""
	}
	tenant, _, _ := strings.Cut(after, ":")
	return tenant
}

// heir says that what belongs to one tenant may be used by another: it is the same one, or its claim was restored.
func (r *record) heir(tenant, of string) bool {
	for known := 0; tenant != "" && known < 50; known++ {
		if tenant == of {
			return true
		}
		tenant = r.forebears[tenant]
	}
	return false
}

// counts tell how much happened: boots by what was booted, erasures, and moves by the state that they led to.
func (r *record) counts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]int{}
	for machine := range r.power {
		for _, b := range r.boots[machine] {
			all["boots of "+string(b.Kind)]++
		}
		all["erasures begun"] += len(r.erases[machine])
		var before v1alpha1.ServerState
		for _, v := range r.servers[serverOf(machine)] {
			if !v.gone && v.object.Status.State != before {
				before = v.object.Status.State
				all["moves to "+string(before)]++
			}
		}
	}
	for _, h := range r.maintenances {
		all["maintenances asked for"]++
		if h.ever(r.begun, time.Now(), func(m *v1alpha1.ServerMaintenance) bool { return m.Status.GrantedAt != nil }) {
			all["maintenances granted"]++
		}
	}
	all["systems accepted"] = len(r.accepted)
	trips := map[time.Time]bool{}
	for _, v := range r.control {
		if !v.gone && tripped(v.object) {
			trips[v.object.Status.Trip.At.Time] = true
		}
	}
	all["trips of the breaker"] = len(trips)
	return all
}

func serverOf(machine string) string { return machine + "-system-0" }

// serversOf are the names of all Servers that were made for the systems behind a machine's BMC.
func (r *record) serversOf(machine string) []string {
	var all []string
	for name := range r.servers {
		if machineOf(name) == machine {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
