// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/env"
)

// The oracle knows what users were promised and nothing of how the promise is kept: it shares no code with the operator,
// and reads what the API showed, what truly happened, and what the BMCs were asked. Between the operator's last look and
// the act lies a moment, and between a change and its being seen another. So a rule is broken only by an act that nothing
// permitted at any moment from before to after it.
const (
	before, after = 2500 * time.Millisecond, 1500 * time.Millisecond
	// mostSessions are open at a BMC at any time: one that a killed manager left, and one in use. A BMC that does not always
	// tell its sessions, or does not end them, is left out.
	mostSessions = 2
)

// breach is a promise that was not kept.
type breach struct {
	rule, machine string
	at            time.Time
	text          string
}

// String tells it in one line.
func (b breach) String() string {
	return fmt.Sprintf("%s rule %q on machine %q: %s", b.at.Format("15:04:05.000"), b.rule, b.machine, b.text)
}

// breach notes a broken rule. It is called with the lock held.
func (r *record) breach(rule, machine string, at time.Time, format string, args ...any) {
	r.breaches = append(r.breaches, breach{rule: rule, machine: machine, at: at, text: fmt.Sprintf(format, args...)})
}

// judgement remembers how far a run has been judged.
type judgement struct {
	r       *record
	until   time.Time
	written map[string][]emulator.Write
	// manager is asked whether it runs; nil for none. calm is since when one and the same of its processes does.
	manager *env.Operator
	calm    time.Time
	starts  int
}

// watchManager notes whether the manager runs, and since when.
func (j *judgement) watchManager() {
	if j.manager == nil {
		return
	}
	starts := j.manager.Starts()
	switch {
	case !j.manager.Ready():
		j.calm = time.Time{}
	case j.calm.IsZero() || starts != j.starts:
		j.calm = time.Now()
	}
	j.starts = starts
}

// judge looks at everything that is old enough to be judged, and returns the first breach so far.
func (j *judgement) judge(machines []*emulator.Machine) *breach {
	j.watchManager()
	now := time.Now().Add(-after)
	writes, sessions := map[string][]emulator.Write{}, map[string]int{}
	for _, m := range machines { // read before the lock is taken, because the witness takes both the other way round
		writes[m.Name()], sessions[m.Name()] = m.Writes(), len(m.Sessions())
	}
	r := j.r
	r.mu.Lock()
	defer r.mu.Unlock()
	j.written = writes
	for _, m := range machines {
		name := m.Name()
		if sessions[name] > mostSessions && !r.troubled[name] {
			r.breach("sessions", name, time.Now(), "%d sessions are open", sessions[name])
		}
		for _, w := range writes[name] {
			if w.Time.After(j.until) && !w.Time.After(now) {
				r.judgeWrite(name, w, writes[name])
			}
		}
		for _, b := range r.boots[name] {
			if b.At.After(j.until) && !b.At.After(now) {
				r.judgeBoot(name, b)
			}
		}
		for _, e := range r.erases[name] {
			if e.At.After(j.until) && !e.At.After(now) {
				r.judgeErase(name, e)
			}
		}
		r.judgeOffer(name, now)
		r.judgeCounts(name, writes[name], now)
	}
	r.judgeBudgets(writes, j.until, now)
	r.judgeBreaker(j.calm, now)
	j.until = now
	if len(r.breaches) == 0 {
		return nil
	}
	first := slices.MinFunc(r.breaches, func(a, b breach) int { return a.at.Compare(b.at) })
	return &first
}

// window is the time around an act in which something must have permitted it.
func window(at time.Time) (from, to time.Time) { return at.Add(-before), at.Add(after) }

// throughout says that something held of a server, whatever the moment around an act.
func (r *record) throughout(machine string, at time.Time, holds func(*v1alpha1.Server) bool) bool {
	from, to := window(at)
	return r.server(machine, at).throughout(from, to, holds)
}

