// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// ruled is the default bundle with other admission rules.
func ruled(t testing.TB, rules string) *world {
	t.Helper()
	return newWorld(t, withFiles(t, map[string]string{
		"admission.rego": "package metalaw.admission\n" + rules, "admission_test.rego": "package metalaw.admission_test\n"}))
}

func TestARuleThatFailsIsNoPermission(t *testing.T) {
	const broken = `deny contains {"code": "a", "message": "m"} if to_number(input.user.name) > 1`
	deleting := func(c *v1alpha1.ServerClaim) { c.DeletionTimestamp = ptr.To(metav1.Unix(0, 0)) }
	finalized := func(all ...string) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) { c.Finalizers = all }
	}
	for name, c := range map[string]struct {
		before, after *v1alpha1.ServerClaim
		passes        bool
	}{
		"a creation is refused":                                   {after: claim()},
		"a change is refused":                                     {before: claim(), after: claim(image("b"))},
		"a change of what is being deleted is refused":            {before: claim(deleting), after: claim(deleting, image("b"))},
		"a deletion passes":                                       {before: claim(), passes: true},
		"an update that takes a finalizer passes":                 {before: claim(finalized("a", "b")), after: claim(finalized("b")), passes: true},
		"an update that exchanges finalizers is refused":          {before: claim(finalized("a", "b")), after: claim(finalized("c"))},
		"an update that takes a finalizer and changes is refused": {before: claim(finalized("a")), after: claim(image("b"))},
	} {
		t.Run(name, func(t *testing.T) {
			w := ruled(t, broken)
			var got string
			var warnings []string
			switch {
			case c.before == nil:
				got, warnings = w.ask(PathValidateServerClaim, user, admissionv1.Create, nil, c.after)
			case c.after == nil:
				got, warnings = w.ask(PathValidateServerClaim, user, admissionv1.Delete, c.before, nil)
			default:
				got, warnings = w.ask(PathValidateServerClaim, user, admissionv1.Update, c.before, c.after)
			}
			const says = "could not decide: admission: admission.rego:2:48: rule deny: to_number: strconv.ParseFloat: parsing \"jane\": invalid syntax; mend the rule or put the former bundle in force again"
			if !c.passes && !strings.HasSuffix(got, says) {
				t.Errorf("got %s, want it to end in %s", got, says)
			}
			if c.passes && (got != "" || len(warnings) != 1 || !strings.Contains(warnings[0], "rule deny")) {
				t.Error(got, warnings)
			}
		})
	}
}

func TestWhatTheRulesSee(t *testing.T) {
	for name, c := range map[string]struct {
		rules string
		ask   func(*world) (string, []string)
		want  []string
	}{
		"who asks, and for what": {
			rules: `warn contains {"code": "seen", "message": sprintf("%s %s by %s", [input.operation, input.kind, input.user.name])}`,
			ask: func(w *world) (string, []string) {
				return w.ask(PathValidateEndpoint, user, admissionv1.Update, endpoint("e", mac), endpoint("e", mac))
			},
			want: []string{"UPDATE Endpoint by jane [seen]"},
		},
		"whether a claim's server exists": {
			rules: `warn contains {"code": "seen", "message": sprintf("%v", [input.facts])}`,
			ask: func(w *world) (string, []string) {
				w.onlyStored(server())
				return w.ask(PathValidateServerClaim, user, admissionv1.Create, nil, claim(naming("s1")))
			},
			want: []string{`{"serverExists": true} [seen]`},
		},
		"whether a server that is deleted holds data": {
			rules: `warn contains {"code": "seen", "message": sprintf("%v", [input.facts])}`,
			ask: func(w *world) (string, []string) {
				return w.ask(PathValidateServer, user, admissionv1.Delete, server(), nil)
			},
			want: []string{`{"holdsData": false} [seen]`},
		},
		"the keys of a BMCSecret and no values": {
			rules: `warn contains {"code": "seen", "message": sprintf("%v %v %v", [input.object.data, input.object.stringData, object.get(input.object.metadata, "annotations", {})])}`,
			ask: func(w *world) (string, []string) {
				s := &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: "s",
					Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "secret", "note": "n"}},
					Data: map[string][]byte{"password": []byte("secret")}, StringData: map[string]string{"username": "secret"}}
				return w.ask(PathValidateBMCSecret, user, admissionv1.Update, s, s)
			},
			want: []string{`{"password": ""} {"username": ""} {"note": "n"} [seen]`},
		},
		"not who wrote which field": {
			rules: `warn contains {"code": "seen", "message": "managedFields"} if input.object.metadata.managedFields`,
			ask: func(w *world) (string, []string) {
				e := endpoint("e", mac)
				e.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
				return w.ask(PathValidateEndpoint, user, admissionv1.Update, e, e)
			},
		},
		"nothing that the manager writes": {
			rules: `deny contains {"code": "seen", "message": "by the manager"}`,
			ask: func(w *world) (string, []string) {
				return w.ask(PathValidateServer, manager, admissionv1.Create, nil, server())
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings := c.ask(ruled(t, c.rules))
			if diff := cmp.Diff(c.want, warnings); got != "" || diff != "" {
				t.Error(got, diff)
			}
		})
	}
}

