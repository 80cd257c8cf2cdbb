// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/redfish"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

var steps = map[Step]string{Wait: "waits", Refer: "refers", Create: "creates", Update: "updates", HandOver: "hands over", Replace: "replaces"}

func text(out Output) string {
	if out.Step == Wait && out.Progress.Phase == loop.Failed {
		return "fails: " + out.Progress.Reason
	}
	return steps[out.Step]
}

// server is the server a in entry 7.
func server() *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid-a"}}
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7}
	return s
}

func TestWhichBootConfigurationAClaimGets(t *testing.T) {
	claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}}
	claim.Spec.Image = "os"
	stands := func(change ...func(*v1alpha1.ServerBootConfiguration)) *v1alpha1.ServerBootConfiguration {
		b := ForOwner(OwnedInput{Server: server(), Owner: OfClaim(server(), claim, bundle.IgnitionAlways)}).Boot
		b.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(claim, v1alpha1.GroupVersion.WithKind("ServerClaim"))}
		b.Generation, b.Status.State = 1, v1alpha1.ServerBootConfigurationStateReady
		for _, c := range change {
			c(b)
		}
		return b
	}
	now := metav1.NewTime(noon)
	ownerless := func(b *v1alpha1.ServerBootConfiguration) { b.OwnerReferences = nil }
	foreign := func(b *v1alpha1.ServerBootConfiguration) { b.Annotations = nil }
	going := func(b *v1alpha1.ServerBootConfiguration) { b.DeletionTimestamp = &now }
	older := func(b *v1alpha1.ServerBootConfiguration) { b.Spec.Image = "older" }
	changed := func(b *v1alpha1.ServerBootConfiguration) { b.Generation = 2 }
	untilSign := func(b *v1alpha1.ServerBootConfiguration) {
		b.Annotations[v1alpha1.BootIgnitionAnnotation] = v1alpha1.IgnitionUntilFirstSign
	}
	ignored := func(b *v1alpha1.ServerBootConfiguration) {
		b.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationIgnore
	}
	for name, c := range map[string]struct {
		found   *v1alpha1.ServerBootConfiguration
		updated bool
		want    string
	}{
		"none is there":                            {nil, false, "creates"},
		"it stands as the claim asks":              {stands(), false, "refers"},
		"the bundle serves it always again":        {stands(untilSign), false, "updates"},
		"one that is left alone keeps its mark":    {stands(untilSign, ignored), false, "refers"},
		"a written mark needs no handing over":     {stands(untilSign), true, "refers"},
		"another owns the name":                    {stands(ownerless, foreign), false, "fails: " + v1alpha1.ReasonBootConfigurationTaken},
		"one of our making lost its owner":         {stands(ownerless), false, "replaces"},
		"it lost its owner and is for another":     {stands(ownerless, older), false, "replaces"},
		"it lost its owner and is left alone":      {stands(ownerless, ignored), false, "fails: " + v1alpha1.ReasonBootConfigurationTaken},
		"it lost its owner and is on its way out":  {stands(ownerless, going), false, "waits"},
		"a former one is on its way out":           {stands(going), false, "waits"},
		"the claim asks for another image":         {stands(older), false, "updates"},
		"the Ready speaks of the former image":     {stands(changed), false, "hands over"},
		"what was just written is handed over":     {stands(older, changed), true, "hands over"},
		"one that is left alone is not changed":    {stands(older, ignored), false, "waits"},
		"one that is left alone and stands serves": {stands(ignored), false, "refers"},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.found.DeepCopy()
			if got := text(ForOwner(OwnedInput{Server: server(), Owner: OfClaim(server(), claim, bundle.IgnitionAlways), Found: c.found, Updated: c.updated})); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if !reflect.DeepEqual(before, c.found) {
				t.Error("the input was changed")
			}
		})
	}
}

func TestABootSaysForWhichGenerationAndWhenItsSpecWasWritten(t *testing.T) {
	claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web", Generation: 3}}
	in := OwnedInput{Server: server(), Owner: OfClaim(server(), claim, bundle.IgnitionAlways), Now: noon.Add(time.Hour)}
	made := ForOwner(in).Boot
	if got := made.Annotations[v1alpha1.BootOwnerGenerationAnnotation]; got != "3" {
		t.Errorf("made for generation %q", got)
	}
	made.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(claim, v1alpha1.GroupVersion.WithKind("ServerClaim"))}
	made.Generation, made.Spec.Image = 1, "older"
	claim.Generation, in.Found = 4, made
	if out := ForOwner(in); out.Step != Update || out.Boot.Annotations[v1alpha1.BootOwnerGenerationAnnotation] != "4" {
		t.Errorf("%s, annotations %v", text(out), out.Boot.Annotations)
	}
	made.Generation, made.Spec.Image = 3, claim.Spec.Image
	made.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSpecHandedOver, Status: metav1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(noon), ObservedGeneration: 2}}
	out := ForOwner(in)
	handed := meta.FindStatusCondition(out.Boot.Status.Conditions, v1alpha1.ConditionSpecHandedOver)
	if out.Step != HandOver || handed.ObservedGeneration != 3 || !handed.LastTransitionTime.Time.Equal(in.Now) {
		t.Errorf("%s, %+v", text(out), handed)
	}
}

