// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/metalprobe"
)

// The keys of an ignition Secret. A format is for text that is not Ignition JSON, such as Butane; we write JSON and name none.
const (
	IgnitionKey = "ignition"
	FormatKey   = "format"
)

// Agent is one of the two boots that are ours: the probe and the wipe.
type Agent struct {
	Purpose string
	// Action is what to prepare the boot amounts to.
	Action  fleet.Action
	Program metalprobe.Purpose
	Token   policyv1alpha1.AgentPurpose
	// Namespace and Name are those of its boot configuration and its Secret.
	Namespace, Name string
	Image           string
}

// Probe is the boot that inspects a server.
func Probe(s *v1alpha1.Server, namespace, image string) Agent {
	return Agent{Purpose: v1alpha1.BootPurposeProbe, Action: fleet.Setting, Program: metalprobe.PurposeProbe, Token: policyv1alpha1.PurposeProbe,
		Namespace: namespace, Name: s.Name, Image: image}
}

// Wipe is the boot that erases the disks of a server.
func Wipe(s *v1alpha1.Server, namespace, image string) Agent {
	return Agent{Purpose: v1alpha1.BootPurposeWipe, Action: fleet.Wipe, Program: metalprobe.PurposeWipe, Token: policyv1alpha1.PurposeWipe,
		Namespace: namespace, Name: s.Name + "-wipe", Image: image}
}

// Is says that a boot configuration is that of the agent; the one in force is of the present entry.
func (a Agent) Is(b *v1alpha1.ServerBootConfiguration) bool {
	return b != nil && b.Name == a.Name && b.Annotations[v1alpha1.BootPurposeAnnotation] == a.Purpose
}

// Stands says that the boot configuration in force is the agent's, and that the server knows its token of this entry.
func (a Agent) Stands(s *v1alpha1.Server, b *v1alpha1.ServerBootConfiguration) bool {
	l := s.Status.Lifecycle
	return a.Is(b) && l.Credential != nil && l.Credential.Entry == l.Entry && string(l.Credential.Purpose) == string(a.Token)
}

// Named says that the server names the agent's boot configuration.
func (a Agent) Named(s *v1alpha1.Server) bool {
	ref := s.Spec.BootConfigurationRef
	return ref != nil && ref.Namespace == a.Namespace && ref.Name == a.Name
}

// TokenOf is the token in a Secret, where that is of this entry, purpose and machine; a token of another is replaced (order 6).
func (a Agent) TokenOf(secret *corev1.Secret, s *v1alpha1.Server) (token string, ok bool) {
	config, err := metalprobe.ParseIgnition(secret.Data[IgnitionKey])
	if err != nil || config.Entry != s.Status.Lifecycle.Entry || config.Purpose != a.Program || config.ServerUUID != s.Spec.SystemUUID {
		return "", false
	}
	return config.Token, config.Token != ""
}

// AgentInput is everything that a decision about the boot configuration of an agent depends on.
type AgentInput struct {
	Agent  Agent
	Server *v1alpha1.Server
	// Found is the object of the agent's name; nil where there is none. Ours says that it was written for the present entry.
	Found *v1alpha1.ServerBootConfiguration
	Ours  bool
}

// ForAgent has the boot configuration written anew for each entry, so that a Ready of a former entry never boots this one
// (order 6).
func ForAgent(in AgentInput) Output {
	a := in.Agent
	switch {
	case in.Found != nil && in.Ours && in.Found.Annotations[v1alpha1.BootPurposeAnnotation] == a.Purpose:
		return Output{Step: Refer}
	case in.Found != nil && !metav1.IsControlledBy(in.Found, in.Server):
		return Output{Progress: loop.Failing(v1alpha1.ReasonBootConfigurationTaken, fmt.Sprintf(
			"the boot configuration %s/%s belongs to another object; it is not touched", a.Namespace, a.Name), time.Minute)}
	}
	b := &v1alpha1.ServerBootConfiguration{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name, Annotations: Annotations(in.Server, a.Purpose)},
		Spec:       v1alpha1.ServerBootConfigurationSpec{Image: a.Image, IgnitionSecretRef: &corev1.LocalObjectReference{Name: a.Name}},
	}
	b.Annotations[v1alpha1.TypeAnnotation] = v1alpha1.TypeInternal
	b.Annotations[v1alpha1.IsDefaultOSImageAnnotation] = "true"
	b.Spec.ServerRef.Name = in.Server.Name
	if in.Found != nil {
		return Output{Step: Replace, Boot: b}
	}
	return Output{Step: Create, Boot: b}
}
