// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// release is the recorded release of the claim that held the server last.
type release struct {
	// Claim is the claim that ended, as namespace/name; empty where only its UID is known.
	Claim string `json:"claim,omitempty"`
	UID   string `json:"uid"`
	// By is who ended it; empty where that is not known.
	By      string     `json:"by,omitempty"`
	EndedAt *time.Time `json:"endedAt,omitempty"`
	// EffectiveAt is when the release takes effect, or did; nil where the setting releaseGrace is not known.
	EffectiveAt *time.Time `json:"effectiveAt,omitempty"`
	// Pending says that it has not taken effect yet, as far as is known, so that it can be undone.
	Pending bool `json:"pending"`

	server string
}

// releaseOf is the release that is recorded on a server; nil where none is.
func releaseOf(s *v1alpha1.Server) *release {
	if !v1alpha1.ReleaseRecorded(s) {
		return nil
	}
	r := &release{UID: s.Annotations[v1alpha1.ReleasedClaimAnnotation], server: s.Name}
	var former struct {
		Metadata struct{ Namespace, Name string }
	}
	switch ref := s.Spec.ServerClaimRef; {
	case ref != nil:
		r.Claim = ref.Namespace + "/" + ref.Name
	case json.Unmarshal([]byte(s.Annotations[v1alpha1.ReleasedSpecAnnotation]), &former) == nil && former.Metadata.Name != "":
		r.Claim = former.Metadata.Namespace + "/" + former.Metadata.Name
	}
	if uid, user, _ := strings.Cut(s.Annotations[v1alpha1.ClaimEndedByAnnotation], " "); uid == r.UID {
		r.By = user
	}
	if at, ok := policies.ReleaseEffective(s, 0); ok {
		r.EndedAt = &at
	}
	r.Pending = s.Spec.ServerClaimRef != nil && s.Status.State == v1alpha1.StateReserved
	return r
}

// takesEffect takes in the setting releaseGrace of the policy that governs the server.
func (r *release) takesEffect(s *v1alpha1.Server, grace time.Duration, now time.Time) {
	if r == nil {
		return
	}
	at, ok := policies.ReleaseEffective(s, grace)
	if early := !r.Pending && at.After(now); ok && !early { // a manager without a grace did not wait for it
		r.EffectiveAt, r.Pending = &at, r.Pending && at.After(now)
	}
}

func (r *release) words() string {
	if r == nil {
		return ""
	}
	words := "claim " + r.Claim
	if r.Claim == "" {
		words += "with UID " + r.UID
	}
	words += " ended"
	if r.By != "" {
		words += fmt.Sprintf(" (by %s)", r.By)
	}
	if r.EndedAt != nil {
		words += " at " + r.EndedAt.Format(time.RFC3339)
	}
	if r.EffectiveAt != nil {
		verb := "took"
		if r.Pending {
			verb = "takes"
		}
		words += fmt.Sprintf("; %s effect at %s", verb, r.EffectiveAt.Format(time.RFC3339))
	}
	if r.Pending {
		words += fmt.Sprintf("; metalaw server undo-release %s takes it back", r.server)
	}
	return words
}
