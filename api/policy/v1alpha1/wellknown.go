// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels and annotations of the ConfigMaps that hold policy bundles, in the manager's namespace only.
const (
	// BundleLabel marks the ConfigMap that is a bundle's head, and names the bundle. PolicyRevisions bear it to be found by.
	BundleLabel = "policy.metalaw.dev/bundle"
	// BundlePartLabel marks a ConfigMap that holds files of a bundle whose head lists them in ManifestKey.
	BundlePartLabel = "policy.metalaw.dev/bundle-part"
	// StageLabel says how far a bundle is to govern: one of the Stage values below. Without it the bundle is a draft.
	StageLabel = "policy.metalaw.dev/stage"
	// CanaryServersAnnotation is a label selector: whom a canary governs.
	CanaryServersAnnotation = "policy.metalaw.dev/servers"
	// CanaryPercentAnnotation is the share of servers, 1 to 100, that a canary governs; the same ones at every look.
	CanaryPercentAnnotation = "policy.metalaw.dev/percent"
	// ActivatedByAnnotation is written at admission: who put the bundle where it governs.
	ActivatedByAnnotation = "policy.metalaw.dev/activated-by"
	// ActivationRestored ends the ActivatedByAnnotation of a ConfigMap that was created with the record of a former activation of the
	// same content, as a backup holds it.
	ActivationRestored = " restored"
	// ManifestKey is the file of a head that lists files in other ConfigMaps, with their digests.
	ManifestKey = "manifest.yaml"
)

// Values of StageLabel.
const (
	LabelDraft  = "draft"
	LabelShadow = "shadow"
	LabelCanary = "canary"
	LabelActive = "active"
)

// MaxShadows is how many revisions are evaluated in shadow at once: each is compiled by every running manager, and evaluated at every
// decision.
const MaxShadows = 8

// Stages are the values of StageLabel, in the order in which a bundle passes them.
func Stages() []string { return []string{LabelDraft, LabelShadow, LabelCanary, LabelActive} }

// PromotionAnnotation is written by the manager on a PolicyRevision: the number of the promotion by which it came into
// force. Of those promoted here the one with the highest number is in force.
const PromotionAnnotation = "policy.metalaw.dev/promotion"

// PromotedObjectAnnotation is written by the manager together with the number of a promotion: the UID of the PolicyRevision. One that
// was restored is another object, so that it bears the number and not its own UID.
const PromotedObjectAnnotation = "policy.metalaw.dev/promoted-object"

// PromotedElsewhere is the PromotedObjectAnnotation of a revision that was restored from the backup of a version which wrote none.
const PromotedElsewhere = "elsewhere"

// Each running manager has a lease of its own, which says what it has compiled.
const (
	// ReplicaLabel marks the lease.
	ReplicaLabel = "policy.metalaw.dev/replica"
	// LoadedAnnotation on the lease lists, as JSON, the digests that the manager compiled and those that it refuses.
	LoadedAnnotation = "policy.metalaw.dev/loaded"
	// FlagsAnnotation on the lease tells, as JSON, the flags of the manager that decide what it does to machines.
	FlagsAnnotation = "policy.metalaw.dev/flags"
)

// ActivateVerb is the verb on policyrevisions, by bundle name, that allows to change what governs.
const ActivateVerb = "activate"

// Labels of SanitizationRecords.
const (
	// RecordMachineLabel holds the UUID of the machine, by which its records are found.
	RecordMachineLabel = "policy.metalaw.dev/machine"
	// RecordServerLabel holds the name of the Server at the time of the wipe, where a label can hold it.
	RecordServerLabel = "policy.metalaw.dev/server"
)
