// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// What is kept free for a gang is no promise to others, nor is it known where nothing says so.
func TestWhatMayBeKeptForAGangIsPromisedToNobody(t *testing.T) {
	const ofGang, namesC, wantsC = "gang: {name: db, size: 3}\n", "serverRef: {name: c}", `policy.metalaw.dev/placement: 'where: server.name == "c"'`
	const urgent = `policy.metalaw.dev/priority: "9"`
	const turn, orKept = "its turn: it would get c now, unless one of those before it takes that", ", or it is kept free for a gang that has waited longer"
	const doubtful, bound = "unknown: nothing, unless c is kept free for a gang that has waited longer", "true: c"
	const mayWait = "whether a server is kept free for a gang that has waited longer is for the manager alone to know; " +
		"where it is, claim team/web waits until that gang has others or is gone"
	const mayDiffer = "c may be kept free for a gang that has waited longer, which is for the manager alone to know; claim team/web gets another then"
	for name, c := range map[string]struct {
		gang    string
		members int
		waited  time.Duration
		free    []string
		web     string
		asks    string
		turn    string
		try     string
		note    string
	}{
		"a claim that names it":                 {web: namesC, turn: turn + orKept, try: doubtful, note: mayWait},
		"one whose placement asks for it":       {asks: wantsC, turn: turn + orKept, try: doubtful, note: mayWait},
		"one that could have any":               {turn: turn + orKept, try: doubtful, note: mayWait},
		"one that could have another":           {gang: `where: server.name in ["a", "b", "c"]`, free: []string{"e"}, turn: turn + orKept, try: bound, note: mayDiffer},
		"one that comes before the gang":        {asks: urgent, web: namesC, turn: "its turn: it would get c now", try: bound},
		"a gang that has not waited for long":   {waited: 4 * time.Minute, web: namesC, turn: turn, try: bound},
		"a gang of which a member is missing":   {members: 2, web: namesC, turn: turn, try: bound},
		"a gang that could never be whole":      {gang: `where: server.name in ["b", "c"]`, web: namesC, turn: turn, try: bound},
		"a gang that could not have the server": {gang: `where: server.name != "c"`, web: namesC, turn: turn, try: bound},
		"a gang that gets its servers":          {free: []string{"e", "f"}, web: namesC, turn: turn, try: bound},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			made := func(waited time.Duration) metav1.Time { return metav1.NewTime(now.Add(-waited)) }
			a, b, d := aServer("a", "x"), aServer("b", "y"), aServer("d", "z")
			objects := []client.Object{inForce(t), &a, &b, &d}
			for _, server := range append(c.free, "c") {
				s := aServer(server, "")
				objects = append(objects, &s)
			}
			waited, members := c.waited, c.members
			if waited == 0 {
				waited = 6 * time.Minute
			}
			if members == 0 {
				members = 3
			}
			for i := range members {
				one := aMember(fmt.Sprintf("db-%d", i), func(m *v1alpha1.ServerClaim) {
					m.Spec.Image, m.CreationTimestamp = "os", made(waited)
					m.Annotations[v1alpha1.PlacementAnnotation] = ofGang + c.gang
				})
				objects = append(objects, &one)
			}
			docs := decoded(t, head+"metadata: {name: web, annotations: {"+c.asks+"}}\nspec: {power: \"On\", image: os, "+c.web+"}\n")
			r, err := (&attempt{}).try(t.Context(), aCluster(t, objects...), &warnings{}, "team", docs)
			if err != nil {
				t.Fatal(err)
			}
			tried, notes := "unknown: "+r.Claims[0].WaitsFor, ""
			if r.Binds != nil {
				tried = fmt.Sprintf("%v: %s", *r.Binds, r.Claims[0].Server)
			}
			for _, note := range r.Notes {
				if note == mayWait || note == mayDiffer {
					notes += note
				}
			}

			web := docs.all[0].claim.DeepCopy()
			web.Namespace, web.UID, web.CreationTimestamp = "team", "uid-web", made(0)
			web.Finalizers, web.ResourceVersion = []string{v1alpha1.FinalizerServerClaim}, ""
			e, err := explain(t.Context(), aCluster(t, append(objects, web)...), "team", "web", false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{c.turn, c.try, c.note}, []string{e.WaitsFor, tried, notes}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whoever may list the claims of all namespaces knows of every gang.
func TestWhoDoesNotSeeTheClaimsOfOtherNamespacesIsToldSo(t *testing.T) {
	for name, c := range map[string]struct {
		everywhere bool
		server     string
		want       []string
	}{
		"one that would be bound":              {server: "", want: []string{unseenOthers}},
		"one that would wait anyway":           {server: "x", want: []string{}},
		"one that would be bound, to an admin": {everywhere: true, want: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			a := aServer("a", c.server)
			reader := aCluster(t, inForce(t), &a)
			if c.everywhere {
				reader = interceptor.NewClient(reader, interceptor.Funcs{List: func(ctx context.Context, inner client.WithWatch, into client.ObjectList,
					given ...client.ListOption) error {
					if _, isClaims := into.(*v1alpha1.ServerClaimList); isClaims {
						given = append(given, client.InNamespace("team"))
					}
					return inner.List(ctx, into, given...)
				}})
			}
			r, err := (&attempt{}).try(t.Context(), reader, &warnings{}, "team", decoded(t, head+"metadata: {name: web}\nspec: {power: \"On\", image: os}\n"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.Notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}
