// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"errors"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

func TestWhatBecomesOfAUserWhoLacksTheRight(t *testing.T) {
	const lacks = `user "jane" lacks the verb use on bmcsecrets.metal.ironcore.dev "pass", which ClusterRole metalaw-credential-user gives; ` +
		"for FeDHCP bind it with: kubectl apply -k config/fedhcp"
	down := errors.New("down")
	for name, c := range map[string]struct {
		mode                  Mode
		may                   bool
		err                   error
		denial, warning, fail string
	}{
		"off asks nothing": {mode: Off, err: down},
		"warn warns":       {mode: Warn, warning: "spec.bmcSecretRef: this decides where a password goes, and is refused with --credential-use=on: " + lacks},
		"warn passes without an answer": {mode: Warn, err: down,
			warning: "whether --credential-use=on would refuse this cannot be told: down"},
		"on refuses":                   {mode: On, denial: "Forbidden: this decides where a password goes: " + lacks},
		"on refuses without an answer": {mode: On, err: down, fail: "down"},
		"on lets a user who has it":    {mode: On, may: true},
		"warn lets a user who has it":  {mode: Warn, may: true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			rules := &Rules{Mode: c.mode, May: func(_ context.Context, u authenticationv1.UserInfo, a authorizationv1.ResourceAttributes) (bool, error) {
				asked++
				if u.Username != "jane" || a != (authorizationv1.ResourceAttributes{Verb: "use", Group: "metal.ironcore.dev",
					Resource: "bmcsecrets", Name: "pass"}) {
					t.Errorf("asked %+v of %+v", a, u)
				}
				return c.may, c.err
			}}
			found := &review.Findings{}
			err := rules.JudgeBMC(t.Context(), review.Change[v1alpha1.BMC]{New: bmc(), User: authenticationv1.UserInfo{Username: "jane"}}, found)
			var denials, fail string
			for _, d := range found.Denials {
				denials += d.Message
			}
			if err != nil {
				fail = err.Error()
			}
			if denials != c.denial || strings.Join(found.Warnings, "\n") != c.warning || fail != c.fail {
				t.Errorf("denied %q\nwarned %q\nfailed %q", denials, found.Warnings, fail)
			}
			if want := map[bool]int{true: 0, false: 1}[c.mode == Off]; asked != want {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

func TestADeletionUsesNothing(t *testing.T) {
	rules := &Rules{Mode: On} // it would panic where it asks
	if err := rules.JudgeBMC(t.Context(), review.Change[v1alpha1.BMC]{Old: bmc()}, &review.Findings{}); err != nil {
		t.Error(err)
	}
	if err := rules.JudgeServer(t.Context(), review.Change[v1alpha1.Server]{Old: &v1alpha1.Server{}}, &review.Findings{}); err != nil {
		t.Error(err)
	}
	if err := rules.JudgeEndpoint(t.Context(), review.Change[v1alpha1.Endpoint]{Old: &v1alpha1.Endpoint{}}, &review.Findings{}); err != nil {
		t.Error(err)
	}
}
