// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"math/rand"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

// drawn is a random observation: all that may stand on the objects of one server.
func drawn(r *rand.Rand) Observation {
	maybe := func() bool { return r.Intn(2) == 0 }
	o := Observation{Server: held(), Now: noon, Settings: bundle.Settings{Sanitization: bundle.SanitizationRequired, FirstSeen: bundle.FirstSeenObserve}}
	s := o.Server
	s.Annotations = map[string]string{}
	claim := web("1", "r1")
	if maybe() {
		o.Claim = claim
	}
	if maybe() {
		claim.Spec.ServerRef = nil
	}
	claim.Spec.Power = []v1alpha1.Power{v1alpha1.PowerOn, v1alpha1.PowerOff}[r.Intn(2)]
	if maybe() {
		s.Spec.ServerClaimRef = nil
	}
	s.Annotations[v1alpha1.ClaimUIDAnnotation] = []string{"", "1", "2"}[r.Intn(3)]
	if maybe() {
		s.Annotations[v1alpha1.ReleasedClaimAnnotation] = []string{"1", "2"}[r.Intn(2)]
		o.CountedNow = tenHours
		s.Annotations[v1alpha1.ReleasedCountedAnnotation] = []string{"", "9h59m", "8h", "11h", v1alpha1.ReleasedNoGrace}[r.Intn(5)]
		o.Settings.ReleaseGrace = time.Duration(r.Intn(2)) * time.Hour
		o.Settings.ReleasePower = []string{bundle.PowerAfterGrace, bundle.PowerImmediate}[r.Intn(2)]
	}
	if maybe() {
		s.Annotations[v1alpha1.ParkedAnnotation] = "true"
	}
	s.Annotations[v1alpha1.PreParkStateAnnotation] = []string{"", "Error", "Released", "Available"}[r.Intn(4)]
	s.Status.State = []v1alpha1.ServerState{s.Status.State, v1alpha1.StateParked, v1alpha1.StateError}[r.Intn(3)]
	if maybe() {
		s.Annotations[v1alpha1.DecommissionAnnotation] = "old"
	}
	s.Status.Lifecycle = nil
	if maybe() {
		s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: int64(r.Intn(3)), Retries: int32(r.Intn(4))}
	}
	o.System = SystemReading{Reachable: maybe(), Power: []string{"", "On", "Off"}[r.Intn(3)], Health: []string{"", "OK", "Critical"}[r.Intn(3)], NoOverride: maybe(), Faulty: []string{"Memory"}[:r.Intn(2)], Harmless: maybe(),
		Identity: []string{"", IdentitySame, IdentityOther, IdentityUnknown}[r.Intn(4)], OverrideSet: maybe()}
	if maybe() {
		o.Boot = &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{UID: types.UID("b"), Annotations: map[string]string{
			v1alpha1.BootPurposeAnnotation: []string{v1alpha1.BootPurposeProbe, v1alpha1.BootPurposeWipe, v1alpha1.BootPurposeClaim}[r.Intn(3)]}}}
		o.Boot.Status.State = []v1alpha1.ServerBootConfigurationState{"", v1alpha1.ServerBootConfigurationStatePending,
			v1alpha1.ServerBootConfigurationStateReady, v1alpha1.ServerBootConfigurationStateError}[r.Intn(4)]
	}
	o.Inventory = drawnInventory(r)
	if maybe() {
		s.Status.Operation = &v1alpha1.OperationStatus{Name: operations[r.Intn(len(operations))], Entry: int64(r.Intn(3)),
			State: []v1alpha1.OperationState{v1alpha1.OperationPending, v1alpha1.OperationInProgress, v1alpha1.OperationSucceeded}[r.Intn(3)]}
	}
	return o
}

func drawnInventory(r *rand.Rand) *policyv1alpha1.ServerInventory {
	if r.Intn(3) == 0 {
		return nil
	}
	inv := &policyv1alpha1.ServerInventory{}
	if r.Intn(2) == 0 {
		inv.Report = &policyv1alpha1.ProbeReport{Entry: int64(r.Intn(3)), Unauthenticated: r.Intn(2) == 0}
	}
	if r.Intn(2) == 0 {
		inv.Wipe = &policyv1alpha1.WipeReport{Entry: int64(r.Intn(3)), UpdatedAt: metav1.NewMicroTime(noon),
			State: []policyv1alpha1.WipeState{policyv1alpha1.WipeRunning, policyv1alpha1.WipeVerified, policyv1alpha1.WipeFailed}[r.Intn(3)]}
	}
	return inv
}

func TestTheAxiomsHoldHoweverFactsAreMade(t *testing.T) {
	l := defaultLifecycle(t)
	holds := l.AST().Safety.Axioms
	r := rand.New(rand.NewSource(1))
	seen := map[string]bool{}
	for range 20_000 {
		f := drawn(r).Facts()
		for i, x := range axioms {
			if ok, err := l.Evaluate(holds[i], f); err != nil || !ok {
				t.Fatalf("%s (%s) does not hold (%v): %v", x.Doc, x.Holds, err, f.Record())
			}
		}
		for name, holds := range map[string]bool{"bound": f.Claim.Bound, "binding": f.Claim.Binding, "missing": f.Claim.Missing, "released": f.Claim.Released,
			"parked": f.Server.Parked, "from": f.Server.ParkedFrom == "Error", "running": f.Wipe.Running, "reset": f.Operation.Reset, "ready": f.Boot.Ready, "other": f.BMC.Identity == IdentityOther} {
			if holds {
				seen[name] = true
			}
		}
	}
	if len(seen) != 10 {
		t.Errorf("what was drawn has only %v", seen)
	}
}

func TestEveryAxiomSaysWhy(t *testing.T) {
	for _, x := range append(axioms[:len(axioms):len(axioms)], afterMove...) {
		if x.Doc == "" {
			t.Errorf("%s", x.Holds)
		}
	}
}
