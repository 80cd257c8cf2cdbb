// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/webhooks/review"
)

func TestWhatAHeadSaysOfItself(t *testing.T) {
	binary := func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{"x.rego": {0}} }
	rack := annotated(policyv1alpha1.CanaryServersAnnotation, "rack=r1")
	for name, c := range map[string]struct {
		was, is *head
		want    []string
	}{
		"a draft":                        {nil, aHead("fleet-1", ""), nil},
		"a word that is no stage":        {nil, aHead("fleet-1", "production"), []string{"denied: metadata.labels[policy.metalaw.dev/stage]: Unsupported value"}},
		"a canary of some servers":       {nil, aHead("fleet-1", "canary", rack), nil},
		"a canary of no servers":         {nil, aHead("fleet-1", "canary"), []string{"denied: metadata.annotations[policy.metalaw.dev/servers]: Required"}},
		"a canary of a share above all":  {nil, aHead("fleet-1", "canary", annotated(policyv1alpha1.CanaryPercentAnnotation, "101")), []string{"denied: metadata.annotations[policy.metalaw.dev/percent]: Invalid"}},
		"a draft with binary files":      {nil, aHead("fleet-1", "", binary), []string{"warned: binaryData[x.rego]: the files of a bundle are text"}},
		"a shadow with binary files":     {nil, aHead("fleet-1", "shadow", binary), []string{"denied: binaryData[x.rego]: Forbidden"}},
		"a draft that changes":           {aHead("fleet-1", ""), aHead("fleet-1", "", withFile("a.rego", "x")), nil},
		"a shadow that changes":          {aHead("fleet-1", "shadow"), aHead("fleet-1", "shadow", withFile("a.rego", "x")), []string{"denied: data: Forbidden: a.rego would change"}},
		"a shadow with another note":     {aHead("fleet-1", "shadow"), aHead("fleet-1", "shadow", annotated("x", "y")), nil},
		"what was active changes":        {aHead("fleet-1", "active"), aHead("fleet-1", "", withFile("a.rego", "x")), []string{"denied: data: Forbidden: a.rego would change"}},
		"text becomes binary data":       {aHead("fleet-1", "shadow", withFile("x.rego", "\x00")), aHead("fleet-1", "", binary), []string{"denied: data: Forbidden: x.rego would change", "warned: binaryData"}},
		"what was no stage may be taken": {aHead("fleet-1", "production"), aHead("fleet-1", "", withFile("a.rego", "x")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var found review.Findings
			checkStage(c.is, &found)
			checkBinary(c.is, &found)
			if c.was != nil {
				checkKept(c.was, c.is, &found)
			}
			check(t, &found, c.want...)
		})
	}
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// listing is a head of a stage that lists x.rego with a text in the ConfigMap part.
func listing(stage, text string) *head {
	return aHead("fleet-1", stage, withFile(bundle.PartsFile, "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Manifest\nfiles:\n"+
		"- {name: x.rego, configMap: part, digest: \""+digestOf(text)+"\"}\n"))
}

func TestAPartStaysAsAHeadListsIt(t *testing.T) {
	part := &corev1.ConfigMap{Data: map[string]string{"x.rego": "one", "y.rego": "other"}}
	part.Name = "part"
	const denied = "denied: data: Forbidden: ConfigMap fleet-1, of stage shadow, lists x.rego here by digest"
	for name, c := range map[string]struct {
		head *head
		left map[string]string
		want []string
	}{
		"it stays":                             {listing("shadow", "one"), map[string]string{"x.rego": "one"}, nil},
		"it changes":                           {listing("shadow", "one"), map[string]string{"x.rego": "two"}, []string{denied}},
		"it goes":                              {listing("shadow", "one"), nil, []string{denied}},
		"a draft lists it":                     {listing("", "one"), nil, nil},
		"a file goes that is not listed":       {listing("shadow", "one"), map[string]string{"x.rego": "one", "z.rego": ""}, nil},
		"it is another than the head lists":    {listing("shadow", "two"), nil, nil},
		"it becomes what the head lists":       {listing("shadow", "two"), map[string]string{"x.rego": "two"}, nil},
		"a head without a list, and it goes":   {aHead("fleet-1", "shadow"), nil, nil},
		"a head whose list nothing can read":   {aHead("fleet-1", "shadow", withFile(bundle.PartsFile, ":")), nil, nil},
		"another ConfigMap is the one of that": {aHead("fleet-1", "shadow", withFile(bundle.PartsFile, "files:\n- {name: x.rego, configMap: other, digest: \""+digestOf("one")+"\"}\n")), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var found review.Findings
			checkListed(c.head, part, c.left, &found)
			check(t, &found, c.want...)
		})
	}
}

