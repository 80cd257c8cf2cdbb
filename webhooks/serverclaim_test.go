// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

func claim(change ...func(*v1alpha1.ServerClaim)) *v1alpha1.ServerClaim {
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "c"},
		Spec: v1alpha1.ServerClaimSpec{Power: v1alpha1.PowerOn, Image: "registry.example.com/os:1"}}
	for _, f := range change {
		f(c)
	}
	return c
}

func naming(server string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) { c.Spec.ServerRef = &corev1.LocalObjectReference{Name: server} }
}

func selecting(key, value string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) {
		c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

func expressing(all ...metav1.LabelSelectorRequirement) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) { c.Spec.ServerSelector = &metav1.LabelSelector{MatchExpressions: all} }
}

func tolerating(all ...v1alpha1.Toleration) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) { c.Spec.Tolerations = all }
}

func retain(s *v1alpha1.Server) { s.Spec.ReclaimPolicy = v1alpha1.ReclaimPolicyRetain }

func ignition(name string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) {
		c.Spec.IgnitionSecretRef = &corev1.LocalObjectReference{Name: name}
	}
}

func userData(name string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) { c.Spec.UserDataRef = &corev1.LocalObjectReference{Name: name} }
}

func prioritized(priority string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.PriorityAnnotation, priority)
	}
}

func saying(name, value string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, "policy.metalaw.dev/"+name, value)
	}
}

func other(c *v1alpha1.ServerClaim) {
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, "example.com/placment", "x")
}

func uid(is types.UID) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) { c.UID = is }
}

func image(i string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) { c.Spec.Image = i }
}

