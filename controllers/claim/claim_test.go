// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/scheduler"
	"github.com/metalaw/metalaw/internal/counted"
)

// bound is a claim that has its server and runs as asked.
func bound() facts {
	c := &v1alpha1.ServerClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "uid-c", Generation: 2},
		Spec: v1alpha1.ServerClaimSpec{Power: v1alpha1.PowerOn, Image: "os:1",
			ServerRef: &corev1.LocalObjectReference{Name: "s"}, IgnitionSecretRef: &corev1.LocalObjectReference{Name: "i"}},
		Status: v1alpha1.ServerClaimStatus{Phase: v1alpha1.PhaseBound},
	}
	return facts{
		claim: c,
		server: &v1alpha1.Server{
			ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{v1alpha1.ClaimUIDAnnotation: "uid-c"}},
			Spec: v1alpha1.ServerSpec{ServerClaimRef: &v1alpha1.ObjectReference{Namespace: "ns", Name: "c"},
				BootConfigurationRef: &v1alpha1.ObjectReference{Namespace: "ns", Name: "c"}},
			Status: v1alpha1.ServerStatus{State: v1alpha1.StateReserved, PowerState: v1alpha1.PowerStateOn},
		},
		boot: &v1alpha1.ServerBootConfiguration{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", Generation: 1,
				OwnerReferences: []metav1.OwnerReference{{UID: "uid-c", Controller: ptr.To(true)}}},
			Spec: v1alpha1.ServerBootConfigurationSpec{ServerRef: corev1.LocalObjectReference{Name: "s"}, Image: "os:1",
				IgnitionSecretRef: &corev1.LocalObjectReference{Name: "i"}},
			Status: v1alpha1.ServerBootConfigurationStatus{State: v1alpha1.ServerBootConfigurationStateReady},
		},
	}
}

func afflicted(s *v1alpha1.Server, kind string, status metav1.ConditionStatus) {
	s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Because"})
}

// isRefused has a server say that the API server refuses its boot configuration.
func isRefused(s *v1alpha1.Server) {
	s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: "Ready", Status: "False", Reason: "BootConfigurationRefused",
		Message: "The API server refuses it. Its words: exceeded quota"})
}

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// handedOver is a boot configuration whose spec was changed once, at a time.
func handedOver(f *facts, at time.Time) {
	f.boot.Generation = 2
	f.boot.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSpecHandedOver, Status: "True", ObservedGeneration: 2,
		LastTransitionTime: metav1.NewTime(at)}}
}

func bootedAt(f *facts, at time.Time) {
	shown := metav1.NewMicroTime(at)
	f.server.Status.Lifecycle = &v1alpha1.LifecycleStatus{BootedAt: &shown}
}

// writtenFor is a boot configuration that the manager wrote for a generation of the claim.
func writtenFor(f *facts, generation string) {
	f.boot.Annotations = map[string]string{v1alpha1.BootOwnerGenerationAnnotation: generation}
}

func unbound(f *facts) { f.claim.Status.Phase = v1alpha1.PhaseUnbound }

// foundAgain is a claim whose server was deleted with its data and made anew for the same machine.
func foundAgain(f *facts) {
	unbound(f)
	f.server = &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Status: v1alpha1.ServerStatus{State: v1alpha1.StateError}}
	f.verdict = &scheduler.Verdict{Reason: "NoneClaimable", Message: "1 of 1 servers match: not-available 1"}
}

// claimedWhenFree is what is recorded of a server that a claim found Available.
func claimedWhenFree() *v1alpha1.LifecycleStatus {
	return &v1alpha1.LifecycleStatus{Entry: 3, History: []v1alpha1.LifecycleMove{
		{From: v1alpha1.StateAvailable, To: v1alpha1.StateReserved, Entry: 3}}}
}

