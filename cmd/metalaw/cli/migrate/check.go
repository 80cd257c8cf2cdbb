// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// finding is one thing that stands in the way of the next step.
type finding struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Message string `json:"message"`
	// Known says that the user expects it, so that it stands in no way.
	Known bool `json:"known,omitempty"`
}

// verdict is what stands in the way, and what is worth knowing besides.
type verdict struct {
	Findings []finding `json:"findings"`
	// Words are what has to be written on objects, so that metal-operator leaves them alone.
	Words []word   `json:"words,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

func (v *verdict) add(kind, name, format string, args ...any) {
	v.Findings = append(v.Findings, finding{Kind: kind, Name: name, Message: fmt.Sprintf(format, args...)})
}

func (v *verdict) blocked() int {
	n := 0
	for _, f := range v.Findings {
		if !f.Known {
			n++
		}
	}
	return n
}

// know marks what the user names as expected. A name that fits nothing is returned: it may be misspelt.
func (v *verdict) know(names []string) (unused []string) {
	for _, name := range names {
		used := false
		for i := range v.Findings {
			if v.Findings[i].Name == name {
				v.Findings[i].Known, used = true, true
			}
		}
		if !used {
			unused = append(unused, name)
		}
	}
	return unused
}

// unwanted are the conditions that step 5 of docs/from-metal-operator.md wants explained.
var unwanted = []string{v1alpha1.ConditionPolicyHalted, v1alpha1.ConditionClaimMissing, v1alpha1.ConditionIdentityMismatch,
	v1alpha1.ConditionRestoredDoubt}

// check holds the fleet against step 5 of docs/from-metal-operator.md. Before is what the servers were when metal-operator ran; nil
// where it is not known.
func (f *fleet) check(before []v1alpha1.Server) verdict {
	v := verdict{Findings: []finding{}}
	if len(f.servers) == 0 {
		v.add("cluster", "-", "there is no server; is this the right cluster (--context)?")
	}
	now := map[string]*v1alpha1.Server{}
	for i := range f.servers {
		s := &f.servers[i]
		now[s.Name] = s
		f.checkServer(s, &v)
	}
	for i := range before {
		checkAgainst(&before[i], now[before[i].Name], &v)
	}
	for key, c := range f.claims {
		if c.Spec.ServerRef != nil && c.Status.Phase != v1alpha1.PhaseBound {
			v.add("serverclaim", key.String(), "it names server %s and is not Bound", c.Spec.ServerRef.Name)
		}
		if c.Spec.ServerRef != nil && now[c.Spec.ServerRef.Name] == nil {
			v.add("serverclaim", key.String(), "it names server %s, which does not exist", c.Spec.ServerRef.Name)
		}
	}
	for i := range f.bmcs {
		if b := &f.bmcs[i]; b.Status.State != v1alpha1.BMCStateEnabled {
			v.add("bmc", b.Name, "its state is %q, not Enabled; see its conditions", b.Status.State)
		}
	}
	if before == nil {
		v.Notes = append(v.Notes, "the servers are not compared with what they were before; --before FILE does that")
	}
	v.sort()
	return v
}

func (f *fleet) checkServer(s *v1alpha1.Server, v *verdict) {
	if s.Status.Lifecycle == nil && !v1alpha1.Ignored(s) {
		v.add("server", s.Name, "no manager has taken it over yet: status.lifecycle is empty")
	}
	for _, kind := range unwanted {
		if c := meta.FindStatusCondition(s.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			v.add("server", s.Name, "%s (%s): %s", kind, c.Reason, c.Message)
		}
	}
	c := f.claimOf(s)
	if c != nil && c.Spec.ServerRef != nil && c.Spec.ServerRef.Name == s.Name && s.Status.State != v1alpha1.StateReserved {
		v.add("server", s.Name, "the claim %s holds it, and it is in %q, not Reserved", client.ObjectKeyFromObject(c), s.Status.State)
	}
}

func checkAgainst(was, is *v1alpha1.Server, v *verdict) {
	switch {
	case was.Status.State != v1alpha1.StateReserved:
	case is == nil:
		v.add("server", was.Name, "it was Reserved, and does not exist any more")
	case is.Status.State != v1alpha1.StateReserved:
		v.add("server", was.Name, "it was Reserved, and is in %q", is.Status.State)
	case was.Spec.ServerClaimRef != nil && (is.Spec.ServerClaimRef == nil || *is.Spec.ServerClaimRef != *was.Spec.ServerClaimRef):
		v.add("server", was.Name, "it named the claim %s/%s, and does not any more", was.Spec.ServerClaimRef.Namespace, was.Spec.ServerClaimRef.Name)
	}
}

func (v *verdict) sort() {
	slices.SortFunc(v.Findings, func(a, b finding) int {
		return strings.Compare(a.Kind+"/"+a.Name+"/"+a.Message, b.Kind+"/"+b.Name+"/"+b.Message)
	})
	slices.SortFunc(v.Words, func(a, b word) int {
		return strings.Compare(string(a.Kind)+"/"+a.Name, string(b.Kind)+"/"+b.Name)
	})
	slices.Sort(v.Notes)
}

func (f *fleet) showPlan(t *terminal.Terminal, output terminal.Output) {
	document := struct {
		Policy  string    `json:"policy"`
		Servers []planned `json:"servers"`
		// BMCsWithoutScheme are asked over https.
		BMCsWithoutScheme []string `json:"bmcsWithoutScheme,omitempty"`
		Notes             []string `json:"notes,omitempty"`
	}{f.policy, f.plan(), f.withoutScheme(), f.notes()}
	output.Show(t, document, func() {
		rows := lists.Map(document.Servers, func(p *planned) []string {
			return []string{p.Name, cmp.Or(p.State, "-"), cmp.Or(p.Power, "-"), cmp.Or(p.Becomes, "-"),
				cmp.Or(strings.Join(p.Marks, ","), "-"), cmp.Or(p.Next, "-"), p.Why}
		})
		t.Table([]string{"NAME", "STATE", "POWER", "BECOMES", "MARKS", "NEXT", "WHY"}, rows)
		for _, note := range document.Notes {
			t.Printf("note: %s\n", note)
		}
		t.Printf("%s, judged by %s; nothing was written\n", terminal.Count(len(rows), "server"), f.policy)
	})
}

// show writes what stands in the way; fine is said where nothing does.
func (v *verdict) show(t *terminal.Terminal, output terminal.Output, fine string) error {
	blocked := v.blocked()
	if blocked > 0 {
		fine = "no: " + terminal.Count(blocked, "finding") + " to see to first"
	}
	output.Show(t, v, func() {
		rows := lists.Map(v.Findings, func(f *finding) []string {
			known := ""
			if f.Known {
				known = "known"
			}
			return []string{f.Kind, f.Name, known, f.Message}
		})
		if len(rows) > 0 {
			t.Table([]string{"KIND", "NAME", "", "FINDING"}, rows)
		}
		for _, note := range v.Notes {
			t.Printf("note: %s\n", terminal.Plain(note))
		}
		t.Printf("%s\n", fine)
	})
	if blocked > 0 {
		return terminal.ErrIncomplete
	}
	return nil
}
