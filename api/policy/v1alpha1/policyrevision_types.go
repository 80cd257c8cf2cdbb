// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PolicyRevisionSpec is the resolved content of one accepted bundle; it never changes.
type PolicyRevisionSpec struct {
	// bundle is the bundle's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Bundle string `json:"bundle,omitempty"`
	// version is the bundle's semantic version.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`
	// digest is the digest of the resolved content: sha256: and lower-case hex.
	// +required
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest,omitempty"`
	// engineVersion is the version of the engine that accepted the bundle.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	EngineVersion string `json:"engineVersion,omitempty"`
	// Its schema has no format, because CEL, which compares the spec, reads "byte" as the URL alphabet of base64, in
	// which most of what encoding/json writes is invalid.

	// content is the gzip of a JSON object that maps file names to their text; files that the bundle left out are in it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1200000
	// +kubebuilder:validation:Format=""
	Content []byte `json:"content,omitempty"`
	// source is the ConfigMap that the bundle came from; nothing for the embedded one.
	// +optional
	Source *PolicySource `json:"source,omitempty"`
}

// PolicySource is the ConfigMap that a bundle came from.
type PolicySource struct {
	// namespace is the ConfigMap's namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// name is the ConfigMap's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// uid is the ConfigMap's UID.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// PolicyStage is how far a revision governs.
// +kubebuilder:validation:Enum=Embedded;Draft;Shadow;Canary;Active;Superseded
type PolicyStage string

const (
	// StageEmbedded is the revision built into the manager; it governs where no other is active.
	StageEmbedded PolicyStage = "Embedded"
	// StageDraft is not in force, and may be broken.
	StageDraft PolicyStage = "Draft"
	// StageShadow is evaluated beside the active revision and never moves or acts.
	StageShadow PolicyStage = "Shadow"
	// StageCanary governs the servers in its scope.
	StageCanary PolicyStage = "Canary"
	// StageActive governs.
	StageActive PolicyStage = "Active"
	// StageSuperseded governed once; servers may still be pinned to it.
	StageSuperseded PolicyStage = "Superseded"
)

// Condition types of a PolicyRevision.
const (
	// ConditionCompiled says that the content compiles in this engine.
	ConditionCompiled = "Compiled"
	// ConditionVerified says that the content passed the static checks and its own scenarios.
	ConditionVerified = "Verified"
	// ConditionActive says that the revision is what newly adopting servers are governed by.
	ConditionActive = "Active"
)

// Reasons of conditions on a PolicyRevision.
const (
	// ReasonCompiled: the content compiles.
	ReasonCompiled = "Compiled"
	// ReasonCompileFailed: the content does not compile; the findings say where and why.
	ReasonCompileFailed = "CompileFailed"
	// ReasonVerified: the static checks and scenarios pass.
	ReasonVerified = "Verified"
	// ReasonVerifyFailed: a static check or scenario fails; the findings say which.
	ReasonVerifyFailed = "VerifyFailed"
	// ReasonInForce: the revision is in force.
	ReasonInForce = "InForce"
	// ReasonNotPromoted: the stage of the revision does not put it in force.
	ReasonNotPromoted = "NotPromoted"
	// ReasonSuperseded: a later promotion took its place.
	ReasonSuperseded = "Superseded"
	// ReasonConflict: another revision was promoted at the same time and stays.
	ReasonConflict = "Conflict"
)

// PolicyRevisionStatus says how far a revision governs.
type PolicyRevisionStatus struct {
	// conditions are Compiled, Verified and Active.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// stage is how far the revision governs.
	// +optional
	Stage PolicyStage `json:"stage,omitempty"`
	// servers is the number of servers pinned to the revision.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Servers int32 `json:"servers,omitempty"`
	// findings are what the checks had to say, one line each.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Findings []string `json:"findings,omitempty"`
}

// PolicyRevision is one accepted version of a policy bundle, with its whole content.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=polrev
// +kubebuilder:printcolumn:name="Bundle",type=string,JSONPath=`.spec.bundle`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.status.stage`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.conditions[?(@.type=="Active")].status`
// +kubebuilder:printcolumn:name="Servers",type=integer,JSONPath=`.status.servers`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PolicyRevision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the resolved content; it never changes.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: a changed bundle is a new revision"
	Spec PolicyRevisionSpec `json:"spec,omitzero"`
	// status says how far the revision governs.
	// +optional
	Status PolicyRevisionStatus `json:"status,omitzero"`
}

// PolicyRevisionList is a list of revisions.
//
// +kubebuilder:object:root=true
type PolicyRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []PolicyRevision `json:"items"`
}
