// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/controllers/maintenance/hold"
	"github.com/metalaw/metalaw/controllers/scheduler"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/policies"
)

// explanation is what is to be said of one claim.
type explanation struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Bound     bool   `json:"bound"`
	// Reason and Message are those of the condition Bound, and Since is when it came to its status; empty where nobody has looked
	// at the claim yet, and Since is when it was created then.
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
	// Ready and Stalled are the conditions of those names, where they say more than Bound does; nil where they do not.
	Ready   *said `json:"ready,omitempty"`
	Stalled *said `json:"stalled,omitempty"`
	// DeletedAt is when its deletion was asked for; nil where it was not.
	DeletedAt *time.Time `json:"deletedAt,omitempty"`
	// WaitsFor is empty for a claim that is bound, and where nobody can tell.
	WaitsFor string   `json:"waitsFor,omitempty"`
	Order    *order   `json:"order,omitempty"`
	Binding  *binding `json:"binding,omitempty"`
	*assessment
	Notes []string `json:"notes"`
}

type said struct {
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
}

// binding is how the server of a claim was chosen.
type binding struct {
	Server string `json:"server"`
	// Recorded is nil where that is not known, because the server, which keeps the record, cannot be read. The others are empty then,
	// and where nobody recorded them, as after an adoption.
	Recorded *bool `json:"recorded,omitempty"`
	// Lost: the server names another claim, or none.
	Lost      bool       `json:"lost,omitempty"`
	Revision  string     `json:"revision,omitempty"`
	Score     float64    `json:"score,omitempty"`
	RunnersUp int        `json:"runnersUp,omitempty"`
	At        *time.Time `json:"at,omitempty"`
}

// explain reads what there is to know about a claim.
func explain(ctx context.Context, c client.Client, namespace, name string, all bool) (*explanation, error) {
	claim := &v1alpha1.ServerClaim{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, claim); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("there is no claim %s in namespace %s; -n names another namespace", name, namespace)
		}
		return nil, access.Explain(err, "get", access.ServerClaims)
	}
	e := about(claim)
	if e.Bound {
		err := e.bound(ctx, c, claim)
		return e, err
	}
	w, err := look(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	e.Order = w.orderOf(claim)
	if e.WaitsFor = standsStill(claim); e.WaitsFor != "" {
		e.Order = nil
	}
	if w.blind() {
		w.notes = append(w.notes, "you may not list servers, so this is what the claim itself says ("+w.unseen.Error()+")")
	} else if e.WaitsFor == "" {
		err = e.assess(ctx, w, claim, all)
	}
	e.Notes = append(e.Notes, w.notes...)
	return e, err
}

// about is what a claim says of itself.
func about(c *v1alpha1.ServerClaim) *explanation {
	e := &explanation{Namespace: c.Namespace, Name: c.Name, Since: c.CreationTimestamp.UTC(), Notes: []string{}}
	if bound := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionBound); bound != nil {
		e.Bound, e.Reason, e.Message, e.Since = bound.Status == "True", bound.Reason, bound.Message, bound.LastTransitionTime.UTC()
	}
	e.Ready = saidBy(c, v1alpha1.ConditionReady, e.Reason)
	e.Stalled = saidBy(c, v1alpha1.ConditionStalled, e.Reason)
	if e.Stalled != nil && e.Ready != nil && e.Stalled.Reason == e.Ready.Reason {
		e.Stalled.Message = "" // which Ready has
	}
	if c.DeletionTimestamp != nil {
		at := c.DeletionTimestamp.UTC()
		e.DeletedAt = &at
	}
	if note := wanted(c); note != "" {
		e.Notes = append(e.Notes, note)
	}
	return e
}

// wanted says that somebody wants the claim's server, for a maintenance or for good, and what its holder can do about that.
func wanted(c *v1alpha1.ServerClaim) string {
	switch {
	case c.Labels[v1alpha1.MaintenanceNeededLabel] == "":
		return ""
	case hold.Approved(c):
		return "its server is wanted, and the claim bears an approval; metalaw explain server says for which maintenance"
	}
	return "its server is wanted for a maintenance, or is to go out of service. Approve with label " + v1alpha1.MaintenanceApprovedLabel +
		", or delete the claim; metalaw explain server says which"
}

