// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fault is one thing that goes wrong: which requests it hits, and what then happens.
// A zero field of the first two groups matches everything.
type Fault struct {
	// Name appears in the log of writes.
	Name string

	// Machine is a glob over machine names.
	Machine string
	// Method is one HTTP method, or several separated by commas.
	Method string
	// Path is a glob over the path without its trailing slash: * stays within a segment, ** does not.
	// Case does not matter.
	Path string

	// After lets that many matching requests pass first.
	After int
	// Count ends the fault after so many hits; 0: never.
	Count int
	// PerMachine counts After and Count for each BMC by itself.
	PerMachine bool
	// Probability hits that share of the matching requests, by the fleet's seed; 0: all.
	Probability float64

	Action
}

// Action is what a fault does. Several fields may be combined; the order is the order of the fields.
type Action struct {
	// Delay holds the request before anything else happens.
	Delay time.Duration
	// Execute carries the request out although the answer below says or does something else.
	Execute bool
	// Ignore answers like a success without carrying the request out.
	Ignore bool
	// StalePower lets reads of PowerState show what it was so long ago.
	StalePower time.Duration
	// AsTask answers a reset with 202 and a task monitor.
	AsTask *TaskScript

	// Drop never answers: the connection stays open until the client gives up.
	Drop bool
	// Reset resets the connection.
	Reset bool
	// Status replaces the answer's status; 0 keeps the answer. The body is Body, or a Redfish error from 400 upwards.
	Status int
	// Body replaces the answer's body where Status is set. "{path}" stands for the request's path.
	Body string
	// Redirect is the Location of the answer; with Status 0 the status is 302. "{path}" as above.
	Redirect string
	// Header is added to the answer; an empty value removes the header.
	Header map[string]string
	// Set replaces fields of the answer's JSON: keys are paths such as "Boot/BootSourceOverrideEnabled" or "Members/0".
	Set map[string]any
	// Remove takes fields out of the answer's JSON, by the same paths.
	Remove []string
	// PadTo fills a JSON body up with a string to that many bytes.
	PadTo int64
	// Truncate breaks the body off after so many bytes; 0: not.
	Truncate int
	// BytesPerSecond sends the body that slowly; 0: at once.
	BytesPerSecond int
	// CloseConnection ends the connection after the answer: no keep-alive.
	CloseConnection bool
}

// answers says whether the action itself determines the answer.
func (a *Action) answers() bool { return a.Drop || a.Reset || a.Status != 0 || a.Redirect != "" }

// Injected is a fault at work.
type Injected struct {
	fault   Fault
	set     *faultSet
	machine *regexp.Regexp
	path    *regexp.Regexp
	methods []string

	// Guarded by set.mu: matching requests and hits, by BMC name or "".
	seen map[string]int
	hits map[string]int
}

// Fault is the fault as it was injected.
func (i *Injected) Fault() Fault { return i.fault }

// Hits counts the requests that the fault hit.
func (i *Injected) Hits() int {
	i.set.mu.Lock()
	defer i.set.mu.Unlock()
	n := 0
	for _, h := range i.hits {
		n += h
	}
	return n
}

// Remove ends the fault. A repeated call does nothing.
func (i *Injected) Remove() {
	i.set.mu.Lock()
	defer i.set.mu.Unlock()
	i.set.list = slices.DeleteFunc(i.set.list, func(o *Injected) bool { return o == i })
}

// Inject puts a fault to work on the fleet, after those that are at work already. Where several hit one request, the
// first that determines the answer wins, and delays add up.
func (f *Fleet) Inject(fault Fault) *Injected { return f.faults.add(fault) }

// Inject puts a fault to work on this machine's BMC only.
func (m *Machine) Inject(fault Fault) *Injected {
	i := m.bmc.fleet.faults.prepare(fault)
	i.fault.Machine = m.name
	i.machine = regexp.MustCompile("^" + regexp.QuoteMeta(m.name) + "$")
	return m.bmc.fleet.faults.put(i)
}

