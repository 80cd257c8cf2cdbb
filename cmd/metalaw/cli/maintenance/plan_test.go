// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
)

// manyServers are free servers n1 to n3; n1 is the canary.
func manyServers() []client.Object {
	var all []client.Object
	for i := range 3 {
		s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i+1), Labels: map[string]string{}}}
		s.Status.State, s.Status.PowerState, s.Status.Lifecycle = v1alpha1.StateAvailable, v1alpha1.PowerStateOff, &v1alpha1.LifecycleStatus{}
		if i == 0 {
			s.Labels["canary"] = "true"
		}
		all = append(all, s)
	}
	return all
}

func of(server string) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) { m.Spec.ServerRef.Name = server }
}

const theFile = `apiVersion: v1
kind: List
items:
- {apiVersion: metal.ironcore.dev/v1alpha1, kind: ServerMaintenance, metadata: {name: f1, namespace: ops}, spec: {serverRef: {name: n1}}}
- {apiVersion: metal.ironcore.dev/v1alpha1, kind: ServerMaintenance, metadata: {name: f2}, spec: {serverRef: {name: n2}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerMaintenance
metadata:
  name: f3
spec:
  serverRef: {name: n3}
`

func TestAPlanSaysWhenMaintenancesWouldBeGranted(t *testing.T) {
	const one = `[{name: fleet, most: 1}]`
	frozen := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
	frozen.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "maintenance-paused", Level: policyv1alpha1.FreezeMaintenance, Reason: "INC-1"}}
	claimed := node1(func(s *v1alpha1.Server) { s.Status.Lifecycle = &v1alpha1.LifecycleStatus{} })
	nothingGrants := says("Granted", "False", "NothingGrants", "off")
	for name, c := range map[string]struct {
		objects []client.Object
		file    string
		want    string
		whole   bool
	}{
		"none": {[]client.Object{inForceWith(t, "[]", "[]", "[]")}, "", "no maintenance waits for a server\n", true},
		"those of a file, one after the other": {append(manyServers(), inForceWith(t, "[]", one, "[]")), theFile,
			`WHEN                UNTIL               SERVER   MAINTENANCE     UNDER, OR WHY NOT
now                 2026-01-31 13:00Z   n1       ops/f1 (file)   -
2026-01-31 13:00Z   2026-01-31 14:00Z   n2       ops/f2 (file)   now in the way: LimitReached (n1)
2026-01-31 14:00Z   2026-01-31 15:00Z   n3       ops/f3 (file)   now in the way: LimitReached (n1)

3 of 3 would be granted until 2026-02-14 12:00Z under policy fleet-3
note: passed over, because they are no ServerMaintenances: ConfigMap
`, true},
		"those of a file, in a window and waves": {append(manyServers(), inForceWith(t, atNight, "[]", "[{name: canary, matchLabels: {canary: \"true\"}, pause: 2h}]")), theFile,
			`WHEN                UNTIL               SERVER   MAINTENANCE     UNDER, OR WHY NOT
2026-01-31 22:00Z   2026-01-31 23:00Z   n1       ops/f1 (file)   window nights, wave canary, now in the way: WindowClosed
2026-02-01 01:00Z   2026-02-01 02:00Z   n2       ops/f2 (file)   window nights, now in the way: WaveWaits, WindowClosed
2026-02-01 01:00Z   2026-02-01 02:00Z   n3       ops/f3 (file)   window nights, now in the way: WaveWaits, WindowClosed

3 of 3 would be granted until 2026-02-14 12:00Z under policy fleet-3
note: passed over, because they are no ServerMaintenances: ConfigMap
`, true},
		"those that are stored": {append(manyServers(), inForceWith(t, "[]", "[]", "[]"), claimed, web(), aMaintenance("a", waiting, askedOf("c1")),
			aMaintenance("old", of("n1"), in("Pending"), nothingGrants), aMaintenance("adopted", of("n2"), in("Pending"), nothingGrants, annotated("policy.metalaw.dev/adopt", "true")),
			aMaintenance("denied", of("n3"), in("Pending"), says("Granted", "False", "NotPermitted", "user jane lacks maintain"))), "",
			`WHEN    UNTIL               SERVER   MAINTENANCE   UNDER, OR WHY NOT
now     2026-01-31 13:00Z   node-1   ops/a         after the holder was asked
now     2026-01-31 13:00Z   n2       ops/adopted   -
never   -                   n3       ops/denied    NotPermitted: user jane lacks maintain
never   -                   n1       ops/old       NotAdopted: It is older than the manager's consent to grant maintenances. Annotate it policy.metalaw.dev/adopt=true to have it granted.

2 of 4 would be granted until 2026-02-14 12:00Z under policy fleet-3
`, false},
		"while they are paused": {append(manyServers(), inForceWith(t, "[]", "[]", "[]"), frozen, aMaintenance("a", of("n1"))), "",
			`WHEN    UNTIL   SERVER   MAINTENANCE   UNDER, OR WHY NOT
never   -       n1       ops/a         Frozen: Held back by freeze "maintenance-paused" (Maintenance): INC-1.

0 of 1 would be granted until 2026-02-14 12:00Z under policy fleet-3
`, false},
		"in place of one that is stored": {append(manyServers(), inForceWith(t, "[]", "[]", "[]"), aMaintenance("f3", of("n1"), in("Pending"))), `
{"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": "ServerMaintenance", "metadata": {"name": "f3"}, "spec": {"serverRef": {"name": "n2"}}}`,
			`WHEN   UNTIL               SERVER   MAINTENANCE     UNDER, OR WHY NOT
now    2026-01-31 13:00Z   n2       ops/f3 (file)   -

1 of 1 would be granted until 2026-02-14 12:00Z under policy fleet-3
`, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, docs := planOf(t, cluster(t, nil, c.objects...), c.file)
			term, out := screen()
			p.text(term)
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
			if got := p.complete(len(docs.all) > 0); got != c.whole {
				t.Errorf("complete is %t", got)
			}
		})
	}
}

