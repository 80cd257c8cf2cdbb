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
)

// kept is a request to park that stands until it is served, as v1alpha1.ParkRequestedAnnotation stores it.
type kept struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Claim is the UID of the claim that held the server when the request was made; empty where none did.
	Claim string    `json:"claim,omitempty"`
	At    time.Time `json:"at,omitzero"`
}

// keptOn reads the request to park that stands on a server; false where none does. A text that says nothing is a request all the same.
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

// parks lists the states in which the policy takes operation park.
func (d *decision) parks() []engine.State {
	return slices.DeleteFunc(d.Bundle.Lifecycle.States(), func(s engine.State) bool {
		return !d.Bundle.Lifecycle.Accepts(s, v1alpha1.OperationPark)
	})
}

func (d *decision) accepts(operation string) bool {
	return d.Bundle.Lifecycle.Accepts(engine.State(d.server.Status.State), operation)
}

// keepPark takes in the wish to have the server parked. It is kept until it can be served, so that a client need not ask again.
func (d *decision) keepPark() {
	s := d.server
	defer d.dropRequest()
	if why := d.mayNotPark(); why != "" {
		d.note(v1alpha1.ReasonOperationRefused, "park "+why)
		return
	}
	k := kept{By: s.Annotations[v1alpha1.OperationByAnnotation], Reason: s.Annotations[v1alpha1.OperationReasonAnnotation], At: d.Now.UTC()}
	if s.Spec.ServerClaimRef != nil {
		k.Claim = s.Annotations[v1alpha1.ClaimUIDAnnotation]
	}
	text, err := json.Marshal(k)
	if err != nil { // a year that JSON cannot write
		text = nil
	}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ParkRequestedAnnotation, string(text))
	if d.accepts(v1alpha1.OperationPark) {
		d.beginOperation(v1alpha1.OperationPark)
		return
	}
	d.tellDeferred()
}

// mayNotPark says why the wish is not taken in; empty where it is.
func (d *decision) mayNotPark() string {
	s := d.server
	switch {
	case d.accepts(v1alpha1.OperationPark):
		return ""
	case len(d.parks()) == 0:
		return fmt.Sprintf("cannot be used: policy revision %s takes it in no state", d.Bundle.Revision.Name)
	case s.Status.State == v1alpha1.StateObserving:
		return fmt.Sprintf("cannot be used in state %s: the machine was found running and is not ours; take it over first (annotation %s=%s)",
			s.Status.State, v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver)
	case s.Status.State == v1alpha1.StateDecommissioned:
		return fmt.Sprintf("cannot be used in state %s: the server is out of service, and is left alone already", s.Status.State)
	}
	return ""
}

// tellDeferred says why a request waits.
func (d *decision) tellDeferred() {
	d.tell(v1alpha1.ReasonParkDeferred, fmt.Sprintf(
		"park waits in state %s. The server is parked from %s, and no new claim gets it meanwhile; operation unpark withdraws the request",
		d.server.Status.State, joined(d.parks())))
}

// dropPark drops the request once a claim has the server that did not hold it when the request was made. The end of a holder is no such
// change.
func (d *decision) dropPark() {
	s := d.server
	k, stands := keptOn(s)
	uid, ref := s.Annotations[v1alpha1.ClaimUIDAnnotation], s.Spec.ServerClaimRef
	if !stands || ref == nil || uid == k.Claim || !d.Facts.Claim.Bound && !d.Facts.Claim.Binding {
		return
	}
	delete(s.Annotations, v1alpha1.ParkRequestedAnnotation)
	why := fmt.Sprintf("claim %s/%s got the server before it could be parked; ask again if it is still wanted", ref.Namespace, ref.Name)
	d.note(v1alpha1.ReasonParkRequestDropped, "park is dropped: "+why)
	if op := s.Status.Operation; op.Active() && op.Name == v1alpha1.OperationPark {
		d.finish(v1alpha1.OperationFailed, why)
	}
}

// endPark ends an operation park of which the request is kept, and says whether it was that. One that a move did not serve is begun
// again once the policy takes it.
func (d *decision) endPark() bool {
	s := d.server
	if _, stands := keptOn(s); !stands || s.Status.Operation.Name != v1alpha1.OperationPark {
		return false
	}
	switch {
	case d.Decision.To == engine.State(v1alpha1.StateParked) && d.served():
		delete(s.Annotations, v1alpha1.ParkRequestedAnnotation)
		d.finish(v1alpha1.OperationSucceeded, fmt.Sprintf("%s moved the server to %s", d.Decision.Rule, d.Decision.To))
	case !d.accepts(v1alpha1.OperationPark):
		s.Status.Operation = nil
		d.tellDeferred()
	}
	return true
}

// servePark begins the operation for a request that is kept, once the policy takes it and no other operation is asked for or under way.
func (d *decision) servePark() {
	s := d.server
	k, stands := keptOn(s)
	switch {
	case !stands:
	case s.Status.State == v1alpha1.StateParked: // a user forced it there
		delete(s.Annotations, v1alpha1.ParkRequestedAnnotation)
	case Asked(s) == "" && !s.Status.Operation.Active() && d.accepts(v1alpha1.OperationPark):
		d.beginOperation(v1alpha1.OperationPark)
		s.Status.Operation.By, s.Status.Operation.Reason = k.By, k.Reason
	}
}

// notParked answers operation unpark on a server that is not parked: nothing is to be done but to withdraw a request to park it.
func (d *decision) notParked() {
	s, words := d.server, "the server is not parked"
	if _, stands := keptOn(s); stands {
		delete(s.Annotations, v1alpha1.ParkRequestedAnnotation)
		words = "the request to park the server is withdrawn"
	}
	if op := s.Status.Operation; op.Active() && op.Name != v1alpha1.OperationPark {
		return // it is answered once that has ended
	}
	d.beginOperation(v1alpha1.OperationUnpark)
	d.dropRequest()
	d.finish(v1alpha1.OperationSucceeded, said(words, s.Status.Operation.By, s.Status.Operation.Reason))
}

// dropsParked drops what is asked of a parked server but to unpark it, and says whether it did.
func (d *decision) dropsParked(asked string) bool {
	known := knownOperations[asked] || otherKinds[asked] != ""
	if d.server.Status.State != v1alpha1.StateParked || !known || d.accepts(asked) {
		return false
	}
	why := "the server is parked, and nothing is done to it until operation unpark"
	if asked == v1alpha1.OperationPark {
		why = "the server is parked already"
	}
	d.note(v1alpha1.ReasonParkedOperationDropped, asked+" is dropped: "+why)
	d.dropRequest()
	return true
}
