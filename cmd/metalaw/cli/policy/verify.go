// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/policy/source"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	stages "github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies"
)

const verifyLong = "Makes every check that the manager makes before a bundle may govern: strict parsing, types, limits and static verification. " +
	"The bundle's own scenarios and Rego tests run too, and their coverage counts. It names all problems at once, each with its place, " +
	"cause and remedy. What the bundle leaves out is taken from the built-in default. A kustomization.yaml is not read: " +
	"`kubectl kustomize` says what it makes, and -f - verifies that.\n\n" +
	"With --live it checks the PolicyRevisions that the cluster has in use, by what they hold and nothing else. Before an upgrade, " +
	"the new version of this program says which of them a manager of that version would hold.\n\n" +
	"--examples overwrites no file: one that is there already is refused before anything is judged, and where there is nothing to write " +
	"none is made.\n\n" +
	"Exit codes: 0 the bundle, or each in use, could be accepted. 1 it could not, or the cluster did not answer. " +
	"2 the command line makes no sense."

func verifyCommand() *cobra.Command {
	var e examination
	var notes, live bool
	var examples string
	flags := &access.Flags{}
	cmd := &cobra.Command{
		Use:   "verify (-f DIR|FILE|- | --from BUNDLE | --live)",
		Short: "Say whether a bundle could be accepted, and everything that is wrong with it",
		Long:  verifyLong,
		Example: "  {{.}} policy verify -f ./fleet\n  kubectl kustomize ./fleet | {{.}} policy verify -f -\n" +
			"  {{.}} policy verify -f ./fleet -o sarif >fleet.sarif\n  {{.}} policy verify --live",
		Args: usage.NoArgs,
	}
	e.from.Register(cmd)
	e.output.Register(cmd, terminal.Text, terminal.AsJSON, terminal.AsYAML, terminal.AsSARIF)
	cmd.Flags().BoolVar(&notes, "notes", false, "also say what is merely worth knowing, such as where the order of two rules decides")
	cmd.Flags().StringVar(&examples, "examples", "", "also write the facts by which verification's findings show to a new file, as scenarios; "+
		"of notes with --notes")
	_ = cmd.MarkFlagFilename("examples", "yaml") // the error is about a flag that does not exist
	cmd.Flags().BoolVar(&live, "live", false, "verify the PolicyRevisions that the cluster has in use")
	flags.Register(cmd)
	cmd.RunE = terminal.Run(func(ctx context.Context, t *terminal.Terminal, _ []string) error {
		if live {
			if err := e.checkLive(examples); err != nil {
				return err
			}
			c, err := flags.Connect(t.Err)
			if err != nil {
				return err
			}
			return e.verifyLive(ctx, t, c, notes)
		}
		if err := examplesFile(examples).check(t); err != nil {
			return err
		}
		v, err := e.examine(ctx, t)
		if err != nil {
			return err
		}
		if err := examplesFile(examples).write(t, v.examples(notes)); err != nil {
			return err
		}
		if v.report.Found = append(v.report.Found, v.Labels...); v.Labels.HasErrors() {
			v.bundle = nil
		}
		return e.tell(t, v, v.bundle != nil, func() {
			v.text(t, notes)
			if command := v.Kustomized(); command != "" {
				t.Printf("the kustomization of the directory was not read; to verify what it makes: %s\n", command)
			}
		})
	})
	return cmd
}

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
	refused, reports := 0, lists.Map(verdicts, func(v *verdict) jsonReport { return v.json() })
	for _, v := range verdicts {
		if v.bundle == nil {
			refused++
		}
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

// examplesFile is where `policy verify` writes the facts by which findings show; empty for nowhere. It is a new file, or a stream: the
// file of an author is never overwritten.
type examplesFile string

// check refuses a file that is there already, before a bundle is judged for it.
func (f examplesFile) check(t *terminal.Terminal) error {
	if f == "" || f.standard(t) != nil {
		return nil
	}
	_, err := os.Lstat(string(f))
	if there := err == nil; !there || f.leadsToStream() {
		return nil
	}
	return usage.Errorf("--examples %s: it is there already and is not overwritten; nothing was judged or written. "+
		"Name a file that is not there yet", string(f))
}

// write writes examples, and says where there are none that nothing is written.
func (f examplesFile) write(t *terminal.Terminal, examples string) error {
	if f == "" {
		return nil
	}
	if examples == "" {
		t.Notef("%s is not written: no finding that is told has an example", string(f))
		return nil
	}
	if w := f.standard(t); w != nil {
		_, err := io.WriteString(w, examples)
		return err
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL // not over what somebody has written meanwhile
	if f.leadsToStream() {
		flags = os.O_WRONLY
	}
	file, err := os.OpenFile(string(f), flags, 0o644) //nolint:gosec // For a repository.
	if err != nil {
		return err
	}
	if _, err = file.WriteString(examples); err != nil {
		file.Close() //nolint:errcheck,gosec // That it could not be written is told already.
		return err
	}
	return file.Close()
}

// standard is the stream of this program that a path names; nil for another. By its path it would be opened anew, and written over from the
// beginning where it leads to a file.
func (f examplesFile) standard(t *terminal.Terminal) io.Writer {
	return map[examplesFile]io.Writer{"/dev/stdout": t.Out, "/dev/stderr": t.Err}[f]
}

// leadsToStream says that what is written there replaces nothing: to a device or a pipe.
func (f examplesFile) leadsToStream() bool {
	info, err := os.Stat(string(f))
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}
