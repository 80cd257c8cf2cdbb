// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/guest"
)

// at is a moment, in seconds.
func at(second int) time.Time { return time.Unix(1_700_000_000+int64(second), 0) }

func TestAHistoryKnowsWhatHeldThroughoutATime(t *testing.T) {
	var h history[string]
	h.put(at(10), "a")
	h.put(at(20), "b")
	h.end(at(30))
	is := func(want string) func(string) bool { return func(got string) bool { return got == want } }
	for name, c := range map[string]struct {
		from, to         int
		what             string
		throughout, ever bool
	}{
		"in one version":               {12, 18, "a", true, true},
		"from the moment of a version": {10, 19, "a", true, true},
		"not before it began":          {5, 15, "a", false, true},
		"not when it was replaced":     {15, 25, "a", false, true},
		"in the next version alone":    {20, 29, "b", true, true},
		"not when it was gone":         {25, 35, "b", false, true},
		"never when it was gone":       {31, 35, "b", false, false},
		"never after it was replaced":  {22, 35, "a", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := h.throughout(at(c.from), at(c.to), is(c.what)); got != c.throughout {
				t.Errorf("throughout: %t", got)
			}
			if got := h.ever(at(c.from), at(c.to), is(c.what)); got != c.ever {
				t.Errorf("ever: %t", got)
			}
		})
	}
}

func TestASeedIsAPlan(t *testing.T) {
	draw := func() string {
		return rapid.Custom(func(t *rapid.T) plan { return drawPlan(t, 50) }).Example(7).String()
	}
	if one, other := draw(), draw(); one != other || one == "" {
		t.Errorf("the same seed gave\n%s\nand\n%s", one, other)
	}
}

// claimed is a server in a state, held by the claim of tenant a-1.
func claimed(state v1alpha1.ServerState, change func(*v1alpha1.Server)) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: serverOf("m"), UID: "s", Annotations: map[string]string{v1alpha1.ClaimUIDAnnotation: "u"}}}
	s.Spec.SystemUUID, s.Spec.ServerClaimRef = "uuid", &v1alpha1.ObjectReference{Namespace: tenants, Name: "a"}
	s.Status.State = state
	if change != nil {
		change(s)
	}
	return s
}

// told is a record of one machine that claim a holds since second 0.
func told(s *v1alpha1.Server) *record {
	r := newRecord()
	r.begun = at(0)
	put(r.servers, s.Name, at(0), s)
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: "a", UID: "u"}}
	c.Spec.Image, c.Spec.Power = image("a-1", 1), v1alpha1.PowerOn
	c.Spec.ServerRef = &corev1.LocalObjectReference{Name: s.Name}
	put(r.claims, "a-1", at(0), c)
	r.tenants["u"] = "a-1"
	put(r.power, "m", at(0), emulator.PowerOn)
	put(r.answering, "m", at(0), "uuid")
	return r
}

