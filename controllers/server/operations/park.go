// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// kept is a request to park that stands until it is served, as v1alpha1.ParkRequestedAnnotation stores it.
type kept struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Claim is the UID of the claim that held the server when the request was made; empty where none did.
	Claim string    `json:"claim,omitempty"`
	At    time.Time `json:"at,omitzero"`
}

// requested is the request that the annotations of a server make at a moment.
func requested(s *v1alpha1.Server, at time.Time) kept {
	k := kept{By: s.Annotations[v1alpha1.OperationByAnnotation], Reason: s.Annotations[v1alpha1.OperationReasonAnnotation],
		At: at.UTC()}
	if s.Spec.ServerClaimRef != nil {
		k.Claim = s.Annotations[v1alpha1.ClaimUIDAnnotation]
	}
	return k
}

// keptOn reads the request to park that stands on a server; false where none does. A text that says nothing is a
// request, too.
func keptOn(s *v1alpha1.Server) (kept, bool) {
	text, stands := s.Annotations[v1alpha1.ParkRequestedAnnotation]
	var k kept
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return kept{}, stands
	}
	return k, stands
}

// Stands says that an operation is asked for or recorded, or that a request to park is kept.
func Stands(s *v1alpha1.Server) bool {
	_, written := s.Annotations[v1alpha1.OperationAnnotation]
	_, kept := s.Annotations[v1alpha1.ParkRequestedAnnotation]
	return written || kept || s.Status.Operation.Active()
}

// accepts says that the state of a server lists an operation.
func accepts(b *bundle.Bundle, s *v1alpha1.Server, operation string) bool {
	return b.Lifecycle.Accepts(engine.State(s.Status.State), operation)
}

// parks lists the states in which a policy takes operation park.
func parks(b *bundle.Bundle) []engine.State {
	return slices.DeleteFunc(b.Lifecycle.States(), func(s engine.State) bool {
		return !b.Lifecycle.Accepts(s, v1alpha1.OperationPark)
	})
}

// mayNotPark says why a request to park a server is not taken in; empty where it is.
func mayNotPark(b *bundle.Bundle, s *v1alpha1.Server) string {
	const at = "cannot be used in state "
	switch state := string(s.Status.State); {
	case accepts(b, s, v1alpha1.OperationPark):
		return ""
	case len(parks(b)) == 0:
		return fmt.Sprintf("cannot be used: policy revision %s takes it in no state", b.Revision.Name)
	case s.Status.State == v1alpha1.StateObserving:
		return at + state + fmt.Sprintf(": the machine was found running and is not ours; "+
			"take it over first (annotation %s=%s)", v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver)
	case s.Status.State == v1alpha1.StateDecommissioned:
		return at + state + ": the server is out of service, and is left alone already"
	}
	return ""
}

// deferral says why a request waits, and until when.
func deferral(b *bundle.Bundle, s *v1alpha1.Server) string {
	return fmt.Sprintf("park waits in state %s. The server is parked from %s, and no new claim gets it meanwhile; "+
		"operation unpark withdraws the request", s.Status.State, joined(parks(b)))
}

// droppedWhileParked says why an operation on a parked server is dropped; empty where it is not.
func droppedWhileParked(b *bundle.Bundle, s *v1alpha1.Server, asked string) string {
	switch known := knownOperations[asked] || otherKinds[asked] != ""; {
	case s.Status.State == v1alpha1.StateParked && asked == v1alpha1.OperationUnpark && strandsError(b, s):
		return fmt.Sprintf("the server was parked in Error, and no rule of policy revision %s leads back there. "+
			"Promote one that has it, or: metalaw server force %s --to Error", b.Revision.Name, s.Name)
	case s.Status.State != v1alpha1.StateParked || !known || accepts(b, s, asked):
		return ""
	case asked == v1alpha1.OperationPark:
		return "the server is parked already"
	}
	return "the server is parked, and nothing is done to it until operation unpark"
}

