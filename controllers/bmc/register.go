// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/denied"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/internal/stored"
	"github.com/metalaw/metalaw/internal/tracking"
)

// What follows makes Servers for the systems behind a BMC, or lets those that exist name it. It reads past the cache before
// it makes a Server or takes one over: what is absent in the cache may exist (order 4).

// settle is when a plan that the API server contradicted is made anew: the cache will have caught up.
const settle = 100 * time.Millisecond

// followLabels changes only servers to which a change has to be carried over.
func (v *scope) followLabels(ctx context.Context) loop.Progress {
	for i := range v.owned {
		server := v.owned[i].DeepCopy()
		before := server.DeepCopy()
		copyLabels(v.bmc, server)
		if maps.Equal(before.Labels, server.Labels) && maps.Equal(before.Annotations, server.Annotations) {
			continue
		}
		if p := v.patch(ctx, before, server); p.Phase != loop.Done {
			return p
		}
	}
	return loop.Holds()
}

// copyLabels carries the labels of a BMC over. Those of tools are left out, and taken away where a former build copied
// them: a tool would delete the Server, because its source does not name it.
func copyLabels(b *v1alpha1.BMC, s *v1alpha1.Server) {
	tracking.Keep(&s.ObjectMeta)
	copied := copiedLabels(s.Annotations[v1alpha1.LabelsAnnotation])
	labels, remember := follow(tracking.Without(b.Labels), copied, s.Labels)
	if len(labels) > 0 || s.Labels != nil {
		s.Labels = labels
	}
	if len(remember) == 0 {
		delete(s.Annotations, v1alpha1.LabelsAnnotation)
	} else if text, err := json.Marshal(remember); err == nil { // strings always encode
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.LabelsAnnotation, string(text))
	}
}

// patch writes a server under the optimistic lock. A reconcile that lost a race looks again.
func (v *scope) patch(ctx context.Context, before, after *v1alpha1.Server) loop.Progress {
	err := v.Client.Patch(ctx, after, mergepatch.Locked(before))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return loop.Waiting("Raced", "the Server "+after.Name+" has changed meanwhile", settle)
	}
	if err != nil {
		return denied.Write(fmt.Errorf("patch Server %s: %w", after.Name, err), v1alpha1.ReasonServerRefused, "a change of Server "+after.Name)
	}
	return loop.Holds()
}

// register carries the plan out. Before anything is created or taken over, what the plan relies on is read uncached.
func (v *scope) register(ctx context.Context) loop.Progress {
	for _, step := range v.plan.steps {
		var p loop.Progress
		if step.kind == create {
			p = v.createServer(ctx, step)
		} else {
			p = v.pointServer(ctx, step)
		}
		if p.Phase != loop.Done {
			return p
		}
	}
	if v.plan.consumed {
		delete(v.bmc.Annotations, v1alpha1.AcceptSystemAnnotation)
		v.acceptances.forget(string(v.bmc.UID)) // the same value, written again, is another acceptance
	}
	for _, refusal := range v.plan.refusals {
		v.newcomers.await(refusal.incumbent, v.bmc.Name)
	}
	return loop.Holds()
}

// maxIndex bounds the search for a free name.
const maxIndex = 256

// createServer makes the Server of a new system. Two BMCs that show the same system at the same moment are dealt with one
// after the other, and the second finds what the first has made.
func (v *scope) createServer(ctx context.Context, step step) loop.Progress {
	unlock := v.systems.lock(step.uuid)
	defer unlock()
	name, err := v.standsFor(ctx, step.uuid)
	if err != nil {
		return loop.Broken(err)
	}
	if name != "" {
		return raced(name)
	}
	if p := v.confirmAlone(ctx, step.uuid, ""); p.Phase != loop.Done {
		return p
	}
	for index := step.index; index < step.index+maxIndex; index++ {
		server := newServer(v.bmc, step, fmt.Sprintf("%s-system-%d", v.bmc.Name, index))
		err := v.Client.Create(ctx, server)
		if apierrors.IsAlreadyExists(err) {
			switch stands, err := namedFor(ctx, v.Reader, server.Name, step.uuid); {
			case err != nil:
				return loop.Broken(err)
			case stands:
				return raced(server.Name)
			}
			continue // a name of another system, which keeps it
		}
		if err != nil {
			return denied.Write(fmt.Errorf("create Server %s: %w", server.Name, err), v1alpha1.ReasonServerRefused, "the Server "+server.Name)
		}
		v.servers.note(step.uuid, server.Name)
		v.Recorder.Eventf(v.bmc, server, corev1.EventTypeNormal, v1alpha1.ReasonServerCreated, EffectRegisterSystems,
			"made Server %s for the system %s with UUID %s", server.Name, step.uri, step.uuid)
		return loop.Holds()
	}
	return loop.Failing(v1alpha1.ReasonServerRefused,
		fmt.Sprintf("no name %s-system-N is free for the system with UUID %s", v.bmc.Name, step.uuid), time.Minute)
}

