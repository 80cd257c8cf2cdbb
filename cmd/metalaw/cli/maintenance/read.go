// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/controllers/maintenance/hold"
)

// get reads one maintenance.
func get(ctx context.Context, c client.Reader, key types.NamespacedName) (*v1alpha1.ServerMaintenance, error) {
	m := &v1alpha1.ServerMaintenance{}
	err := c.Get(ctx, key, m)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no ServerMaintenance %s in namespace %s; -n names another namespace", key.Name, key.Namespace)
	}
	return m, access.Explain(err, "get", access.Maintenances)
}

// getServer reads the server of a maintenance; nil where it does not exist, or the reader may not see it, which a note says.
func getServer(ctx context.Context, c client.Reader, name string, notes *[]string) (*v1alpha1.Server, error) {
	s := &v1alpha1.Server{}
	switch err := c.Get(ctx, types.NamespacedName{Name: name}, s); {
	case apierrors.IsNotFound(err):
		*notes = append(*notes, "there is no Server "+name)
		return nil, nil
	case err != nil:
		return nil, access.Missing(notes, err, "get", access.Servers, "you cannot see the Server "+name)
	}
	return s, nil
}

// getClaim reads the claim that holds a server; nil where none does, or the reader may not see it, which a note says.
func getClaim(ctx context.Context, c client.Reader, s *v1alpha1.Server, notes *[]string) (*v1alpha1.ServerClaim, error) {
	if s == nil || s.Spec.ServerClaimRef == nil {
		return nil, nil
	}
	ref := s.Spec.ServerClaimRef
	claim := &v1alpha1.ServerClaim{}
	switch err := c.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, claim); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, access.Missing(notes, err, "get", access.ServerClaims, "you cannot see the claim that holds the server")
	}
	if uid := s.Annotations[v1alpha1.ClaimUIDAnnotation]; uid != "" && uid != string(claim.UID) {
		*notes = append(*notes, fmt.Sprintf("claim %s/%s is not the one that holds the server: the UIDs differ", ref.Namespace, ref.Name))
		return nil, nil
	}
	return claim, nil
}

// ofServer lists the maintenances of a server, those of all namespaces or else those of the given ones.
func ofServer(ctx context.Context, c client.Reader, server string, notes *[]string, namespaces ...string) ([]v1alpha1.ServerMaintenance, error) {
	var list v1alpha1.ServerMaintenanceList
	err := c.List(ctx, &list)
	if apierrors.IsForbidden(err) {
		slices.Sort(namespaces)
		for _, namespace := range slices.Compact(namespaces) {
			var some v1alpha1.ServerMaintenanceList
			if err := c.List(ctx, &some, client.InNamespace(namespace)); err != nil {
				err = access.Missing(notes, err, "list", access.Maintenances, "you cannot see the maintenances of namespace "+namespace)
				if err != nil {
					return nil, err
				}
			}
			list.Items = append(list.Items, some.Items...)
		}
		err = access.Missing(notes, err, "list", access.Maintenances, "maintenances of other namespaces are not known to you")
	}
	if err != nil {
		return nil, access.Explain(err, "list", access.Maintenances)
	}
	all := slices.DeleteFunc(list.Items, func(m v1alpha1.ServerMaintenance) bool { return m.Spec.ServerRef.Name != server })
	slices.SortFunc(all, byName)
	return all, nil
}

func byName(a, b v1alpha1.ServerMaintenance) int { return strings.Compare(nameOf(&a), nameOf(&b)) }

// nameOf is a maintenance as namespace/name.
func nameOf(m *v1alpha1.ServerMaintenance) string { return m.Namespace + "/" + m.Name }

// policyOf is the policy that counts: an empty one asks the holder.
func policyOf(m *v1alpha1.ServerMaintenance) v1alpha1.ServerMaintenancePolicy {
	if m.Spec.Policy == "" {
		return v1alpha1.ServerMaintenancePolicyOwnerApproval
	}
	return m.Spec.Policy
}

// ends says that a maintenance is being deleted or was aborted, and has not ended yet.
func ends(m *v1alpha1.ServerMaintenance) bool {
	return m.DeletionTimestamp != nil || hold.Aborted(m) && !hold.Failed(m)
}

// waits says that a maintenance does not hold its server, and still wants it.
func waits(m *v1alpha1.ServerMaintenance) bool {
	return !ends(m) && (m.Status.State == "" || m.Status.State == v1alpha1.ServerMaintenanceStatePending)
}

// stateOf is the state in a word, as the table shows it.
func stateOf(m *v1alpha1.ServerMaintenance) string {
	switch {
	case ends(m):
		return "Ending"
	case m.Status.State == "":
		return "-"
	default:
		return string(m.Status.State)
	}
}

// tells is the condition that says most about a maintenance now; nil where it has none.
func tells(m *v1alpha1.ServerMaintenance) *metav1.Condition {
	granted := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionGranted)
	if m.Status.State == "" || m.Status.State == v1alpha1.ServerMaintenanceStatePending {
		return granted
	}
	served := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionServed)
	overdue := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionOverdue)
	switch {
	case granted != nil && granted.Status == metav1.ConditionFalse:
		return granted
	case served != nil && served.Status != metav1.ConditionTrue:
		return served
	case overdue != nil && overdue.Status == metav1.ConditionTrue:
		return overdue
	case served != nil:
		return served
	}
	return granted
}

// wasAsked says that the holder of this claim was asked for a maintenance, or told of it.
func wasAsked(m *v1alpha1.ServerMaintenance, c *v1alpha1.ServerClaim) bool {
	return m.Status.Asked != nil && c != nil && m.Status.Asked.ClaimUID == c.UID
}
