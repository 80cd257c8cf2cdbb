// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

func doubted(value string) func(*v1alpha1.Server) {
	return annotated(v1alpha1.RestoredDoubtAnnotation, value)
}

func doubtedBy(name string) func(*v1alpha1.Server) {
	return annotated(v1alpha1.RestoredByAnnotation, name)
}

func TestWhoMayPutAServerInDoubt(t *testing.T) {
	const path = "metadata.annotations[policy.metalaw.dev/restored-doubt]: "
	const mayNot = "Forbidden\n" + path + `Forbidden: user "jane" may not say whether a server is in doubt after a restore. ` +
		"That takes the verb restore on fleetcontrols.policy.metalaw.dev, which ClusterRole metalaw-fleet-restorer gives"
	const keepBy = "Forbidden\nmetadata.annotations[policy.metalaw.dev/restored-by]: Forbidden: admission writes who put the server in doubt; keep it as it is stored"
	stored, reason := server(doubted("doubted"), doubtedBy("joe")), annotated(v1alpha1.RestoredReasonAnnotation, "INC-7")
	for name, c := range map[string]struct {
		before, after *v1alpha1.Server
		who           string
		may           bool
		want          string
	}{
		"by a user who may not":            {before: server(), after: server(doubted("doubted"), doubtedBy("jane")), want: mayNot},
		"by a user who may":                {before: server(), after: server(doubted("doubted"), doubtedBy("jane"), reason), may: true},
		"by the manager":                   {before: server(), after: server(doubted("inspect")), who: manager},
		"confirmed by a user who may not":  {before: stored, after: server(doubted("confirmed"), doubtedBy("jane")), want: mayNot},
		"confirmed by a user who may":      {before: stored, after: server(doubted("confirmed"), doubtedBy("jane")), may: true},
		"taken away by a user who may not": {before: stored, after: server(), want: mayNot},
		"taken away by a user who may": {before: stored, after: server(), may: true, want: "Forbidden\n" + path +
			"Forbidden: only the manager takes the mark away, once the doubt has ended. " +
			"To end it, compare the machine, then: metalaw restored --confirm s1"},
		"an empty value taken away":           {before: server(doubted("")), after: server(), want: mayNot},
		"the manager's own value":             {before: stored, after: server(doubted("inspect"), doubtedBy("jane")), may: true, want: "Invalid\n" + path + `Unsupported value: "inspect": supported values: "doubted", "confirmed"`},
		"another reason":                      {before: stored, after: server(doubted("doubted"), doubtedBy("jane"), reason), want: mayNot},
		"another name":                        {before: stored, after: server(doubted("doubted"), doubtedBy("root")), may: true, want: keepBy},
		"other things change":                 {before: stored, after: server(doubted("doubted"), doubtedBy("joe"), annotated("a", "b"))},
		"a Server that comes from a backup":   {after: server(doubted("doubted"), doubtedBy("jane"))},
		"one from a backup that is confirmed": {after: server(doubted("confirmed"), doubtedBy("jane")), want: mayNot},
		"a reason that is too long": {before: server(), after: server(doubted("doubted"), doubtedBy("jane"), annotated(v1alpha1.RestoredReasonAnnotation, strings.Repeat("a", 1025))), may: true,
			want: "Invalid\nmetadata.annotations[policy.metalaw.dev/restored-reason]: Too long: may not be longer than 1024 characters"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.who == "" {
				c.who = user
			}
			operation, before := admissionv1.Update, client.Object(c.before)
			if c.before == nil {
				operation, before = admissionv1.Create, nil
			}
			var groups []string
			if c.may {
				groups = []string{"restorers"}
			}
			got, _ := newWorld(t, defaults(t)).ask(PathValidateServer, c.who, operation, before, c.after, of(groups...))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAdmissionWritesWhoPutsAServerInDoubt(t *testing.T) {
	const by = `[{"op":"add","path":"/metadata/annotations/policy.metalaw.dev~1restored-by","value":"jane"}]`
	for name, c := range map[string]struct {
		before, after *v1alpha1.Server
		who, want     string
	}{
		"when it is put in doubt":      {server(), server(doubted("doubted"), doubtedBy("root")), user, by},
		"when it is confirmed":         {server(doubted("doubted"), doubtedBy("joe")), server(doubted("confirmed"), doubtedBy("joe")), user, by},
		"not when the manager does it": {server(), server(doubted("doubted")), manager, ""},
		"not when it is taken away":    {server(doubted("doubted"), doubtedBy("joe")), server(doubtedBy("joe")), user, ""},
		"not when it stays":            {server(doubted("doubted"), doubtedBy("joe")), server(doubted("doubted"), doubtedBy("joe"), annotated("a", "b")), user, ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := admissionv1.AdmissionRequest{Operation: admissionv1.Update, UserInfo: authenticationv1.UserInfo{Username: c.who},
				Object: runtime.RawExtension{Raw: raw(t, c.after)}, OldObject: runtime.RawExtension{Raw: raw(t, c.before)}}
			r := newWorld(t, defaults(t)).hooks[PathMutateServer].Handle(t.Context(), admission.Request{AdmissionRequest: req})
			if !r.Allowed || string(r.Patch) != c.want {
				t.Errorf("%t %s", r.Allowed, r.Patch)
			}
		})
	}
}

func TestOnlyTheManagerEndsADoubtInAnInventory(t *testing.T) {
	const denied = "Forbidden\ncustody.doubt: Forbidden: machine " + uuid + " is in doubt since the cluster's store was restored. Only the manager ends that, " +
		"once a user has compared: metalaw restored --confirm NAME, with the name of its Server"
	type inventory = policyv1alpha1.ServerInventory
	of := func(change ...func(*inventory)) *inventory {
		i := dirtyInventory()
		i.Custody = &policyv1alpha1.Custody{Doubt: &policyv1alpha1.RestoredDoubt{Reason: "r"}}
		for _, c := range change {
			c(i)
		}
		return i
	}
	ended := func(i *inventory) { i.Custody.Doubt = nil }
	gone := func(i *inventory) { i.Custody = nil }
	asked := func(i *inventory) { i.Custody.Doubt.InspectSince = &metav1.MicroTime{Time: time.Unix(1, 0)} }
	agreed := func(i *inventory) { metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1alpha1.DeleteDataAnnotation, "true") }
	for name, c := range map[string]struct {
		before, after *inventory
		who, want     string
	}{
		"it is taken away":                        {of(), of(ended), user, denied},
		"with the whole custody":                  {of(), of(gone), user, denied},
		"it is made an inspection":                {of(), of(asked), user, denied},
		"by the manager":                          {of(), of(ended), manager, ""},
		"something else changes":                  {of(), of(agreed), user, ""},
		"the inventory is deleted":                {of(), nil, user, denied},
		"the inventory is deleted as it is asked": {of(agreed), nil, user, ""},
		"there is none":                           {of(gone), nil, user, ""},
	} {
		t.Run(name, func(t *testing.T) {
			operation, after := admissionv1.Update, client.Object(c.after)
			if c.after == nil {
				operation, after = admissionv1.Delete, nil
			}
			got, _ := newWorld(t, defaults(t)).ask(PathValidateInventory, c.who, operation, c.before, after)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