// server is the Server that stands for what answered in a machine's place at a moment; the machine's own where none does.
func (r *record) server(machine string, at time.Time) history[*v1alpha1.Server] {
	uuid, _ := r.answering[machine].at(at)
	best, latest := serverOf(machine), time.Time{}
	for _, name := range r.serversOf(machine) {
		for _, v := range r.servers[name] {
			if !v.gone && strings.EqualFold(v.object.Spec.SystemUUID, uuid) && v.at.After(latest) {
				best, latest = name, v.at
			}
		}
	}
	return r.servers[best]
}

// in says that a server is in one of some states.
func in(states ...v1alpha1.ServerState) func(*v1alpha1.Server) bool {
	return func(s *v1alpha1.Server) bool { return slices.Contains(states, s.Status.State) }
}

// frozen says that everything of a level was frozen on a machine around an act, by hand or by the breaker.
func (r *record) frozen(machine string, at time.Time, levels ...policyv1alpha1.FreezeLevel) bool {
	s, known := r.server(machine, at).at(at)
	if !known {
		return false
	}
	from, to := window(at)
	return r.control.throughout(from, to, func(c *policyv1alpha1.FleetControl) bool {
		if slices.Contains(levels, policyv1alpha1.FreezeDestructive) && tripped(c) {
			return true
		}
		return slices.ContainsFunc(c.Spec.Freezes, func(f policyv1alpha1.Freeze) bool {
			return slices.Contains(levels, f.Level) && selects(f.Selector, s.Labels)
		})
	})
}

func selects(selector *metav1.LabelSelector, on map[string]string) bool {
	if selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || s.Matches(labels.Set(on))
}

// holder is the tenant that both references and the UID agree on for a server version, at a moment; empty where there is
// none.
func (r *record) holder(s *v1alpha1.Server, at time.Time) string {
	ref := s.Spec.ServerClaimRef
	if ref == nil {
		return ""
	}
	for tenant, h := range r.claims {
		c, there := h.at(at)
		if there && c.Namespace == ref.Namespace && c.Name == ref.Name && string(c.UID) == s.Annotations[v1alpha1.ClaimUIDAnnotation] &&
			c.Spec.ServerRef != nil && c.Spec.ServerRef.Name == s.Name {
			return tenant
		}
	}
	return ""
}

// held is the tenant that holds a machine whatever the moment around an act: the claim exists, is not being deleted, and
// is as holds says. Empty where there is none.
func (r *record) held(machine string, at time.Time, holds func(*v1alpha1.ServerClaim) bool) string {
	from, to := window(at)
	s, there := r.server(machine, at).at(at)
	if !there {
		return ""
	}
	tenant := r.holder(s, at)
	if tenant == "" || !r.claims[tenant].throughout(from, to, func(c *v1alpha1.ServerClaim) bool {
		return c.DeletionTimestamp.IsZero() && c.Spec.ServerRef != nil && holds(c)
	}) {
		return ""
	}
	uid := s.Annotations[v1alpha1.ClaimUIDAnnotation]
	if !r.throughout(machine, at, func(s *v1alpha1.Server) bool {
		return s.Spec.ServerClaimRef != nil && s.Annotations[v1alpha1.ClaimUIDAnnotation] == uid
	}) {
		return ""
	}
	return tenant
}

// idle says that no operation was asked for or under way on a server or its claim, whatever the moment around an act.
func (r *record) idle(machine, tenant string, at time.Time) bool {
	from, to := window(at)
	return r.throughout(machine, at, func(s *v1alpha1.Server) bool {
		op := s.Status.Operation
		asked := s.Annotations[v1alpha1.OperationAnnotation]
		return asked == "" && (op == nil || op.FinishedAt != nil)
	}) && (tenant == "" || r.claims[tenant].throughout(from, to, func(c *v1alpha1.ServerClaim) bool {
		return c.Annotations[v1alpha1.OperationAnnotation] == ""
	}))
}

func anyClaim(*v1alpha1.ServerClaim) bool { return true }
