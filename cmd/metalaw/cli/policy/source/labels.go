// SPDX-License-Identifier: Apache-2.0

package source

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

// judgeLabels finds what is wrong with a head's labels and annotations: an unknown stage, a canary without a scope, and another name than
// the bundle's, of which admission only warns while it is a draft. The findings are of the file metadata.
func (c *configMap) judgeLabels(files bundle.Files) diag.List {
	var found diag.List
	add := func(severity diag.Severity, code, kind, key, message, hint string) {
		at := c.object
		if written := yamlnode.Child(yamlnode.Child(yamlnode.Child(c.object, "metadata"), kind), key); written != nil {
			at = written
		}
		found = append(found, diag.Diagnostic{Severity: severity, Code: code, File: metadata, Line: at.Line, Column: at.Column,
			Rule: "ConfigMap " + c.name, Message: message, Hint: hint})
	}
	stage := cmp.Or(c.labels[policyv1alpha1.StageLabel], policyv1alpha1.LabelDraft)
	if stages := policyv1alpha1.Stages(); !slices.Contains(stages, stage) {
		add(diag.Error, "label-stage", "labels", policyv1alpha1.StageLabel,
			fmt.Sprintf("label %s is %q", policyv1alpha1.StageLabel, stage), "there are "+strings.Join(stages, ", "))
		return found
	}
	if label, name := c.labels[bundleLabel], nameIn(files); name != "" && name != label {
		severity := diag.Error
		if stage == policyv1alpha1.LabelDraft {
			severity = diag.Warning
		}
		add(severity, "label-bundle", "labels", bundleLabel,
			fmt.Sprintf("label %s says %q and %s names the bundle %q", bundleLabel, label, bundle.BundleFile, name), "write the same name in both")
	}
	if stage == policyv1alpha1.LabelCanary {
		_, wrong := canary.Parse(c.annotations)
		for _, f := range wrong {
			add(diag.Error, "canary-scope", "annotations", f.Annotation(), fmt.Sprintf("annotation %s: %s", f.Annotation(), f), "")
		}
	}
	return found
}

// metadata stands for the object that holds a bundle among the files of the bundle.
const metadata = "metadata"

// nameIn is the name that a bundle gives itself; empty where that cannot be read, which the acceptance of the bundle tells.
func nameIn(files bundle.Files) string {
	var is struct{ Name string }
	if yaml.Unmarshal(files[bundle.BundleFile], &is) != nil {
		return ""
	}
	return is.Name
}