func TestJudge(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*facts)
		want   string
	}{
		{"bound and running", func(*facts) {}, "bound ready Running"},
		{"becoming bound", unbound, "bound ready Running"},
		{"not bound before the server is Reserved", func(f *facts) { unbound(f); f.server.Status.State = v1alpha1.StateAvailable }, "Reserving"},
		{"not bound before the boot configuration exists", func(f *facts) { unbound(f); f.boot = nil }, "Reserving"},
		{"not bound by a boot configuration of somebody else", func(f *facts) { unbound(f); f.boot.OwnerReferences = nil }, "Reserving"},
		{"not bound before the server names the boot configuration", func(f *facts) { unbound(f); f.server.Spec.BootConfigurationRef.Name = "discovery" }, "Reserving"},
		{"bound stays bound in maintenance", func(f *facts) { f.server.Status.State = v1alpha1.StateMaintenance }, "bound ServerNotReserved"},
		{"bound, the boot waits", func(f *facts) { f.boot.Status.State = v1alpha1.ServerBootConfigurationStatePending }, "bound Booting"},
		{"bound, the boot failed", func(f *facts) { f.boot.Status.State = v1alpha1.ServerBootConfigurationStateError }, "bound BootError"},
		{"bound, the image was changed", func(f *facts) { f.claim.Spec.Image = "os:2" }, "bound Booting"},
		{"bound, the ignition was changed", func(f *facts) { f.claim.Spec.IgnitionSecretRef = nil }, "bound Booting"},
		{"a Ready that speaks of a former spec does not count", func(f *facts) { f.boot.Generation = 2 }, "bound Booting"},
		{"bound, powering on", func(f *facts) { f.server.Status.PowerState = v1alpha1.PowerStatePoweringOn }, "bound Booting"},
		{"bound, switching off", func(f *facts) { f.claim.Spec.Power = "Off" }, "bound PoweringOff"},
		{"bound, the machine shuts down", func(f *facts) { f.claim.Spec.Power, f.server.Status.PowerState = "Off", "PoweringOff" }, "bound PoweringOff"},
		{"off waits for no boot", func(f *facts) { f.claim.Spec.Power, f.boot = "Off", nil }, "bound PoweringOff"},
		{"bound, off, the boot waits", func(f *facts) { f.claim.Spec.Power, f.server.Status.PowerState, f.boot = "Off", "Off", nil }, "bound Booting"},
		{"unknown power is not Off", func(f *facts) { f.claim.Spec.Power, f.server.Status.PowerState = "Off", "" }, "bound PowerUnknown"},
		{"unknown power is not On", func(f *facts) { f.server.Status.PowerState = "" }, "bound PowerUnknown"},
		{"unknown power is not what nobody asked for", func(f *facts) { f.claim.Spec.Power, f.server.Status.PowerState = "", "" }, "bound PowerUnknown"},
		{"the policy of the server is halted", func(f *facts) { afflicted(f.server, "PolicyHalted", "True") }, "bound stalled ServerHalted"},
		{"another machine answers for the server", func(f *facts) { afflicted(f.server, "IdentityMismatch", "True") }, "bound stalled ServerHalted"},
		{"a halt that is over", func(f *facts) { afflicted(f.server, "PolicyHalted", "False") }, "bound ready Running"},
		{"switched on by somebody else before it was booted", func(f *facts) { f.server.Status.Lifecycle = claimedWhenFree() }, "bound stalled SwitchedOnByHand"},
		{"switched on as asked", func(f *facts) {
			f.server.Status.Lifecycle = claimedWhenFree()
			f.server.Status.Lifecycle.BootedAt = &metav1.MicroTime{}
		}, "bound ready Running"},
		{"found in the claim's hands", func(f *facts) {
			f.server.Status.Lifecycle = claimedWhenFree()
			f.server.Status.Lifecycle.History[0].From = ""
		}, "bound ready Running"},
		{"off as asked", func(f *facts) { f.claim.Spec.Power, f.server.Status.PowerState = "Off", "Off" }, "bound ready PoweredOff"},
		{"the server vanished", func(f *facts) { f.server = nil }, "stalled vanished ServerVanished"},
		{"the server vanished a while ago", func(f *facts) {
			unbound(f)
			f.server = nil
			f.claim.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionServerMissing, Status: metav1.ConditionTrue}}
		}, "stalled vanished ServerVanished"},
		{"bound before us, while its UID is recorded", func(f *facts) { delete(f.server.Annotations, v1alpha1.ClaimUIDAnnotation) }, "bound Adopting"},
		{"bound before a restore, which gave it another UID", func(f *facts) { f.server.Annotations[v1alpha1.ClaimUIDAnnotation] = "uid-x" }, "bound Adopting"},
		{"named by a server of which it was never bound", func(f *facts) { unbound(f); delete(f.server.Annotations, v1alpha1.ClaimUIDAnnotation) }, "Pending"},
		{"the server names another claim", func(f *facts) { f.server.Spec.ServerClaimRef.Name = "other" }, "stalled BindingLost"},
		{"the server was released", func(f *facts) { f.server.Annotations[v1alpha1.ReleasedClaimAnnotation] = "uid-c" }, "BindingLost"},
		{"the server was deleted and found again", func(f *facts) {
			foundAgain(f)
			f.claim.Status.Conditions = []metav1.Condition{{Type: "Bound", Status: "False", Reason: "ServerVanished"}}
		}, "stalled BindingLost"},
		{"the server was found again a while ago", func(f *facts) {
			foundAgain(f)
			f.claim.Status.Conditions = []metav1.Condition{{Type: "Bound", Status: "False", Reason: "BindingLost"}}
		}, "stalled BindingLost"},
		{"the server was found again and nothing else is left on it", func(f *facts) {
			foundAgain(f)
			f.claim.Status.Conditions = []metav1.Condition{{Type: "Bound", Status: "False", Reason: "BindingLost"}}
			f.server.Status.State = v1alpha1.StateAvailable
		}, "BindingLost"},
		{"the reference was cleared by hand", func(f *facts) { f.server.Spec.ServerClaimRef = nil }, "stalled BindingLost"},
		{"a claim that never had the server it names", func(f *facts) { foundAgain(f) }, "NoneClaimable"},
		{"a named server that never existed", func(f *facts) { unbound(f); f.server = nil; f.verdict = &scheduler.Verdict{Reason: "ServerNotFound"} }, "stalled ServerNotFound"},
		{"no server yet", func(f *facts) {
			unbound(f)
			f.claim.Spec.ServerRef = nil
			f.verdict = &scheduler.Verdict{Reason: "NoneClaimable"}
		}, "NoneClaimable"},
		{"being reserved, behind a BMC that does not answer", func(f *facts) { unbound(f); f.boot = nil; afflicted(f.server, "BMCReachable", "False") },
			"BMCUnreachable"},
		{"its power is not known, because its BMC does not answer", func(f *facts) {
			f.server.Status.PowerState = ""
			afflicted(f.server, "BMCReachable", "False")
		}, "bound BMCUnreachable"},
		{"it runs, and its BMC missed an answer", func(f *facts) { afflicted(f.server, "BMCReachable", "False") }, "bound ready Running"},
		{"the boot failed, and its BMC does not answer", func(f *facts) {
			f.boot.Status.State = v1alpha1.ServerBootConfigurationStateError
			afflicted(f.server, "BMCReachable", "False")
		}, "bound BootError"},
		{"its server is in maintenance, behind a BMC that does not answer", func(f *facts) {
			f.server.Status.State = v1alpha1.StateMaintenance
			afflicted(f.server, "BMCReachable", "False")
		}, "bound ServerNotReserved"},
		{"its BMC does not answer, but the claim lost the server", func(f *facts) {
			f.server.Spec.ServerClaimRef = nil
			afflicted(f.server, "BMCReachable", "False")
		}, "stalled BindingLost"},
		{"being reserved, and its boot configuration is refused", func(f *facts) { unbound(f); f.boot = nil; isRefused(f.server) },
			"stalled BootConfigurationRefused"},
		{"a change of its boot configuration is refused", func(f *facts) { f.claim.Spec.Image = "os:2"; isRefused(f.server) },
			"bound stalled BootConfigurationRefused"},
		{"another program changed its boot configuration", func(f *facts) { f.boot.Spec.Image = "mirror/os:1"; writtenFor(f, "2") },
			"bound stalled BootConfigurationChanged"},
		{"its boot configuration is of a former generation", func(f *facts) { f.boot.Spec.Image = "mirror/os:1"; writtenFor(f, "1") }, "bound Booting"},
		{"its boot configuration was written by a former build", func(f *facts) { f.boot.Spec.Image = "mirror/os:1" }, "bound Booting"},
		{"its boot configuration was changed, and is left alone", func(f *facts) {
			f.boot.Spec.Image = "mirror/os:1"
			writtenFor(f, "2")
			f.boot.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationIgnore
		}, "bound Booting"},
		{"what was refused stands by now", func(f *facts) { isRefused(f.server) }, "bound ready Running"},
		{"the boot of another state is refused", func(f *facts) {
			unbound(f)
			f.boot = nil
			isRefused(f.server)
			f.server.Status.State = v1alpha1.StateAvailable
		}, "Reserving"},
		{"nothing known, at first", func(f *facts) { unbound(f); f.claim.Spec.ServerRef = nil }, "Pending"},
		{"nothing known after a restart leaves what is written", func(f *facts) {
			unbound(f)
			f.claim.Spec.ServerRef = nil
			f.claim.Status.ObservedGeneration = 2
			f.claim.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBound}}
		}, "silent"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := bound()
			tc.change(&f)
			if got := inWords(judge(f)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReadySaysNoMoreThanIsKnown(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*facts)
		want   string
	}{
		{"on", func(*facts) {}, "the BMC says On, and the boot configuration is as the claim asks"},
		{"on, after a change, booted nobody knows when", func(f *facts) {
			f.boot.Generation = 2
			f.boot.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSpecHandedOver, Status: "True", ObservedGeneration: 2}}
		}, "the BMC says On, and the boot configuration is as the claim asks; it was changed after the machine was switched on, which uses " +
			"the change at its next boot"},
		{"on, booted once with what was changed before", func(f *facts) { handedOver(f, noon); bootedAt(f, noon.Add(2500*time.Millisecond)) },
			"the BMC says On, and the boot configuration is as the claim asks"},
		{"on, changed since it booted", func(f *facts) { handedOver(f, noon.Add(time.Minute)); bootedAt(f, noon) },
			"the BMC says On, and the boot configuration is as the claim asks; it was changed after the machine was switched on, which uses " +
				"the change at its next boot"},
		{"on, changed in the second of its boot", func(f *facts) { handedOver(f, noon); bootedAt(f, noon.Add(500*time.Millisecond)) },
			"the BMC says On, and the boot configuration is as the claim asks; it was changed after the machine was switched on, which uses " +
				"the change at its next boot"},
		{"changed by another program in two places", func(f *facts) {
			f.boot.Spec.Image, f.boot.Spec.IgnitionSecretRef = "mirror/os:1", nil
			writtenFor(f, "2")
		}, "Another program, such as a mutating policy of the cluster, changes spec.image and spec.ignitionSecretRef of " +
			"ServerBootConfiguration ns/c. The machine boots what stands there. Change that policy, or have the claim ask for the same."},
		{"halted", func(f *facts) { afflicted(f.server, "PolicyHalted", "True") },
			"nothing is done for the server, and what is known of it may not hold: its condition PolicyHalted (Because) is True"},
		{"switching off", func(f *facts) { f.claim.Spec.Power = "Off" }, "Off is asked for, and the BMC still says On"},
		{"switching on, past a BMC that ignores the boot override", func(f *facts) {
			f.server.Status.PowerState = "Off"
			f.server.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "BootOverrideIgnored"}}
		}, "the server is not On yet: its BMC ignores what the machine is to boot from, so that it is not switched on; " +
			"see condition Ready of the Server, reason BootOverrideIgnored"},
		{"switching off, under a freeze", func(f *facts) {
			f.claim.Spec.Power = "Off"
			f.server.Status.Conditions = []metav1.Condition{{Type: "Withheld", Status: "True", Reason: "Frozen"}}
		}, "Off is asked for, and the BMC still says On: that is held back by a freeze, " +
			"until those who run the fleet lift it or it runs out (Frozen)"},
		{"being reserved, with a boot configuration of somebody else in the way", func(f *facts) {
			unbound(f)
			f.boot.OwnerReferences = nil
			f.server.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "BootConfigurationTaken"}}
		}, "a server was found and is being reserved: a ServerBootConfiguration of the claim's name exists and does not belong to the claim; " +
			"delete it, or claim under another name"},
		{"being reserved, and refused", func(f *facts) { unbound(f); f.boot = nil; isRefused(f.server) },
			"The API server refuses it. Its words: exceeded quota"},
		{"the boot operator has done nothing", func(f *facts) { f.boot.Status.State = "" },
			"the boot operator has not prepared ServerBootConfiguration ns/c, which is Pending"},
		{"the boot operator has not come to the last change", func(f *facts) { f.boot.Generation = 2 },
			"the boot operator has not prepared the last change of ServerBootConfiguration ns/c"},
		{"switching on, past a BMC that does not answer", func(f *facts) { f.server.Status.PowerState = "Off"; afflicted(f.server, "BMCReachable", "False") },
			"The BMC of server s cannot be used (Because), so nothing is done to the machine. The claim keeps its server. " +
				"To give up the server and what is on it, delete the claim."},
		{"being reserved, behind a BMC that does not answer", func(f *facts) { unbound(f); f.boot = nil; afflicted(f.server, "BMCReachable", "False") },
			"The BMC of server s cannot be used (Because). The server is reserved once it answers. The claim never loses it by itself: " +
				"for another server, delete the claim and make it anew."},
		{"switching on, past a BMC that refuses", func(f *facts) {
			f.server.Status.PowerState = "Off"
			f.server.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "RequestFailed"}}
		}, "the server is not On yet: its BMC did not do what it was asked for, and is asked again; see condition Ready of the Server"},
		{"switching on, past a BMC that has accepted it", func(f *facts) { f.server.Status.PowerState = "Off"; afflicted(f.server, "PoweringOn", "True") },
			"the server is not On yet: its BMC was asked to switch it on, and does not show that yet"},
		{"switching off, past an operating system that takes its time", func(f *facts) {
			f.claim.Spec.Power = "Off"
			afflicted(f.server, "WaitingForPowerOff", "True")
		}, "Off is asked for, and the BMC still says On: its operating system was asked to shut down or its BMC to switch it off, and that does not show yet"},
		{"unknown power", func(f *facts) { f.server.Status.PowerState = "" }, "the server's BMC does not say whether it is on; On is asked for"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := bound()
			tc.change(&f)
			if diff := cmp.Diff(tc.want, judge(f).message); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAConditionThatAClaimFollowsWakesIt(t *testing.T) {
	refused := bound().server
	isRefused(refused)
	if concernOf(bound().server) == concernOf(refused) {
		t.Error("a refusal does not wake the claim")
	}
	for _, kind := range []string{"PolicyHalted", "IdentityMismatch", "Withheld", "PoweringOn", "WaitingForPowerOff"} {
		before := bound().server
		after := before.DeepCopy()
		afflicted(after, kind, "True")
		if concernOf(before) == concernOf(after) {
			t.Errorf("%s does not wake the claim", kind)
		}
	}
}

func inWords(s standing) string {
	text := ""
	for _, word := range []struct {
		holds bool
		word  string
	}{{s.bound, "bound "}, {s.ready, "ready "}, {s.stalled, "stalled "}, {s.vanished, "vanished "}, {s.silent, "silent"}} {
		if word.holds {
			text += word.word
		}
	}
	return text + s.reason
}

func TestEndBinding(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.FixedZone("", 3600))
	uid := func(s *v1alpha1.Server, value string) { s.Annotations[v1alpha1.ClaimUIDAnnotation] = value }
	for _, tc := range []struct {
		name   string
		change func(*v1alpha1.Server, *v1alpha1.ServerClaim)
		want   string
	}{
		{"a server in use gets the record and keeps its reference", func(*v1alpha1.Server, *v1alpha1.ServerClaim) {},
			"ref true uid uid-c released uid-c at 2026-05-04T02:02:01Z counted 1h0m0s"},
		{"a record that stands is not written again", func(s *v1alpha1.Server, _ *v1alpha1.ServerClaim) {
			s.Annotations[v1alpha1.ReleasedClaimAnnotation] = "uid-c"
		}, "unchanged"},
		{"a reference taken away by hand still leaves a record", func(s *v1alpha1.Server, _ *v1alpha1.ServerClaim) { s.Spec.ServerClaimRef = nil },
			"ref false uid uid-c released uid-c at 2026-05-04T02:02:01Z counted 1h0m0s"},
		{"a server that never left Available only loses the reference", func(s *v1alpha1.Server, _ *v1alpha1.ServerClaim) {
			s.Status.State = v1alpha1.StateAvailable
		}, "ref false uid  released  at "},
		{"an Available server that is Dirty gets the record", func(s *v1alpha1.Server, _ *v1alpha1.ServerClaim) {
			s.Status.State, s.Status.Lifecycle = v1alpha1.StateAvailable, &v1alpha1.LifecycleStatus{Marks: []string{v1alpha1.MarkDirty}}
		}, "ref true uid uid-c released uid-c at 2026-05-04T02:02:01Z counted 1h0m0s"},
		{"a server of another claim of the name is not touched", func(s *v1alpha1.Server, c *v1alpha1.ServerClaim) {
			uid(s, "uid-old")
			c.Spec.ServerRef = nil
		}, "unchanged"},
		{"a server without a UID is not touched for a claim that does not name it", func(s *v1alpha1.Server, c *v1alpha1.ServerClaim) {
			s.Annotations = nil
			c.Spec.ServerRef = nil
		}, "unchanged"},
		{"a binding made before us is adopted and released in one", func(s *v1alpha1.Server, _ *v1alpha1.ServerClaim) { s.Annotations = nil },
			"ref true uid uid-c released uid-c at 2026-05-04T02:02:01Z counted 1h0m0s"},
		{"a released predecessor's server is not touched", func(s *v1alpha1.Server, _ *v1alpha1.ServerClaim) {
			uid(s, "uid-old")
			s.Annotations[v1alpha1.ReleasedClaimAnnotation] = "uid-old"
		}, "unchanged"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := bound()
			tc.change(f.server, f.claim)
			got := "unchanged"
			if endBinding(f.server, f.claim, now, counted.Time(time.Hour)) {
				a := f.server.Annotations
				got = fmt.Sprintf("ref %t uid %s released %s at %s", f.server.Spec.ServerClaimRef != nil,
					a[v1alpha1.ClaimUIDAnnotation], a[v1alpha1.ReleasedClaimAnnotation], a[v1alpha1.ReleasedAtAnnotation])
				if record := a[v1alpha1.ReleasedCountedAnnotation]; record != "" {
					got += " counted " + record
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyTheOperationsOfAServerAreForwarded(t *testing.T) {
	for operation, want := range map[string]string{
		"": "refuse", "ignore": "none", "ignore-reconciliation": "none", "ignore-child": "none", "ignore-for-audit": "none",
		"graceful-restart-server": "forward", "hard-restart-server": "forward",
		"power-cycle-server": "forward", "force-off-server": "forward", "force-on-server": "forward", "park": "refuse", "unpark": "refuse", "make-tea": "refuse",
	} {
		c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.OperationAnnotation: operation}}}
		got := "none"
		if forwardable(c) {
			got = "forward"
		} else if refuses(c) {
			got = "refuse"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", operation, got, want)
		}
	}
	if c := bound().claim; forwardable(c) || refuses(c) {
		t.Error("something is made of a claim that asks for nothing")
	}
}
