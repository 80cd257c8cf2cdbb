// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func TestWhatIsInForceStaysSoWhateverNumberItComesBackWith(t *testing.T) {
	superseded := fleetVersion(t, "0.9.0", 7, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageSuperseded})
	inForce := fleetVersion(t, "1.0.0", 9, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageActive})
	for name, c := range map[string]struct {
		number int64
		want   string
	}{
		"an earlier one":      {5, "default Draft 0, fleet 0.9.0 Superseded 7, fleet 1.0.0 Active 9"},
		"none":                {0, "default Draft 0, fleet 0.9.0 Superseded 7, fleet 1.0.0 Active 9"},
		"the one that it had": {9, "default Draft 0, fleet 0.9.0 Superseded 7, fleet 1.0.0 Active 9"},
		"a later one":         {12, "default Draft 0, fleet 0.9.0 Superseded 7, fleet 1.0.0 Active 12"},
	} {
		t.Run(name, func(t *testing.T) {
			restored := fleetVersion(t, "1.0.0", c.number, policyv1alpha1.PolicyRevisionStatus{})
			restored.UID = "another object"
			l := newLeader(t, &superseded, &restored)
			if err := l.Store.follow(t.Context(), []policyv1alpha1.PolicyRevision{superseded, inForce}); err != nil {
				t.Fatal(err)
			}
			l.look(t)
			l.look(t)
			if got := l.stored(t); got != c.want {
				t.Error(got)
			}
		})
	}
}

func TestANumberThatSomebodyLowersOnPurposeStaysLow(t *testing.T) {
	inForce := fleetVersion(t, "1.0.0", 9, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageActive})
	lowered := fleetVersion(t, "1.0.0", 5, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageActive})
	l := newLeader(t, &lowered)
	if err := l.Store.follow(t.Context(), []policyv1alpha1.PolicyRevision{inForce}); err != nil {
		t.Fatal(err)
	}
	l.look(t)
	if got := l.stored(t); got != "default Draft 0, fleet 1.0.0 Active 5" {
		t.Error(got)
	}
}

func TestARevisionThatMayNotBeWrittenKeepsNobodyFromBeingPromoted(t *testing.T) {
	old := fleetVersion(t, "0.9.0", 1, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageSuperseded})
	l := newLeader(t, &old, fleet(t, "active", nil))
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "policyrevisions"}, old.Name, errors.New("by another's policy"))
	l.Client = interceptor.NewClient(l.api.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, to client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if o.GetName() == old.Name {
				return denied
			}
			return to.Patch(ctx, o, p, opts...)
		},
	})
	l.look(t)
	l.look(t)
	if got := l.stored(t); got != "default Draft 0, fleet 0.9.0 Superseded 1, fleet 1.0.0 Active 2" {
		t.Error(got)
	}
}
