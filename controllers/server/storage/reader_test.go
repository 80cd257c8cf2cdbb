// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/redfish"
	"github.com/metalaw/metalaw/redfish/drives"
)

const uuid = "11111111-2222-4333-8444-555555555555"

// shelf is a BMC whose reading takes a second.
type shelf struct {
	redfish.BMC
	mu    sync.Mutex
	list  drives.List
	err   error
	wants []redfish.Identity
}

func (s *shelf) Get(string, redfish.Endpoint, redfish.Credentials) redfish.BMC { return s }

func (s *shelf) Drives(_ context.Context, _ string, want redfish.Identity) (drives.List, error) {
	time.Sleep(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wants = append(s.wants, want)
	return s.list, s.err
}

func (s *shelf) becomes(err error, serials ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list, s.err = drives.List{}, err
	for _, serial := range serials {
		s.list.Drives = append(s.list.Drives, drives.Drive{Serial: serial, CapacityBytes: 1})
	}
}

func (s *shelf) reads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.wants)
}

// desk is a Reader with what it needs.
type desk struct {
	*Reader
	t        *testing.T
	bmc      *shelf
	api      client.Client
	subject  Subject
	patches  int
	conflict bool
	wakes    int
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, bmc: &shelf{}}
	scheme := runtime.NewScheme()
	if err := policyv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	inventory := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: uuid}}
	inventory.Phase = &policyv1alpha1.AgentPhase{Entry: 5}
	d.api = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(inventory).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			d.patches++
			if d.conflict {
				return errors.New("conflict")
			}
			return c.Patch(ctx, o, p, opts...)
		}})
	d.Reader = New(Options{Clients: d.bmc, Client: d.api, Reader: d.api, Wake: func(string) { d.wakes++ }, Now: time.Now})
	d.subject = Subject{Server: inEntry(), Target: hardware.Target{Key: "uid", URI: "/redfish/v1/Systems/1"}, Want: redfish.Identity{UUID: uuid}}
	d.subject.Server.Status.Lifecycle.EnteredAt = metav1.NewMicroTime(time.Now())
	return d
}

func (d *desk) stored() *policyv1alpha1.ServerInventory {
	d.t.Helper()
	i := &policyv1alpha1.ServerInventory{}
	if err := d.api.Get(d.t.Context(), client.ObjectKey{Name: uuid}, i); err != nil {
		d.t.Fatal(err)
	}
	return i
}

// runs looks for a while, as the queue does, and says how long a look kept its caller at most.
func (d *desk) runs(span time.Duration) {
	d.t.Helper()
	for end := time.Now().Add(span); time.Now().Before(end); {
		d.subject.Inventory = d.stored()
		began := time.Now()
		again := d.Look(d.t.Context(), d.subject)
		if took := time.Since(began); took != 0 {
			d.t.Errorf("a look kept its caller for %s", took)
		}
		if again == 0 || again > time.Second {
			again = time.Second
		}
		time.Sleep(again)
		synctest.Wait()
	}
}

func TestTheDrivesAreReadOnceAfterTheFirstWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		defer d.Close()
		d.bmc.becomes(nil, "S1")
		d.runs(time.Minute)
		s := d.stored().BMCStorage
		if d.bmc.reads() != 1 || d.patches != 1 || s == nil || s.State != policyv1alpha1.BMCStorageListed || s.Entry != 5 || !s.ListedBefore || s.Drives[0].Serial != "S1" {
			t.Errorf("%d reads, %d writes, %+v", d.bmc.reads(), d.patches, s)
		}
		if d.bmc.wants[0].UUID != uuid {
			t.Errorf("read as %+v", d.bmc.wants[0])
		}
		if d.wakes == 0 {
			t.Error("the end of the reading woke nothing")
		}
	})
}

func TestNothingIsReadBeforeTheFirstWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		defer d.Close()
		d.subject.Server.Status.Lifecycle.Entry = 6
		d.runs(time.Minute)
		if d.bmc.reads() != 0 || d.patches != 0 {
			t.Errorf("%d reads, %d writes", d.bmc.reads(), d.patches)
		}
	})
}

func TestTheDrivesAreReadAgainWhenTheRegistryWantsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		defer d.Close()
		d.bmc.becomes(nil, "S1")
		d.runs(time.Minute)
		i := d.stored()
		at := metav1.NewMicroTime(time.Now())
		i.BMCStorageWanted = &at
		if err := d.api.Update(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		d.bmc.becomes(nil, "S1", "S2")
		d.runs(time.Minute)
		s := d.stored()
		if d.bmc.reads() != 2 || d.patches != 2 || len(s.BMCStorage.Drives) != 2 || s.BMCStorage.ReadAt.Time.Before(at.Time) {
			t.Errorf("%d reads, %d writes, %+v", d.bmc.reads(), d.patches, s.BMCStorage)
		}
		if s.BMCStorageWanted == nil || s.Phase == nil {
			t.Errorf("another field was written: %+v", s)
		}
	})
}

