// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// noon is the time of the world of these tests.
var noon = time.Unix(1_800_000_000, 0)

func fleetControl(change ...func(*policyv1alpha1.FleetControlSpec)) *policyv1alpha1.FleetControl {
	c := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
	for _, f := range change {
		f(&c.Spec)
	}
	return c
}

func frozen(name string, change ...func(*policyv1alpha1.Freeze)) func(*policyv1alpha1.FleetControlSpec) {
	return func(s *policyv1alpha1.FleetControlSpec) {
		f := policyv1alpha1.Freeze{Name: name, Level: policyv1alpha1.FreezeAll}
		for _, c := range change {
			c(&f)
		}
		s.Freezes = append(s.Freezes, f)
	}
}

func until(after time.Duration) func(*policyv1alpha1.Freeze) {
	return func(f *policyv1alpha1.Freeze) { f.Until = &metav1.Time{Time: noon.Add(after)} }
}

func where(key, value string) func(*policyv1alpha1.Freeze) {
	return func(f *policyv1alpha1.Freeze) {
		f.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

func budgeted(name string, change ...func(*policyv1alpha1.Budget)) func(*policyv1alpha1.FleetControlSpec) {
	return func(s *policyv1alpha1.FleetControlSpec) {
		b := policyv1alpha1.Budget{Name: name, Action: policyv1alpha1.ActionWipe, Max: ptr.To[int32](1)}
		for _, c := range change {
			c(&b)
		}
		s.Budgets = append(s.Budgets, b)
	}
}

func per(key string) func(*policyv1alpha1.Budget) {
	return func(b *policyv1alpha1.Budget) { b.Per = key }
}

func among(operator metav1.LabelSelectorOperator) func(*policyv1alpha1.Budget) {
	return func(b *policyv1alpha1.Budget) {
		b.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "rack", Operator: operator}}}
	}
}

func breaker(change ...func(*policyv1alpha1.Breaker)) func(*policyv1alpha1.FleetControlSpec) {
	return func(s *policyv1alpha1.FleetControlSpec) {
		s.Breaker = &policyv1alpha1.Breaker{MaxPercent: 10, MinServers: ptr.To[int32](1)}
		for _, c := range change {
			c(s.Breaker)
		}
	}
}

func acknowledged(after time.Duration) func(*policyv1alpha1.Breaker) {
	return func(b *policyv1alpha1.Breaker) { b.AcknowledgedAt = &metav1.MicroTime{Time: noon.Add(after)} }
}

func atLeast(n *int32) func(*policyv1alpha1.Breaker) {
	return func(b *policyv1alpha1.Breaker) { b.MinServers = n }
}

func watching(states ...string) func(*policyv1alpha1.Breaker) {
	return func(b *policyv1alpha1.Breaker) { b.States = states }
}

