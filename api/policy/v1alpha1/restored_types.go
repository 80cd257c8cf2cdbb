// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RestoredDoubt says that what is stored of a machine may be older than what is on its disks.
type RestoredDoubt struct {
	// since is when the manager took the doubt in.
	// +required
	Since metav1.MicroTime `json:"since,omitzero"`
	// by is who put the server in doubt, as the API server knows the user.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`
	// reason is why.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// inspectSince is when a user confirmed a machine that no claim holds. An inspection that begins after that ends the doubt, if it
	// finds no data. It is absent while nothing is confirmed.
	// +optional
	InspectSince *metav1.MicroTime `json:"inspectSince,omitempty"`
}
