// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// asked records a write that arrived at a BMC, and judges whether it was to be sent.
func (r *recorder) asked(write emulator.Write) {
	kind := kindOf(write)
	if kind == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.server(write.Machine + "-system-0")
	r.now++
	since := max(w.recorded, w.written)
	w.written = r.now
	var guard *v1alpha1.Server
	var read []string
	for _, one := range w.reads {
		if one.begun <= since {
			continue
		}
		if one.server != nil {
			guard = one.server
		}
		if !slices.Contains(read, one.what) {
			read = append(read, one.what)
		}
	}
	w.reads = nil
	if guard == nil {
		r.fault("%s: %s without a live read of the Server since the record of it and the last write", w.name, kind)
		return
	}
	e, recorded := r.recordOf(w, guard, kind)
	if !recorded {
		r.fault("%s: %s, which the Server does not tell of: request %s, operation %s", w.name, kind,
			text(guard.Status.Lifecycle.Request), text(guard.Status.Operation))
	}
	if kind == "BMC Reset On" && guard.Status.State == v1alpha1.StateReserved {
		if !slices.Contains(lifecycleOf(guard).Marks, policies.MarkDirty) || !slices.Contains(custodyOf(w.kept).Marks, policies.MarkDirty) {
			r.fault("%s: booted for a claim before custody and status say Dirty", w.name)
		}
	}
	if e == nil {
		return
	}
	if ref := guard.Spec.BootConfigurationRef; kind == "BMC Reset On" && ref != nil && ref.Namespace == namespace {
		entered, name := e.first["move stored"], ref.Namespace+"/"+ref.Name
		if r.boots[name] <= entered || r.secrets[name] <= entered {
			r.fault("%s: an agent was booted with what a former entry had prepared", w.name)
		}
	}
	slices.Sort(read)
	if former, known := e.guards[kind]; known {
		read = slices.DeleteFunc(read, func(one string) bool { return !slices.Contains(former, one) })
	}
	e.guards[kind] = read
	r.eventIn(e, kind)
}

// resets are the records that a reset may be made for: requests, and operations.
var resets = map[string]struct {
	request    v1alpha1.PowerAction
	operations []string
}{
	"BMC boot override":          {request: v1alpha1.PowerActionOn},
	"BMC Reset On":               {request: v1alpha1.PowerActionOn, operations: []string{v1alpha1.OperationForceOnServer}},
	"BMC Reset ForceOff":         {request: v1alpha1.PowerActionForceOff, operations: []string{v1alpha1.OperationForceOffServer}},
	"BMC Reset GracefulShutdown": {request: v1alpha1.PowerActionGracefulShutdown},
	"BMC Reset GracefulRestart":  {operations: []string{v1alpha1.OperationGracefulRestartServer}},
	"BMC Reset ForceRestart":     {operations: []string{v1alpha1.OperationHardRestartServer}},
	"BMC Reset PowerCycle":       {operations: []string{v1alpha1.OperationPowerCycleServer}},
}

// recordOf is the entry in which a write to a BMC was recorded, as the guard read it. A setting has no record.
func (r *recorder) recordOf(w *server, guard *v1alpha1.Server, kind string) (*entry, bool) {
	entered := func(number int64) *entry {
		for _, e := range slices.Backward(w.entries) {
			if e.number == number {
				return e
			}
		}
		return nil
	}
	l := lifecycleOf(guard)
	from, isReset := resets[kind]
	if !isReset {
		return entered(l.Entry), !strings.HasPrefix(kind, "BMC Reset")
	}
	if q := l.Request; q != nil && q.Action == from.request && q.ShownAt == nil {
		return entered(q.Entry), true
	}
	if op := guard.Status.Operation; op != nil && op.State == v1alpha1.OperationInProgress && slices.Contains(from.operations, op.Name) {
		return entered(op.Entry), true
	}
	return nil, false
}

// kindOf is what a BMC is asked to change about a system; empty for anything else.
func kindOf(write emulator.Write) string {
	if !strings.Contains(write.Path, "/Systems/") {
		return ""
	}
	var body struct {
		ResetType string
		Boot      struct {
			BootSourceOverrideEnabled, BootSourceOverrideTarget string
			BootOrder                                           []string
		}
		IndicatorLED            string
		LocationIndicatorActive *bool
	}
	if err := json.Unmarshal([]byte(write.Body), &body); err != nil {
		return "BMC " + write.Method + " " + write.Path
	}
	switch {
	case body.ResetType != "":
		return "BMC Reset " + body.ResetType
	case len(body.Boot.BootOrder) > 0:
		return "BMC boot order"
	case body.Boot.BootSourceOverrideEnabled == "Disabled" || body.Boot.BootSourceOverrideTarget == "None":
		return "BMC boot override cleared"
	case body.Boot.BootSourceOverrideEnabled != "" || body.Boot.BootSourceOverrideTarget != "":
		return "BMC boot override"
	case body.IndicatorLED != "" || body.LocationIndicatorActive != nil:
		return "BMC light"
	}
	return "BMC " + write.Method + " " + write.Body
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// event records an event in the entry that a server is in.
func (r *recorder) event(w *server, kind string) {
	if len(w.entries) > 0 {
		r.eventIn(w.entries[len(w.entries)-1], kind)
	}
}

func (r *recorder) eventIn(e *entry, kind string) {
	e.events = append(e.events, fmt.Sprintf("%d %s", r.now, kind))
	if _, known := e.first[kind]; !known {
		e.first[kind] = r.now
	}
}

// fault notes that an order was broken that must never be.
func (r *recorder) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}
