// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
)

// showClaims prints the claims whose release was undone, as their namespaces apply them again. A claim is printed too
// where the request has not ended in time: its Server may be erased before its user looks again.
func (r *run) showClaims(servers []v1alpha1.Server) {
	for i := range servers {
		s := &servers[i]
		end := lists.Find(r.report.results, func(o *result) bool {
			return o.Name == s.Name && (o.Outcome == outcomeDone || o.Outcome == outcomeTimedOut)
		})
		if end == nil {
			continue
		}
		kept := s.Annotations[v1alpha1.ReleasedSpecAnnotation]
		text, err := yaml.JSONToYAML([]byte(kept))
		if err != nil || kept == "" {
			r.report.terminal.Notef("the claim of %s is not kept; write it again with serverRef: {name: %s}", s.Name, s.Name)
			continue
		}
		if end.Outcome == outcomeTimedOut {
			r.report.terminal.Notef("%s: apply the claim only once the release is undone; until then annotation %s of the Server "+
				"has it too", s.Name, v1alpha1.ReleasedSpecAnnotation)
		}
		if lacks := leftOut(kept); lacks != "" {
			r.report.terminal.Notef("%s: these annotations of the claim were too long to be kept: %s", s.Name, lacks)
		}
		r.report.terminal.Printf("---\n%s", text)
	}
}

// leftOut names the annotations that a kept claim lacks; empty where it lacks none.
func leftOut(kept string) string {
	var claim struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if json.Unmarshal([]byte(kept), &claim) != nil {
		return ""
	}
	return claim.Metadata.Annotations[v1alpha1.LeftOutAnnotation]
}

// waits says what holds a request back that the manager has not taken in; empty where nothing shows. A manager that only
// observes takes nothing in. Every other cause may be of another effect, so that it counts once the request stands for long.
func waits(s *v1alpha1.Server, at stage, long bool) string {
	if at != stageUnseen {
		return ""
	}
	for _, holds := range holding {
		if c := holds.on(s); c != nil && (long || c.Reason == v1alpha1.ReasonObserveOnly) {
			return fmt.Sprintf("stored, and waits: %s is %s, %s: %s", holds.kind, c.Status, c.Reason, c.Message)
		}
	}
	return ""
}
