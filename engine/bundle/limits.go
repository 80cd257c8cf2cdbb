// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/regosandbox"
	"github.com/metalaw/metalaw/engine/selection"
)

// MaxPackedBytes is how large the packed content of a bundle may be: written as base64, beside the rest of the
// PolicyRevision that holds it, it has to stay below what etcd takes in one request (1.5 MiB).
const MaxPackedBytes = 900_000

// What else one bundle may hold. A ConfigMap ends at 1 MiB.
const (
	maxFileBytes  = 1 << 20
	maxTotalBytes = 2 << 20
	maxStates     = 64
	maxRules      = 256
)

const (
	// mostRegoSteps bounds what choosing among some servers, or looking at one request, may take. It is counted in steps of
	// the evaluation and not in time, so that a busy machine refuses nothing.
	mostRegoSteps = 200_000
	// candidates is how many servers are chosen among.
	candidates = 64
)

// tooLarge reports content that is not even looked at.
func tooLarge(files Files) diag.List {
	var found diag.List
	total := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		total += len(files[name])
		if size := len(files[name]); size > maxFileBytes {
			found = append(found, diag.Diagnostic{Severity: diag.Error, Code: "limit-file-size", File: name,
				Message: fmt.Sprintf("the file has %d bytes and at most %d are read", size, maxFileBytes),
				Hint:    "a bundle holds rules, not data: put what differs between servers into their labels, and take out what nothing reads"})
		}
	}
	if len(found) > 0 {
		return found
	}
	switch packed, err := files.Pack(); {
	case total > maxTotalBytes:
		found = append(found, diag.Diagnostic{Severity: diag.Error, Code: "limit-bundle-size", File: BundleFile,
			Message: fmt.Sprintf("the files of the bundle have more than %d bytes together", maxTotalBytes),
			Hint:    "take out what nothing reads, such as rows of macprefixes.yaml for devices that the fleet does not have"})
	case err != nil || len(packed) > MaxPackedBytes:
		found = append(found, diag.Diagnostic{Severity: diag.Error, Code: "limit-bundle-size", File: BundleFile,
			Message: fmt.Sprintf("the bundle has %d bytes when it is packed, and a PolicyRevision holds at most %d", len(packed), MaxPackedBytes),
			Hint:    "take out what nothing reads, such as rows of macprefixes.yaml for devices that the fleet does not have"})
	}
	return found
}

// tooMany reports a lifecycle that nobody could read.
func (b *Bundle) tooMany() diag.List {
	if b.Lifecycle == nil {
		return nil
	}
	var found diag.List
	over := func(what string, have, most int) {
		if have > most {
			found = append(found, diag.Diagnostic{Severity: diag.Error, Code: "limit-lifecycle", File: LifecycleFile, Line: 1, Column: 1,
				Message: fmt.Sprintf("the lifecycle has %d %s and may have %d", have, what, most),
				Hint:    "tell servers apart by facts and guards, not by one state for each kind of server"})
		}
	}
	over("states", len(b.Lifecycle.States()), maxStates)
	over("rules", len(lifecycleRules(b.Lifecycle)), maxRules)
	return found
}

// regoCost evaluates the policies on a plain claim and plain servers. Rego has no bound of its own: a rule that runs away is
// found by running it.
func (b *Bundle) regoCost(ctx context.Context) diag.List {
	var found diag.List
	report := func(file string, err error, what string) {
		if err == nil || ctx.Err() != nil {
			return
		}
		found = append(found, regoFailure(file, err, what))
	}
	if b.Selection != nil {
		report(SelectionFile, b.selectOnce(ctx), fmt.Sprintf("choosing among %d servers", candidates))
	}
	if b.Admission != nil {
		report(AdmissionFile, b.admitOnce(ctx), "looking at a new ServerClaim")
	}
	return found
}

func (b *Bundle) selectOnce(ctx context.Context) error {
	ctx, cancel := regosandbox.Bounded(ctx, mostRegoSteps)
	defer cancel()
	all := make([]*selection.PreparedCandidate, candidates)
	for i := range all {
		all[i] = selection.NewCandidate(selection.Candidate{Name: fmt.Sprintf("server-%d", i), Health: "OK", Rack: "r1", Cores: 64, MemoryGiB: 512})
	}
	claim := selection.Claim{Namespace: "team", Name: "claim", Image: "registry.example.com/os:1", Power: "On"}
	// Steps are the interpreter's; what is evaluated natively takes no more.
	policy, fleet := b.Selection.Interpreted(), selection.Fleet{Total: candidates, TotalByRack: map[string]int64{"r1": candidates}}
	result, err := policy.Select(ctx, claim, all, fleet)
	for i := 0; err == nil && result.Unjudged.Count > 0 && i < len(all); i++ { // what it fails on is among these
		_, err = policy.Judge(ctx, claim, all[i], fleet)
	}
	return err
}

func (b *Bundle) admitOnce(ctx context.Context) error {
	ctx, cancel := regosandbox.Bounded(ctx, mostRegoSteps)
	defer cancel()
	_, err := b.Admission.Admit(ctx, admission.Input{Operation: "CREATE", Kind: "ServerClaim",
		Object: map[string]any{"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": "ServerClaim",
			"metadata": map[string]any{"namespace": "team", "name": "claim"},
			"spec":     map[string]any{"power": "On", "image": "registry.example.com/os:1", "serverSelector": map[string]any{}}},
		User: admission.User{Name: "jane"}})
	return err
}

// regoFailure is the finding about an evaluation that was stopped, or that has no result.
func regoFailure(file string, err error, what string) diag.Diagnostic {
	d := diag.Diagnostic{Severity: diag.Error, File: file}
	if e, ok := errors.AsType[*selection.EvalError](err); ok {
		if err = e.Cause; e.File != "" {
			d.File, d.Line, d.Column, d.Rule = e.File, e.Line, e.Column, e.Rule
		}
	}
	work, stopped := errors.AsType[*regosandbox.WorkError](err)
	if stopped && work.File != "" {
		d.File, d.Line, d.Column = work.File, work.Line, work.Column
	}
	if stopped && work.Parts {
		d.Code, d.Message, d.Hint = regosandbox.CodeBound, what+" fails: "+work.Error(), regosandbox.BoundHint
		return d
	}
	if bound, ok := errors.AsType[*regosandbox.BoundError](err); ok {
		d.Code, d.Message, d.Hint = regosandbox.CodeBound, what+" fails: "+bound.Error(), regosandbox.BoundHint
		return d
	}
	if stopped || errors.Is(err, context.DeadlineExceeded) {
		d.Code, d.Message = "rego-cost", fmt.Sprintf("%s takes more than %d steps and was stopped", what, mostRegoSteps)
		d.Hint = "look at fewer combinations: avoid loops within loops, and compare with ==, which is indexed"
		return d
	}
	d.Code, d.Message = "rego-evaluation", what+" fails: "+err.Error()
	d.Hint = "a rule must have one value for an input, and functions take values of the right kind only"
	return d
}
