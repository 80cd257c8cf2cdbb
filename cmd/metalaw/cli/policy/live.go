// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/policy/source"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	stages "github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies"
)

// inUse says what a revision is used for, as a manager that starts looks at it; empty where it is for nothing.
func inUse(r, inForce *policyv1alpha1.PolicyRevision) string {
	var uses []string
	switch {
	case inForce != nil && r.Name == inForce.Name || r.Status.Stage == policyv1alpha1.StageEmbedded:
		uses = append(uses, "in force")
	case stages.InUse(&r.Status, r.Promotion()):
		uses = append(uses, "labelled "+strings.ToLower(string(r.Status.LabelledStage)))
	}
	if n := int(r.Status.Servers); n > 0 {
		uses = append(uses, terminal.Count(n, "server"))
	}
	return strings.Join(uses, ", ")
}

// live holds what the revisions in use hold to all that a manager of this version holds them to when it starts.
func live(ctx context.Context, c client.Client) ([]verdict, error) {
	all, err := revisions(ctx, c)
	if err != nil {
		return nil, err
	}
	var verdicts []verdict
	for i := range all {
		r := &all[i]
		use := inUse(r, policyv1alpha1.InForce(all))
		if use == "" {
			continue
		}
		v, err := judgeRevision(ctx, r, use)
		if err != nil {
			return nil, err
		}
		verdicts = append(verdicts, v)
	}
	return verdicts, nil
}

// judgeRevision is the verdict on one revision. It is whole as it is: nothing of this version is filled in.
func judgeRevision(ctx context.Context, r *policyv1alpha1.PolicyRevision, use string) (verdict, error) {
	files, damage := unpack(r)
	v := verdict{Bundle: source.Of(fmt.Sprintf("PolicyRevision %s (%s)", r.Name, use), r.Name, files)}
	if damage != "" {
		v.report.Found = diag.List{{Severity: diag.Error, Code: "revision-content", File: r.Name, Message: damage,
			Hint: "bring the object back from a good backup; the runbook of CompileFailed says how"}}
		return v, nil
	}
	var err error
	v.bundle, v.report, err = bundle.Accept(ctx, files, policies.Acceptance(files))
	return v, err
}

// unpack reads the files of a revision, and says what is wrong with them.
func unpack(r *policyv1alpha1.PolicyRevision) (files bundle.Files, damage string) {
	files, err := bundle.Unpack(r.Spec.Content)
	if err != nil {
		return nil, err.Error()
	}
	if digest := files.Digest(); digest != r.Spec.Digest {
		return nil, fmt.Sprintf("the content has digest %s, the revision says %s", digest, r.Spec.Digest)
	}
	return files, ""
}

// verifyLive tells what a manager of this version would make of the revisions in use.
func (e *examination) verifyLive(ctx context.Context, t *terminal.Terminal, c client.Client, notes bool) error {
	verdicts, err := live(ctx, c)
	if err != nil {
		return err
	}
	refused, reports := 0, []jsonReport{}
	for _, v := range verdicts {
		if v.bundle == nil {
			refused++
		}
		reports = append(reports, v.json())
	}
	e.output.Show(t, reports, func() {
		for _, v := range verdicts {
			v.text(t, notes)
		}
		switch {
		case refused > 0:
			t.Printf("a manager of this version holds %s of %d in use: nothing moves under it. Promote a version of the bundle that "+
				"passes here, before you upgrade: its servers adopt it where they rest\n", terminal.Count(refused, "revision"), len(verdicts))
		case len(verdicts) == 0:
			t.Printf("no revision is in use\n")
		}
	})
	if refused > 0 {
		return terminal.ErrIncomplete
	}
	return nil
}

// checkLive says what does not go together with --live.
func (e *examination) checkLive(examples string) error {
	switch {
	case e.from.Path != "" || e.from.Shipped != "":
		return usage.Errorf("--live verifies what the cluster has in use; give -f, --from or --live, not two of them")
	case e.output.String() == terminal.AsSARIF || examples != "":
		return usage.Errorf("--live tells of several bundles, which neither -o sarif nor --examples can; take -o json")
	}
	return nil
}