// Faults lists the faults at work.
func (f *Fleet) Faults() []*Injected {
	f.faults.mu.Lock()
	defer f.faults.mu.Unlock()
	return slices.Clone(f.faults.list)
}

// ClearFaults ends all faults.
func (f *Fleet) ClearFaults() {
	f.faults.mu.Lock()
	defer f.faults.mu.Unlock()
	f.faults.list = nil
}

type faultSet struct {
	seed uint64
	mu   sync.Mutex
	list []*Injected
}

func newFaultSet(seed uint64) *faultSet { return &faultSet{seed: seed} }

func (s *faultSet) add(f Fault) *Injected { return s.put(s.prepare(f)) }

func (s *faultSet) prepare(f Fault) *Injected {
	i := &Injected{fault: f, set: s, seen: map[string]int{}, hits: map[string]int{}}
	i.machine, i.path = glob(f.Machine), glob(strings.TrimRight(f.Path, "/"))
	for _, method := range strings.Split(f.Method, ",") {
		if method = strings.ToUpper(strings.TrimSpace(method)); method != "" {
			i.methods = append(i.methods, method)
		}
	}
	return i
}

func (s *faultSet) put(i *Injected) *Injected {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(slices.Clip(s.list), i)
	return i
}

// match returns the faults that hit a request, and counts it.
func (s *faultSet) match(b *bmc, method, path string) []*Injected {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hit []*Injected
	for _, i := range s.list {
		if i.matches(b, method, path) && i.strikes(b.machines[0].name) {
			hit = append(hit, i)
		}
	}
	return hit
}

func (i *Injected) matches(b *bmc, method, path string) bool {
	if len(i.methods) > 0 && !slices.Contains(i.methods, method) {
		return false
	}
	if i.path != nil && !i.path.MatchString(path) {
		return false
	}
	return i.machine == nil || b.hasMachine(i.machine.MatchString)
}

// strikes counts a matching request and decides by After, Count and Probability. set.mu is held.
func (i *Injected) strikes(machine string) bool {
	key := ""
	if i.fault.PerMachine {
		key = machine
	}
	n := i.seen[key]
	i.seen[key]++
	if n < i.fault.After || i.fault.Count > 0 && i.hits[key] >= i.fault.Count {
		return false
	}
	// The dice depend on what is asked and not on the order in which other machines ask.
	if p := i.fault.Probability; p > 0 && p < 1 && dice(i.set.seed, i.fault.Name, machine, i.diceNumber(machine)) >= p {
		return false
	}
	i.hits[key]++
	return true
}

// diceNumber counts the throws for one machine. set.mu is held.
func (i *Injected) diceNumber(machine string) int {
	key := "dice:" + machine
	i.seen[key]++
	return i.seen[key]
}

// dice is a number in [0,1) that is always the same for the same arguments.
func dice(seed uint64, name, machine string, n int) float64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d|%s|%s|%d", seed, name, machine, n) // a hash cannot fail to be written to
	x := h.Sum64()
	// FNV leaves neighbours alike in the high bits; one round of mixing spreads them.
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// glob compiles a pattern; nil matches everything. Regular expressions of package regexp take linear time, so that no
// pattern can hang a fleet.
func glob(pattern string) *regexp.Regexp {
	if pattern == "" {
		return nil
	}
	var re strings.Builder
	re.WriteString("(?i)^")
	for i := 0; i < len(pattern); {
		switch {
		case strings.HasPrefix(pattern[i:], "**"):
			re.WriteString(".*")
			i += 2
		case pattern[i] == '*':
			re.WriteString("[^/]*")
			i++
		default:
			end := i + 1
			for end < len(pattern) && pattern[end] != '*' {
				end++
			}
			re.WriteString(regexp.QuoteMeta(strings.ToValidUTF8(pattern[i:end], "\uFFFD")))
			i = end
		}
	}
	re.WriteString("$")
	return regexp.MustCompile(re.String())
}