func TestTheInventoryIsReadPastTheCacheOnlyWhereItChangedSince(t *testing.T) {
	for name, c := range map[string]struct {
		behind bool
		reads  int
	}{
		"as the cache shows it":          {false, 0},
		"written since the cache saw it": {true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				defer d.Close()
				reads := 0
				d.Options.Reader = interceptor.NewClient(d.api.(client.WithWatch), interceptor.Funcs{
					Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
						reads++
						return api.Get(ctx, key, o, opts...)
					}})
				d.bmc.becomes(nil, "S1")
				d.subject.Inventory = d.stored()
				if c.behind {
					now := d.stored()
					now.Phase.Name = "wipe"
					if err := d.api.Update(t.Context(), now); err != nil {
						t.Fatal(err)
					}
				}
				for range 60 {
					if d.Look(t.Context(), d.subject); d.patches > 0 {
						break
					}
					time.Sleep(time.Second)
				}
				now := d.stored()
				if now.BMCStorage == nil || len(now.BMCStorage.Drives) != 1 || (now.Phase.Name == "wipe") != c.behind || reads != c.reads {
					t.Errorf("%d reads past the cache, want %d: %+v", reads, c.reads, now)
				}
			})
		})
	}
}

func TestABMCThatFailsIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		defer d.Close()
		d.bmc.becomes(errors.New("503"))
		d.runs(5 * time.Minute)
		s := d.stored().BMCStorage
		if n := d.bmc.reads(); n < 5 || n > 20 || d.patches != 1 || s.State != policyv1alpha1.BMCStorageUnread || s.Problem != "503" {
			t.Errorf("%d reads, %d writes, %+v", n, d.patches, s)
		}
		d.bmc.becomes(nil, "S1")
		d.runs(time.Minute)
		if s := d.stored().BMCStorage; d.patches != 2 || s.State != policyv1alpha1.BMCStorageListed || s.Problem != "" {
			t.Errorf("%d writes, %+v", d.patches, s)
		}
	})
}

func TestABMCThatListsItsDrivesNoMoreIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		defer d.Close()
		i := d.stored()
		i.BMCStorage = &policyv1alpha1.BMCStorage{State: policyv1alpha1.BMCStorageListed, Entry: 4, ListedBefore: true,
			ReadAt: metav1.NewMicroTime(time.Now().Add(-time.Hour)), Drives: []policyv1alpha1.BMCDrive{{Serial: "S1"}}}
		if err := d.api.Update(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		d.runs(5 * time.Minute)
		s := d.stored().BMCStorage
		if n := d.bmc.reads(); n < 5 || n > 12 || d.patches != 1 || s.State != policyv1alpha1.BMCStorageNotOffered || len(s.Drives) != 1 {
			t.Errorf("%d reads, %d writes, %+v", n, d.patches, s)
		}
		d.bmc.becomes(nil, "S1")
		d.runs(time.Minute)
		reads := d.bmc.reads()
		d.runs(5 * time.Minute)
		if s := d.stored().BMCStorage; d.patches != 2 || s.State != policyv1alpha1.BMCStorageListed || d.bmc.reads() != reads {
			t.Errorf("%d writes, %d reads more, %+v", d.patches, d.bmc.reads()-reads, s)
		}
	})
}

func TestABMCThatCannotBeReachedIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		defer d.Close()
		d.subject.TargetErr = &access.Error{Reason: "SecretMissing", Message: "the secret is missing"}
		d.runs(time.Minute)
		if s := d.stored().BMCStorage; d.bmc.reads() != 0 || d.patches != 1 || s.State != policyv1alpha1.BMCStorageUnread || s.Problem == "" {
			t.Errorf("%d reads, %d writes, %+v", d.bmc.reads(), d.patches, s)
		}
	})
}

func TestAReadingForAnotherMachineIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		defer d.Close()
		d.bmc.becomes(nil, "S1")
		d.subject.Inventory = d.stored()
		d.Look(t.Context(), d.subject)
		time.Sleep(2 * time.Second) // read as the machine with that UUID
		synctest.Wait()
		d.subject.Want = redfish.Identity{UUID: uuid, SerialNumber: "other"}
		d.runs(time.Minute)
		if n := d.bmc.reads(); n != 2 || d.bmc.wants[1].SerialNumber != "other" || d.patches != 1 {
			t.Errorf("%d reads, %d writes, %+v", n, d.patches, d.bmc.wants)
		}
	})
}

func TestAReadingIsStoredForTheEntryThatTheServerLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		defer d.Close()
		d.bmc.becomes(nil, "S1")
		d.subject.Inventory = d.stored()
		d.Look(t.Context(), d.subject)
		d.subject.Server.Status.Lifecycle.Entry = 6
		d.runs(time.Minute)
		if s := d.stored().BMCStorage; d.bmc.reads() != 1 || s == nil || s.Entry != 5 {
			t.Errorf("%d reads, %+v", d.bmc.reads(), s)
		}
	})
}

func TestAWriteThatFailsIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		defer d.Close()
		d.bmc.becomes(nil, "S1")
		d.conflict = true
		d.runs(10 * time.Second)
		if d.patches < 2 || d.bmc.reads() != 1 {
			t.Errorf("%d writes, %d reads", d.patches, d.bmc.reads())
		}
		d.conflict = false
		d.runs(10 * time.Second)
		if s := d.stored().BMCStorage; s == nil || s.State != policyv1alpha1.BMCStorageListed || d.bmc.reads() != 1 {
			t.Errorf("%d reads, %+v", d.bmc.reads(), s)
		}
	})
}

func TestAReaderThatIsNotThereDoesNothing(t *testing.T) {
	var r *Reader
	r.Forget("a")
	if again := r.Look(t.Context(), Subject{}); again != 0 {
		t.Errorf("looks again in %s", again)
	}
}
