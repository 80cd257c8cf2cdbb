// SPDX-License-Identifier: Apache-2.0

package power

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// reserved is a machine that shows a power state, in entry 7, of which nothing was asked.
func reserved(shows redfish.PowerState, change ...func(*Input)) Input {
	in := Input{Asked: Asked{Entry: 7, EnteredAt: noon.Add(-time.Hour), Grace: time.Minute, Now: noon},
		Reading: Reading{Tried: true, Same: true, Fresh: true, Power: shows, Begun: noon}, Poll: 5 * time.Second}
	for _, c := range change {
		c(&in)
	}
	return in
}

func wantsOn(in *Input) { in.Want.On = true }
func stale(in *Input)   { in.Reading.Fresh = false }
func wantsOff(graceful time.Duration, force bool) func(*Input) {
	return func(in *Input) { in.Want.Graceful, in.Want.Force = graceful, force }
}

// asked is a request of a while ago in this entry.
func asked(action v1alpha1.PowerAction, ago time.Duration, change ...func(*v1alpha1.PowerRequest)) func(*Input) {
	return func(in *Input) {
		in.RecordedAt = noon.Add(-ago)
		in.Request = &v1alpha1.PowerRequest{Action: action, AskedAt: metav1.NewMicroTime(in.RecordedAt), Entry: 7, Attempts: 1}
		for _, c := range change {
			c(in.Request)
		}
	}
}

func shown(r *v1alpha1.PowerRequest)         { r.ShownAt = &r.AskedAt }
func ofFormerEntry(r *v1alpha1.PowerRequest) { r.Entry = 6 }

func accepted(in *Input) { in.Job = Job{Known: true} }
func failed(err error) func(*Input) {
	return func(in *Input) { in.Job = Job{Known: true, Err: err, Words: err.Error()} }
}

// text is what is decided, in one line.
func text(out Output) string {
	s := [...]string{"holds", "waits", "fails"}[out.Progress.Phase]
	switch {
	case out.Ask != "" && out.Repeats:
		s = fmt.Sprintf("repeats %s %v", out.Ask, out.Actions)
	case out.Ask != "":
		s = fmt.Sprintf("asks %s %v", out.Ask, out.Actions)
	case out.Progress.Again > 0:
		s += " " + out.Progress.Again.String()
	}
	if out.Refresh {
		s += ", reads"
	}
	if out.Polls {
		s += ", polls"
	}
	return s
}

func TestWhichRequestIsDue(t *testing.T) {
	busy := &redfish.ResponseError{Method: "POST", Status: 503}
	refused := &redfish.ResponseError{Method: "POST", Status: 400}
	const grace = 5 * time.Minute
	for name, c := range map[string]struct {
		in   Input
		want string
	}{
		"a machine that is on as wanted is left alone":        {reserved("On", wantsOn), "holds"},
		"a machine that is off is switched on":                {reserved("Off", wantsOn), "asks On [power-on]"},
		"a boot that wipes is counted as a wipe too":          {reserved("Off", wantsOn, func(in *Input) { in.Want.Boot.Wipes = true }), "asks On [wipe power-on]"},
		"a boot that is not prepared is waited for":           {reserved("Off", wantsOn, func(in *Input) { in.Want.Boot.Waits = "it" }), "waits"},
		"a machine that cannot be booted from it stays off":   {reserved("Off", wantsOn, func(in *Input) { in.Want.Boot.Refused = "so" }), "fails 1m0s"},
		"a busy BMC is waited for":                            {reserved("Off", wantsOn, func(in *Input) { in.Busy = true }), "waits"},
		"an old reading asks for nothing":                     {reserved("Off", wantsOn, stale), "waits, reads"},
		"unknown power is not Off":                            {reserved("Unknown", wantsOn), "waits 5s, polls"},
		"power that is on its way is not Off":                 {reserved("PoweringOn", wantsOff(0, true)), "waits 5s, polls"},
		"another machine is asked for nothing":                {reserved("Off", wantsOn, func(in *Input) { in.Reading.Same = false }), "waits 5s, polls"},
		"a BMC that is silent is asked for nothing":           {reserved("Off", wantsOn, func(in *Input) { in.Reading.Failure = "down" }), "waits"},
		"a BMC that cannot be reached is not read":            {reserved("Off", wantsOn, stale, func(in *Input) { in.Reading.Lacks = "no Secret" }), "waits"},
		"an accepted power-on has its grace":                  {reserved("Off", wantsOn, asked("On", 58*time.Second), accepted), "waits 2s, polls"},
		"one that never showed is asked for again":            {reserved("Off", wantsOn, asked("On", 61*time.Second), accepted), "asks On [power-on]"},
		"one that another process recorded has it too":        {reserved("Off", wantsOn, asked("On", 30*time.Second)), "waits 5s, polls"},
		"a refused power-on rests":                            {reserved("Off", wantsOn, asked("On", 10*time.Second), failed(refused)), "fails 1m20s"},
		"a power-on of a former entry lets a cut wait":        {reserved("Off", asked("On", 10*time.Second, ofFormerEntry)), "waits 5s, polls"},
		"a cut that may still show lets a power-on wait":      {reserved("On", wantsOn, asked("ForceOff", 10*time.Second)), "waits 5s, polls"},
		"a machine that is off as wanted is left alone":       {reserved("Off", wantsOff(grace, true)), "holds"},
		"without a grace the power is cut":                    {reserved("On", wantsOff(0, true)), "asks ForceOff [forced power-off]"},
		"with one the operating system is asked":              {reserved("On", wantsOff(grace, true)), "asks GracefulShutdown [shutdown]"},
		"it is given its time":                                {reserved("On", wantsOff(grace, true), asked("GracefulShutdown", time.Minute), accepted), "waits 5s, polls"},
		"then the power is cut":                               {reserved("On", wantsOff(grace, true), asked("GracefulShutdown", grace), accepted), "asks ForceOff [forced power-off]"},
		"unless the rule does not allow force":                {reserved("On", wantsOff(grace, false), asked("GracefulShutdown", grace), accepted), "fails 1m0s"},
		"a shutdown that may not have been heard is repeated": {reserved("On", wantsOff(grace, true), asked("GracefulShutdown", time.Minute)), "repeats GracefulShutdown [shutdown]"},
		"a BMC that cannot ask is not waited for":             {reserved("On", wantsOff(grace, true), asked("GracefulShutdown", time.Second), failed(refused)), "asks ForceOff [forced power-off]"},
		"a BMC that failed is asked again after a while":      {reserved("On", wantsOff(grace, true), asked("GracefulShutdown", time.Minute), failed(busy)), "repeats GracefulShutdown [shutdown]"},
		"and not before":                                      {reserved("On", wantsOff(grace, true), asked("GracefulShutdown", 50*time.Second), failed(busy)), "fails 5s, polls"},
		"what was withheld is asked for soon":                 {reserved("On", wantsOff(grace, true), asked("GracefulShutdown", time.Second), failed(&redfish.NotAskedError{Err: errors.New("frozen")})), "fails 1s"},
		"a shutdown of a former entry is no reason to cut":    {reserved("On", wantsOff(grace, true), asked("GracefulShutdown", time.Hour, ofFormerEntry)), "asks GracefulShutdown [shutdown]"},
		"nor is one that came true":                           {reserved("On", wantsOff(grace, true), asked("GracefulShutdown", time.Hour, shown)), "asks GracefulShutdown [shutdown]"},
		"a cut that never showed is repeated as a cut":        {reserved("On", wantsOff(grace, true), asked("ForceOff", time.Hour), accepted), "asks ForceOff [forced power-off]"},
		"after a cut that came true long ago it is asked":     {reserved("On", wantsOff(grace, true), asked("ForceOff", time.Hour, shown), accepted), "asks GracefulShutdown [shutdown]"},
		"a machine that comes back is left alone for a while": {reserved("On", wantsOff(grace, true), asked("ForceOff", 30*time.Second, shown), accepted), "waits 5s, polls"},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.in.Request.DeepCopy()
			if got := text(Decide(c.in)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := text(Decide(c.in)); got != c.want || !reflect.DeepEqual(before, c.in.Request) {
				t.Errorf("a second call gives %q", got)
			}
		})
	}
}