func TestTheOracleJudgesWrites(t *testing.T) {
	write := func(body string) emulator.Write {
		return emulator.Write{Number: 7, Time: at(10), Method: "POST", Path: "/reset", Body: body, SystemUUID: "uuid", Power: emulator.PowerOn}
	}
	released := func(s *v1alpha1.Server) { s.Annotations[v1alpha1.ReleasedClaimAnnotation] = "u" }
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		write  emulator.Write
		change func(*record)
		want   string
	}{
		"a holder's machine is not switched off": {claimed("Reserved", nil), write(`{"ResetType":"ForceOff"}`), nil, "a holder's machine runs"},
		"but when its claim wanted that a moment ago": {claimed("Reserved", nil), write(`{"ResetType":"ForceOff"}`), func(r *record) {
			c, _ := r.claims["a-1"].last()
			c = c.DeepCopy()
			c.Spec.Power = v1alpha1.PowerOff
			put(r.claims, "a-1", at(9), c)
		}, ""},
		"nor one whose claim is only gone": {claimed("Reserved", nil), write(`{"ResetType":"ForceOff"}`), func(r *record) {
			h := r.claims["a-1"]
			h.end(at(1))
			r.claims["a-1"] = h
		}, "1 absence is not evidence"},
		"a parked one is left alone":     {claimed("Parked", nil), write(`{"IndicatorLED":"Lit"}`), nil, "6 hands off"},
		"a released one is switched off": {claimed("Released", released), write(`{"ResetType":"ForceOff"}`), nil, ""},
		"and not on":                     {claimed("Released", released), write(`{"ResetType":"On"}`), nil, "nobody switches on"},
		"another machine is left alone": {claimed("Reserved", nil), write(`{"IndicatorLED":"Lit"}`), func(r *record) {
			r.answering["m"][0].object = "other"
			r.servers[serverOf("m")][0].object.Spec.SystemUUID = "another"
		}, ""},
		"a running machine is not told what to boot next": {claimed("Reserved", nil), write(`{"Boot":{"BootSourceOverrideEnabled":"Once"}}`), nil,
			"4 what a running machine boots"},
		"its override is cleared": {claimed("Reserved", nil), write(`{"Boot":{"BootSourceOverrideEnabled":"Disabled"}}`), nil, ""},
		"a machine found running is not stopped": {claimed("Discovery", func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil }),
			write(`{"ResetType":"ForceOff"}`), nil, "5 a machine found running"},
	} {
		t.Run(name, func(t *testing.T) {
			r := told(c.server)
			if c.change != nil {
				c.change(r)
			}
			r.judgeWrite("m", c.write, []emulator.Write{c.write})
			if got := rules(r); got != c.want {
				t.Errorf("broken %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheOracleJudgesData(t *testing.T) {
	released := func(s *v1alpha1.Server) {
		s.Annotations[v1alpha1.ReleasedClaimAnnotation], s.Spec.ServerClaimRef = "u", nil
	}
	deleted := func(r *record) {
		c, _ := r.claims["a-1"].last()
		c = c.DeepCopy()
		c.DeletionTimestamp = &metav1.Time{Time: at(1)}
		put(r.claims, "a-1", at(1), c)
	}
	erase := func(r *record) {
		r.judgeErase("m", emulator.Happening{At: at(10), What: emulator.EraseBegun, Drive: "d", Contents: "written by " + image("a-1", 1)})
	}
	boots := func(kind guest.Kind, what, holds string) func(*record) {
		return func(r *record) {
			r.judgeBoot("m", boot{Boot: guest.Boot{Kind: kind, Image: what, At: at(10)}, drives: map[string]string{"d": holds}})
		}
	}
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		change func(*record)
		judge  func(*record)
		want   string
	}{
		"a claim boots":                          {claimed("Reserved", nil), nil, boots(guest.KindImage, image("a-1", 2), "written by "+image("a-1", 1)), ""},
		"a claim never boots on another's data":  {claimed("Reserved", nil), nil, boots(guest.KindImage, image("a-1", 2), "written by "+image("b-1", 1)), "3 nobody gets another's data"},
		"a claim that holds nothing never boots": {claimed("Reserved", nil), nil, boots(guest.KindImage, image("c-1", 2), ""), "a machine boots for its holder only"},
		"a claim's data is not erased":           {claimed("Reserved", nil), nil, erase, "2 never wipe while claimed; 1 absence is not evidence"},
		"a released one's is":                    {claimed("Cleanup", released), deleted, erase, ""},
		"not one's whose claim is only gone": {claimed("Cleanup", func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil }), func(r *record) {
			h := r.claims["a-1"]
			h.end(at(1))
			r.claims["a-1"] = h
		}, erase, "1 absence is not evidence"},
		"a running machine is not wiped by its own reboot": {claimed("Released", released), deleted, boots(guest.KindWipe, "", ""), "4 what a running machine boots"},
	} {
		t.Run(name, func(t *testing.T) {
			r := told(c.server)
			if c.change != nil {
				c.change(r)
			}
			c.judge(r)
			if got := rules(r); got != c.want {
				t.Errorf("broken %q, want %q", got, c.want)
			}
		})
	}
}

func rules(r *record) string {
	text := ""
	for i, b := range r.breaches {
		if i > 0 {
			text += "; "
		}
		text += b.rule
	}
	return text
}
