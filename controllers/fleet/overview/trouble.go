// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// The kinds of which something may be not well.
const (
	kindServer = "Server"
	kindBMC    = "BMC"
	kindClaim  = "ServerClaim"
)

// reasonNoStatus is the reason of an object whose status the manager never wrote.
const reasonNoStatus = "NoStatus"

// Trouble is one object that is not well.
type Trouble struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Cause is the condition that says so: the cause before what follows from it.
	Cause   string    `json:"cause"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
	// NeedsPerson says that it does not mend by itself.
	NeedsPerson bool `json:"needsPerson"`
	// State and Rack are those of a server.
	State string `json:"state,omitempty"`
	Rack  string `json:"rack,omitempty"`
	// Behind is the BMC because of which it is not well.
	Behind string `json:"behind,omitempty"`
}

// Title names the object.
func (t *Trouble) Title() string {
	if t.Namespace != "" {
		return t.Namespace + "/" + t.Name
	}
	return t.Name
}

// tell takes the words of a condition.
func (t *Trouble) tell(c *metav1.Condition) {
	t.Cause, t.Reason, t.Message, t.Since = c.Type, c.Reason, c.Message, c.LastTransitionTime.UTC()
}

func notWell(in Input) []Trouble {
	all := []Trouble{}
	for i := range in.BMCs {
		if t, is := ofBMC(&in.BMCs[i], in.Now); is {
			all = append(all, t)
		}
	}
	for i := range in.Servers {
		if t, is := ofServer(&in.Servers[i], in.Now); is {
			all = append(all, t)
		}
	}
	return all
}

// ordered puts first what needs a person, then BMCs before what is behind them, then the oldest.
func ordered(all []Trouble) []Trouble {
	place := map[string]int{kindBMC: 0, kindServer: 1, kindClaim: 2}
	slices.SortFunc(all, func(a, b Trouble) int {
		if a.NeedsPerson != b.NeedsPerson {
			if a.NeedsPerson {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(place[a.Kind], place[b.Kind]), a.Since.Compare(b.Since),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// ofBMC says what is not well with a BMC.
func ofBMC(b *v1alpha1.BMC, now time.Time) (Trouble, bool) {
	t := Trouble{Kind: kindBMC, Name: b.Name, NeedsPerson: true}
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	accepted := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionSystemsAccepted)
	reset := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReset)
	changed := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionCertificateChanged)
	switch {
	case changed != nil && changed.Status == metav1.ConditionTrue:
		t.tell(changed)
	case reset != nil && reset.Status == metav1.ConditionTrue:
		t.tell(reset)
		t.NeedsPerson = now.Sub(t.Since) > patience
	case ready == nil:
		found := t.silent(b.CreationTimestamp, now)
		return t, found
	case ready.Status != metav1.ConditionTrue:
		t.tell(ready)
		if u := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionUnreachable); u != nil &&
			u.Status == metav1.ConditionTrue {
			t.Since = u.LastTransitionTime.UTC()
		}
	case accepted != nil && accepted.Status == metav1.ConditionFalse:
		t.tell(accepted)
	default:
		return t, false
	}
	return t, true
}

// silent tells of an object without a status, if it is older than a minute.
func (t *Trouble) silent(created metav1.Time, now time.Time) bool {
	t.Cause, t.Reason, t.Since = v1alpha1.ConditionReady, reasonNoStatus, created.UTC()
	t.Message = "the manager has not written its status yet"
	t.NeedsPerson = now.Sub(t.Since) > patience
	return now.Sub(t.Since) > time.Minute
}

// causes are the conditions of a server that say what is not well, the cause before what follows from it, each with the
// status in which it says so.
var causes = []struct {
	kind   string
	status metav1.ConditionStatus
	needs  bool
}{
	{v1alpha1.ConditionBMCReachable, metav1.ConditionFalse, true},
	{v1alpha1.ConditionStalled, metav1.ConditionTrue, true},
	{v1alpha1.ConditionIdentityMismatch, metav1.ConditionTrue, true},
	{v1alpha1.ConditionWithheld, metav1.ConditionTrue, false},
	{v1alpha1.ConditionClaimMissing, metav1.ConditionTrue, true},
	{v1alpha1.ConditionPolicyBehind, metav1.ConditionTrue, true},
	{v1alpha1.ConditionFaultyHardware, metav1.ConditionTrue, true},
}

// ofServer says what is not well with a server. One that is on its way to a stable state is well.
func ofServer(s *v1alpha1.Server, now time.Time) (Trouble, bool) {
	t := Trouble{Kind: kindServer, Name: s.Name, State: string(s.Status.State), Rack: RackOf(s)}
	found := false
	for i := range causes {
		c := meta.FindStatusCondition(s.Status.Conditions, causes[i].kind)
		if c == nil || c.Status != causes[i].status || c.Reason == v1alpha1.ReasonFaultKept {
			continue
		}
		t.NeedsPerson = t.NeedsPerson || causes[i].needs
		if !found {
			found = true
			t.tell(c)
		}
	}
	if found {
		if t.Cause == v1alpha1.ConditionBMCReachable && s.Spec.BMCRef != nil {
			t.Behind = s.Spec.BMCRef.Name
		}
		return t, true
	}
	switch ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady); {
	case ready == nil:
		found = t.silent(s.CreationTimestamp, now)
		return t, found
	case ready.Status == metav1.ConditionTrue || ready.Reason == v1alpha1.ReasonMoving:
		return t, false
	default:
		t.tell(ready)
		t.NeedsPerson = now.Sub(t.Since) > patience
		return t, true
	}
}

// RackOf is the rack of a server: the annotation or label metadata.metal.ironcore.dev/rack, else the label rack.
func RackOf(s *v1alpha1.Server) string { return cmp.Or(policies.RackOf(s), s.Labels["rack"]) }

// Group is the troubles of one kind, cause and reason.
type Group struct {
	Kind    string `json:"kind"`
	Cause   string `json:"cause"`
	Reason  string `json:"reason"`
	Objects int    `json:"objects"`
	// NeedsPerson says that one of them needs a person.
	NeedsPerson bool `json:"needsPerson"`
	// First is the one that lasts longest.
	First Trouble `json:"first"`
	// Behind counts the servers and claims that are not well because of these BMCs.
	Behind int `json:"behind,omitempty"`
}

// Groups sums up troubles in their order. What is behind a BMC that has a Trouble of its own counts there.
func Groups(all []Trouble) []Group {
	var groups []Group
	at, bmcs := map[[3]string]int{}, map[string]int{}
	for i := range all {
		if all[i].Kind == kindBMC {
			bmcs[all[i].Name] = 0
		}
	}
	for i := range all {
		t := &all[i]
		if _, counts := bmcs[t.Behind]; counts {
			continue
		}
		k := [3]string{t.Kind, t.Cause, t.Reason}
		n, known := at[k]
		if !known {
			n = len(groups)
			at[k] = n
			groups = append(groups, Group{Kind: t.Kind, Cause: t.Cause, Reason: t.Reason, First: *t})
		}
		if t.Kind == kindBMC {
			bmcs[t.Name] = n
		}
		groups[n].Objects++
		groups[n].NeedsPerson = groups[n].NeedsPerson || t.NeedsPerson
	}
	for i := range all {
		if n, counts := bmcs[all[i].Behind]; counts {
			groups[n].Behind++
		}
	}
	return groups
}