func TestWhatIsRecordedOfARequest(t *testing.T) {
	refused := &redfish.ResponseError{Method: "POST", Status: 400}
	twice := func(r *v1alpha1.PowerRequest) { r.Refusal, r.Refusals = refused.Error(), 2 }
	for name, c := range map[string]struct {
		in                 Input
		attempts, refusals int32
		gone               bool
	}{
		"a first power-on":                          {in: reserved("Off", wantsOn), attempts: 1},
		"a power-on in vain is counted":             {in: reserved("Off", wantsOn, asked("On", time.Hour), accepted), attempts: 2},
		"one that came true is not":                 {in: reserved("Off", wantsOn, asked("On", time.Hour, shown), accepted), attempts: 1},
		"one of a former entry is not":              {in: reserved("Off", wantsOn, asked("On", time.Hour, ofFormerEntry), accepted), attempts: 1},
		"one that is not wanted any more is not":    {in: reserved("Off", asked("On", time.Hour), accepted), attempts: 0},
		"a refusal is counted":                      {in: reserved("Off", wantsOn, asked("On", time.Second), failed(refused)), attempts: 1, refusals: 1},
		"a third equal refusal is the third":        {in: reserved("Off", wantsOn, asked("On", time.Second, twice), failed(refused)), attempts: 1, refusals: 3},
		"the count goes over to the next request":   {in: reserved("Off", wantsOn, asked("On", time.Hour, twice), failed(refused)), attempts: 2, refusals: 3},
		"a cut that is not wanted any more is gone": {in: reserved("On", wantsOn, asked("ForceOff", time.Hour), accepted), gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(c.in).Request
			if (got == nil) != c.gone {
				t.Fatalf("got %+v", got)
			}
			if got != nil && (got.Attempts != c.attempts || got.Refusals != c.refusals) {
				t.Errorf("%d attempts, %d refusals; want %d and %d", got.Attempts, got.Refusals, c.attempts, c.refusals)
			}
		})
	}
}

func TestRefusalsThatDifferAreCountedAnew(t *testing.T) {
	for name, c := range map[string]struct {
		says []string
		want int32
	}{
		"the same":                       {[]string{"no", "no", "no"}, 3},
		"the same with other numbers":    {[]string{"no (job 17)", "no (job 18)"}, 2},
		"another one":                    {[]string{"no", "no", "never"}, 1},
		"the first again":                {[]string{"no", "never", "no"}, 1},
		"none in between that is stored": {[]string{"no"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.PowerRequest{}
			for _, said := range c.says {
				refuse(r, said, metav1.NewMicroTime(noon))
			}
			if r.Refusals != c.want || r.Refusal != c.says[len(c.says)-1] {
				t.Errorf("%+v", r)
			}
		})
	}
}
