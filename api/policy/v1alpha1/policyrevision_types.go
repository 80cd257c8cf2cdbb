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
	// digest is the digest of the files as the ConfigMap holds them, before those that it leaves out were filled in.
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest,omitempty"`
}

// PolicyStage is how far a revision governs.
// +kubebuilder:validation:Enum=Embedded;Draft;Shadow;Canary;Active;Superseded
type PolicyStage string

const (
	// StageEmbedded is the revision built into the manager that governed first; it governs until another is promoted. What is
	// built into a newer manager is promoted like any other.
	StageEmbedded PolicyStage = "Embedded"
	// StageDraft governs nothing.
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

// LabelledStage is the stage that a ConfigMap's label asks for.
// +kubebuilder:validation:Enum=None;Draft;Shadow;Canary;Active
type LabelledStage string

const (
	// LabelledNone is the stage of a revision that no ConfigMap holds any more.
	LabelledNone LabelledStage = "None"
	// LabelledDraft asks for nothing; so does a ConfigMap without the label.
	LabelledDraft LabelledStage = "Draft"
	// LabelledShadow asks for the revision to be evaluated beside the one in force.
	LabelledShadow LabelledStage = "Shadow"
	// LabelledCanary asks for the revision to govern some servers.
	LabelledCanary LabelledStage = "Canary"
	// LabelledActive asks for the revision to be in force.
	LabelledActive LabelledStage = "Active"
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
	// ReasonConflict: another revision was promoted at the same time and stays, or no number is left for a promotion.
	ReasonConflict = "Conflict"
	// ReasonAwaitingReplicas: some running manager has not compiled the revision yet, or refuses it; the message names it.
	ReasonAwaitingReplicas = "AwaitingReplicas"
	// ReasonRevisionHeld: this version of the manager refuses the revision; nothing moves under it and nothing is done.
	ReasonRevisionHeld = "RevisionHeld"
	// ReasonPromotionMissing: the revision was promoted in another cluster and restored here, and none was promoted
	// here: nothing governs.
	ReasonPromotionMissing = "PromotionMissing"
)

// Reasons of events on the ConfigMap of a bundle.
const (
	// ReasonBundleAccepted: the bundle passes all checks and has a PolicyRevision.
	ReasonBundleAccepted = "BundleAccepted"
	// ReasonBundleRefused: the bundle does not pass; the first findings are named. What governs stays as it is.
	ReasonBundleRefused = "BundleRefused"
	// ReasonBundleIncomplete: files that the manifest lists are missing or have another digest. What governs stays as it is.
	ReasonBundleIncomplete = "BundleIncomplete"
	// ReasonVersionTaken: a revision with this name and version and other content exists. What governs stays as it is.
	ReasonVersionTaken = "VersionTaken"
	// ReasonBundleNotStored: the bundle passes, and the API server refuses the PolicyRevision that is to hold it. What governs stays as
	// it is.
	ReasonBundleNotStored = "BundleNotStored"
	// ReasonCanaryPaused: the canary has cost more than its budget; no further server comes under it.
	ReasonCanaryPaused = "CanaryPaused"
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
	// stageSince is when the revision came to this stage.
	// +optional
	StageSince *metav1.Time `json:"stageSince,omitempty"`
	// labelledStage is the most that the label of a ConfigMap which holds the revision asks for, as it was seen last.
	// +optional
	LabelledStage LabelledStage `json:"labelledStage,omitempty"`
	// head is the ConfigMap, in the manager's namespace, whose label counts: that which asks for most.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Head string `json:"head,omitempty"`
	// heads are all ConfigMaps that hold the revision, each with its label as it was seen last. A promotion is the change of
	// one of these labels to Active, or a new record of who activated it; a label that is applied again unchanged is none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Heads []LabelledHead `json:"heads,omitempty"`
	// promotion is the number of the last promotion that was asked for; it took effect where the annotation
	// policy.metalaw.dev/promotion has the same number.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Promotion int64 `json:"promotion,omitempty"`
	// activatedBy is who put the bundle where it governs, as admission recorded it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ActivatedBy string `json:"activatedBy,omitempty"`
	// canary is whom the revision governs as a canary, and what that has cost.
	// +optional
	Canary *CanaryStatus `json:"canary,omitempty"`
	// shadow is what the revision would have decided otherwise than the one in force.
	// +optional
	Shadow *ShadowStatus `json:"shadow,omitempty"`
	// loaded says which of the running managers have compiled the revision.
	// +optional
	// +listType=map
	// +listMapKey=replica
	// +kubebuilder:validation:MaxItems=32
	Loaded []LoadedRevision `json:"loaded,omitempty"`
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
	// findingsTotal is how many findings there are, those included that findings leaves out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	FindingsTotal int32 `json:"findingsTotal,omitempty"`
}

// LabelledHead is a ConfigMap that holds a revision, and what it asked for when it was seen last.
type LabelledHead struct {
	// name is the ConfigMap's.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// stage is what its label asks for.
	// +optional
	Stage LabelledStage `json:"stage,omitempty"`
	// activatedBy is its record of who put it where it governs, and when.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ActivatedBy string `json:"activatedBy,omitempty"`
	// digest is the digest of the files as it holds them, before those that it leaves out were filled in.
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest,omitempty"`
	// problem is why the ConfigMap changes nothing as it is now, such as that it is half-written; empty where it can be used.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem,omitempty"`
}

// MaxCanarySelector is how many characters the selector of a canary may have, as CanaryStatus can hold it.
const MaxCanarySelector = 4096

// CanaryStatus is whom a canary governs, and what that has cost so far.
type CanaryStatus struct {
	// selector names the servers by label; every server where it is empty.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`
	// percent is the share of these servers that is governed, always the same ones; all of them where it is left out.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent,omitempty"`
	// since is when the canary began in this scope; what happened before does not count.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
	// halts is how many servers were halted under the canary.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Halts int32 `json:"halts,omitempty"`
	// errors is how many servers entered Error under the canary.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int32 `json:"errors,omitempty"`
	// maxHalts is how many halted servers the canary may cost, as it was when the canary paused itself.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxHalts *int32 `json:"maxHalts,omitempty"`
	// maxErrors is how many servers in Error the canary may cost, as it was when the canary paused itself.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxErrors *int32 `json:"maxErrors,omitempty"`
	// paused says that no further server comes under the canary, until its label or scope is changed.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// reason is why it is paused.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// ShadowStatus is what a shadow would have decided otherwise.
type ShadowStatus struct {
	// evaluated is how many decisions were evaluated beside the revision in force.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Evaluated int64 `json:"evaluated,omitempty"`
	// differencesTotal is how many differences were counted, those included that differences leaves out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DifferencesTotal int64 `json:"differencesTotal,omitempty"`
	// differences are the most frequent ones.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Differences []ShadowDifference `json:"differences,omitempty"`
}

// ShadowDifference is one way in which a shadow would have decided otherwise. A server counts once until its difference
// changes.
type ShadowDifference struct {
	// state is the state in which the servers were.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	State string `json:"state,omitempty"`
	// rule is the rule of the governing revision that fired; empty where nothing moved.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Rule string `json:"rule,omitempty"`
	// shadowRule is the rule of the shadow that would have fired; empty where nothing would have moved.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ShadowRule string `json:"shadowRule,omitempty"`
	// count is how often it was seen.
	// +required
	// +kubebuilder:validation:Minimum=1
	Count int64 `json:"count,omitempty"`
	// lastServer is the last server on which it was seen.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	LastServer string `json:"lastServer,omitempty"`
	// lastAt is when that was.
	// +optional
	LastAt metav1.Time `json:"lastAt,omitzero"`
	// want is what the governing revision decided there.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Want string `json:"want,omitempty"`
	// got is what the shadow would have decided there.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Got string `json:"got,omitempty"`
}

// LoadedOutcome is how the try of a manager to load a revision ended.
//
// +kubebuilder:validation:Enum=Refused
type LoadedOutcome string

// LoadedRefused: the manager cannot use the revision; the message says why.
const LoadedRefused LoadedOutcome = "Refused"

// LoadedRevision is what one running manager makes of a revision.
type LoadedRevision struct {
	// replica is the manager's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Replica string `json:"replica,omitempty"`
	// engineVersion is the version of its engine.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	EngineVersion string `json:"engineVersion,omitempty"`
	// compiled says that the revision compiles and passes its tests there.
	// +required
	Compiled bool `json:"compiled"`
	// outcome is Refused where the replica has tried the revision and refuses it; without it, the replica has not said yet.
	// +optional
	Outcome LoadedOutcome `json:"outcome,omitempty"`
	// message is why not.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// PolicyRevision is one accepted version of a policy bundle, with its whole content.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=polrev,categories=metal
// +kubebuilder:printcolumn:name="Bundle",type=string,JSONPath=`.spec.bundle`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.status.stage`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.conditions[?(@.type=="Active")].status`
// +kubebuilder:printcolumn:name="Servers",type=integer,JSONPath=`.status.servers`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Active")].reason`
// +kubebuilder:printcolumn:name="ConfigMap",type=string,priority=1,JSONPath=`.status.head`
// +kubebuilder:printcolumn:name="Findings",type=integer,priority=1,JSONPath=`.status.findingsTotal`
// +kubebuilder:printcolumn:name="Differences",type=integer,priority=1,JSONPath=`.status.shadow.differencesTotal`
// +kubebuilder:printcolumn:name="Paused",type=boolean,priority=1,JSONPath=`.status.canary.paused`
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