func TestWhatAPartSaysOfItself(t *testing.T) {
	for name, c := range map[string]struct {
		labels map[string]string
		binary bool
		want   []string
	}{
		"a part":                 {labels: map[string]string{policyv1alpha1.BundlePartLabel: "fleet"}},
		"no part":                {labels: map[string]string{policyv1alpha1.BundleLabel: "fleet"}, binary: true},
		"a head and a part":      {labels: map[string]string{policyv1alpha1.BundlePartLabel: "fleet", policyv1alpha1.BundleLabel: "fleet"}, want: []string{"denied: metadata.labels[policy.metalaw.dev/bundle-part]: Forbidden"}},
		"a part with a stage":    {labels: map[string]string{policyv1alpha1.BundlePartLabel: "fleet", policyv1alpha1.StageLabel: "active"}, want: []string{"warned: label policy.metalaw.dev/stage: active means nothing"}},
		"a part with other data": {labels: map[string]string{policyv1alpha1.BundlePartLabel: "fleet"}, binary: true, want: []string{"warned: binaryData[x] is not read"}},
	} {
		t.Run(name, func(t *testing.T) {
			cm := &corev1.ConfigMap{}
			cm.Labels = c.labels
			if c.binary {
				cm.BinaryData = map[string][]byte{"x": {0}}
			}
			var found review.Findings
			checkPart(cm, &found)
			check(t, &found, c.want...)
		})
	}
}

func TestWhatBecomesOfContent(t *testing.T) {
	broken := diag.List{{Severity: diag.Error, Code: "c", File: "f", Message: "m"}}
	half := diag.List{{Severity: diag.Error, Code: bundle.CodePartMissing, File: "f", Message: "m"}}
	for name, c := range map[string]struct {
		head *head
		seen Examined
		want []string
	}{
		"accepted":                           {aHead("fleet-1", "active"), Examined{Name: "fleet", digest: "d"}, nil},
		"another name, as a shadow":          {aHead("fleet-1", "shadow"), Examined{Name: "prod", digest: "d"}, []string{"denied: metadata.labels[policy.metalaw.dev/bundle]: Invalid value"}},
		"another name, as a draft":           {aHead("fleet-1", ""), Examined{Name: "prod", digest: "d"}, []string{"warned: metadata.labels[policy.metalaw.dev/bundle]: Invalid value"}},
		"a version that exists, as a shadow": {aHead("fleet-1", "shadow"), Examined{Name: "fleet", digest: "d", taken: "fleet-x"}, []string{"denied: data[bundle.yaml]: Invalid value"}},
		"a version that exists, as a draft":  {aHead("fleet-1", ""), Examined{Name: "fleet", digest: "d", taken: "fleet-x"}, []string{"warned: data[bundle.yaml]: Invalid value"}},
		"broken, as a shadow":                {aHead("fleet-1", "shadow"), Examined{found: broken}, []string{"denied: data: bundle fleet is not accepted for stage shadow: 1 error", "denied: f: "}},
		"broken, as a draft":                 {aHead("fleet-1", ""), Examined{found: broken}, []string{"warned: bundle fleet is stored as a draft, and would not be accepted", "warned: f: "}},
		"not whole, as a canary":             {aHead("fleet-1", "canary"), Examined{found: half}, []string{"denied: data: bundle fleet is not whole, as stage canary wants it", "denied: f: "}},
		"not whole, as a draft":              {aHead("fleet-1", ""), Examined{found: half}, []string{"warned: bundle fleet is stored as a draft that is not whole", "warned: f: "}},
	} {
		t.Run(name, func(t *testing.T) {
			var found review.Findings
			checkContent(c.head, &c.seen, &found)
			check(t, &found, c.want...)
		})
	}
}

