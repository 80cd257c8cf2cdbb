// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// patch is the API server's part: it keeps what the CRDs keep, and what must never happen.
func (w *world) patch(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	var meant fault
	if w.gate != nil {
		meant = w.gate.enter(o)
	}
	w.mu.Lock()
	w.writes++
	w.mu.Unlock()
	if meant.before != nil {
		return meant.before
	}
	if w.before != nil {
		if err := w.before(o); err != nil {
			return err
		}
	}
	var err error
	switch o := o.(type) {
	case *v1alpha1.Server:
		if w.locked[o.Name] && o.Spec.ServerClaimRef != nil {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "servers"}, o.Name, errors.New("it is locked"))
		}
		stored := w.server(o.Name)
		if err = c.Patch(ctx, o, p, opts...); err == nil {
			w.checkReservation(stored, o)
			w.checkPlacement(stored, o)
		}
	case *v1alpha1.ServerClaim:
		err = w.patchClaim(ctx, c, o, p, opts...)
	}
	if err != nil {
		return err
	}
	w.shown(o)
	if w.after != nil {
		return w.after(o)
	}
	return meant.after
}

func (w *world) patchClaim(ctx context.Context, c client.WithWatch, o *v1alpha1.ServerClaim, p client.Patch, opts ...client.PatchOption) error {
	stored := &v1alpha1.ServerClaim{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), stored); err != nil {
		return err
	}
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	var asked struct {
		Metadata struct{ UID types.UID }
		Spec     struct{ ServerRef *corev1.LocalObjectReference }
	}
	if err := json.Unmarshal(data, &asked); err != nil {
		return err
	}
	group := schema.GroupResource{Resource: "serverclaims"}
	if asked.Metadata.UID != stored.UID {
		return apierrors.NewConflict(group, o.Name, errors.New("another UID"))
	}
	if is := stored.Spec.ServerRef; is != nil && (asked.Spec.ServerRef == nil || *asked.Spec.ServerRef != *is) {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ServerClaim"}, o.Name, nil)
	}
	w.checkGang(stored)
	err = c.Patch(ctx, o, p, opts...)
	if err == nil && asked.Spec.ServerRef != nil {
		w.noteCommit(stored)
	}
	return err
}
