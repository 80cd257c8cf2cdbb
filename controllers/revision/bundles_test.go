// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/policies"
)

// Two ConfigMaps may hold other files and still the same content, because what is left out is filled in.
func TestHeadsWithTheSameContentShareARevision(t *testing.T) {
	slim := func(cm *corev1.ConfigMap) {
		cm.Name = "slim"
		delete(cm.Data, bundle.MACPrefixesFile)
	}
	likeTheBuiltIn := func(cm *corev1.ConfigMap) {
		slim(cm)
		cm.Labels[policyv1alpha1.BundleLabel] = "default"
		for name, text := range cm.Data {
			cm.Data[name] = strings.NewReplacer("name: fleet\n", "name: default\n", "version: 1.0.0\n", "version: "+testkit.Version+"\n").Replace(text)
		}
	}
	for name, c := range map[string]struct {
		heads []*corev1.ConfigMap
		want  string
	}{
		"one of them is whole":   {[]*corev1.ConfigMap{fleet(t, "shadow", nil), fleet(t, "shadow", slim)}, "default Embedded 1, fleet 1.0.0 Shadow 0"},
		"it is what is built in": {[]*corev1.ConfigMap{fleet(t, "active", likeTheBuiltIn)}, "default Active 2"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeader(t)
			for _, head := range c.heads {
				if err := l.api.Create(t.Context(), head); err != nil {
					t.Fatal(err)
				}
			}
			for range 5 {
				if r, err := l.Reconcile(t.Context(), reconcile.Request{}); err != nil || r.RequeueAfter == conflictPause {
					t.Fatalf("%+v, %v", r, err)
				}
			}
			if got := l.stored(t); got != c.want {
				t.Errorf("stored: %s\nwant:   %s", got, c.want)
			}
		})
	}
}

// refusing has the API answer the creation of the revisions of one bundle with an error.
func (l *leads) refusing(name string, refusal error) {
	l.Client = interceptor.NewClient(l.api.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if r, is := o.(*policyv1alpha1.PolicyRevision); is && r.Spec.Bundle == name && refusal != nil {
				return refusal
			}
			return to.Create(ctx, o, opts...)
		},
	})
}

func otherBundle(cm *corev1.ConfigMap) {
	cm.Name, cm.Labels[policyv1alpha1.BundleLabel] = "other", "other"
	cm.Data[bundle.BundleFile] = strings.ReplaceAll(cm.Data[bundle.BundleFile], "name: fleet", "name: other")
}

func TestARevisionThatCannotBeStoredStopsNoOther(t *testing.T) {
	kind := schema.GroupResource{Group: policyv1alpha1.GroupVersion.Group, Resource: "policyrevisions"}
	for name, refusal := range map[string]error{
		"because it is invalid":           apierrors.NewInvalid(schema.GroupKind{Group: kind.Group, Kind: "PolicyRevision"}, "fleet", nil),
		"because of a quota":              apierrors.NewForbidden(kind, "fleet", errors.New("exceeded quota")),
		"because it is too large":         apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
		"because somebody's webhook died": apierrors.NewInternalError(errors.New(`failed calling webhook "x"`)),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeader(t, fleet(t, "shadow", nil), fleet(t, "active", otherBundle))
			l.refusing("fleet", refusal)
			told := strings.Join(l.look(t), "\n")
			if want := "default Superseded 1, other 1.0.0 Active 2"; l.stored(t) != want {
				t.Errorf("stored %s, want %s", l.stored(t), want)
			}
			if !strings.Contains(told, "Warning BundleNotStored PolicyRevision fleet-1.0.0-") || !strings.Contains(told, refusal.Error()) {
				t.Errorf("told %s", told)
			}
			if refused := *l.refused.Load(); refused[policyv1alpha1.ReasonBundleNotStored] != 1 {
				t.Errorf("counted %v", refused)
			}
			l.refusing("fleet", nil)
			l.look(t)
			if want := "default Superseded 1, fleet 1.0.0 Shadow 0, other 1.0.0 Active 2"; l.stored(t) != want {
				t.Errorf("once it is let pass, stored is %s, want %s", l.stored(t), want)
			}
		})
	}
}