func TestServerClaim(t *testing.T) {
	noServer := []string{`spec.serverRef.name: there is no Server "gone"; the claim waits until there is one, and its condition Bound says so. The serverRef cannot be changed: if the name is wrong, delete the claim and create another`}
	const disagree = "Invalid\nspec.serverSelector: Invalid value: \"rack=r2\": it does not match the labels of Server \"s1\", which serverRef names, and both must match; take one of the two out"
	const unsatisfiable = "no server of the fleet, in whatever state, can satisfy the claim: 0 of 6 servers: selector 6; it stays Unbound until the fleet changes; " +
		"serverSelector cannot be changed: to ask for other labels, delete the claim and create another"
	fleet := []client.Object{server(labelled("rack", "r1")), server(serverNamed("taken"), heldBy("other", "c")),
		server(serverNamed("kept"), heldBy("other", "c"), annotated(v1alpha1.ClaimUIDAnnotation, "u2"), annotated(v1alpha1.ReleasedClaimAnnotation, "u2"), retain), server(serverNamed("adopted"), heldBy("team", "c")),
		server(serverNamed("mine"), heldBy("team", "c"), annotated(v1alpha1.ClaimUIDAnnotation, "u1"), dirty),
		server(serverNamed("released"), heldBy("team", "c"), annotated(v1alpha1.ClaimUIDAnnotation, "u1"), annotated(v1alpha1.ReleasedClaimAnnotation, "u1"), dirty)}
	for name, c := range map[string]struct {
		before, after *v1alpha1.ServerClaim
		want          string
		warnings      []string
	}{
		"a claim for any server passes":                    {after: claim()},
		"a selector that matches passes":                   {after: claim(selecting("rack", "r1"))},
		"a server that exists passes":                      {after: claim(naming("s1"))},
		"a server that does not exist yet is warned about": {after: claim(naming("gone")), warnings: noServer},
		"a name that no server can have is refused as such": {after: claim(naming("../x")), want: "Invalid\nspec.serverRef.name: Invalid value: \"../x\": no Server has such a name: " +
			"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character " +
			"(e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
		"one that is set later, too":                              {before: claim(), after: claim(naming("gone")), warnings: noServer},
		"a claim whose server is gone may still change its image": {before: claim(naming("gone")), after: claim(naming("gone"), image("os:2"))},
		"a server held by another claim is warned about":          {after: claim(naming("taken")), warnings: []string{"Server \"taken\" is held by another claim; this one waits until it is released"}},
		"a claim that takes a server over with its data is told": {after: claim(naming("mine")), warnings: []string{
			`this claim takes over Server "mine" of the former claim of this name, with its data: nothing was erased since. ` +
				"Where that is not meant, delete this claim, which releases the server, and claim another one"}},
		"a claim that takes over a server of which less is known is told": {after: claim(naming("adopted")), warnings: []string{
			`this claim takes over Server "adopted" of the former claim of this name, with whatever is on its disks. ` +
				"Where that is not meant, delete this claim, which releases the server, and claim another one"}},
		"a claim whose predecessor was released is told that it waits": {after: claim(naming("released")), warnings: []string{
			`Server "released" is still held by the former claim of this name, whose release is recorded; this claim waits until the server is Available again`}},
		"the claim that a server was written for gets no warning": {before: claim(), after: claim(naming("adopted"))},
		"server and selector must agree": {after: claim(naming("s1"), selecting("rack", "r2")),
			want: disagree},
		"a selector that is added must agree with the server that a waiting claim names": {before: claim(naming("s1")), after: claim(naming("s1"), selecting("rack", "r2")), want: disagree},
		"also with that of a bound claim, which could not be served again": {before: claim(naming("mine"), uid("u1")), after: claim(naming("mine"), uid("u1"), selecting("rack", "r1")),
			want: strings.NewReplacer("r2", "r1", "s1", "mine").Replace(disagree)},
		"a server that is named later must agree with the selector": {before: claim(selecting("rack", "r2")), after: claim(naming("s1"), selecting("rack", "r2")), want: disagree},
		"a selector that is added and agrees passes":                {before: claim(naming("s1")), after: claim(naming("s1"), selecting("rack", "r1"))},
		"one that is added while the server is gone passes":         {before: claim(naming("gone")), after: claim(naming("gone"), selecting("rack", "r1"))},
		"a server that was relabelled does not keep the image":      {before: claim(naming("s1"), selecting("rack", "r2")), after: claim(naming("s1"), selecting("rack", "r2"), image("os:2"))},
		"a claim comes back to its server though that was relabelled": {after: claim(naming("mine"), selecting("rack", "r2")), warnings: []string{
			`this claim takes over Server "mine" of the former claim of this name, with its data: nothing was erased since. ` +
				"Where that is not meant, delete this claim, which releases the server, and claim another one"}},
		"one whose former claim was released does not": {after: claim(naming("released"), selecting("rack", "r2")), want: strings.ReplaceAll(disagree, "s1", "released"), warnings: []string{
			`Server "released" is still held by the former claim of this name, whose release is recorded; this claim waits until the server is Available again`}},
		"server and selector that agree pass": {after: claim(naming("s1"), selecting("rack", "r1"))},
		"a claim for a server that keeps the data of a holder that has ended is told what it waits for": {after: claim(naming("kept")), warnings: []string{
			`the claim that held Server "kept" has ended, and its data is kept (reclaimPolicy Retain). This claim waits until an operator ` +
				"clears the server's spec.serverClaimRef or sets its spec.reclaimPolicy to Recycle, which gives that data up"}},
		"a reference to a Secret without a name is refused": {after: claim(ignition(""), userData("")),
			want: "Invalid\nspec.ignitionSecretRef.name: Required value: write the name of a Secret in the claim's namespace, or leave ignitionSecretRef out\n" +
				"spec.userDataRef.name: Required value: write the name of a Secret in the claim's namespace, or leave userDataRef out"},
		"a change to one, too": {before: claim(ignition("x")), after: claim(ignition("")),
			want: "Invalid\nspec.ignitionSecretRef.name: Required value: write the name of a Secret in the claim's namespace, or leave ignitionSecretRef out"},
		"a reference to a Secret passes":                                    {after: claim(ignition("x"), userData("y"))},
		"a stored one without a name does not keep the image from changing": {before: claim(ignition("")), after: claim(ignition(""), image("os:2"))},
		"a priority that is no number is warned about": {after: claim(prioritized("high")), warnings: []string{
			`metadata.annotations[policy.metalaw.dev/priority]: "high" counts as 0; a priority is a whole number from -1000 to 1000`}},
		"a priority that is too high, too": {after: claim(prioritized("5000")), warnings: []string{
			`metadata.annotations[policy.metalaw.dev/priority]: "5000" counts as 1000; a priority is a whole number from -1000 to 1000`}},
		"a priority passes": {after: claim(prioritized("-7"))},
		"a misspelt annotation is warned about": {after: claim(saying("placment", "where: server.gpus > 0"), saying("Protect", "true")), warnings: []string{
			"metadata.annotations[policy.metalaw.dev/Protect]: nothing reads this annotation of a ServerClaim; did you mean policy.metalaw.dev/protect?",
			"metadata.annotations[policy.metalaw.dev/placment]: nothing reads this annotation of a ServerClaim; did you mean policy.metalaw.dev/placement?"}},
		"an annotation cut short, too": {after: claim(saying("prio", "5")), warnings: []string{
			"metadata.annotations[policy.metalaw.dev/prio]: nothing reads this annotation of a ServerClaim; did you mean policy.metalaw.dev/priority?"}},
		"an annotation of another kind is warned about, with those of a claim": {after: claim(saying("consent", "take-over")), warnings: []string{
			"metadata.annotations[policy.metalaw.dev/consent]: nothing reads this annotation of a ServerClaim; known are policy.metalaw.dev/minimum-term, policy.metalaw.dev/priority, " +
				"policy.metalaw.dev/placement, policy.metalaw.dev/protect, policy.metalaw.dev/operation-id, policy.metalaw.dev/drain-required, " +
				"policy.metalaw.dev/approval-reason"}},
		"a misspelt annotation that a change adds is warned about": {before: claim(), after: claim(image("os:2"), saying("protected", "true")), warnings: []string{
			"metadata.annotations[policy.metalaw.dev/protected]: nothing reads this annotation of a ServerClaim; did you mean policy.metalaw.dev/protect?"}},
		"one that is stored is not warned about again":         {before: claim(saying("protected", "true")), after: claim(image("os:2"), saying("protected", "false"))},
		"annotations that are read, and those of others, pass": {after: claim(saying("protect", "true"), saying("operation-id", "1"), other)},
		"whether a drainer approves is yes or no": {after: claim(saying("drain-required", "yes")),
			want: "Invalid\nmetadata.annotations[policy.metalaw.dev/drain-required]: Unsupported value: \"yes\": supported values: \"true\", \"false\""},
		"serverRef cannot be taken away": {before: claim(naming("s1")), after: claim(),
			want: "Forbidden\nspec.serverRef: Forbidden: it cannot change once it is set; delete the claim and create another"},
		"a toleration of nothing is refused": {after: claim(tolerating(v1alpha1.Toleration{Key: "a"}, v1alpha1.Toleration{Operator: "Equal", Value: "x"})),
			want: "Invalid\nspec.tolerations[1].operator: Invalid value: \"Equal\": without a key it tolerates nothing; name the key, or use the operator Exists, which then tolerates every taint"},
		"a toleration of nothing whose operator is left out, too": {after: claim(tolerating(v1alpha1.Toleration{Effect: "NoBind"})),
			want: "Invalid\nspec.tolerations[0].operator: Invalid value: \"\": without a key it tolerates nothing; name the key, or use the operator Exists, which then tolerates every taint"},
		"a value that does not count is refused": {after: claim(tolerating(v1alpha1.Toleration{Key: "a", Operator: "Exists", Value: "x"})),
			want: "Invalid\nspec.tolerations[0].value: Invalid value: \"x\": the operator Exists tolerates every value; leave the value out, or use the operator Equal"},
		"a toleration of everything passes": {after: claim(tolerating(v1alpha1.Toleration{Operator: "Exists"}))},
		"a stored toleration does not keep the image from changing": {before: claim(tolerating(v1alpha1.Toleration{Operator: "Equal"})),
			after: claim(tolerating(v1alpha1.Toleration{Operator: "Exists"}, v1alpha1.Toleration{Operator: "Equal"}), image("os:2"))},
		"a selector that nothing matches is warned about": {after: claim(selecting("rack", "r9")), warnings: []string{unsatisfiable}},
		"a stored selector is not warned about again":     {before: claim(selecting("rack", "r9")), after: claim(selecting("rack", "r9"), image("os:2"))},
		"a stored selector that is broken does not keep the image from changing": {
			before: claim(expressing(metav1.LabelSelectorRequirement{Key: "rack", Operator: "Like"})),
			after:  claim(expressing(metav1.LabelSelectorRequirement{Key: "rack", Operator: "Like"}), image("os:2"))},
		"every mistake in a selector is named": {after: claim(expressing(
			metav1.LabelSelectorRequirement{Key: "rack", Operator: "Like", Values: []string{"r1"}},
			metav1.LabelSelectorRequirement{Key: "rack", Operator: metav1.LabelSelectorOpIn},
			metav1.LabelSelectorRequirement{Key: "rack", Operator: metav1.LabelSelectorOpExists, Values: []string{"r1"}})),
			want: "Invalid\nspec.serverSelector.matchExpressions[0].operator: Invalid value: \"Like\": not a valid selector operator\n" +
				"spec.serverSelector.matchExpressions[1].values: Required value: must be specified when `operator` is 'In' or 'NotIn'\n" +
				"spec.serverSelector.matchExpressions[2].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"},
		"the bundle's rules are asked besides": {after: claim(naming("gone"), image(" ")), warnings: noServer, want: "Invalid\nspec.image: a claim needs an image to boot; name one in spec.image"},
		"the bundle's warnings are passed on":  {after: claim(image("os")), warnings: []string{"spec.image: the image has neither a tag nor a digest, so that what boots can change at any time; add one to spec.image [image-not-pinned]"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, defaults(t), fleet...)
			op := admissionv1.Create
			var got string
			var warnings []string
			if c.before == nil {
				got, warnings = w.ask(PathValidateServerClaim, user, op, nil, c.after)
			} else {
				got, warnings = w.ask(PathValidateServerClaim, user, admissionv1.Update, c.before, c.after)
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if diff := cmp.Diff(c.warnings, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// It chose the server by the labels of a moment ago, and has written it for the claim already, of which the cache may not know.
func TestAServerThatWasRelabelledDoesNotKeepTheManagerFromNamingIt(t *testing.T) {
	w := newWorld(t, defaults(t), server(labelled("rack", "r2")))
	got, _ := w.ask(PathValidateServerClaim, manager, admissionv1.Update, claim(selecting("rack", "r1")), claim(selecting("rack", "r1"), naming("s1")))
	if got != "" {
		t.Error(got)
	}
}

func TestThePriorityThatAPolicyGrantsIsTold(t *testing.T) {
	const path = "metadata.annotations[policy.metalaw.dev/priority]: "
	for name, c := range map[string]struct {
		namespace, asks string
		want            []string
	}{
		"what is granted passes":            {"default", "50", nil},
		"more counts as the bound":          {"default", "1000", []string{path + `"1000" counts as 50; the policy in force (p1) grants namespace "default" no more`}},
		"a namespace has its own bound":     {"team-b", "500", nil},
		"more than that counts as it":       {"team-b", "501", []string{path + `"501" counts as 500; the policy in force (p1) grants namespace "team-b" no more`}},
		"both bounds are told":              {"default", "2000", []string{path + `"2000" counts as 50; a priority is a whole number from -1000 to 1000, and the policy in force (p1) grants namespace "default" no more`}},
		"none may be granted less than 0":   {"last", "high", []string{path + `"high" counts as -5; a priority is a whole number from -1000 to 1000, and the policy in force (p1) grants namespace "last" no more`}},
		"what is no number counts as 0":     {"default", "high", []string{path + `"high" counts as 0; a priority is a whole number from -1000 to 1000`}},
		"who asks for less than it may has": {"team-b", "-7", nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := *defaults(t)
			b.Revision.Name = "p1"
			b.Settings.Claims.OnUnsatisfiable = bundle.UnsatisfiableAllow
			b.Settings.Claims.Priority = bundle.Priority{Max: 50, Namespaces: map[string]int64{"team-b": 500, "last": -5}}
			got, warnings := newWorld(t, &b).ask(PathValidateServerClaim, user, admissionv1.Create, nil, claim(claimNamed(c.namespace, "c"), prioritized(c.asks)))
			if diff := cmp.Diff(c.want, warnings); got != "" || diff != "" {
				t.Error(got, diff)
			}
		})
	}
}

func TestAClaimThatLivesTakesNothingOverFromItself(t *testing.T) {
	const takesOver = `this claim takes over Server "mine" of the former claim of this name, with its data: nothing was erased since. ` +
		"Where that is not meant, delete this claim, which releases the server, and claim another one"
	mine := server(serverNamed("mine"), heldBy("team", "c"), annotated(v1alpha1.ClaimUIDAnnotation, "u1"), dirty)
	going := func(c *v1alpha1.ServerClaim) {
		now := metav1.Now()
		c.DeletionTimestamp, c.Finalizers = &now, []string{v1alpha1.FinalizerServerClaim}
	}
	for name, c := range map[string]struct {
		stored *v1alpha1.ServerClaim
		gone   bool
		want   []string
	}{
		"no claim of the name is stored":                   {want: []string{takesOver}},
		"a claim of the name is stored":                    {stored: claim(naming("mine"))},
		"a claim of the name is being deleted":             {stored: claim(naming("mine"), going), want: []string{takesOver}},
		"a claim of the name is in another namespace":      {stored: claim(claimNamed("other", "c"), naming("mine")), want: []string{takesOver}},
		"the cache does not know yet that a claim is gone": {stored: claim(naming("mine")), gone: true, want: []string{takesOver}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{mine}
			if c.stored != nil {
				objects = append(objects, c.stored)
			}
			w := newWorld(t, defaults(t), objects...)
			if c.gone {
				w.onlyCached(c.stored)
			}
			got, warnings := w.ask(PathValidateServerClaim, user, admissionv1.Create, nil, claim(naming("mine")), dryRun)
			if diff := cmp.Diff(c.want, warnings); got != "" || diff != "" {
				t.Error(got, diff)
			}
		})
	}
}

// Whoever writes an annotation of claims into the API writes it into the list as well, or admission calls it misspelt.
func TestEveryAnnotationOfClaimsIsKnown(t *testing.T) {
	text, err := os.ReadFile("../api/v1alpha1/names.go")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	constant := regexp.MustCompile(`((?:\t//.*\n)+)\t\w+Annotation = "(policy\.metalaw\.dev/[a-z-]+)"`)
	for _, m := range constant.FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[1], "on a ServerClaim") || strings.Contains(m[1], "or a ServerClaim") {
			documented = append(documented, m[2])
		}
	}
	if diff := cmp.Diff(claimAnnotations, documented); diff != "" {
		t.Error(diff)
	}
}

func TestNobodyIsAskedForWhatNothingCanBeCalled(t *testing.T) {
	for _, name := range []string{"../x", "a/b", "..", "50%"} {
		if s, err := get[v1alpha1.Server](t.Context(), &lookup{}, name); s != nil || err != nil { // it has nobody to ask
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

func TestAServerThatTheCacheDoesNotKnowYetCanBeNamed(t *testing.T) {
	w := newWorld(t, defaults(t))
	w.onlyStored(server())
	if got, _ := w.ask(PathValidateServerClaim, user, admissionv1.Create, nil, claim(naming("s1"))); got != "" {
		t.Error(got)
	}
}

// A whole review: decoding, looking up a server, the rules and the bundle's rules.
func BenchmarkClaim(b *testing.B) {
	w := newWorld(b, defaults(b), server(labelled("rack", "r1")))
	after := claim(naming("s1"), selecting("rack", "r1"))
	b.ReportAllocs()
	for b.Loop() {
		if got, _ := w.ask(PathValidateServerClaim, user, admissionv1.Create, nil, after); got != "" {
			b.Fatal(got)
		}
	}
}
