// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// heldContent is the default bundle under a version, with something in its lifecycle replaced.
func heldContent(t *testing.T, version, old, replacement string) bundle.Files {
	t.Helper()
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	text := string(files[bundle.LifecycleFile])
	if !strings.Contains(text, old) {
		t.Fatalf("the default lifecycle has no %q", old)
	}
	files[bundle.LifecycleFile] = []byte(strings.Replace(text, old, replacement, 1))
	files[bundle.BundleFile] = []byte(strings.Replace(string(files[bundle.BundleFile]), "version: 1.0.0", "version: "+version, 1))
	return files
}

func TestVerifyLiveTellsWhichRevisionsInUseThisVersionWouldHold(t *testing.T) {
	const revoked = "    - {rule: WipeRevoked,    to: Error,     when: claimed || retained || !released}\n"
	const weaker = "    - {rule: WipeRevoked,    to: Error,     when: claimed || retained}\n" // and a wipe without a record of release goes on
	revision := func(version string, number int64, stage policyv1alpha1.PolicyStage, files bundle.Files) *policyv1alpha1.PolicyRevision {
		content, err := files.Pack()
		if err != nil {
			t.Fatal(err)
		}
		r := &policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: "default-" + version},
			Spec: policyv1alpha1.PolicyRevisionSpec{Bundle: "default", Version: version, Digest: files.Digest(), Content: content}}
		if r.Status.Stage = stage; number > 0 {
			r.SetPromotion(number)
		}
		return r
	}
	good := revision("1.0.0", 3, policyv1alpha1.StageActive, heldContent(t, "1.0.0", revoked, revoked))
	governs := revision("1.1.0", 3, policyv1alpha1.StageActive, heldContent(t, "1.1.0", revoked, weaker))
	governs.Status.Servers = 12
	pinned := revision("1.2.0", 2, policyv1alpha1.StageSuperseded, heldContent(t, "1.2.0", revoked, weaker))
	pinned.Status.Servers = 1
	old := revision("0.9.0", 1, policyv1alpha1.StageSuperseded, heldContent(t, "0.9.0", revoked, weaker))
	canary := revision("1.3.0", 0, policyv1alpha1.StageCanary, heldContent(t, "1.3.0", revoked, revoked))
	canary.Status.LabelledStage = policyv1alpha1.LabelledCanary
	damaged := revision("1.4.0", 4, policyv1alpha1.StageActive, heldContent(t, "1.4.0", revoked, revoked))
	damaged.Spec.Digest = "sha256:0"
	for name, c := range map[string]struct {
		stored []*policyv1alpha1.PolicyRevision
		want   []string
		well   bool
	}{
		"all pass, and one that nobody uses is not asked about": {[]*policyv1alpha1.PolicyRevision{good, old, canary},
			[]string{"PolicyRevision default-1.0.0 (in force): accepted", "PolicyRevision default-1.3.0 (labelled canary): accepted"}, true},
		"one that breaks a rule of this version, and one that only servers are pinned to": {[]*policyv1alpha1.PolicyRevision{governs, pinned},
			[]string{"default-1.1.0/lifecycle.yaml: error [safety-effect]", "default-1.1.0/lifecycle.yaml: error [safety-stay]",
				"default-1.1.0/lifecycle.yaml: error [safety-move]", "PolicyRevision default-1.1.0 (in force, 12 servers): refused",
				"default-1.2.0/lifecycle.yaml: error [safety-effect]", "default-1.2.0/lifecycle.yaml: error [safety-stay]",
				"default-1.2.0/lifecycle.yaml: error [safety-move]", "PolicyRevision default-1.2.0 (1 server): refused",
				"a manager of this version holds 2 revisions of 2 in use"}, false},
		"one that is damaged": {[]*policyv1alpha1.PolicyRevision{damaged},
			[]string{"default-1.4.0: error [revision-content]", "PolicyRevision default-1.4.0 (in force): refused", "a manager of this version holds 1 revision of 1 in use"}, false},
		"none": {nil, []string{"no revision is in use"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := policyv1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			api := fake.NewClientBuilder().WithScheme(scheme)
			for _, r := range c.stored {
				api.WithObjects(r)
			}
			out := &bytes.Buffer{}
			e := &examination{output: terminal.OutputAs(terminal.Text)}
			err := e.verifyLive(t.Context(), &terminal.Terminal{Out: out}, api.Build(), false)
			if errors.Is(err, terminal.ErrIncomplete) == c.well || !errors.Is(err, terminal.ErrIncomplete) && err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(c.want, gist(out.String())); diff != "" {
				t.Error(diff, out)
			}
		})
	}
}

// gist is what a verdict says without its words: files and codes, and what became of each bundle.
func gist(text string) (lines []string) {
	place, verdict := regexp.MustCompile(`^(\S+?)(?::\d+:\d+)?(: error).*( \[[a-z-]+\])$`), regexp.MustCompile(`^(PolicyRevision \S+ \(.*?\): \w+|a manager .*? in use|no revision.*)`)
	for line := range strings.Lines(text) {
		if m := place.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			lines = append(lines, m[1]+m[2]+m[3])
		} else if m := verdict.FindString(line); m != "" {
			lines = append(lines, m)
		}
	}
	return lines
}