// planOf plans two weeks from noon on, with the objects of a file where its text is not empty.
func planOf(t *testing.T, api client.Client, file string) (*plan, *documents) {
	t.Helper()
	docs, err := read(t, file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&planRequest{length: 14 * 24 * time.Hour}).plan(t.Context(), api, docs, noon)
	if err != nil {
		t.Fatal(err)
	}
	return p, docs
}

func read(t *testing.T, file string) (*documents, error) {
	t.Helper()
	if file == "" {
		return &documents{}, nil
	}
	path := filepath.Join(t.TempDir(), "maintenances.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return readFiles(t.Context(), nil, []string{path}, "ops")
}

func TestWhatAdmissionRefusesIsPlannedNever(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a template for another server": {errors.New(`admission webhook "servermaintenance.metalaw.dev" denied the request: the template names another server`),
			"never   -                   n1       ops/f1 (file)   RefusedByAdmission: the template names another server\n"},
		"a maker without the right to create": {apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("servermaintenances").GroupResource(), "f1",
			errors.New(`User "tina" cannot create resource "servermaintenances" in API group "metal.ironcore.dev" in the namespace "ops"`)),
			`note: admission was not asked about the maintenances of the files (forbidden: User "tina" cannot create resource "servermaintenances"`},
	} {
		t.Run(name, func(t *testing.T) {
			api := interceptor.NewClient(cluster(t, nil, append(manyServers(), inForceWith(t, "[]", "[]", "[]"))...), interceptor.Funcs{
				Create: func(ctx context.Context, inner client.WithWatch, o client.Object, given ...client.CreateOption) error {
					if o.GetName() == "f1" {
						return c.err
					}
					return inner.Create(ctx, o, given...)
				}})
			p, _ := planOf(t, api, theFile)
			term, out := screen()
			p.text(term)
			if !strings.Contains(out.String(), c.want) {
				t.Errorf("got\n%s", out.String())
			}
		})
	}
}

func TestAPlanThatCannotBeMade(t *testing.T) {
	for name, c := range map[string]struct {
		denied  []string
		objects []client.Object
		want    string
	}{
		"without the servers": {[]string{"servers"}, nil, `forbidden: User "tina" cannot list resource "servers" in API group "metal.ironcore.dev" at the cluster scope; ` +
			`it takes the verb "list" on servers.metal.ironcore.dev; the ClusterRole metalaw-fleet-viewer has it`},
		"without a policy": {nil, nil, "no policy is in force, and no maintenance is granted; metalaw policy history shows the revisions"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&planRequest{length: time.Hour}).plan(t.Context(), cluster(t, c.denied, c.objects...), &documents{}, noon)
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFilesThatMakeNoSense(t *testing.T) {
	const head = "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerMaintenance\n"
	for name, c := range map[string]struct {
		file, want string
		usage      bool
	}{
		"an unknown field": {head + "metadata: {name: a}\nspec: {server: n1}\n", `: ServerMaintenance a: unknown field "spec.server"`, false},
		"another version":  {"apiVersion: v1\nkind: ServerMaintenance\n", `: a ServerMaintenance has apiVersion "v1"; write metal.ironcore.dev/v1alpha1`, false},
		"a key twice":      {head + "kind: ServerMaintenance\n", `key "kind" already set in map`, false},
		"no maintenance":   {"apiVersion: v1\nkind: ConfigMap\n", "the files hold no ServerMaintenance", false},
		"no name":          {head + "spec: {serverRef: {name: n1}}\n", "maintenance 1 of the files has no name or no spec.serverRef", true},
		"two of one name":  {head + "metadata: {name: a}\nspec: {serverRef: {name: n1}}\n---\n" + head + "metadata: {name: a}\nspec: {serverRef: {name: n1}}\n", "maintenance ops/a is there twice; give one of them another name", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, c.file)
			if err == nil || !strings.Contains(err.Error(), c.want) || usage.Is(err) != c.usage {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestHowFarAPlanLooks(t *testing.T) {
	for word, want := range map[string]time.Duration{"14d": 14 * 24 * time.Hour, "36h": 36 * time.Hour, "90m": 90 * time.Minute, "0": 0, "-1h": 0, "1w": 0, "400d": 0, "d": 0} {
		r := &planRequest{horizon: word}
		err := r.check()
		if (err == nil) != (want > 0) || err == nil && r.length != want || err != nil && !usage.Is(err) {
			t.Errorf("%s: %s, %v", word, r.length, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(theFile))
	f.Fuzz(func(_ *testing.T, text []byte) { _ = (&documents{}).decode(text) }) // it must not panic
}