func TestNothingIsDecidedWhileTheAPIServerIsAway(t *testing.T) {
	for name, c := range map[string]struct {
		refusal error
		fails   bool
	}{
		"it cannot be reached": {errors.New("connection refused"), true},
		"it is overloaded":     {apierrors.NewTooManyRequests("later", 1), true},
		"it is slow":           {apierrors.NewTimeoutError("too slow", 1), true},
		"somebody wrote":       {apierrors.NewConflict(schema.GroupResource{}, "fleet", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeader(t, fleet(t, "shadow", nil), fleet(t, "active", otherBundle))
			l.refusing("fleet", c.refusal)
			r, err := l.Reconcile(t.Context(), reconcile.Request{})
			if (err != nil) != c.fails || err == nil && r.RequeueAfter != conflictPause {
				t.Errorf("%+v, %v", r, err)
			}
			if refused := l.refused.Load(); refused != nil {
				t.Errorf("the bundle is blamed: %v", *refused)
			}
		})
	}
}

func TestARevisionThatTheCacheDoesNotShowYetIsTakenAsItIs(t *testing.T) {
	for name, c := range map[string]struct {
		digest string
		want   string
	}{
		"with the same content": {"", "default Superseded 1, fleet 1.0.0 Active 2"},
		"not with another":      {"sha256:" + strings.Repeat("0", 64), "default Embedded 1, fleet 1.0.0  0"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeader(t, fleet(t, "active", nil))
			there := fleetVersion(t, "1.0.0", 0, policyv1alpha1.PolicyRevisionStatus{})
			if c.digest != "" {
				there.Spec.Digest = c.digest
			}
			if err := l.api.Create(t.Context(), &there); err != nil {
				t.Fatal(err)
			}
			l.Client = interceptor.NewClient(l.api.(client.WithWatch), interceptor.Funcs{
				List: func(ctx context.Context, to client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					err := to.List(ctx, list, opts...)
					if all, is := list.(*policyv1alpha1.PolicyRevisionList); is {
						all.Items = slices.DeleteFunc(all.Items, func(r policyv1alpha1.PolicyRevision) bool { return r.Name == there.Name })
					}
					return err
				},
			})
			told := strings.Join(l.look(t), "\n")
			if l.stored(t) != c.want || (c.digest != "") != strings.Contains(told, "Warning VersionTaken") {
				t.Errorf("stored %s, told %s", l.stored(t), told)
			}
		})
	}
}

