// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/maintenance"
)

// decommission is the end of a server's service.
type decommission struct {
	// Reason is why it was asked for.
	Reason string `json:"reason"`
	// Done says that the server went out of service.
	Done bool `json:"done"`
	// Message is what the manager says of how far it is; empty where it says nothing.
	Message string `json:"message,omitempty"`

	server string
}

// decommissionOf is the decommission that is stored on a server; nil where none is.
func decommissionOf(s *v1alpha1.Server) *decommission {
	reason, asked := s.Annotations[v1alpha1.DecommissionAnnotation]
	done := s.Status.State == v1alpha1.StateDecommissioned
	if !asked && !done {
		return nil
	}
	d := &decommission{Reason: reason, Done: done, server: s.Name}
	if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionDecommission); c != nil {
		d.Message = c.Message
	}
	return d
}

func (d *decommission) words() string {
	words := "it goes out of service"
	if d.Done {
		words = "it went out of service"
	}
	if d.Reason != "" {
		words += ": " + d.Reason
	}
	if d.Message != "" && !d.Done {
		words += "; " + d.Message
	}
	return words + fmt.Sprintf("; metalaw server recommission %s takes it back", d.server)
}

// faultOf is the proposal to decommission a server for its hardware.
func faultOf(s *v1alpha1.Server) string {
	c := fault{v1alpha1.ConditionFaultyHardware, metav1.ConditionTrue}.on(s)
	if c == nil {
		return ""
	}
	return cmp.Or(c.Message, c.Reason)
}

// readMaintenances reads the maintenance that holds a server and those that wait for it.
func (e *explanation) readMaintenances(ctx context.Context, c client.Reader, s *v1alpha1.Server) error {
	var namespaces []string
	for _, ref := range []*v1alpha1.ObjectReference{s.Spec.ServerMaintenanceRef, s.Spec.ServerClaimRef} {
		if ref != nil {
			namespaces = append(namespaces, ref.Namespace)
		}
	}
	hold, err := maintenance.ReadHold(ctx, c, s, &e.Notes, namespaces...)
	if err != nil {
		return access.Explain(err, "list", access.Maintenances)
	}
	e.Maintenance, e.MaintenanceWaiting = hold.Holder, hold.Waiting
	return nil
}
