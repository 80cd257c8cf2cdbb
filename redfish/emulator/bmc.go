// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// bmc is one baseboard management controller with the machines behind it.
type bmc struct {
	fleet    *Fleet
	index    int
	endpoint atomic.Pointer[endpoint]

	// tree is served instead of what the profile says; nil for most.
	tree *Tree

	// mu guards everything below, and the state of the machines behind this BMC.
	mu       sync.Mutex
	profile  *Profile
	machines []*Machine
	uuid     string
	serial   string
	mac      string
	dice     *rand.Rand
	accounts []*account
	sessions []*session
	// issued are the tokens of all sessions, ended or not.
	issued    []string
	sessionNo int
	tasks     []*task
	bootedAt  time.Time
	restarted bool
	// changed is closed and replaced at every change of a machine, so that waiters look again.
	changed chan struct{}
	closed  bool
}

func newBMC(f *Fleet, index int, spec MachineSpec) (*bmc, error) {
	name := spec.Profile
	if name == "" {
		name = f.opts.Profile
	}
	profile, found := LookupProfile(name)
	var err error
	if spec.Tree != nil {
		profile = *spec.Tree.profile.clone()
	} else if !found {
		err = fmt.Errorf("emulator: machine %q wants profile %q, which does not exist: use one of %s",
			spec.Name, name, strings.Join(ProfileNames(), ", "))
		profile = genericProfile()
	}
	if spec.Tweak != nil {
		spec.Tweak(&profile)
	}
	b := &bmc{
		fleet: f, index: index, profile: &profile, tree: spec.Tree,
		dice:     newDice(f.opts.Seed, index),
		bootedAt: f.clock.Now(), changed: make(chan struct{}),
	}
	b.uuid = randomUUID(b.dice)
	b.serial = fmt.Sprintf("%s%05d", strings.ToUpper(randomHex(b.dice, 2)), index)
	b.mac = spec.BMCMAC
	if b.mac == "" && b.tree != nil {
		b.mac = b.tree.managed.mac
	}
	if b.mac == "" {
		b.mac = macAddress(profile.OUI, f.opts.Seed, index, 0)
	}
	user, password := profile.Username, profile.Password
	for _, over := range []struct{ user, password string }{
		{f.opts.Username, f.opts.Password}, {spec.Username, spec.Password},
	} {
		if over.user != "" {
			user = over.user
		}
		if over.password != "" {
			password = over.password
		}
	}
	b.accounts = newAccounts(&profile, user, password)
	address, addressErr := f.address(index)
	if err == nil {
		err = addressErr
	}
	ep := newEndpoint(f, address)
	ep.owner.Store(b)
	b.endpoint.Store(ep)
	return b, err
}

func (b *bmc) port() *endpoint { return b.endpoint.Load() }

// adopt puts m behind b and, where the spec says so, switches it on.
func (b *bmc) adopt(m *Machine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.machines = append(b.machines, m)
	if m.spec.Power == PowerOn {
		m.setState(PowerOn)
		m.boot()
	}
}

// shut ends everything that is pending.
func (b *bmc) shut() {
	b.mu.Lock()
	b.closed = true
	for _, m := range b.machines {
		m.interrupt()
		m.stopGuest()
	}
	b.mu.Unlock()
	b.port().close()
}

// notify wakes everyone who waits for a change. b.mu is held.
func (b *bmc) notify() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// restart is a restart of the BMC: sessions and usually boot overrides are lost, and it is away for a while.
// The connection keep is left alone so that the answer to the request still arrives.
func (b *bmc) restart(keep *conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.sessions = nil
	for _, m := range b.machines {
		if !b.profile.OverrideSurvivesReset {
			m.clearOverride()
		}
	}
	b.notify()
	away := b.machines[0].delays.BMCReset
	ep := b.port()
	_ = ep.setReach(Refusing, keep) // refusing cannot fail
	b.fleet.clock.AfterFunc(away, func() {
		b.mu.Lock()
		b.bootedAt, b.restarted = b.fleet.clock.Now(), true
		closed := b.closed
		b.mu.Unlock()
		if !closed {
			// An address that was taken meanwhile leaves the BMC away, which is what a client would see too.
			_ = ep.setReach(Reachable, nil)
		}
	})
}

// hasMachine says whether a machine behind b has a name that match accepts.
func (b *bmc) hasMachine(match func(string) bool) bool {
	return slices.ContainsFunc(b.machines, func(m *Machine) bool { return match(m.name) })
}

// newDice makes the source of what looks random about one machine or BMC; it must be the same for the same seed.
func newDice(seed uint64, index int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(index)))
}

// macAddress makes the n-th address of a machine: unique in a fleet of up to a million.
func macAddress(oui string, seed uint64, index, n int) string {
	suffix := (uint64(index)*16 + uint64(n) + seed*0x9e37) & 0xffffff
	return fmt.Sprintf("%s:%02x:%02x:%02x", oui, byte(suffix>>16), byte(suffix>>8), byte(suffix))
}

func randomHex(dice *rand.Rand, n int) string {
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(dice.Uint32())
	}
	return hex.EncodeToString(raw)
}

// randomUUID makes a version 4 UUID.
func randomUUID(dice *rand.Rand) string {
	s := []byte(randomHex(dice, 16))
	s[12], s[16] = '4', "89ab"[dice.IntN(4)]
	return fmt.Sprintf("%s-%s-%s-%s-%s", s[:8], s[8:12], s[12:16], s[16:20], s[20:])
}
