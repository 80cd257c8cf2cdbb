// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

func TestACommandLineThatMakesNoSense(t *testing.T) {
	for name, c := range map[string]struct {
		request request
		want    string
	}{
		"no server":                 {request{reason: "r"}, "name servers, or choose them with -l, or say --all"},
		"names and a selector":      {request{names: []string{"a"}, selector: "x=y", reason: "r"}, "names, -l and --all exclude each other"},
		"names and all":             {request{names: []string{"a"}, all: true, reason: "r"}, "names, -l and --all exclude each other"},
		"names and a state":         {request{names: []string{"a"}, state: "Error", reason: "r"}, "--state narrows -l and --all; servers that are named are asked in whatever state they are"},
		"no reason":                 {request{all: true, reason: " "}, "--reason is required: an operator who finds the server later wants to know why"},
		"a reason that is too long": {request{all: true, reason: strings.Repeat("ä", 1025)}, "--reason has 1025 characters; the API takes 1024"},
		"force without a state":     {request{verb: verbNamed(t, "force"), all: true, reason: "r"}, "--to is required: the state that the server is forced into"},
		"a disk of many servers":    {request{verb: verbNamed(t, "attest"), all: true, reason: "r"}, "name one server: the one that has, or had, the disk"},
		"no disk":                   {request{verb: verbNamed(t, "attest"), names: []string{"a"}, reason: "r"}, "--disk is required: the serial number, WWID or name of the disk"},
		"a disk that became what":   {request{verb: verbNamed(t, "attest"), names: []string{"a"}, attests: attestation{"S1", "sold"}, reason: "r"}, `--method is "sold"; write destroy or removed`},
		"a wait without time":       {request{all: true, reason: "r", wait: true}, "--timeout must be more than 0"},
		"a timeout without a wait":  {request{all: true, reason: "r", timed: true}, "--timeout is how long --wait waits, and --wait is not asked for"},
		"a name of another kind":    {request{names: []string{"bmc/a"}, reason: "r"}, `"bmc/a" is the name of no server; write NAME, or server/NAME`},
		"a name without a name":     {request{names: []string{"server/"}, reason: "r"}, `"server/" is the name of no server; write NAME, or server/NAME`},
		"a selector of a blank":     {request{selector: " ", reason: "r"}, "-l is empty and would choose every server; say --all for that"},
		"a selector of a comma":     {request{selector: ",", reason: "r"}, "-l: found ',', expected: !, identifier, or 'end of string'"},
		"a selector that is none":   {request{selector: "a in b", reason: "r"}, "-l: unable to parse requirement: found 'b' expected: '('"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.request.check()
			if !usage.Is(err) || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestNamesAreTakenAsKubectlPrintsThem(t *testing.T) {
	r := request{names: []string{"server.metal.ironcore.dev/b", "servers/c", "server/a", "a"}, reason: "r"}
	if err := r.check(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, r.names); diff != "" {
		t.Error(diff)
	}
}

func TestTheStatesAreToldToWhoAskedForAnother(t *testing.T) {
	in := func(state v1alpha1.ServerState) v1alpha1.Server {
		return v1alpha1.Server{Status: v1alpha1.ServerStatus{State: state}}
	}
	got := statesOf([]v1alpha1.Server{in("Error"), in("Available"), in("Error")})
	if want := "; without --state there are 1 Available, 2 Error"; got != want {
		t.Errorf("got %q", got)
	}
	if got := statesOf(nil); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestJSONHasADocumentWhereNothingMatches(t *testing.T) {
	var out bytes.Buffer
	r := &report{terminal: &terminal.Terminal{Out: &out}, output: terminal.OutputAs(terminal.AsJSON), verb: "retry"}
	r.nothing()
	const want = "{\n  \"verb\": \"retry\",\n  \"complete\": false,\n  \"servers\": []\n}\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsWrittenIntoAServer(t *testing.T) {
	leftovers := map[string]string{"keep": "me", v1alpha1.ForceToAnnotation: "Error", v1alpha1.ForceOverrideAnnotation: "true", v1alpha1.OperationByAnnotation: "eve"}
	for name, c := range map[string]struct {
		verb        string
		override    bool
		annotations map[string]string
		unclaimable bool
	}{
		"retry, with nothing of an earlier request": {"retry", false, map[string]string{
			"keep": "me", "metal.ironcore.dev/operation": "retry", "policy.metalaw.dev/operation-reason": "why"}, false},
		"force, within the safety rules": {"force", false, map[string]string{
			"keep": "me", "metal.ironcore.dev/operation": "force", "policy.metalaw.dev/operation-reason": "why", "policy.metalaw.dev/force-to": "Available"}, false},
		"force, past the safety rules": {"force", true, map[string]string{
			"keep": "me", "metal.ironcore.dev/operation": "force", "policy.metalaw.dev/operation-reason": "why", "policy.metalaw.dev/force-to": "Available",
			"policy.metalaw.dev/force-override": "true"}, false},
		"cordon, which is no operation": {"cordon", false, map[string]string{
			"keep": "me", "policy.metalaw.dev/force-to": "Error", "policy.metalaw.dev/force-override": "true", "policy.metalaw.dev/operation-by": "eve",
			"policy.metalaw.dev/unclaimable-reason": "why"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{}
			s.Annotations = maps.Clone(leftovers)
			r := request{verb: verbNamed(t, c.verb), reason: "why", to: "Available", override: c.override}
			r.write(s)
			if diff := cmp.Diff(c.annotations, s.Annotations); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
			if s.Spec.Unclaimable != c.unclaimable {
				t.Errorf("unclaimable is %t", s.Spec.Unclaimable)
			}
		})
	}
}

func TestWhenSomebodyHasToConfirm(t *testing.T) {
	for name, c := range map[string]struct {
		request request
		want    bool
	}{
		"not for servers that were named":  {request{verb: verbNamed(t, "retry"), names: []string{"a", "b"}}, false},
		"for a selector":                   {request{verb: verbNamed(t, "retry"), selector: "a=b"}, true},
		"for all":                          {request{verb: verbNamed(t, "retry"), all: true}, true},
		"for a force of one server":        {request{verb: verbNamed(t, "force"), names: []string{"a"}}, true},
		"not where that was said before":   {request{verb: verbNamed(t, "force"), all: true, yes: true}, false},
		"not where nothing will be stored": {request{verb: verbNamed(t, "retry"), all: true, dryRun: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.request.asksFirst(); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
