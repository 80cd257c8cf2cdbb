// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"
	"testing"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/internal/restored"
)

func TestWhatBecomesOfAServerInDoubt(t *testing.T) {
	claimed := func(s *v1alpha1.Server) {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
	}
	released := func(s *v1alpha1.Server) {
		claimed(s)
		s.Annotations[v1alpha1.ClaimUIDAnnotation], s.Annotations[v1alpha1.ReleasedClaimAnnotation] = "u", "u"
	}
	retained := func(s *v1alpha1.Server) { released(s); s.Spec.ReclaimPolicy = v1alpha1.ReclaimPolicyRetain }
	observed := func(s *v1alpha1.Server) { s.Status.State = v1alpha1.StateObserving }
	const on, off = v1alpha1.PowerStateOn, v1alpha1.PowerStateOff
	for name, c := range map[string]struct {
		change       func(*v1alpha1.Server)
		power        v1alpha1.PowerState
		holds, leads string
	}{
		"it runs for its claim":         {claimed, on, "runs for its claim", "goes on as its claim says"},
		"it is off for its claim":       {claimed, off, "power On and the claim's end wait", "goes on as its claim says"},
		"its claim has ended":           {released, on, "power-off and wipe wait", "ERASED"},
		"its claim has ended, retained": {retained, off, "power-off and wipe wait", "its data is kept"},
		"it runs without a claim":       {nil, on, "left alone", "read once it is off"},
		"it is off without a claim":     {nil, off, "not offered", "offered if they hold no data"},
		"it is observed":                {observed, on, "left alone", "observed, as before"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{}
			s.Annotations = map[string]string{v1alpha1.RestoredDoubtAnnotation: restored.Doubted}
			s.Status.PowerState = c.power
			if c.change != nil {
				c.change(s)
			}
			if got := held(s); !strings.Contains(got, c.holds) {
				t.Errorf("held: %s", got)
			}
			if got := ended(s); !strings.Contains(got, c.leads) {
				t.Errorf("ended: %s", got)
			}
			delete(s.Annotations, v1alpha1.RestoredDoubtAnnotation)
			if got := ended(s); got != "is not in doubt" {
				t.Errorf("without a doubt: %s", got)
			}
		})
	}
}

func TestTheCommandLineOfRestored(t *testing.T) {
	for name, c := range map[string]struct {
		request restoredRequest
		says    string
	}{
		"every server":                {restoredRequest{reason: "r"}, ""},
		"without a reason":            {restoredRequest{reason: " "}, "--reason is required"},
		"a long reason":               {restoredRequest{reason: strings.Repeat("ü", 1025)}, "--reason has 1025 characters"},
		"confirmed by name":           {restoredRequest{confirm: true, names: []string{"a"}}, ""},
		"confirmed by labels":         {restoredRequest{confirm: true, selector: "rack=r1"}, ""},
		"confirmed as a whole":        {restoredRequest{confirm: true}, "--confirm needs the names of servers, or -l"},
		"by names and labels":         {restoredRequest{confirm: true, names: []string{"a"}, selector: "b"}, "names and -l exclude each other"},
		"by labels that mean nothing": {restoredRequest{confirm: true, selector: "a in b"}, "-l: "},
		"a negative wait":             {restoredRequest{reason: "r", timeout: -1}, "--timeout must not be negative"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.request.check()
			if (c.says == "") != (err == nil) || err != nil && (!usage.Is(err) || !strings.HasPrefix(err.Error(), c.says)) {
				t.Errorf("got %v", err)
			}
		})
	}
}
