// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/api/canary"
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/yamlnode"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

// judgeLabels finds what admission refuses of a head's labels and annotations: a stage that there is not, a canary of nobody, and, of
// more than a draft, another name than the bundle's. The findings are of the file metadata.
func (c *configMap) judgeLabels(files bundle.Files) diag.List {
	stage := cmp.Or(c.labels[policyv1alpha1.StageLabel], policyv1alpha1.LabelDraft)
	if stages := policyv1alpha1.Stages(); !slices.Contains(stages, stage) {
		return diag.List{c.finding("label-stage", "labels", policyv1alpha1.StageLabel,
			fmt.Sprintf("label %s is %q", policyv1alpha1.StageLabel, stage), "there are "+strings.Join(stages, ", "))}
	}
	var found diag.List
	if stage == policyv1alpha1.LabelDraft {
		return nil
	}
	if label, name := c.labels[bundleLabel], selfIn(files).Name; name != "" && name != label {
		found = append(found, c.finding("label-bundle", "labels", bundleLabel,
			fmt.Sprintf("label %s says %q and %s names the bundle %q", bundleLabel, label, bundle.BundleFile, name), "write the same name in both"))
	}
	if stage == policyv1alpha1.LabelCanary {
		_, faults := canary.Parse(c.annotations)
		for _, f := range faults {
			found = append(found, c.finding("canary-scope", "annotations", f.Annotation(), fmt.Sprintf("annotation %s: %s", f.Annotation(), f), ""))
		}
	}
	return found
}

// finding is about a label or an annotation, where that is written; of one that is missing, where the object is.
func (c *configMap) finding(code, kind, key, message, hint string) diag.Diagnostic {
	at := c.object
	if found := yamlnode.Child(yamlnode.Child(yamlnode.Child(c.object, "metadata"), kind), key); found != nil {
		at = found
	}
	return diag.Diagnostic{Severity: diag.Error, Code: code, File: metadata, Line: at.Line, Column: at.Column, Rule: "ConfigMap " + c.name,
		Message: message, Hint: hint}
}

// metadata stands for the object that holds a bundle among the files of the bundle.
const metadata = "metadata"
