// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/migrate/release"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/internal/restored"
	"github.com/metalaw/metalaw/policies"
)

// word is a value of OperationAnnotation that an object needs, so that the release leaves it alone.
type word struct {
	Kind release.Kind `json:"kind"`
	Name string       `json:"name"`
	Word string       `json:"word"`
}

// runBack judges, and with write stores the words that are missing and judges again.
func (o *options) runBack(ctx context.Context, t *terminal.Terminal, to release.Release, write bool) error {
	c, err := o.Connect(t.Err)
	if err != nil {
		return err
	}
	f, err := readForBack(ctx, c)
	if err != nil {
		return err
	}
	v := f.back(to)
	if write && len(v.Words) > 0 {
		written, failed := f.store(ctx, c, v.Words)
		if f, err = readForBack(ctx, c); err != nil {
			return err
		}
		v = f.back(to)
		v.Findings = append(v.Findings, failed...)
		v.Notes = append(written, v.Notes...)
	}
	next := fmt.Sprintf("%s checked for %s; stop metalaw, and go on with step 3 of going back",
		terminal.Count(len(f.servers), "server"), to.Name())
	return v.show(t, o.output, next)
}

// readForBack reads the Endpoints too: metal-operator makes BMCs of them.
func readForBack(ctx context.Context, c client.Reader) (*fleet, error) {
	f, err := read(ctx, c)
	if err != nil {
		return nil, err
	}
	var endpoints v1alpha1.EndpointList
	if err := c.List(ctx, &endpoints); err != nil {
		return nil, access.Explain(err, "list", access.Endpoints)
	}
	f.endpoints = endpoints.Items
	return f, nil
}

// back finds what keeps a release of metal-operator from having the fleet: it does not know the mark Dirty, nor some
// states, and it honours no word but its own.
func (f *fleet) back(to release.Release) verdict {
	v := verdict{Findings: []finding{}}
	if !f.ours {
		v.add("cluster", "-", "the cluster serves no ServerInventory: whose data is on which machine cannot be told")
	}
	stands := map[string]bool{}
	for i := range f.servers {
		s := &f.servers[i]
		inv := f.inventoryOf(s)
		if inv != nil {
			stands[inv.Name] = true
		}
		f.checkBack(s, inv, to, &v)
	}
	for i := range f.bmcs {
		v.checkWord(release.BMC, &f.bmcs[i], f.bmcs[i].Name, to)
	}
	for i := range f.endpoints {
		v.checkWord(release.Endpoint, &f.endpoints[i], f.endpoints[i].Name, to)
	}
	for key, c := range f.claims {
		v.checkWord(release.ServerClaim, c, key.String(), to)
	}
	for name, inv := range f.inventories {
		if restored.On(inv) != nil && !stands[name] {
			v.Notes = append(v.Notes, fmt.Sprintf("machine %s is in doubt after a restore and has no Server; "+
				"metal-operator offers it if a BMC of its shows it", name))
		}
		if policies.KeptDirty(inv) && !stands[name] {
			v.Notes = append(v.Notes, fmt.Sprintf("machine %s is Dirty and has no Server; "+
				"metal-operator offers it if a BMC of its shows it", name))
		}
	}
	v.sort()
	return v
}

// checkServerWord judges a Server that is left alone, and says that it is. A word on its BMC does not count: no release
// looks there.
func (f *fleet) checkServerWord(s *v1alpha1.Server, to release.Release, v *verdict) bool {
	operation := s.Annotations[v1alpha1.OperationAnnotation]
	switch bmc := f.holderOf(s); {
	case v1alpha1.IsIgnore(operation):
		v.checkWord(release.Server, s, s.Name, to)
	case bmc != "":
		v.need(s, to, "it is left alone only by the word on its BMC "+bmc+", and "+to.Name()+
			" looks for one on the Server")
	default:
		return false
	}
	return true
}

// checkBack judges one Server.
func (f *fleet) checkBack(s *v1alpha1.Server, inv *policyv1alpha1.ServerInventory, to release.Release, v *verdict) {
	if f.checkServerWord(s, to, v) {
		return
	}
	if restored.Marked(s) || restored.On(inv) != nil {
		v.add("server", s.Name, "it is in doubt since the cluster's store was restored, and metal-operator does not "+
			"know that; compare it, then: metalaw restored --confirm %s", s.Name)
	}
	l := s.Status.Lifecycle
	dirty := policies.KeptDirty(inv) || l != nil && slices.Contains(l.Marks, policies.MarkDirty)
	switch state := s.Status.State; {
	case l == nil:
		v.add("server", s.Name, "it has no status.lifecycle, so that it is not known whether it is Dirty; "+
			"let the manager take it over first")
	case state == v1alpha1.StateDiscovery || state == v1alpha1.StateCleanup:
		v.add("server", s.Name, "it is in %s; wait until it has left that state", state)
	case dirty && state == v1alpha1.StateReserved && f.claimOf(s) == nil:
		v.need(s, to, "it is Dirty and Reserved, and its claim does not exist, so that metal-operator may release and "+
			"offer it")
	case dirty && state != v1alpha1.StateReserved:
		v.need(s, to, fmt.Sprintf("it is Dirty and in %s, and metal-operator may offer it", state))
	case !to.Has(state):
		v.Notes = append(v.Notes, fmt.Sprintf("server %s is in %s, a state that %s does not know", s.Name, state, to.Name()))
	}
}

