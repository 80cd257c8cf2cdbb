// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies/index"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// aServer is free to claim, changed as the test says.
func aServer(name string, change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	s := &v1alpha1.Server{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("server-" + name), ResourceVersion: "1"},
		Spec:       v1alpha1.ServerSpec{SystemUUID: "uuid-" + name},
		Status:     v1alpha1.ServerStatus{State: v1alpha1.StateAvailable, PowerState: v1alpha1.PowerStateOff},
	}
	for _, f := range change {
		f(s)
	}
	return s
}

// at is the version of a server.
func at(version string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.ResourceVersion = version }
}

// writtenFor writes a claim of namespace ns on a server; uid may be empty.
func writtenFor(name, uid string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "ns", Name: name}
		annotated(v1alpha1.ClaimUIDAnnotation, uid)(s)
	}
}

func annotated(key, value string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		if value == "" {
			return
		}
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[key] = value
	}
}

func labelled(key, value string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		s.Labels[key] = value
	}
}

func inState(state v1alpha1.ServerState) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Status.State = state }
}

func dirty(s *v1alpha1.Server) {
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Marks: []string{v1alpha1.MarkDirty}}
}

// aClaim is open, in namespace ns, with a UID after its name.
func aClaim(name string, change ...func(*v1alpha1.ServerClaim)) *v1alpha1.ServerClaim {
	c := &v1alpha1.ServerClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1",
			CreationTimestamp: metav1.NewTime(epoch), Finalizers: []string{v1alpha1.FinalizerServerClaim}},
		Spec: v1alpha1.ServerClaimSpec{Power: v1alpha1.PowerOn, Image: "os:1"},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func naming(server string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) { c.Spec.ServerRef = &corev1.LocalObjectReference{Name: server} }
}

func selecting(key, value string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) {
		c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

func fleetOf(servers ...*v1alpha1.Server) *index.Index {
	f := index.New()
	for _, s := range servers {
		f.Saw(s)
	}
	return f
}

// byName is a policy that ranks by name and rejects the names that it is given a code for.
type byName map[string]string

func (p byName) Select(_ context.Context, _ selection.Claim, all []*selection.PreparedCandidate, _ selection.Fleet) (selection.Result, error) {
	r := selection.Result{Rejections: map[string]selection.Rejection{}, Evaluated: len(all)}
	for _, c := range all {
		if code := p[c.Name()]; code != "" {
			r.Rejections[code] = selection.Rejection{Count: r.Rejections[code].Count + 1}
			continue
		}
		r.Ranked = append(r.Ranked, selection.Ranked{Name: c.Name()})
	}
	slices.SortFunc(r.Ranked, func(a, b selection.Ranked) int { return strings.Compare(a.Name, b.Name) })
	return r, nil
}

// best is byName with a ranking that ends after so many, as that of a real policy does.
type best struct {
	byName
	most int
}

func (p best) Select(ctx context.Context, claim selection.Claim, all []*selection.PreparedCandidate, f selection.Fleet) (selection.Result, error) {
	return p.Rank(ctx, claim, all, f, p.most)
}

func (p best) Rank(ctx context.Context, claim selection.Claim, all []*selection.PreparedCandidate, f selection.Fleet, most int) (
	selection.Result, error) {
	r, err := p.byName.Select(ctx, claim, all, f)
	r.Allowed = len(r.Ranked)
	r.Ranked = r.Ranked[:min(most, len(r.Ranked))]
	return r, err
}
