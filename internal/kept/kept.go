// SPDX-License-Identifier: Apache-2.0

// Package kept is what people said of a machine, in the form in which its ServerInventory keeps it. A Server can be
// deleted while its BMC stays: the machine then comes back as a new object, which must not be offered as if nothing had
// been said.
package kept

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Words is what people said of a machine. The zero value says nothing.
type Words struct {
	// Decommission is the reason for which the machine goes out of service, or went; nil where it is in service.
	Decommission *string `json:"decommission,omitempty"`
	// Unclaimable says that the machine is cordoned, and UnclaimableReason why.
	Unclaimable       bool   `json:"unclaimable,omitempty"`
	UnclaimableReason string `json:"unclaimableReason,omitempty"`
	// Taints are those that no ServerReadinessRule sets.
	Taints []v1alpha1.Taint `json:"taints,omitempty"`
}

// Of reads what people said from a Server. ruled are the taints of the ServerReadinessRules, which come back by
// themselves.
func Of(s *v1alpha1.Server, ruled []v1alpha1.Taint) Words {
	var w Words
	if reason, asked := s.Annotations[v1alpha1.DecommissionAnnotation]; asked {
		w.Decommission = &reason
	}
	if w.Unclaimable = s.Spec.Unclaimable; w.Unclaimable {
		w.UnclaimableReason = s.Annotations[v1alpha1.UnclaimableReasonAnnotation]
	}
	for _, t := range s.Spec.Taints {
		if !slices.ContainsFunc(ruled, func(rule v1alpha1.Taint) bool { return same(rule, t) && rule.Value == t.Value }) {
			w.Taints = append(w.Taints, t)
		}
	}
	return w
}

// same says that two taints have one key and effect: an effect that is left out is NoBind.
func same(a, b v1alpha1.Taint) bool {
	return a.Key == b.Key && cmp.Or(a.Effect, v1alpha1.TaintEffectNoBind) == cmp.Or(b.Effect, v1alpha1.TaintEffectNoBind)
}

// Text is the value of the annotation; empty where nothing was said.
func (w Words) Text() string {
	if w.Decommission == nil && !w.Unclaimable && len(w.Taints) == 0 {
		return ""
	}
	text, err := json.Marshal(w)
	if err != nil { // text and lists of text always encode
		return ""
	}
	return string(text)
}

// unreadable is why a machine is cordoned of which the annotation cannot be read.
const unreadable = "annotation " + v1alpha1.KeptAnnotation +
	" of its ServerInventory cannot be read; see what was said of the machine"

// Read reads the annotation. Text that cannot be read is no permission: it cordons.
func Read(text string) Words {
	if text == "" {
		return Words{}
	}
	var w Words
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&w); err != nil || decoder.More() {
		return Words{Unclaimable: true, UnclaimableReason: unreadable}
	}
	return w
}

// Return gives a new Server of the machine back what was said. What the Server says itself stays.
func (w Words) Return(s *v1alpha1.Server) {
	if _, asked := s.Annotations[v1alpha1.DecommissionAnnotation]; !asked && w.Decommission != nil {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.DecommissionAnnotation, *w.Decommission)
	}
	if w.Unclaimable && !s.Spec.Unclaimable {
		s.Spec.Unclaimable = true
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.UnclaimableReasonAnnotation, w.UnclaimableReason)
	}
	owns := slices.Clone(s.Spec.Taints) // one key and effect may come back with several values
	for _, t := range w.Taints {
		if !slices.ContainsFunc(owns, func(own v1alpha1.Taint) bool { return same(own, t) }) {
			s.Spec.Taints = append(s.Spec.Taints, t)
		}
	}
}

// Keep writes the annotation into the metadata of an inventory, or takes it away where nothing is said any more.
func (w Words) Keep(inventory *metav1.ObjectMeta) {
	if text := w.Text(); text != "" {
		metav1.SetMetaDataAnnotation(inventory, v1alpha1.KeptAnnotation, text)
		return
	}
	delete(inventory.Annotations, v1alpha1.KeptAnnotation)
}
