// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
)

// aCluster holds some objects, and shows claims in single namespaces only.
func aCluster(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	list := func(ctx context.Context, c client.WithWatch, into client.ObjectList, given ...client.ListOption) error {
		var options client.ListOptions
		options.ApplyOptions(given)
		if _, isClaims := into.(*v1alpha1.ServerClaimList); isClaims && options.Namespace == "" {
			return apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "serverclaims"}, "", errors.New(
				`User "tina" cannot list resource "serverclaims" in API group "metal.ironcore.dev" at the cluster scope`))
		}
		return c.List(ctx, into, given...)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{List: list}).Build()
}

// decoded are the claims of a file named f.
func decoded(t *testing.T, text string) documents {
	t.Helper()
	docs, err := decode("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

func TestTwoClaimsOfOneNameAreRefused(t *testing.T) {
	one := func(metadata string) string {
		return "---\n" + head + "metadata: {" + metadata + "}\nspec: {power: \"On\", image: os}\n"
	}
	const gang = `annotations: {policy.metalaw.dev/placement: "gang: {name: db, size: 2}"}`
	for name, c := range map[string]struct {
		text, want string
	}{
		"two names":                           {one("name: a") + one("name: b"), ""},
		"one name in two namespaces":          {one("name: a") + one("name: a, namespace: other"), ""},
		"names that the API server will make": {one("generateName: a-") + one("generateName: a-"), ""},
		"one name": {one("name: a") + one("name: a"),
			"claim team/a is there twice, at f:2 and at f:7: give one of them another name, or take it out"},
		"one name, where one document leaves the namespace out": {one("name: a") + one("name: a, namespace: team"),
			"claim team/a is there twice, at f:2 and at f:7: give one of them another name, or take it out"},
		"one name in a gang": {one("name: a, "+gang) + one("name: a, "+gang),
			"claim team/a is there twice, at f:2 and at f:7: give one of them another name, or take it out"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&attempt{}).try(t.Context(), aCluster(t), &warnings{}, "team", decoded(t, c.text))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if c.want != "" && usage.ExitCode(err) != usage.ExitUsage {
				t.Errorf("exit code %d", usage.ExitCode(err))
			}
		})
	}
}

func TestOtherClaimsAreThoseOfTheNamespacesOfTheClaimsThatAreTried(t *testing.T) {
	member := func(namespace string) string {
		return "---\n" + head + "metadata:\n  name: db-0\n" + namespace + "  annotations:\n" +
			"    policy.metalaw.dev/placement: 'gang: {name: db, size: 2}'\nspec: {power: \"On\", image: os}\n"
	}
	stored := func(namespace string) client.Object {
		c := aMember("db-1", func(c *v1alpha1.ServerClaim) { c.Namespace = namespace })
		return &c
	}
	const alone = "its gang: 1 of its 2 members exist; none of them gets a server until all do"
	const together = "what the policy says, which is not known here"
	for name, c := range map[string]struct {
		stored []client.Object
		text   string
		want   []string
	}{
		"that of the document": {[]client.Object{stored("team-a")}, member("  namespace: team-a\n"), []string{together}},
		"that of the command line, where the document names none": {[]client.Object{stored("default")}, member(""), []string{together}},
		"each of several": {[]client.Object{stored("team-a"), stored("team-b")},
			member("  namespace: team-a\n") + member("  namespace: team-b\n"), []string{together, together}},
		"no other": {[]client.Object{stored("default")}, member("  namespace: team-a\n"), []string{alone}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := aServer("a", ""), aServer("b", "")
			r, err := (&attempt{}).try(t.Context(), aCluster(t, append(c.stored, &a, &b)...), &warnings{}, "default", decoded(t, c.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, one := range r.Claims {
				got = append(got, one.WaitsFor)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryFileOfTheCommandLineIsRead(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := write("a", head+"metadata: {name: a}\n"), write("b", "\n"+head+"metadata: {name: b}\n")
	none := write("none", "kind: Secret\n")
	for name, c := range map[string]struct {
		paths, want []string
		err         string
	}{
		"none":                     {nil, nil, "which claims? Name a file with -f, or - for standard input; see --help"},
		"one":                      {[]string{a}, []string{"a:1 a"}, ""},
		"two, and standard input":  {[]string{b, "-", a}, []string{"b:2 b", "<stdin>:1 in", "a:1 a"}, ""},
		"one that is there twice":  {[]string{"-", "-"}, nil, "-f - is given twice; name each file once"},
		"one without a name":       {[]string{""}, nil, "-f names no file; name one, or - for standard input; see --help"},
		"one without an end":       {[]string{"/dev/zero"}, nil, "/dev/zero has more than 16 MiB, which is more than files of claims have; divide it"},
		"one that holds no claims": {[]string{a, none}, nil, "none holds no ServerClaim"},
	} {
		t.Run(name, func(t *testing.T) {
			docs, err := (&attempt{paths: c.paths}).read(t.Context(), strings.NewReader(head+"metadata: {name: in}\n"))
			var got []string
			for _, doc := range docs.all {
				got = append(got, doc.place()+" "+doc.claim.Name)
			}
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], folder+"/")
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			said := ""
			if err != nil {
				said = strings.TrimPrefix(err.Error(), folder+"/")
			}
			if diff := cmp.Diff(c.err, said); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheFlagForAFileMayBeRepeated(t *testing.T) {
	folder := t.TempDir()
	for name, files := range map[string][]string{
		"where the first cannot be read":  {"missing", "here"},
		"where the second cannot be read": {"here", "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"try", "--kubeconfig", "/does/not/exist"}
			for _, file := range files {
				args = append(args, "-f", filepath.Join(folder, file))
			}
			if err := os.WriteFile(filepath.Join(folder, "here"), []byte(head+"metadata: {name: a}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := Commands()[1]
			cmd.SetArgs(args)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), filepath.Join(folder, "missing")) {
				t.Error(err)
			}
		})
	}
}