func TestABootSaysHowLongItsIgnitionIsServed(t *testing.T) {
	claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}}
	owner := OfClaim(server(), claim, bundle.IgnitionUntilFirstSign)
	made := ForOwner(OwnedInput{Server: server(), Owner: owner}).Boot
	if got := made.Annotations[v1alpha1.BootIgnitionAnnotation]; got != v1alpha1.IgnitionUntilFirstSign {
		t.Errorf("made with %q", got)
	}
	made.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(claim, v1alpha1.GroupVersion.WithKind("ServerClaim"))}
	out := ForOwner(OwnedInput{Server: server(), Owner: OfClaim(server(), claim, bundle.IgnitionAlways), Found: made})
	if _, has := out.Boot.Annotations[v1alpha1.BootIgnitionAnnotation]; has || out.Step != Update || out.Boot.Annotations[v1alpha1.BootPurposeAnnotation] == "" {
		t.Errorf("%s, annotations %v", text(out), out.Boot.Annotations)
	}
}

func TestTheBootConfigurationOfAnAgentIsNewForEachEntry(t *testing.T) {
	wipe := Wipe(server(), "metalaw-system", "wipe")
	written := func(change ...func(*v1alpha1.ServerBootConfiguration)) *v1alpha1.ServerBootConfiguration {
		b := ForAgent(AgentInput{Agent: wipe, Server: server()}).Boot
		b.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(server(), v1alpha1.GroupVersion.WithKind("Server"))}
		for _, c := range change {
			c(b)
		}
		return b
	}
	asProbe := func(b *v1alpha1.ServerBootConfiguration) {
		b.Annotations[v1alpha1.BootPurposeAnnotation] = v1alpha1.BootPurposeProbe
	}
	for name, c := range map[string]struct {
		found *v1alpha1.ServerBootConfiguration
		ours  bool
		want  string
	}{
		"none is there":                  {nil, false, "creates"},
		"it is of this entry":            {written(), true, "refers"},
		"it is of a former entry":        {written(), false, "replaces"},
		"it is for another purpose":      {written(asProbe), true, "replaces"},
		"another object owns the name":   {written(func(b *v1alpha1.ServerBootConfiguration) { b.OwnerReferences = nil }), false, "fails: " + v1alpha1.ReasonBootConfigurationTaken},
		"it has another server as owner": {written(func(b *v1alpha1.ServerBootConfiguration) { b.OwnerReferences[0].UID = "uid-b" }), false, "fails: " + v1alpha1.ReasonBootConfigurationTaken},
	} {
		t.Run(name, func(t *testing.T) {
			if got := text(ForAgent(AgentInput{Agent: wipe, Server: server(), Found: c.found, Ours: c.ours})); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhenAnOverrideIsCleared(t *testing.T) {
	ago := func(d time.Duration) power.Job { return power.Job{Known: true, EndedAt: noon.Add(-d)} }
	for name, c := range map[string]struct {
		in   OverrideInput
		want OverrideOutput
	}{
		"there is none":                           {OverrideInput{}, OverrideOutput{}},
		"the machine may be in its self test":     {OverrideInput{Set: true, Since: noon.Add(-time.Minute)}, OverrideOutput{Again: 19 * time.Minute}},
		"one that is seen is waited for longer":   {OverrideInput{Set: true, Since: noon.Add(-time.Minute), Testing: true}, OverrideOutput{Again: 39 * time.Minute}},
		"the machine reported":                    {OverrideInput{Set: true, Since: noon, Reported: true}, OverrideOutput{Clear: true}},
		"its operating system started":            {OverrideInput{Set: true, Since: noon, Started: true}, OverrideOutput{Clear: true}},
		"it had its time":                         {OverrideInput{Set: true, Since: noon.Add(-time.Hour)}, OverrideOutput{Clear: true}},
		"a call is under way":                     {OverrideInput{Set: true, Reported: true, Job: power.Job{Known: true, Running: true}}, OverrideOutput{}},
		"it was cleared a moment ago":             {OverrideInput{Set: true, Reported: true, Job: ago(10 * time.Second)}, OverrideOutput{Again: 50 * time.Second}},
		"it was cleared and stays":                {OverrideInput{Set: true, Reported: true, Job: ago(time.Minute)}, OverrideOutput{Clear: true}},
		"a call that failed is told and repeated": {OverrideInput{Set: true, Reported: true, Job: power.Job{Known: true, EndedAt: noon.Add(-time.Minute), Err: errors.New("refused")}}, OverrideOutput{Clear: true, Tell: true}},
		"a call that was withheld is made soon":   {OverrideInput{Set: true, Reported: true, Job: power.Job{Known: true, EndedAt: noon, Err: &redfish.NotAskedError{Err: errors.New("frozen")}}}, OverrideOutput{Again: 2 * time.Second, Tell: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Now, c.in.FirstWord = noon, 20*time.Minute
			if got := Override(c.in); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestAWatchTellsABootFromTheOneBefore(t *testing.T) {
	running := redfish.BootProgress{LastState: "OSRunning"}
	w, started, testing := Watch{}.Look("On/1", running)
	if started || testing {
		t.Error("what shows at first may be of the boot before")
	}
	if _, started, _ = w.Look("On/1", running); started {
		t.Error("it shows the boot before still")
	}
}
