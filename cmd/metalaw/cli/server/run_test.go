// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

func TestUndoReleaseWritesClaimsAloneToItsOutput(t *testing.T) {
	kept := annotated(v1alpha1.ReleasedSpecAnnotation, `{"kind":"ServerClaim"}`)
	for name, c := range map[string]struct {
		server     *v1alpha1.Server
		outcome    result
		out, notes string
		wrong      error
	}{
		"a claim that comes back": {aServer(kept), result{Outcome: outcomeDone, Message: "the release was undone"},
			"---\nkind: ServerClaim\n", "s  done       the release was undone\n", nil},
		"one that is not kept": {aServer(), result{Outcome: outcomeDone, Message: "the release was undone"},
			"", "s  done       the release was undone\nthe claim of s is not kept; write it again with serverRef: {name: s}\n", nil},
		"one that is not undone in time": {aServer(kept), result{Outcome: outcomeTimedOut, Message: "not taken in"}, "---\nkind: ServerClaim\n",
			"s  timed-out  not taken in\ns: apply the claim only once the release is undone; " +
				"until then annotation policy.metalaw.dev/released-spec of the Server has it too\n", terminal.ErrIncomplete},
		"one with an annotation that is longer than what is kept": {
			aServer(annotated(v1alpha1.ReleasedSpecAnnotation, `{"metadata":{"annotations":{"policy.metalaw.dev/left-out":"a/b"}}}`)),
			result{Outcome: outcomeDone}, "---\nmetadata:\n  annotations:\n    policy.metalaw.dev/left-out: a/b\n",
			"s  done       \ns: these annotations of the claim were too long to be kept: a/b\n", nil},
		"a refusal": {aServer(kept), result{Outcome: outcomeRefused, Message: "too late"}, "", "s  refused    too late\n", terminal.ErrIncomplete},
		"a failure": {aServer(kept), result{Outcome: outcomeFailed, Message: "forbidden"}, "", "s  failed     forbidden\n", terminal.ErrIncomplete},
	} {
		t.Run(name, func(t *testing.T) {
			var out, notes bytes.Buffer
			r := &run{request: request{verb: verbNamed(t, "undo-release")},
				report: &report{terminal: &terminal.Terminal{Out: &out, Err: &notes}, verb: "undo-release"}}
			c.outcome.Name = "s"
			r.report.add(c.outcome)
			r.showClaims([]v1alpha1.Server{*c.server})
			if err := r.report.end(); !errors.Is(err, c.wrong) {
				t.Errorf("got %v, want %v", err, c.wrong)
			}
			if diff := cmp.Diff([]string{c.out, c.notes}, []string{out.String(), notes.String()}); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}
