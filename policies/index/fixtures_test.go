// SPDX-License-Identifier: Apache-2.0

package index

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

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

// writtenFor writes a claim of namespace ns on a server.
func writtenFor(name, uid string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "ns", Name: name}
		s.Annotations = map[string]string{v1alpha1.ClaimUIDAnnotation: uid}
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

func ofUID(uid types.UID) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.UID = uid }
}

func inState(state v1alpha1.ServerState) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Status.State = state }
}

func fleetOf(servers ...*v1alpha1.Server) *Index {
	x := New()
	for _, s := range servers {
		x.Saw(s)
	}
	return x
}

func entryOf(s *v1alpha1.Server, h policies.Hardware) *Entry {
	return &Entry{Record: recordOf(s, h)}
}
