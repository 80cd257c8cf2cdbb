// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// BMCSecretUsernameKey is the key of data that holds the user name.
	BMCSecretUsernameKey = "username"
	// BMCSecretPasswordKey is the key of data that holds the password.
	BMCSecretPasswordKey = "password"
	// BMCSecretCAKey is the key of data that holds the PEM certificates of the authorities that sign the BMC's certificate.
	// It is optional.
	BMCSecretCAKey = "ca.crt"
	// BMCSecretFingerprintKey is the key of data that holds the SHA-256 fingerprint of the BMC's certificate. It is optional.
	BMCSecretFingerprintKey = "certificate-sha256"
)

// BMCSecret holds the credentials of one or more BMCs; it is cluster-scoped because BMCs are. What immutable freezes is
// held by the admission webhook.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=bmcsec
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!oldSelf.?immutable.orValue(false) || self.?immutable.orValue(false)",message="immutable cannot be taken back once it is true"
type BMCSecret struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// immutable freezes data and stringData; once true it stays true.
	// +optional
	Immutable *bool `json:"immutable,omitempty"`
	// data holds the credentials, base64 on the wire, under the keys username and password.
	// +optional
	Data map[string][]byte `json:"data,omitempty"`
	// stringData holds credentials in plain text for writing; a key that is in data as well is taken from here.
	// +optional
	StringData map[string]string `json:"stringData,omitempty"`
	// type tells programs what the data is for.
	// +optional
	Type corev1.SecretType `json:"type,omitempty"`
}

// BMCSecretList is a list of BMC secrets.
//
// +kubebuilder:object:root=true
type BMCSecretList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []BMCSecret `json:"items"`
}
