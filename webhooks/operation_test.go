// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

func asking(operation string) func(*v1alpha1.Server) {
	return annotated(v1alpha1.OperationAnnotation, operation)
}

func askedBy(name string) func(*v1alpha1.Server) {
	return annotated(v1alpha1.OperationByAnnotation, name)
}

func because(reason string) func(*v1alpha1.Server) {
	return annotated(v1alpha1.OperationReasonAnnotation, reason)
}

func forceTo(state string) func(*v1alpha1.Server) {
	return annotated(v1alpha1.ForceToAnnotation, state)
}

func override(value string) func(*v1alpha1.Server) {
	return annotated(v1alpha1.ForceOverrideAnnotation, value)
}

func TestWhoAsksForAnOperationIsRecorded(t *testing.T) {
	const path = `"path":"/metadata/annotations/policy.metalaw.dev~1`
	by := func(name string) string { return `[{"op":"add",` + path + `operation-by","value":"` + name + `"}]` }
	for name, c := range map[string]struct {
		before, after *v1alpha1.Server
		who           string
		want          string
	}{
		"when it is asked for":             {before: server(), after: server(asking("park")), want: by("jane")},
		"when a server is created with it": {after: server(asking("park")), want: by("jane")},
		"when another is asked for":        {before: server(asking("park"), askedBy("joe")), after: server(asking("retry"), askedBy("joe")), want: by("jane")},
		"when it gets another reason":      {before: server(asking("park"), askedBy("joe")), after: server(asking("park"), askedBy("joe"), because("r")), want: by("jane")},
		"when it leads to another state":   {before: server(asking("force"), askedBy("joe")), after: server(asking("force"), askedBy("joe"), forceTo("Error")), want: by("jane")},
		"whatever the client writes":       {before: server(), after: server(asking("park"), askedBy("root")), want: by("jane")},
		"once":                             {before: server(), after: server(asking("park"), askedBy("jane"))},
		"not when it stays as it is":       {before: server(asking("park"), askedBy("joe")), after: server(asking("park"), askedBy("joe"), annotated("a", "b"))},
		"not when the manager asks":        {before: server(), after: server(asking("power-cycle-server")), who: manager},
		"as far as it can be stored":       {before: server(), after: server(asking("park")), who: strings.Repeat("ü", 254), want: by(strings.Repeat("ü", 250) + "...")},
		"and forgotten, with its words, when it is withdrawn": {
			before: server(asking("force"), askedBy("joe"), because("r"), forceTo("Error"), override("true")),
			after:  server(askedBy("joe"), because("r"), forceTo("Error"), override("true")),
			want: `[{"op":"remove",` + path + `operation-by"},{"op":"remove",` + path + `operation-reason"},` +
				`{"op":"remove",` + path + `force-to"},{"op":"remove",` + path + `force-override"}]`},
		"but what is written for the next one stays": {
			before: server(asking("park"), askedBy("joe"), because("r")), after: server(because("s"))},
		"nor is anything else touched": {before: server(), after: server(askedBy("root"))},
	} {
		t.Run(name, func(t *testing.T) {
			if c.who == "" {
				c.who = user
			}
			req := admissionv1.AdmissionRequest{Operation: admissionv1.Update, UserInfo: authenticationv1.UserInfo{Username: c.who},
				Object: runtime.RawExtension{Raw: raw(t, c.after)}}
			if c.before != nil {
				req.OldObject.Raw = raw(t, c.before)
			}
			r := newWorld(t, defaults(t)).hooks[PathMutateServer].Handle(t.Context(), admission.Request{AdmissionRequest: req})
			if !r.Allowed || string(r.Patch) != c.want {
				t.Errorf("got %t %s, want %s", r.Allowed, r.Patch, c.want)
			}
		})
	}
}

