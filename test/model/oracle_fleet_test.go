// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// controlled is a FleetControl with a breaker of one server that counts from second 0 on, tripped at a second; 0 for never.
func controlled(trippedAt int) *policyv1alpha1.FleetControl {
	c := &policyv1alpha1.FleetControl{}
	c.Spec.Breaker = &policyv1alpha1.Breaker{MaxPercent: 1, MinServers: ptr.To[int32](1), AcknowledgedAt: &metav1.MicroTime{Time: at(0)}}
	if trippedAt > 0 {
		c.Status.Trip = &policyv1alpha1.BreakerTrip{At: metav1.MicroTime{Time: at(trippedAt)}, Servers: 1, Of: 1}
	}
	return c
}

func TestTheOracleJudgesTheBreaker(t *testing.T) {
	released := func(s *v1alpha1.Server) { s.Annotations[v1alpha1.ReleasedClaimAnnotation] = "u" }
	off := emulator.Write{Number: 7, Time: at(10), Method: "POST", Path: "/reset", Body: `{"ResetType":"ForceOff"}`, SystemUUID: "uuid"}
	for name, c := range map[string]struct {
		change func(*record)
		want   string
	}{
		"no machine is stopped while it is tripped": {func(r *record) { r.control.put(at(2), controlled(2)) }, "8 freeze"},
		"one that is under way goes on":             {func(r *record) { r.control.put(at(9), controlled(9)) }, ""},
		"none is held back once that is acknowledged": {func(r *record) {
			r.control.put(at(2), controlled(2))
			c := controlled(2)
			c.Spec.Breaker.AcknowledgedAt = &metav1.MicroTime{Time: at(9)}
			r.control.put(at(9), c)
		}, ""},
		"none is held back by one that has not tripped": {func(r *record) { r.control.put(at(2), controlled(0)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := told(claimed(v1alpha1.StateReleased, released))
			c.change(r)
			r.judgeWrite("m", off, []emulator.Write{off})
			if got := rules(r); got != c.want {
				t.Errorf("broken %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheOracleKnowsWhenABreakerHasToTrip(t *testing.T) {
	entered := func(state v1alpha1.ServerState, second int) *v1alpha1.Server {
		return claimed(state, func(s *v1alpha1.Server) {
			s.Status.Lifecycle = &v1alpha1.LifecycleStatus{EnteredAt: metav1.MicroTime{Time: at(second)}}
		})
	}
	for name, c := range map[string]struct {
		server    *v1alpha1.Server
		control   *policyv1alpha1.FleetControl
		calm, now int
		want      string
	}{
		"a wipe that nobody notices":   {entered("Cleanup", 2), controlled(0), 1, 12, "8 breaker"},
		"one that it tripped at":       {entered("Cleanup", 2), controlled(3), 1, 12, ""},
		"one that has only just begun": {entered("Cleanup", 2), controlled(0), 1, 5, ""},
		"one before it was set":        {entered("Cleanup", -1), controlled(0), 1, 12, ""},
		"another state":                {entered("Available", 2), controlled(0), 1, 12, ""},
		"while no manager ran":         {entered("Cleanup", 2), controlled(0), 9, 12, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := told(claimed(v1alpha1.StateReserved, nil))
			r.control.put(at(1), c.control)
			put(r.servers, c.server.Name, at(2), c.server)
			r.judgeBreaker(at(c.calm), at(c.now))
			if got := rules(r); got != c.want {
				t.Errorf("broken %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheOracleJudgesWhoseHandsAMachineIsIn(t *testing.T) {
	inService := func(s *v1alpha1.Server) { s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Name: "m"} }
	leftAlone := func(s *v1alpha1.Server) { s.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationIgnore }
	free := func(changes ...func(*v1alpha1.Server)) *v1alpha1.Server {
		return claimed(v1alpha1.StateAvailable, func(s *v1alpha1.Server) {
			s.Spec.ServerClaimRef = nil
			for _, change := range changes {
				change(s)
			}
		})
	}
	stranger := func(s *v1alpha1.Server) { s.Name, s.UID, s.Spec.SystemUUID = "m-system-1", "other", "stranger" }
	for name, c := range map[string]struct {
		was, is *v1alpha1.Server
		change  func(*record)
		want    string
	}{
		"one in maintenance is given to nobody":          {free(inService), claimed("Reserved", inService), nil, "6 hands off"},
		"one that was in maintenance is":                 {free(), claimed("Reserved", nil), nil, ""},
		"one that names no maintenance is not sent":      {claimed("Reserved", nil), claimed("Maintenance", nil), nil, "nobody is sent to maintenance unasked"},
		"one that names one is":                          {claimed("Reserved", inService), claimed("Maintenance", inService), nil, ""},
		"one that is left alone stays so":                {free(leftAlone), free(), nil, "6 hands off"},
		"until somebody ends that":                       {free(leftAlone), free(), func(r *record) { r.lifted[serverOf("m")] = at(9) }, ""},
		"a new system in the place of another waits":     {free(), free(stranger), nil, "7 a new system waits"},
		"and is managed once it is accepted":             {free(), free(stranger), func(r *record) { r.accepted["stranger"] = true }, ""},
		"one whose former Server is gone is not another": {free(), free(func(s *v1alpha1.Server) { s.UID = "anew" }), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := told(c.was)
			if c.change != nil {
				c.change(r)
			}
			r.judgeHands(at(10), c.is)
			if got := rules(r); got != c.want {
				t.Errorf("broken %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheOracleJudgesWritesByTheSystemThatAnswers(t *testing.T) {
	led := emulator.Write{Number: 7, Time: at(10), Method: "PATCH", Path: "/system", Body: `{"IndicatorLED":"Lit"}`, SystemUUID: "stranger"}
	accepted := func(state v1alpha1.ServerState) *v1alpha1.Server {
		return claimed(state, func(s *v1alpha1.Server) { s.Name, s.UID, s.Spec.SystemUUID = "m-system-1", "other", "stranger" })
	}
	for name, c := range map[string]struct {
		own, other *v1alpha1.Server
		want       string
	}{
		"one that no Server stands for is not written to": {claimed("Reserved", nil), nil, "7 identity first"},
		"one that was accepted is":                        {claimed("Parked", nil), accepted("Discovery"), ""},
		"but not against what its own Server says":        {claimed("Reserved", nil), accepted("Parked"), "6 hands off"},
		"nor while that is in maintenance, to begin with": {claimed("Reserved", nil), accepted("Maintenance"), "6 hands off"},
	} {
		t.Run(name, func(t *testing.T) {
			r := told(c.own)
			put(r.answering, "m", at(1), "stranger")
			if c.other != nil {
				put(r.servers, c.other.Name, at(2), c.other)
			}
			r.judgeWrite("m", led, []emulator.Write{led})
			if got := rules(r); got != c.want {
				t.Errorf("broken %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheOracleJudgesAMachineThatIsHandedToAMaintenance(t *testing.T) {
	off := emulator.Write{Number: 7, Time: at(10), Method: "POST", Path: "/reset", Body: `{"ResetType":"ForceOff"}`, SystemUUID: "uuid"}
	named := func(s *v1alpha1.Server) {
		s.Annotations[v1alpha1.ReleasedClaimAnnotation] = "u"
		s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Name: "m"}
	}
	for name, c := range map[string]struct {
		was, is v1alpha1.ServerState
		since   int
		want    string
	}{
		"it is not switched off in Maintenance":               {"Reserved", "Maintenance", 2, "6 hands off"},
		"nor before it gets there, to be wiped":               {"Released", "Cleanup", 11, "6 hands off"},
		"a wipe that was under way is not cut off in between": {"Released", "Cleanup", 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := told(claimed(c.was, named))
			put(r.servers, serverOf("m"), at(c.since), claimed(c.is, named))
			r.judgeWrite("m", off, []emulator.Write{off})
			if got := rules(r); got != c.want {
				t.Errorf("broken %q, want %q", got, c.want)
			}
		})
	}
}

// work is a maintenance of machine m that was made at second 1 and that its server names from second 2 on.
func work(r *record, change ...func(*v1alpha1.ServerMaintenance)) {
	m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "work", UID: "w", CreationTimestamp: metav1.NewTime(at(1))}}
	m.Spec.ServerRef.Name = serverOf("m")
	for _, c := range change {
		c(m)
	}
	put(r.maintenances, m.UID, at(1), m)
	s, _ := r.servers[serverOf("m")].last()
	s = s.DeepCopy()
	s.Annotations[v1alpha1.MaintenanceUIDAnnotation], s.Spec.ServerMaintenanceRef = "w", &v1alpha1.ObjectReference{Name: "work"}
	put(r.servers, s.Name, at(2), s)
}

func TestTheOracleJudgesAMaintenanceThatHasAMachine(t *testing.T) {
	enforced := func(m *v1alpha1.ServerMaintenance) { m.Spec.Policy = v1alpha1.ServerMaintenancePolicyEnforced }
	template := func(m *v1alpha1.ServerMaintenance) {
		m.Spec.ServerBootConfigurationTemplate = &v1alpha1.ServerBootConfigurationTemplate{}
	}
	approved := func(r *record) {
		c, _ := r.claims["a-1"].last()
		c = c.DeepCopy()
		c.Labels = map[string]string{v1alpha1.MaintenanceApprovedLabel: ""}
		put(r.claims, "a-1", at(3), c)
	}
	off, lit := `{"ResetType":"ForceOff"}`, `{"IndicatorLED":"Lit"}`
	for name, c := range map[string]struct {
		state  v1alpha1.ServerState
		change func(*record)
		body   string
		want   string
	}{
		"it stops no machine whose holder did not agree": {"Maintenance", func(r *record) { work(r) }, off, "no reboot without consent"},
		"but shows a light":                    {"Maintenance", func(r *record) { work(r) }, lit, ""},
		"one that is enforced does":            {"Maintenance", func(r *record) { work(r, enforced) }, off, ""},
		"but not to boot something":            {"Maintenance", func(r *record) { work(r, enforced, template) }, off, "no reboot without consent"},
		"so does one that was approved":        {"Maintenance", func(r *record) { work(r, template); approved(r) }, off, ""},
		"another program's does nothing":       {"Maintenance", nil, lit, "6 hands off"},
		"what is out of service is left alone": {"Decommissioned", nil, lit, "6 hands off"},
	} {
		t.Run(name, func(t *testing.T) {
			r := told(claimed(c.state, nil))
			if c.change != nil {
				c.change(r)
			}
			w := emulator.Write{Number: 7, Time: at(10), Method: "POST", Path: "/reset", Body: c.body, SystemUUID: "uuid"}
			r.judgeWrite("m", w, []emulator.Write{w})
			if got := rules(r); got != c.want {
				t.Errorf("broken %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheOracleJudgesWhoHasAServer(t *testing.T) {
	has := func(name string, uid string, change ...func(*v1alpha1.ServerMaintenance)) *v1alpha1.ServerMaintenance {
		m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
		m.Spec.ServerRef.Name, m.Status.State = serverOf("m"), v1alpha1.ServerMaintenanceStateInMaintenance
		for _, c := range change {
			c(m)
		}
		return m
	}
	deleted := func(m *v1alpha1.ServerMaintenance) { m.DeletionTimestamp = &metav1.Time{Time: at(9)} }
	elsewhere := func(m *v1alpha1.ServerMaintenance) { m.Spec.ServerRef.Name = "other" }
	for name, c := range map[string]struct {
		first *v1alpha1.ServerMaintenance
		want  string
	}{
		"one at a time":                  {has("a", "1"), "one maintenance at a time"},
		"one that ends may be the first": {has("a", "1", deleted), ""},
		"another server has its own":     {has("a", "1", elsewhere), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := told(claimed("Maintenance", nil))
			put(r.maintenances, c.first.UID, at(1), c.first)
			r.judgeHolders(at(10), has("b", "2"))
			if got := rules(r); got != c.want {
				t.Errorf("broken %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheOracleJudgesMarksInMaintenance(t *testing.T) {
	marked := func(state v1alpha1.ServerState, marks ...string) *v1alpha1.Server {
		return claimed(state, func(s *v1alpha1.Server) { s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Marks: marks} })
	}
	free := claimed("Decommissioned", func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil })
	for name, c := range map[string]struct {
		was, is *v1alpha1.Server
		want    string
	}{
		"nothing there is proven clean":       {marked("Maintenance", "Dirty"), marked("Initial"), "nothing in maintenance is clean"},
		"what is Dirty stays so":              {marked("Maintenance", "Dirty"), marked("Initial", "Dirty"), ""},
		"a wipe proves it":                    {marked("Cleanup", "Dirty"), marked("Available"), ""},
		"what is out of service is not given": {free, claimed("Decommissioned", nil), "6 hands off"},
	} {
		t.Run(name, func(t *testing.T) {
			r := told(c.was)
			r.judgeDirt(at(10), c.was, c.is)
			if got := rules(r); got != c.want {
				t.Errorf("broken %q, want %q", got, c.want)
			}
		})
	}
}