// strandsError says that a server was parked in Error, and that a policy does not know the way back: its other rules would
// offer a broken server.
func strandsError(b *bundle.Bundle, s *v1alpha1.Server) bool {
	return s.Annotations[v1alpha1.PreParkStateAnnotation] == string(v1alpha1.StateError) &&
		!b.Lifecycle.HasEdge(engine.State(v1alpha1.StateParked), engine.State(v1alpha1.StateError))
}

// takenBy is the claim that has a server and did not hold it when the request was made; empty where none has. The end of
// a holder is no such change.
func takenBy(s *v1alpha1.Server, f *policies.Facts) string {
	k, stands := keptOn(s)
	ref := s.Spec.ServerClaimRef
	if !stands || ref == nil || s.Annotations[v1alpha1.ClaimUIDAnnotation] == k.Claim ||
		!f.Claim.Bound && !f.Claim.Binding {
		return ""
	}
	return ref.Namespace + "/" + ref.Name
}

// takePark takes in the wish to have the server parked, which is kept until it can be served, or withdraws it.
func (d *decision) takePark(asked string) {
	s, op := d.server, d.server.Status.Operation
	_, stands := keptOn(s)
	if asked == v1alpha1.OperationUnpark {
		delete(s.Annotations, v1alpha1.ParkRequestedAnnotation)
		if op.Active() && op.Name != v1alpha1.OperationPark {
			return // it is answered once that has ended
		}
		words := "the server is not parked"
		if stands {
			words = "the request to park the server is withdrawn"
		}
		d.take(asked)
		d.succeed(words)
		return
	}
	defer d.dropRequest()
	if why := mayNotPark(d.Bundle, s); why != "" {
		d.note(v1alpha1.ReasonOperationRefused, asked+" "+why)
		return
	}
	text, err := json.Marshal(requested(s, d.Now))
	if err != nil { // JSON cannot write that year
		text = nil
	}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ParkRequestedAnnotation, string(text))
	if accepts(d.Bundle, s, asked) {
		d.beginOperation(asked)
		return
	}
	d.note(v1alpha1.ReasonParkDeferred, deferral(d.Bundle, s))
}

// dropPark drops the request once another claim has the server.
func (d *decision) dropPark() {
	s := d.server
	claim := takenBy(s, d.Facts)
	if claim == "" {
		return
	}
	delete(s.Annotations, v1alpha1.ParkRequestedAnnotation)
	why := "claim " + claim + " got the server before it could be parked; ask again if it is still wanted"
	d.note(v1alpha1.ReasonParkRequestDropped, "park is dropped: "+why)
	if op := s.Status.Operation; op.Active() && op.Name == v1alpha1.OperationPark {
		d.finish(v1alpha1.OperationFailed, why)
	}
}

// endPark ends an operation park of which the request is kept, and says whether it was that. One that a move did not
// serve is begun again once the policy takes it.
func (d *decision) endPark() bool {
	s := d.server
	if _, stands := keptOn(s); !stands || s.Status.Operation.Name != v1alpha1.OperationPark {
		return false
	}
	switch {
	case d.Bundle.Lifecycle.Accepts(d.Decision.To, v1alpha1.OperationUnpark) && d.served(): // Parked, or what a bundle calls so
		delete(s.Annotations, v1alpha1.ParkRequestedAnnotation)
		d.finish(v1alpha1.OperationSucceeded, fmt.Sprintf("%s moved the server to %s", d.Decision.Rule, d.Decision.To))
	case !accepts(d.Bundle, s, v1alpha1.OperationPark):
		s.Status.Operation = nil
		d.note(v1alpha1.ReasonParkDeferred, deferral(d.Bundle, s))
	}
	return true
}

// servePark begins the operation for a request that is kept, once the policy takes it and no other one is asked for or
// under way.
func (d *decision) servePark() {
	s := d.server
	k, stands := keptOn(s)
	switch {
	case !stands:
	case s.Status.State == v1alpha1.StateParked: // a user forced it there
		delete(s.Annotations, v1alpha1.ParkRequestedAnnotation)
	case Asked(s) == "" && !s.Status.Operation.Active() && accepts(d.Bundle, s, v1alpha1.OperationPark):
		d.beginOperation(v1alpha1.OperationPark)
		s.Status.Operation.By, s.Status.Operation.Reason = k.By, k.Reason
	}
}