func TestOperation(t *testing.T) {
	inForce := withFiles(t, map[string]string{bundle.LifecycleFile: small})
	name := inForce.Revision.Name
	at := func(annotation, says string) string { return "metadata.annotations[" + annotation + "]: " + says }
	const by, reason = v1alpha1.OperationByAnnotation, v1alpha1.OperationReasonAnnotation
	mayNot := "Forbidden\n" + at(v1alpha1.OperationAnnotation, `Forbidden: user "jane" may not force servers: that takes the verb force on `+
		`servers.metal.ironcore.dev, which ClusterRole metalaw-server-forcer gives`)
	mayNotErase := "Forbidden\n" + at(v1alpha1.OperationAnnotation, `Forbidden: user "jane" may not have servers erased: that takes the verb sanitize on `+
		`servers.metal.ironcore.dev, which ClusterRole metalaw-server-sanitizer gives`)
	mayNotAttest := "Forbidden\n" + at(v1alpha1.OperationAnnotation, `Forbidden: user "jane" may not answer for disks that are not erased: that takes the verb attest-disk on `+
		`servers.metal.ironcore.dev, which ClusterRole metalaw-disk-attester gives`)
	mayNotRetire := func(what string) string {
		return "Forbidden\n" + at(v1alpha1.OperationAnnotation, `Forbidden: user "jane" may not take servers `+what+`: that takes the verb decommission on `+
			`servers.metal.ironcore.dev, which ClusterRole metalaw-server-decommissioner gives`)
	}
	disk, method := annotated(v1alpha1.AttestDiskAnnotation, "w"), annotated(v1alpha1.AttestMethodAnnotation, "destroy")
	written := "Forbidden\n" + at(by, "Forbidden: admission writes who asks; leave it out")
	stays := "Forbidden\n" + at(by, "Forbidden: admission writes who asks; keep it as it is stored")
	for desc, c := range map[string]struct {
		before, after *v1alpha1.Server
		who           string
		groups        []string
		want          string
	}{
		"an operation is asked for":                    {before: server(), after: server(asking("park"), askedBy("jane"))},
		"in the name of another it is refused":         {before: server(), after: server(asking("park"), askedBy("joe")), want: written},
		"in nobody's name, too":                        {before: server(), after: server(asking("park")), want: written},
		"a record of who asks stays":                   {before: server(asking("park"), askedBy("joe")), after: server(asking("park"), askedBy("joe"), annotated("a", "b"))},
		"it is not changed":                            {before: server(asking("park"), askedBy("joe")), after: server(asking("park"), askedBy("jane")), want: stays},
		"it is not taken away":                         {before: server(asking("park"), askedBy("joe")), after: server(asking("park")), want: stays},
		"it is not made up":                            {before: server(), after: server(askedBy("jane")), want: stays},
		"it goes with the request":                     {before: server(asking("park"), askedBy("joe")), after: server()},
		"what was left of it may be taken away":        {before: server(askedBy("joe")), after: server()},
		"the manager takes it away":                    {before: server(asking("park"), askedBy("joe")), after: server(asking("park")), who: manager},
		"a reason has a length":                        {before: server(), after: server(because(strings.Repeat("ü", 1025))), want: "Invalid\n" + at(reason, "Too long: may not be longer than 1024 characters")},
		"a reason of that length passes":               {before: server(), after: server(because(strings.Repeat("ü", 1024)))},
		"one that is stored passes":                    {before: server(because(strings.Repeat("ü", 1025))), after: server(because(strings.Repeat("ü", 1025)), annotated("a", "b"))},
		"a force by somebody who may not":              {before: server(), after: server(asking("force"), forceTo("Available"), askedBy("jane")), want: mayNot},
		"a force by somebody who may":                  {before: server(), after: server(asking("force"), forceTo("Available"), askedBy("jane")), groups: []string{"forcers"}},
		"a force of another server than one may":       {before: server(serverNamed("s2")), after: server(serverNamed("s2"), asking("force"), forceTo("Available"), askedBy("jane")), groups: []string{"forcers"}, want: mayNot},
		"a force of a server that is created":          {after: server(asking("force"), forceTo("Available"), askedBy("jane")), want: mayNot},
		"a declaration by somebody who may not":        {before: server(), after: server(asking("declare-clean"), askedBy("jane")), want: mayNot},
		"a declaration by somebody who may":            {before: server(), after: server(asking("declare-clean"), askedBy("jane")), groups: []string{"forcers"}},
		"a force that stays as it is":                  {before: server(asking("force"), forceTo("Available"), askedBy("joe")), after: server(asking("force"), forceTo("Available"), askedBy("joe"), annotated("a", "b"))},
		"another's force to another state":             {before: server(asking("force"), forceTo("Available"), askedBy("joe")), after: server(asking("force"), forceTo("Reserved"), askedBy("jane")), want: mayNot},
		"another's force with an override":             {before: server(asking("force"), forceTo("Available"), askedBy("joe")), after: server(asking("force"), forceTo("Available"), override("true"), askedBy("jane")), want: mayNot},
		"another's force for another reason":           {before: server(asking("force"), forceTo("Available"), askedBy("joe")), after: server(asking("force"), forceTo("Available"), because("r"), askedBy("jane")), want: mayNot},
		"an override laid out for another's force":     {before: server(), after: server(override("true")), want: mayNot},
		"a state laid out for another's force":         {before: server(), after: server(forceTo("Available")), want: mayNot},
		"another's force that is withdrawn":            {before: server(asking("force"), forceTo("Available"), askedBy("joe")), after: server()},
		"another's override that is taken back":        {before: server(override("true")), after: server()},
		"a force to no state":                          {before: server(), after: server(asking("force"), askedBy("jane")), groups: []string{"forcers"}, want: "Invalid\n" + at(v1alpha1.ForceToAnnotation, "Required value: say to which state the server is forced; policy revision "+name+" defines Available, Initial, Reserved")},
		"a force to a state that there is not":         {before: server(), after: server(asking("force"), forceTo("Nowhere"), askedBy("jane")), groups: []string{"forcers"}, want: "Invalid\n" + at(v1alpha1.ForceToAnnotation, `Unsupported value: "Nowhere": supported values: "Available", "Initial", "Reserved"`)},
		"a force under a policy that cannot be loaded": {before: server(governedBy("lost")), after: server(governedBy(name), asking("force"), forceTo("Available"), askedBy("jane")), groups: []string{"forcers"}, want: "Forbidden\n" + at(v1alpha1.ForceToAnnotation, "Forbidden: policy revision lost, which governs the server, cannot be loaded; whether it defines the state cannot be told")},
		"an override that says something else":         {before: server(), after: server(override("yes")), groups: []string{"forcers"}, want: "Invalid\n" + at(v1alpha1.ForceOverrideAnnotation, `Unsupported value: "yes": supported values: "true"`)},
		"a sanitize by somebody who may not":           {before: server(), after: server(asking("sanitize"), because("r"), askedBy("jane")), want: mayNotErase},
		"a sanitize by somebody who may only force":    {before: server(), after: server(asking("sanitize"), because("r"), askedBy("jane")), groups: []string{"forcers"}, want: mayNotErase},
		"a sanitize by somebody who may":               {before: server(), after: server(asking("sanitize"), because("r"), askedBy("jane")), groups: []string{"sanitizers"}},
		"a sanitize without a reason":                  {before: server(), after: server(asking("sanitize"), askedBy("jane")), groups: []string{"sanitizers"}, want: "Invalid\n" + at(reason, "Required value: say why the disks may be erased; the server keeps it")},
		"a decommission by somebody who may not":       {before: server(), after: server(asking("decommission"), because("r"), askedBy("jane")), want: mayNotRetire("out of service")},
		"a decommission by somebody who may":           {before: server(), after: server(asking("decommission"), because("r"), askedBy("jane")), groups: []string{"decommissioners"}},
		"a decommission without a reason":              {before: server(), after: server(asking("decommission"), because(" "), askedBy("jane")), groups: []string{"decommissioners"}, want: "Invalid\n" + at(reason, "Required value: say why the server goes out of service; the server keeps it")},
		"a recommission by somebody who may not":       {before: server(), after: server(asking("recommission"), because("r"), askedBy("jane")), want: mayNotRetire("back into service")},
		"a recommission by somebody who may":           {before: server(), after: server(asking("recommission"), because("r"), askedBy("jane")), groups: []string{"decommissioners"}},
		"an attestation by somebody who may not":       {before: server(), after: server(asking("attest-disk"), because("r"), disk, method, askedBy("jane")), groups: []string{"sanitizers"}, want: mayNotAttest},
		"an attestation by somebody who may":           {before: server(), after: server(asking("attest-disk"), because("r"), disk, method, askedBy("jane")), groups: []string{"attesters"}},
		"an attestation without a reason":              {before: server(), after: server(asking("attest-disk"), disk, method, askedBy("jane")), groups: []string{"attesters"}, want: "Invalid\n" + at(reason, "Required value: say what became of the disk; the ServerInventory keeps it")},
		"another's attestation for another disk":       {before: server(asking("attest-disk"), because("r"), askedBy("joe")), after: server(asking("attest-disk"), because("r"), disk, askedBy("jane")), want: mayNotAttest},
		"a disk laid out for another's attestation":    {before: server(), after: server(disk), want: mayNotAttest},
		"another's disk that is taken back":            {before: server(disk), after: server()},
		"another's sanitize for another reason":        {before: server(asking("sanitize"), because("r"), askedBy("joe")), after: server(asking("sanitize"), because("s"), askedBy("jane")), want: mayNotErase},
		"the manager forces nobody's hand":             {before: server(asking("force"), askedBy("joe")), after: server(), who: manager},
		"everybody may ask to be left alone":           {before: server(), after: server(asking("ignore"), askedBy("jane"))},
	} {
		t.Run(desc, func(t *testing.T) {
			if c.who == "" {
				c.who = user
			}
			operation, before := admissionv1.Update, client.Object(c.before)
			if c.before == nil {
				operation, before = admissionv1.Create, nil
			}
			got, _ := newWorld(t, inForce).ask(PathValidateServer, c.who, operation, before, c.after, of(c.groups...))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARightThatCannotBeLookedUpIsNone(t *testing.T) {
	w := newWorld(t, defaults(t))
	hooks, err := handlers(Options{Bundles: revisions{active: defaults(t)}, Client: w.cached, Reader: w.stored, ManagerUser: manager,
		Registry: prometheus.NewRegistry(), Rights: noRights{}}, func() time.Time { return w.now })
	if err != nil {
		t.Fatal(err)
	}
	w.hooks = hooks
	got, _ := w.ask(PathValidateServer, user, admissionv1.Update, server(), server(asking("force"), forceTo("Available"), askedBy("jane")))
	if want := `whether user "jane" may force servers cannot be told: down`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

type noRights struct{ client.Writer }

func (noRights) Create(context.Context, client.Object, ...client.CreateOption) error { return errDown }
