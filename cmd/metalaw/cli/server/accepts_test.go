// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/policies"
)

func TestARetryThatIsNone(t *testing.T) {
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	content, err := files.Pack()
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := access.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	revision := &policyv1alpha1.PolicyRevision{}
	revision.Name, revision.Spec.Content, revision.Spec.Digest = "default-1", content, files.Digest()
	server := func(name string, state v1alpha1.ServerState, governs string) *v1alpha1.Server {
		s := &v1alpha1.Server{}
		s.Name, s.Status.State, s.Status.Lifecycle = name, state, &v1alpha1.LifecycleStatus{Revision: governs}
		return s
	}
	const none = "refused    there is nothing to retry: it is in Available, and a server is retried in Error\n"
	for name, c := range map[string]struct {
		request request
		servers []*v1alpha1.Server
		code    int
		out     string
	}{
		"a server that is free": {request{names: []string{"a"}}, []*v1alpha1.Server{server("a", "Available", "default-1")}, 1, "a  " + none},
		"one of a choice has something to retry": {request{all: true, yes: true}, []*v1alpha1.Server{server("a", "Available", "default-1"), server("b", "Error", "default-1")},
			0, "a  unchanged  there is nothing to retry: it is in Available, and a server is retried in Error\nb  asked      retry; it was in Error\n"},
		"none of a choice has": {request{all: true, yes: true}, []*v1alpha1.Server{server("a", "Available", "default-1")}, 1, ""},
		"it is not known what governs it, so that the manager decides": {request{names: []string{"a"}}, []*v1alpha1.Server{server("a", "Available", "gone")},
			0, "a  asked      retry; it was in Available\n"},
	} {
		t.Run(name, func(t *testing.T) {
			build := fake.NewClientBuilder().WithScheme(scheme).WithObjects(revision.DeepCopy())
			for _, s := range c.servers {
				build = build.WithObjects(s)
			}
			var out bytes.Buffer
			c.request.verb, c.request.reason = verbNamed(t, "retry"), "r"
			one := &run{request: c.request, client: build.Build(), report: &report{terminal: &terminal.Terminal{Out: &out, Err: &out},
				output: terminal.OutputAs(terminal.Text), verb: "retry"}}
			err := one.do(t.Context())
			if usage.ExitCode(err) != c.code || out.String() != c.out {
				t.Errorf("error %v, output:\n%s", err, out.String())
			}
			if c.out == "" && !errors.Is(err, errNothingToRetry) {
				t.Errorf("got %v", err)
			}
		})
	}
}