// saidBy is what a condition says; nil where there is none, or where it has the reason that is known already.
func saidBy(c *v1alpha1.ServerClaim, kind, known string) *said {
	found := meta.FindStatusCondition(c.Status.Conditions, kind)
	if found == nil || found.Reason == known {
		return nil
	}
	return &said{string(found.Status), found.Reason, found.Message, found.LastTransitionTime.UTC()}
}

// leftAlone is what a claim waits for that nothing is done for.
const leftAlone = "the user who set the annotation " + v1alpha1.OperationAnnotation + ", which asks to leave it alone"

// standsStill says what keeps a claim from being looked at, whatever servers there are.
func standsStill(c *v1alpha1.ServerClaim) string {
	if v1alpha1.Ignored(c) { // first, because it keeps one that is being deleted from going too
		return leftAlone
	}
	if !c.DeletionTimestamp.IsZero() {
		return "nothing: it is being deleted"
	}
	if _, err := policies.ClaimSpecOf(c); err != nil {
		return "another claim in its place: " + err.Error()
	}
	if _, found := policies.PlacementOf(c); found.Err() != nil {
		return "a placement that can be read: " + found.Err().Error()
	}
	return ""
}

func (e *explanation) assess(ctx context.Context, w *world, c *v1alpha1.ServerClaim, all bool) error {
	if s := w.written(c); s != nil {
		e.WaitsFor = w.reservedWords(s)
		return nil
	}
	if e.WaitsFor = w.misnames(c); e.WaitsFor != "" {
		e.Order = nil
		return nil
	}
	members := w.gang(c)
	outcomes, err := w.serve(ctx, members, all)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(members, func(m *claims.Claim) bool { return m.Name == c.Name })
	o := outcomes[at]
	e.assessment, e.WaitsFor = o.assessment, o.waitsFor
	if o.binds {
		e.WaitsFor = "its turn: it would get " + o.server.Name + " now"
		if e.Order != nil && e.Order.Place > 1 {
			e.WaitsFor += ", unless one of those before it takes that"
		}
	}
	return nil
}

// written is the server that is written for a claim, or about to be taken over by it; nil where there is none.
func (w *world) written(c *v1alpha1.ServerClaim) *v1alpha1.Server {
	return lists.Find(w.servers, func(s *v1alpha1.Server) bool {
		relation := policies.RelationOf(s, c)
		return relation == policies.Holds || relation == policies.Adoptable
	})
}

// reservedWords say what a claim waits for that a server is written for, and that is not bound yet.
func (w *world) reservedWords(s *v1alpha1.Server) string {
	if obstacle := w.obstacle(s); obstacle != "" {
		return "the server " + s.Name + ", which is reserved for it: " + obstacle
	}
	return "nothing: the server " + s.Name + " is reserved for it, and on its way"
}

// bound tells how the server was chosen, as far as the reader may see it.
func (e *explanation) bound(ctx context.Context, c client.Client, claim *v1alpha1.ServerClaim) error {
	if claim.Spec.ServerRef == nil {
		return nil
	}
	e.Binding = &binding{Server: claim.Spec.ServerRef.Name}
	s := &v1alpha1.Server{}
	if err := c.Get(ctx, types.NamespacedName{Name: e.Binding.Server}, s); err != nil {
		err = access.Explain(err, "get", access.Servers)
		if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			return err
		}
		e.Notes = append(e.Notes, "how the server was chosen is recorded on the server, which could not be read ("+err.Error()+")")
		return nil
	}
	record, recorded := scheduler.BindingOf(s)
	relation := policies.RelationOf(s, claim)
	recorded = recorded && relation == policies.Holds
	e.Binding.Recorded, e.Binding.Lost = &recorded, relation == policies.Unrelated || relation == policies.Another
	if !recorded {
		return nil
	}
	e.Binding.Revision, e.Binding.Score, e.Binding.RunnersUp = record.Revision, record.Score, record.RunnersUp
	if !record.At.IsZero() {
		e.Binding.At = &record.At
	}
	return nil
}