// holderOf names the BMC whose word leaves a Server alone, also before the manager has noted that on the Server.
func (f *fleet) holderOf(s *v1alpha1.Server) string {
	if name := s.Annotations[v1alpha1.HeldByBMCAnnotation]; name != "" {
		return name
	}
	for i := range f.bmcs {
		if b := &f.bmcs[i]; s.Spec.BMCRef != nil && s.Spec.BMCRef.Name == b.Name && v1alpha1.IgnoresChildren(b) {
			return b.Name
		}
	}
	return ""
}

// need records that a Server must bear the word of the release. Another operation in its place is not overwritten.
func (v *verdict) need(s *v1alpha1.Server, to release.Release, why string) {
	if operation := s.Annotations[v1alpha1.OperationAnnotation]; operation != "" {
		v.add("server", s.Name, "%s; the operation %s stands where the word belongs: wait until it has ended, or remove it",
			why, operation)
		return
	}
	v.add("server", s.Name, "%s; have it wiped, or run this with --write, which annotates it with %s=%s", why,
		v1alpha1.OperationAnnotation, to.Word())
	v.Words = append(v.Words, word{release.Server, s.Name, to.Word()})
}

// checkWord refuses a word that the release does not honour on an object of a kind.
func (v *verdict) checkWord(kind release.Kind, o client.Object, name string, to release.Release) {
	value := o.GetAnnotations()[v1alpha1.OperationAnnotation]
	if !v1alpha1.IsIgnore(value) || to.Honours(kind, value) {
		return
	}
	v.add(string(kind), name, "it is left alone by %s=%s, which %s does not honour: it %s; run this with --write, "+
		"which puts %s there", v1alpha1.OperationAnnotation, value, to.Name(), to.Wrong(kind), to.Word())
	v.Words = append(v.Words, word{kind, name, to.Word()})
}

// store writes words on the objects as they were judged. The Servers come first: the word on a BMC may have held them
// until then.
func (f *fleet) store(ctx context.Context, c client.Writer, words []word) (written []string, failed []finding) {
	words = slices.Clone(words)
	slices.SortStableFunc(words, func(a, b word) int { return cmp.Compare(rank(a.Kind), rank(b.Kind)) })
	for _, w := range words {
		o, resource := f.object(w)
		changed, ok := o.DeepCopyObject().(client.Object)
		if !ok {
			continue
		}
		annotations := changed.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.OperationAnnotation] = w.Word
		changed.SetAnnotations(annotations)
		patch := mergepatch.Locked(o)
		switch err := c.Patch(ctx, changed, patch, client.FieldOwner(access.FieldManager)); {
		case apierrors.IsConflict(err):
			failed = append(failed, finding{Kind: string(w.Kind), Name: w.Name,
				Message: "it changed meanwhile, and no word was written on it; run this again"})
		case err != nil:
			failed = append(failed, finding{Kind: string(w.Kind), Name: w.Name, Message: "no word was written on it: " +
				access.Explain(err, "patch", resource).Error()})
		default:
			written = append(written, fmt.Sprintf("wrote %s=%s on %s %s", v1alpha1.OperationAnnotation, w.Word, w.Kind, w.Name))
		}
	}
	return written, failed
}

func rank(kind release.Kind) int {
	return slices.Index([]release.Kind{release.Server, release.ServerClaim, release.Endpoint, release.BMC}, kind)
}

// object finds what a word is for, and its resource.
func (f *fleet) object(w word) (client.Object, string) {
	switch w.Kind {
	case release.Server:
		if i := slices.IndexFunc(f.servers, func(s v1alpha1.Server) bool { return s.Name == w.Name }); i >= 0 {
			return &f.servers[i], access.Servers
		}
	case release.BMC:
		if i := slices.IndexFunc(f.bmcs, func(b v1alpha1.BMC) bool { return b.Name == w.Name }); i >= 0 {
			return &f.bmcs[i], access.BMCs
		}
	case release.Endpoint:
		if i := slices.IndexFunc(f.endpoints, func(e v1alpha1.Endpoint) bool { return e.Name == w.Name }); i >= 0 {
			return &f.endpoints[i], access.Endpoints
		}
	case release.ServerClaim:
		namespace, name, _ := strings.Cut(w.Name, "/")
		if c := f.claims[types.NamespacedName{Namespace: namespace, Name: name}]; c != nil {
			return c, access.ServerClaims
		}
	}
	return nil, ""
}