func TestALookUpThatFailsRefusesTheRequest(t *testing.T) {
	broken := interceptor.NewClient(store(t).(client.WithWatch), interceptor.Funcs{
		Get:  failingGet,
		List: failingList,
	})
	for name, c := range map[string]struct {
		ask  func(*world) (string, []string)
		want string
	}{
		"an endpoint": {func(w *world) (string, []string) {
			return w.ask(PathValidateEndpoint, user, admissionv1.Create, nil, endpoint("e", mac))
		}, "the index spec.macAddress cannot be read: down"},
		"a claim": {func(w *world) (string, []string) {
			return w.ask(PathValidateServerClaim, user, admissionv1.Create, nil, claim(naming("s1")))
		}, `"s1" cannot be read: down`},
		"a BMC": {func(w *world) (string, []string) {
			return w.ask(PathValidateBMC, user, admissionv1.Create, nil, inline("b", "10.0.0.1", ""))
		}, "the index access cannot be read: down"},
		"a server": {func(w *world) (string, []string) {
			return w.ask(PathValidateServer, user, admissionv1.Delete, server(), nil)
		}, "the inventory of machine " + uuid + " cannot be read: down"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, defaults(t))
			w.rewire(broken)
			if got, _ := c.ask(w); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

var errDown = errors.New("down")

func TestWhereTheRevisionInForceDoesNotCompileNothingIsLetThroughThatItMightRefuse(t *testing.T) {
	standIn := *defaults(t)
	standIn.Admission = nil
	standIn.Revision.Name = "fleet-1.0.0-f000000000"
	const unknown = "policy fleet-1.0.0-f000000000 could not "
	for name, c := range map[string]struct {
		before, after client.Object
		who, path     string
		want          string
		warns         bool
	}{
		"a new claim": {after: claim(), path: PathValidateServerClaim, want: "Forbidden\n" + unknown + "decide: its content does not compile in this version of " +
			"metalaw, so that what it refuses is not known; run the version of metalaw that accepted it, or promote a bundle that this one accepts; " +
			"deletions, bundles, freezes and the manager's own writes pass meanwhile"},
		"but a deletion":                       {before: claim(), path: PathValidateServerClaim, warns: true},
		"and what the manager writes":          {after: claim(), who: manager, path: PathValidateServerClaim},
		"and a draft of what is to come after": {after: bundleHead(), path: PathValidateBundle},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, &standIn)
			op := admissionv1.Create
			if c.before != nil {
				op = admissionv1.Delete
			}
			who := user
			if c.who != "" {
				who = c.who
			}
			got, warnings := w.ask(c.path, who, op, c.before, c.after)
			if diff := cmp.Diff(c.want, got); diff != "" || c.warns && len(warnings) == 0 {
				t.Errorf("warned %q (-want +got)\n%s", warnings, diff)
			}
		})
	}
}