func TestVerdictsAreRememberedAndErrorsAreNot(t *testing.T) {
	times := 0
	a := NewAcceptances(func(_ context.Context, files bundle.Files) (*bundle.Bundle, diag.List, error) {
		times++
		if string(files["a"]) == "fails" && times == 1 {
			return nil, nil, errors.New("no engine")
		}
		return &bundle.Bundle{Files: files}, nil, nil
	})
	files := func(text string) bundle.Files { return bundle.Files{"a": []byte(text)} }
	if _, err := a.of(t.Context(), files("fails")); err == nil {
		t.Error("an error is lost")
	}
	for range 2 {
		if v, err := a.of(t.Context(), files("fails")); err != nil || string(v.bundle.Files["a"]) != "fails" {
			t.Error(v, err)
		}
	}
	for i := range maxVerdicts {
		if _, err := a.of(t.Context(), files(strings.Repeat("x", i+1))); err != nil {
			t.Error(err)
		}
	}
	if times != 2+maxVerdicts || len(a.last) != maxVerdicts {
		t.Errorf("asked %d times, and remembers %d", times, len(a.last))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	a.turn <- struct{}{} // another request is being checked
	if _, err := a.of(ended, files("late")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTheEditOfAnAnnotation(t *testing.T) {
	for name, c := range map[string]struct {
		stored map[string]string
		value  string
		want   []review.Edit
	}{
		"it is written":                    {map[string]string{"x": "y"}, "v", []review.Edit{{Op: "add", Path: "/metadata/annotations/a~1b", Value: "v"}}},
		"it is written as the first":       {nil, "v", []review.Edit{{Op: "add", Path: "/metadata/annotations", Value: map[string]string{"a/b": "v"}}}},
		"it stands there":                  {map[string]string{"a/b": "v"}, "v", nil},
		"it goes":                          {map[string]string{"a/b": "v"}, "", []review.Edit{{Op: "remove", Path: "/metadata/annotations/a~1b"}}},
		"it goes though it says nothing":   {map[string]string{"a/b": ""}, "", []review.Edit{{Op: "remove", Path: "/metadata/annotations/a~1b"}}},
		"it is not there and need not be":  {nil, "", nil},
		"it is replaced where another was": {map[string]string{"a/b": "u"}, "v", []review.Edit{{Op: "add", Path: "/metadata/annotations/a~1b", Value: "v"}}},
	} {
		cm := &corev1.ConfigMap{}
		cm.Annotations = c.stored
		if diff := cmp.Diff(c.want, rewriteAnnotation(cm, "a/b", c.value)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAConfigMapThatGrowsTooLargeIsTold(t *testing.T) {
	large := strings.Repeat("x", maxData*3/4+1)
	for name, c := range map[string]struct {
		data, applied string
		want          int
	}{
		"a small one":                  {"x", "x", 0},
		"large files":                  {large, "", 1},
		"a large copy by kubectl":      {"x", large[:maxAnnotations*3/4], 1},
		"large files and a copy too":   {large, large[:maxAnnotations], 2},
		"a large note of another kind": {"x", "", 0},
	} {
		cm := aHead("fleet-1", "", withFile("a.rego", c.data)).object
		if c.applied != "" {
			cm.Annotations[LastApplied] = c.applied
		} else {
			cm.Annotations["note"] = large[:maxAnnotations-1]
		}
		if got := sizeWarnings(cm); len(got) != c.want {
			t.Errorf("%s: %q, want %d", name, got, c.want)
		}
	}
}
