// SPDX-License-Identifier: Apache-2.0

package propose

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/diag"
)

// What follows from broken parts, and what to do.
const (
	cordonedByManager = "The manager cordoned the server. Decommission or uncordon it."
	cordonedBefore    = "The server is cordoned already. Decommission or uncordon it."
	heldByClaim       = "A claim holds the server, so the manager does not cordon it. Decommission it, or mend it."
	keptInService     = "A person uncordoned the server, so claims may get it. Decommission it, or mend it."
	cordonsNone       = "The manager cordons none. Cordon or decommission the server."
	faultGone         = "The fault is not reported any more. The cordon stays until a person lifts it: uncordon the server."
)

// limit says that no more servers of a model are cordoned.
func (d *decision) limit(model string) string {
	return fmt.Sprintf("The manager cordoned %d of the model in 24 h, which is the limit. Cordon or decommission the server.", d.most[model])
}

const (
	// maxNamed bounds the parts that a message names, and maxName the length of a name there.
	maxNamed = 2
	maxName  = 32
)

func condition(reason string, parts []v1alpha1.FaultyPart, then string) *metav1.Condition {
	return &metav1.Condition{Type: v1alpha1.ConditionFaultyHardware, Status: metav1.ConditionTrue, Reason: reason,
		Message: named(parts) + ". " + then}
}

// gone is the condition of a server without a fault: there is none, unless our cordon stands.
func gone(s *Server) *metav1.Condition {
	if !s.Unclaimable || !s.Ours {
		return nil
	}
	return &metav1.Condition{Type: v1alpha1.ConditionFaultyHardware, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonFaultGone,
		Message: faultGone}
}

// kinds name a part by its fault.
var kinds = map[v1alpha1.HardwareFault]string{
	v1alpha1.FaultHealth: "Critical part",
	v1alpha1.FaultDisk:   "Failed disk",
	v1alpha1.FaultMemory: "Missing memory module",
}

func named(parts []v1alpha1.FaultyPart) string {
	var words []string
	for i, p := range parts {
		if i == maxNamed {
			words = append(words, fmt.Sprintf("and %d more in status.faultyParts", len(parts)-maxNamed))
			break
		}
		name := diag.Shortened(p.Name, maxName)
		if name == "" {
			name = "that nothing names"
		}
		words = append(words, kinds[p.Fault]+" "+name)
	}
	return strings.Join(words, ", ")
}