func TestFleetControl(t *testing.T) {
	const ended = `spec.freezes[0].until: Invalid value: "2027-01-15T08:00:00Z": it is over, and the freeze would hold nothing back; give a later time, or leave it out`
	const unreadable = `spec.freezes[0].selector.matchLabels: Invalid value: "r 1": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', ` +
		`and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`
	const noKey = `spec.budgets[0].per: Invalid value: "a/b/c": it is no key of a label: a valid label key must consist of alphanumeric characters, '-', '_' or '.', ` +
		`and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') ` +
		`with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`
	revision := defaults(t).Revision.Name
	for name, c := range map[string]struct {
		before, after *policyv1alpha1.FleetControl
		want          string
		warnings      []string
	}{
		"one that allows everything passes":                    {after: fleetControl()},
		"a freeze of all passes":                               {after: fleetControl(frozen("all"))},
		"a freeze of a rack passes":                            {after: fleetControl(frozen("r1", where("rack", "r1"), until(time.Hour)))},
		"a freeze of nothing passes and is told":               {after: fleetControl(frozen("all"), frozen("typo", where("rak", "r1"))), warnings: []string{`freeze "typo" covers no server of the fleet at present; are its labels spelled as those of the servers?`}},
		"a freeze that is over is refused":                     {after: fleetControl(frozen("late", until(0))), want: "Invalid\n" + ended},
		"a freeze that is made to be over is refused":          {before: fleetControl(frozen("late")), after: fleetControl(frozen("late", until(0))), want: "Invalid\n" + ended},
		"beside one that has run out another is added":         {before: fleetControl(frozen("late", until(0))), after: fleetControl(frozen("late", until(0)), frozen("new"))},
		"a selector that cannot be read is refused":            {after: fleetControl(frozen("f", where("rack", "r 1"))), want: "Invalid\n" + unreadable},
		"beside one that is stored a freeze is added":          {before: fleetControl(frozen("f", where("rack", "r 1"))), after: fleetControl(frozen("f", where("rack", "r 1")), frozen("new")), warnings: []string{unreadable + "; until that is put right, it covers every server"}},
		"two budgets that mean the same pass":                  {after: fleetControl(budgeted("a"), budgeted("b"))},
		"a budget for each zone passes":                        {after: fleetControl(budgeted("a", per("topology.kubernetes.io/zone")))},
		"a budget for each of what is no label is refused":     {after: fleetControl(budgeted("a", per("a/b/c"))), want: "Invalid\n" + noKey},
		"one that is stored is told":                           {before: fleetControl(budgeted("a", per("a/b/c"))), after: fleetControl(budgeted("a", per("a/b/c")), frozen("new")), warnings: []string{noKey + "; until that is put right, the whole fleet shares the budget"}},
		"a budget whose selector cannot be read is refused":    {after: fleetControl(budgeted("a", among("Like"))), want: "Invalid\nspec.budgets[0].selector.matchExpressions[0].operator: Invalid value: \"Like\": not a valid selector operator"},
		"a breaker passes":                                     {after: fleetControl(breaker(acknowledged(time.Minute), watching("Error")))},
		"a breaker that needs more servers than there are":     {after: fleetControl(breaker(atLeast(ptr.To[int32](3)))), warnings: []string{"spec.breaker.minServers is 3, and there are 2 servers: the breaker never trips"}},
		"a breaker that needs the usual number":                {after: fleetControl(breaker(atLeast(nil))), warnings: []string{"spec.breaker.minServers is 5, and there are 2 servers: the breaker never trips"}},
		"a breaker that needs all there are":                   {after: fleetControl(breaker(atLeast(ptr.To[int32](2))))},
		"a breaker that watches states that there are not":     {after: fleetControl(breaker(watching("Error", "Eror"))), warnings: []string{"spec.breaker.states: policy " + revision + `, which is in force, defines no state "Eror"`}},
		"a breaker that is acknowledged beforehand is refused": {after: fleetControl(breaker(acknowledged(time.Hour))), want: "Invalid\nspec.breaker.acknowledgedAt: Invalid value: \"2027-01-15T09:00:00Z\": it is still to come, and the breaker could not trip until then; write the present time, as metalaw unfreeze --breaker does"},
		"beside one that is stored so a freeze is added":       {before: fleetControl(breaker(acknowledged(time.Hour))), after: fleetControl(breaker(acknowledged(time.Hour)), frozen("new"))},
		"everything that is wrong is said":                     {after: fleetControl(frozen("late", until(0)), budgeted("a", among("Like"))), want: "Invalid\n" + ended + "\nspec.budgets[0].selector.matchExpressions[0].operator: Invalid value: \"Like\": not a valid selector operator"},
		"it may be deleted":                                    {before: fleetControl(frozen("late", until(0)), breaker())},
		"it may not be deleted while a freeze stands": {before: fleetControl(frozen("late", until(0)), frozen("all")),
			want: `Forbidden
spec.freezes[1]: Forbidden: the deletion would end the freeze "all" (All); lift it first: metalaw unfreeze --name all`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, defaults(t), server(labelled("rack", "r1")), server(serverNamed("s2"), labelled("rack", "r2")))
			operation, before, after := admissionv1.Update, client.Object(c.before), client.Object(c.after)
			if c.before == nil {
				operation, before = admissionv1.Create, nil
			}
			if c.after == nil {
				operation, after = admissionv1.Delete, nil
			}
			got, warnings := w.ask(PathValidateFleetControl, user, operation, before, after)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.warnings, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Neither a look-up nor a rule that fails may keep anyone from freezing the fleet.
func TestTheFleetCanAlwaysBeFrozen(t *testing.T) {
	freeze := fleetControl(frozen("r1", where("rack", "r1")), breaker())
	t.Run("though nothing can be looked up", func(t *testing.T) {
		w := newWorld(t, defaults(t))
		w.rewire(interceptor.NewClient(store(t).(client.WithWatch), interceptor.Funcs{Get: failingGet, List: failingList}))
		if got, warnings := w.ask(PathValidateFleetControl, user, admissionv1.Create, nil, freeze); got != "" || len(warnings) > 0 {
			t.Error(got, warnings)
		}
	})
	t.Run("whatever the policy's rules say", func(t *testing.T) {
		for _, rules := range []string{`deny contains {"code": "a", "message": "m"} if to_number(input.user.name) > 1`,
			`deny contains {"code": "no", "message": "never"}`} {
			w := ruled(t, rules)
			if got, _ := w.ask(PathValidateFleetControl, user, admissionv1.Create, nil, freeze); got != "" {
				t.Error(got)
			}
		}
	})
}

func TestANameThatIsNoneIsRefusedWhereItIsNew(t *testing.T) {
	const rule = "a name consists of lower-case letters, digits, '-' and '.', and begins and ends with a letter or digit, like rack-7; say the rest in the reason"
	budget := func(name string) func(*policyv1alpha1.FleetControlSpec) {
		return func(s *policyv1alpha1.FleetControlSpec) {
			s.Budgets = append(s.Budgets, policyv1alpha1.Budget{Name: name, Action: policyv1alpha1.ActionWipe, Max: ptr.To[int32](1)})
		}
	}
	for name, c := range map[string]struct {
		before, after *policyv1alpha1.FleetControl
		want          string
	}{
		"a freeze":          {nil, fleetControl(frozen("Bad Name!")), "Invalid\nspec.freezes[0].name: Invalid value: \"Bad Name!\": " + rule},
		"a budget":          {fleetControl(), fleetControl(budget("Wipes")), "Invalid\nspec.budgets[0].name: Invalid value: \"Wipes\": " + rule},
		"one that is":       {nil, fleetControl(frozen("rack-7.power"), budget("wipes")), ""},
		"beside one stored": {fleetControl(frozen("Bad Name!")), fleetControl(frozen("Bad Name!"), budget("wipes")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, defaults(t))
			op, before := admissionv1.Create, client.Object(nil)
			if c.before != nil {
				op, before = admissionv1.Update, c.before
			}
			if got, _ := w.ask(PathValidateFleetControl, user, op, before, c.after); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
