// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"slices"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// MayNotDeclareClean says why no user may declare a server clean; empty where a user may. A declaration answers for a
// status that was lost. Where a claim is known that held the machine, a release and a wipe answer for it.
func MayNotDeclareClean(s *v1alpha1.Server, inv *policyv1alpha1.ServerInventory) string {
	const remedy = "release the server and retry, which erases it"
	switch ref := s.Spec.ServerClaimRef; {
	case ref != nil:
		return fmt.Sprintf("it names the claim %s/%s; delete the claim, which has it wiped", ref.Namespace, ref.Name)
	case s.Status.State != v1alpha1.StateError:
		return fmt.Sprintf("it is in %q, and only a server in Error is declared clean", s.Status.State)
	case s.Status.Lifecycle == nil || !slices.Contains(s.Status.Lifecycle.Marks, MarkDirty):
		return "it is not marked Dirty; retry it"
	case remembersHolder(s):
		return "it remembers a claim that held it; " + remedy
	case inv != nil && inv.Custody != nil && inv.Custody.LastHolder != nil:
		h := inv.Custody.LastHolder
		return fmt.Sprintf("its inventory remembers the data of the claim %s/%s; %s", h.Namespace, h.Name, remedy)
	}
	return ""
}
