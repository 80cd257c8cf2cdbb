// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/yamlnode"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/internal/canary"
)

// The keys of an object's metadata that hold what a fault is of.
const (
	labelsKey      = "labels"
	annotationsKey = "annotations"
)

// fault is what admission refuses of a label or an annotation of a head, or warns of.
type fault struct {
	severity  diag.Severity
	code      string
	kind, key string
	// message says what is wrong, and hint what to do.
	message, hint string
}

// faults are what is wrong with a head's labels and annotations: a stage that there is not, a canary of nobody, and another name than the
// bundle's, of which admission only warns while it is a draft.
func faults(labels, annotations map[string]string, files bundle.Files) []fault {
	stage := cmp.Or(labels[policyv1alpha1.StageLabel], policyv1alpha1.LabelDraft)
	if stages := policyv1alpha1.Stages(); !slices.Contains(stages, stage) {
		return []fault{{diag.Error, "label-stage", labelsKey, policyv1alpha1.StageLabel,
			fmt.Sprintf("label %s is %q", policyv1alpha1.StageLabel, stage), "there are " + strings.Join(stages, ", ")}}
	}
	var found []fault
	if label, name := labels[bundleLabel], selfIn(files).Name; name != "" && name != label {
		severity := diag.Error
		if stage == policyv1alpha1.LabelDraft {
			severity = diag.Warning
		}
		found = append(found, fault{severity, "label-bundle", labelsKey, bundleLabel,
			fmt.Sprintf("label %s says %q and %s names the bundle %q", bundleLabel, label, bundle.BundleFile, name), "write the same name in both"})
	}
	if stage == policyv1alpha1.LabelCanary {
		_, wrong := canary.Parse(annotations)
		for _, f := range wrong {
			found = append(found, fault{diag.Error, "canary-scope", annotationsKey, f.Annotation(),
				fmt.Sprintf("annotation %s: %s", f.Annotation(), f), ""})
		}
	}
	return found
}

// judgeLabels finds the faults of a head. The findings are of the file metadata.
func (c *configMap) judgeLabels(files bundle.Files) diag.List {
	var found diag.List
	for _, f := range faults(c.labels, c.annotations, files) {
		at := c.object
		if written := yamlnode.Child(yamlnode.Child(yamlnode.Child(c.object, "metadata"), f.kind), f.key); written != nil {
			at = written
		}
		found = append(found, diag.Diagnostic{Severity: f.severity, Code: f.code, File: metadata, Line: at.Line, Column: at.Column,
			Rule: "ConfigMap " + c.name, Message: f.message, Hint: f.hint})
	}
	return found
}

// metadata stands for the object that holds a bundle among the files of the bundle.
const metadata = "metadata"

// self is what a bundle says that it is; empty where that cannot be read, which the acceptance of the bundle tells.
type self struct{ Name, Version string }

func selfIn(files bundle.Files) self {
	var is self
	if yaml.Unmarshal(files[bundle.BundleFile], &is) != nil {
		return self{}
	}
	return is
}
