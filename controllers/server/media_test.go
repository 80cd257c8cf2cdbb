// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/redfish"
)

const (
	bootService = "https://boot.example:8083"
	isoOfBoot   = bootService + "/media/one.iso"
)

func (m *machine) InsertMedia(_ context.Context, _ string, _ redfish.Identity, media redfish.MediaRequest) error {
	return m.hear("Insert " + strings.TrimPrefix(media.URL, media.Ours))
}

func (m *machine) EjectMedia(_ context.Context, _ string, _ redfish.Identity, ours string) error {
	return m.hear("Eject " + strings.TrimPrefix(ours, bootService))
}

// bootsFrom is the boot source of the last power-on.
func (m *machine) bootsFrom() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shows.Boot.Target
}

// withMedia has the manager know the boot service and boot in these ways.
func (w *world) withMedia(ways ...string) {
	w.t.Helper()
	b, err := defaultBundle()
	if err != nil {
		w.t.Fatal(err)
	}
	own := *b
	own.Settings.Boot.Ways = ways
	w.manager.Bundles, w.manager.MediaURL = governed{&own}, bootService
}

// published is a reserved server whose boot configuration has an ISO.
func published(url string, change ...func(*v1alpha1.Server)) []client.Object {
	objects := reserved(v1alpha1.PowerOn, change...)
	objects[2].GetAnnotations()[v1alpha1.MediaURLAnnotation] = url
	return objects
}

func TestAMachineBootsByTheFirstWayThatItsBMCTakes(t *testing.T) {
	noDrives := &redfish.UnsupportedError{URI: "/redfish/v1/Systems/1", Wanted: "virtual media"}
	both := []string{bundle.BootWayVirtualMedia, bundle.BootWayNetwork}
	for name, c := range map[string]struct {
		ways    []string
		url     string
		refuses func(string) error
		asked   []string
		target  string
	}{
		"virtual media":                        {both, isoOfBoot, nil, []string{"Insert media/one.iso", "On"}, "Cd"},
		"the network goes first":               {[]string{bundle.BootWayNetwork, bundle.BootWayVirtualMedia}, isoOfBoot, nil, []string{"On"}, "Pxe"},
		"a policy that says nothing":           {nil, isoOfBoot, nil, []string{"On"}, "Pxe"},
		"no ISO is published":                  {both, "", nil, []string{"On"}, "Pxe"},
		"an ISO of somebody else":              {both, "https://elsewhere.example/media/one.iso", nil, []string{"On"}, "Pxe"},
		"an ISO of a host that begins alike":   {both, bootService + ".elsewhere.example/media/one.iso", nil, []string{"On"}, "Pxe"},
		"the BMC has no drives":                {both, isoOfBoot, refuse("Insert media/one.iso", noDrives), []string{"Insert media/one.iso", "Eject /", "On"}, "Pxe"},
		"no ISO, and no other way is allowed":  {[]string{bundle.BootWayVirtualMedia}, "", nil, nil, ""},
		"the drive holds the image of another": {[]string{bundle.BootWayVirtualMedia}, isoOfBoot, refuse("Insert media/one.iso", &redfish.MediaError{}), []string{"Insert media/one.iso"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				m.refuses = c.refuses
				w := inWorld(t, m, published(c.url)...)
				w.withMedia(c.ways...)
				w.manager.run(20 * time.Second)
				m.wants(t, "for its boot", c.asked...)
				if got := m.bootsFrom(); got != c.target {
					t.Errorf("booted from %q, want %q", got, c.target)
				}
			})
		})
	}
}

// refuse answers one request with an error, and accepts the others.
func refuse(what string, err error) func(string) error {
	return func(asked string) error {
		if asked == what {
			return err
		}
		return nil
	}
}

func TestAnImageIsRecordedBeforeItIsInsertedAndEjectedOnceTheMachineBooted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := inWorld(t, m, published(isoOfBoot)...)
		w.withMedia(bundle.BootWayVirtualMedia)
		recorded := false
		m.hears = func(asked string) {
			if strings.HasPrefix(asked, "Insert") {
				recorded = w.server().Annotations[v1alpha1.MediaInsertedAnnotation] != ""
			}
		}
		w.manager.run(time.Minute)
		m.wants(t, "before anything is heard of it", "Insert media/one.iso", "On")
		if !recorded {
			t.Error("the image was not recorded before it was inserted")
		}
		w.bootState(metav1.ConditionTrue, time.Now())
		w.manager.run(time.Minute)
		if got := m.asked(); !slices.Contains(got, "Eject /") || w.server().Annotations[v1alpha1.MediaInsertedAnnotation] != "" {
			t.Errorf("asked for %q, annotations %v", got, w.server().Annotations)
		}
	})
}

func TestAnImageOfAFormerEntryIsEjectedBeforeABootFromTheNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := inWorld(t, m, published("", func(s *v1alpha1.Server) { s.Annotations[v1alpha1.MediaInsertedAnnotation] = "true" })...)
		w.withMedia(bundle.BootWayNetwork)
		stays := &redfish.MediaError{Asked: "eject", Shows: "an image"}
		m.refuses = refuse("Eject /", stays)
		w.manager.run(30 * time.Second)
		if got := m.asked(); slices.Contains(got, "On") || !slices.Contains(got, "Eject /") {
			t.Errorf("asked for %q while the image stays", got)
		}
		m.mu.Lock()
		m.refuses = nil
		m.mu.Unlock()
		w.manager.run(10 * time.Minute)
		if got := m.asked(); !slices.Contains(got, "On") {
			t.Errorf("asked for %q once the eject works", got)
		}
	})
}

func TestAServerOnOfferHasItsImageEjected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := inWorld(t, m, serverIn(v1alpha1.StateAvailable, func(s *v1alpha1.Server) { s.Annotations[v1alpha1.MediaInsertedAnnotation] = "true" }))
		w.withMedia()
		w.manager.run(20 * time.Second)
		m.wants(t, "on offer", "Eject /")
		if mark := w.server().Annotations[v1alpha1.MediaInsertedAnnotation]; mark != "" {
			t.Errorf("the mark stays: %q", mark)
		}
	})
}