func raced(server string) loop.Progress {
	return loop.Waiting("Raced", "the Server "+server+" stands for the system since a moment ago", settle)
}

func newServer(b *v1alpha1.BMC, step step, name string) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Spec.SystemUUID, s.Spec.SystemURI = step.uuid, step.uri
	s.Spec.BMCRef = &corev1.LocalObjectReference{Name: b.Name}
	copyLabels(b, s)
	return s
}

// pointServer lets a Server name this BMC and the system's URI at it.
func (v *scope) pointServer(ctx context.Context, step step) loop.Progress {
	server, err := stored.One[v1alpha1.Server](ctx, v.Reader, "", step.server)
	switch {
	case err != nil:
		return loop.Broken(fmt.Errorf("get Server %s: %w", step.server, err))
	case server == nil:
		return loop.Waiting("Raced", "the Server "+step.server+" is gone", settle)
	}
	now := asServer(server)
	if now.bmc != v.bmc.Name && now.bmc != step.from || !isSystem(now.uuid, step.uuid) || now.bmc == "" && now.inline {
		return loop.Waiting("Raced", "the Server "+step.server+" has changed meanwhile", settle)
	}
	taking := now.bmc != v.bmc.Name
	if taking && now.bmc != "" {
		if p := v.confirmLost(ctx, now.bmc); p.Phase != loop.Done {
			return p
		}
	}
	if taking {
		if p := v.confirmAlone(ctx, step.uuid, now.bmc); p.Phase != loop.Done {
			return p
		}
	}
	before := server.DeepCopy()
	server.Spec.BMCRef = &corev1.LocalObjectReference{Name: v.bmc.Name}
	server.Spec.SystemURI = step.uri
	copyLabels(v.bmc, server)
	if p := v.patch(ctx, before, server); p.Phase != loop.Done || !taking {
		return p
	}
	v.Recorder.Eventf(v.bmc, server, corev1.EventTypeNormal, v1alpha1.ReasonServerTakenOver, EffectRegisterSystems,
		"Server %s is behind this BMC now; it was behind %q", server.Name, now.bmc)
	return loop.Holds()
}

// confirmLost makes sure, uncached, that the incumbent is gone or unreachable.
func (v *scope) confirmLost(ctx context.Context, name string) loop.Progress {
	other, err := stored.One[v1alpha1.BMC](ctx, v.Reader, "", name)
	if err != nil {
		return loop.Broken(fmt.Errorf("get BMC %s: %w", name, err))
	}
	if other == nil {
		return loop.Holds()
	}
	if lost := v.lostFor(other, v.now); lost == 0 || lost < v.TakeOverAfter {
		return loop.Waiting("Raced", "the BMC "+name+" answers again", settle)
	}
	return loop.Holds()
}

// confirmAlone makes sure that no other BMC has come to show the system since the plan was made; former, its BMC before, is
// confirmed apart.
func (v *scope) confirmAlone(ctx context.Context, uuid, former string) loop.Progress {
	rivals, err := v.rivals(ctx, uuid)
	if err != nil {
		return loop.Broken(err)
	}
	for _, rival := range rivals {
		if rival != former {
			return loop.Waiting("Raced", "the BMC "+rival+" shows the system as well since a moment ago", settle)
		}
	}
	return loop.Holds()
}

// follow carries what changed on the BMC since the last copy over to a server, and nothing else: a label that an
// operator set, changed or took away on the server stays as it is until the BMC's own changes. It returns the labels to have, and
// the copy to remember.
func follow(bmc, copied, server map[string]string) (labels, remember map[string]string) {
	labels = maps.Clone(server)
	if labels == nil {
		labels = map[string]string{}
	}
	for key, old := range copied {
		if _, still := bmc[key]; !still && labels[key] == old {
			delete(labels, key)
		}
	}
	for key, value := range bmc {
		if old, before := copied[key]; !before || old != value {
			labels[key] = value
		}
	}
	return labels, maps.Clone(bmc)
}

// copiedLabels reads v1alpha1.LabelsAnnotation. What cannot be read counts as nothing copied, so that nothing is taken away.
func copiedLabels(annotation string) map[string]string {
	var copied map[string]string
	if json.Unmarshal([]byte(annotation), &copied) != nil {
		return nil // json keeps what it understood; half of a copy would be worse than none
	}
	return copied
}
