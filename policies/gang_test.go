// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

func TestWhatCountsAsMember(t *testing.T) {
	names := func(c *v1alpha1.ServerClaim) { c.Spec.ServerRef = &corev1.LocalObjectReference{Name: "s"} }
	for name, c := range map[string]struct {
		change func(*v1alpha1.ServerClaim)
		want   bool
	}{
		"one that waits":                             {func(*v1alpha1.ServerClaim) {}, true},
		"one that nobody looked at yet":              {func(c *v1alpha1.ServerClaim) { c.Finalizers = nil }, false},
		"one that is to be left alone":               {ignored, false},
		"one that is to be left alone with a server": {func(c *v1alpha1.ServerClaim) { ignored(c); names(c) }, true},
		"one whose deletion has begun":               {func(c *v1alpha1.ServerClaim) { names(c); now := metav1.Now(); c.DeletionTimestamp = &now }, false},
	} {
		claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{v1alpha1.FinalizerServerClaim},
			Annotations: map[string]string{v1alpha1.PlacementAnnotation: "gang: {name: g, size: 2}"}}}
		c.change(claim)
		if got := ClaimOf(claim, bundle.Priority{}, time.Time{}).CountsAsMember(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func ignored(c *v1alpha1.ServerClaim) {
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationIgnore)
}

func TestTheServerThatAClaimHas(t *testing.T) {
	for name, c := range map[string]struct {
		uid, released, names string
		keeps, reserved      bool
	}{
		"one that the claim names":          {uid: "1", names: "s", keeps: true},
		"one that it does not name yet":     {uid: "1", reserved: true},
		"another one than it names":         {uid: "1", names: "t"},
		"one that is written for another":   {uid: "2", names: "s"},
		"one whose claim's end is recorded": {uid: "1", released: "1", names: "s"},
		"one that was given back unbooted":  {uid: "1", released: "1"},
		"one with the record of one before": {uid: "1", released: "0", names: "s", keeps: true},
	} {
		s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{v1alpha1.ClaimUIDAnnotation: c.uid}},
			Spec: v1alpha1.ServerSpec{ServerClaimRef: &v1alpha1.ObjectReference{Namespace: "ns", Name: "c"}}}
		if c.released != "" {
			s.Annotations[v1alpha1.ReleasedClaimAnnotation] = c.released
		}
		claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "1"}}
		if c.names != "" {
			claim.Spec.ServerRef = &corev1.LocalObjectReference{Name: c.names}
		}
		has, names := HolderOf(s).Has("s", ClaimOf(claim, bundle.Priority{}, time.Time{})), c.names
		if keeps, reserved := has && names == "s", has && names == ""; keeps != c.keeps || reserved != c.reserved {
			t.Errorf("%s: keeps %t, reserved %t", name, keeps, reserved)
		}
	}
}
