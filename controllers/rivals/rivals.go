// SPDX-License-Identifier: Apache-2.0

// Package rivals remembers what each BMC showed this process, and finds the BMCs that show the UUID of another one's
// system.
package rivals

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/machineid"
	"github.com/metalaw/metalaw/internal/uuids"
)

// Seen is what a BMC showed when it was read last.
type Seen struct {
	// UUID and Serial are those of the BMC itself.
	UUID, Serial string
	// Systems are those behind it.
	Systems []System
	// Partial says that a system could not be read, or showed no UUID: it may be one that was shown before.
	Partial bool
}

// System is one system behind a BMC.
type System struct {
	UUID    string
	Serials []string
}

// Memory keeps what each BMC showed. It is safe for concurrent use, and a nil Memory knows nothing.
type Memory struct {
	mu sync.Mutex
	of map[string]Seen
	by map[string][]string // the BMCs, by UUID in one spelling
}

// New makes an empty Memory.
func New() *Memory { return &Memory{of: map[string]Seen{}, by: map[string][]string{}} }

// Note takes in what a BMC shows. While the reading is partial, the systems of the former one stay.
func (m *Memory) Note(bmc string, seen Seen) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if seen.Partial {
		seen.Systems = slices.Concat(seen.Systems, slices.DeleteFunc(slices.Clone(m.of[bmc].Systems), seen.shows))
	}
	m.remove(bmc)
	m.of[bmc] = seen
	for _, s := range seen.Systems {
		if at := oneSpelling(s.UUID); at != "" && !slices.Contains(m.by[at], bmc) {
			m.by[at] = append(m.by[at], bmc)
		}
	}
}

// shows says that a system of that UUID is among those shown.
func (s Seen) shows(other System) bool {
	return slices.ContainsFunc(s.Systems, func(one System) bool { return uuids.Same(one.UUID, other.UUID) })
}

// Forget drops a BMC that no longer exists.
func (m *Memory) Forget(bmc string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(bmc)
}

func (m *Memory) remove(bmc string) {
	for _, s := range m.of[bmc].Systems {
		at := oneSpelling(s.UUID)
		if m.by[at] = slices.DeleteFunc(m.by[at], func(name string) bool { return name == bmc }); len(m.by[at]) == 0 {
			delete(m.by, at)
		}
	}
	delete(m.of, bmc)
}

// Of lists the other BMCs that show the UUID of a system behind a BMC, sorted. One that is stored stays until this
// process has read all systems of that BMC, so that a restart of the manager hides none. A server that names no BMC object has none.
func (m *Memory) Of(uuid, own string, stored []policyv1alpha1.RivalBMC) []policyv1alpha1.RivalBMC {
	if m == nil || own == "" {
		return stored
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []policyv1alpha1.RivalBMC
	for _, name := range m.by[oneSpelling(uuid)] {
		if name != own && !oneBMC(uuid, m.of[own], m.of[name]) {
			found = append(found, rival(uuid, name, m.of[name]))
		}
	}
	for _, r := range stored {
		seen, read := m.of[r.Name]
		known := slices.ContainsFunc(found, func(f policyv1alpha1.RivalBMC) bool { return f.Name == r.Name })
		if (!read || seen.Partial) && r.Name != own && !known {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b policyv1alpha1.RivalBMC) int { return cmp.Compare(a.Name, b.Name) })
	return found[:min(len(found), maxRivals)]
}

// maxRivals is what an inventory stores.
const maxRivals = 16

func rival(uuid, name string, seen Seen) policyv1alpha1.RivalBMC {
	r := policyv1alpha1.RivalBMC{Name: name, ManagerUUID: seen.UUID, ManagerSerial: seen.Serial}
	for _, s := range seen.Systems {
		if uuids.Same(s.UUID, uuid) {
			r.Serials = machineid.Serials(append(r.Serials, s.Serials...)...)
		}
	}
	r.Serials = r.Serials[:min(len(r.Serials), 4)]
	return r
}

// oneBMC says that two names stand for one BMC: something that it shows of itself is the same, and nothing differs.
// Where neither shows anything it is not known, and counts as two.
func oneBMC(uuid string, a, b Seen) bool {
	same, differs := false, false
	compare := func(x, y string) {
		switch {
		case x == "" || y == "":
		case strings.EqualFold(x, y):
			same = true
		default:
			differs = true
		}
	}
	compare(managerUUID(a), managerUUID(b))
	compare(machineid.Serial(a.Serial), machineid.Serial(b.Serial))
	x, y := rival(uuid, "", a).Serials, rival(uuid, "", b).Serials
	compare(strings.Join(x, " "), strings.Join(y, " "))
	return same && !differs
}

func managerUUID(s Seen) string {
	if text := strings.ToLower(s.UUID); !uuids.Shared(text) {
		return text
	}
	return ""
}

func oneSpelling(uuid string) string {
	uuid = strings.ToLower(uuid)
	return min(uuid, uuids.Swap(uuid))
}