func TestAStatusThatIsRefusedStopsNoOther(t *testing.T) {
	l := newLeader(t, fleet(t, "shadow", nil), fleet(t, "shadow", otherBundle))
	refuses := true
	l.Client = interceptor.NewClient(l.api.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, to client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if r, is := o.(*policyv1alpha1.PolicyRevision); is && refuses && r.Spec.Bundle == "fleet" {
				return apierrors.NewInvalid(schema.GroupKind{Kind: "PolicyRevision"}, r.Name, nil)
			}
			return to.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	if _, err := l.Reconcile(t.Context(), reconcile.Request{}); err == nil || !strings.Contains(err.Error(), "the status of PolicyRevision fleet-1.0.0-") {
		t.Error(err)
	}
	if want := "default Embedded 1, fleet 1.0.0  0, other 1.0.0 Shadow 0"; l.stored(t) != want {
		t.Errorf("stored %s, want %s", l.stored(t), want)
	}
	refuses = false
	l.look(t)
	if want := "default Embedded 1, fleet 1.0.0 Shadow 0, other 1.0.0 Shadow 0"; l.stored(t) != want {
		t.Errorf("stored %s, want %s", l.stored(t), want)
	}
}

func TestABuiltInRevisionThatCannotBeStoredStopsNoOther(t *testing.T) {
	l := newLeader(t, fleet(t, "active", nil))
	l.look(t)
	r := revisionCalled(t, l, "fleet")
	if err := l.Store.follow(t.Context(), []policyv1alpha1.PolicyRevision{r}); err != nil {
		t.Fatal(err)
	}
	builtIn := revisionCalled(t, l, "default")
	if err := l.api.Delete(t.Context(), &builtIn); err != nil {
		t.Fatal(err)
	}
	if err := l.api.Create(t.Context(), fleet(t, "active", otherBundle)); err != nil {
		t.Fatal(err)
	}
	l.refusing("default", apierrors.NewForbidden(schema.GroupResource{}, "default", errors.New("exceeded quota")))
	l.look(t)
	if want := "fleet 1.0.0 Superseded 2, other 1.0.0 Active 3"; l.stored(t) != want {
		t.Errorf("stored %s, want %s", l.stored(t), want)
	}
}

// What a ConfigMap leaves out was filled in once, also where another one made the revision.
func TestAHeadKeepsWhatWasFilledInForAnother(t *testing.T) {
	slim := func(cm *corev1.ConfigMap) {
		cm.Name = "slim"
		delete(cm.Data, bundle.MACPrefixesFile)
	}
	l := newLeader(t, fleet(t, "active", nil), fleet(t, "shadow", slim))
	l.look(t)
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	files[bundle.MACPrefixesFile] = append(files[bundle.MACPrefixesFile], "\n# a newer list\n"...)
	newer, found, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil || newer == nil {
		t.Fatal(err, found)
	}
	l.Store = NewStore(nil, newer)
	if told := strings.Join(l.look(t), "\n"); strings.Contains(told, "VersionTaken") {
		t.Errorf("told %s", told)
	}
	r := revisionCalled(t, l, "fleet")
	if len(r.Status.Heads) != 2 || r.Status.Heads[1].Digest == "" || r.Status.Heads[0].Digest == r.Status.Heads[1].Digest {
		t.Errorf("the ConfigMaps that hold it are %+v", r.Status.Heads)
	}
}

func TestADraftIsNotAcceptedByTheLeader(t *testing.T) {
	l := newLeader(t, fleet(t, "draft", nil), fleet(t, "active", otherBundle))
	accepts, inner := 0, l.Store.Accept
	l.Store.Accept = func(ctx context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error) {
		accepts++
		return inner(ctx, files, fill)
	}
	l.look(t)
	if want := "default Superseded 1, other 1.0.0 Active 2"; l.stored(t) != want || accepts != 1 {
		t.Errorf("%d acceptances, stored %s, want %s", accepts, l.stored(t), want)
	}
}

func TestAHeadThatTakesTooLongKeepsNoOtherFromBeingPromoted(t *testing.T) {
	l := newLeader(t, fleet(t, "shadow", nil), fleet(t, "active", otherBundle))
	now, slow, inner := epoch, 0, l.Store.Accept
	l.Now = func() time.Time { return now }
	l.Store.Accept = func(ctx context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error) {
		if !strings.Contains(string(files[bundle.BundleFile]), "name: fleet") {
			return inner(ctx, files, fill)
		}
		slow++
		if end, bounded := ctx.Deadline(); !bounded || time.Until(end) > acceptTime {
			t.Error("the leader waits without end")
		}
		return nil, nil, context.DeadlineExceeded
	}
	for _, c := range []struct {
		later time.Duration
		tries int
	}{{0, 1}, {acceptPause - time.Second, 1}, {time.Second, 2}} {
		now = now.Add(c.later)
		told := strings.Join(l.look(t), "\n")
		if want := "default Superseded 1, other 1.0.0 Active 2"; l.stored(t) != want || slow != c.tries {
			t.Errorf("after %d tries and not %d, stored is %s, want %s", slow, c.tries, l.stored(t), want)
		}
		if said := strings.Contains(told, "Warning BundleRefused checking it takes longer than 30s"); said != (c.later == 0) {
			t.Errorf("told %q", told)
		}
	}
}
