// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/policies"
)

// attempt is what the command line of try asks for.
type attempt struct {
	paths     []string
	namespace string
	all       bool
}

// result is what would become of the claims of some files.
type result struct {
	// Binds says that all would be bound; nil where nobody can tell.
	Binds  *bool    `json:"binds"`
	Claims []*tried `json:"claims"`
	Notes  []string `json:"notes"`

	all bool
	// files is how many there are.
	files int
}

// tried is what would become of one claim.
type tried struct {
	// Namespace is empty where it has no name and names none.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// File and Line are where it begins.
	File string `json:"file"`
	Line int    `json:"line"`
	// Binds says that it would be bound; nil where nobody can tell.
	Binds *bool `json:"binds"`
	// Server is the one that it would get, with the score.
	Server string   `json:"server,omitempty"`
	Score  *float64 `json:"score,omitempty"`
	// WaitsFor is what it would wait for.
	WaitsFor string `json:"waitsFor,omitempty"`
	// Problems are what is wrong with it as it is written, each with file, line and column.
	Problems  []string  `json:"problems"`
	Admission admission `json:"admission"`
	*assessment

	claim *v1alpha1.ServerClaim
	done  bool
}

type admission struct {
	// Answer is allowed, denied, exists, or unasked.
	Answer   string   `json:"answer"`
	Message  string   `json:"message,omitempty"`
	Warnings []string `json:"warnings"`
}

// The answers of admission.
const (
	allowed = "allowed"
	denied  = "denied"
	exists  = "exists"
	unasked = "unasked"
)

// warnings collects the warnings of the API server. Several claims may get the same.
type warnings struct {
	mu  sync.Mutex
	all []string
}

// warningCode is the code of the warnings that are for people (RFC 7234, 5.5.7).
const warningCode = 299

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	if text = strings.TrimSpace(text); code != warningCode || text == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

// take gives what has come since it was asked last.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := append([]string{}, w.all...)
	w.all = nil
	return taken
}

func (r *attempt) try(ctx context.Context, c client.Client, warned *warnings, namespace string, docs documents) (*result, error) {
	if err := docs.distinct(namespace); err != nil {
		return nil, err
	}
	w, err := look(ctx, c, docs.namespaces(namespace)...)
	if err != nil {
		return nil, err
	}
	warned.take()
	out := &result{Binds: ptr.To(true), Claims: []*tried{}, Notes: []string{}, all: r.all, files: len(r.paths)}
	if len(docs.others) > 0 {
		out.Notes = append(out.Notes, "passed over, because they are no claims: "+strings.Join(docs.others, ", "))
	}
	for _, doc := range docs.all {
		out.Claims = append(out.Claims, triedOf(ctx, c, warned, namespace, doc))
	}
	w.countQuotas(out.Claims)
	if w.blind() {
		out.Notes = append(out.Notes, "you may not list servers, so it is not known whether the claims would be bound ("+w.unseen.Error()+")")
	}
	for _, one := range out.Claims {
		if err := r.serve(ctx, w, one, out.Claims); err != nil {
			return nil, err
		}
		out.Binds = both(out.Binds, one.Binds)
	}
	out.Notes = append(out.Notes, w.notes...)
	return out, nil
}

// both is whether both hold; nil where nobody can tell.
func both(a, b *bool) *bool {
	switch {
	case a != nil && !*a || b != nil && !*b:
		return ptr.To(false)
	case a == nil || b == nil:
		return nil
	}
	return a
}

// triedOf is a claim of a file with what can be said of it alone.
func triedOf(ctx context.Context, c client.Client, warned *warnings, namespace string, doc document) *tried {
	t := &tried{Name: cmp.Or(doc.claim.Name, doc.claim.GenerateName), Namespace: doc.claim.Namespace, File: doc.file, Line: doc.line,
		claim: doc.claim, Problems: append([]string{}, doc.wrong...), Admission: admission{Answer: unasked, Warnings: []string{}}}
	doc.claim.Namespace = cmp.Or(doc.claim.Namespace, namespace)
	if t.Name != "" { // what has no name may be no claim at all
		t.Namespace = doc.claim.Namespace
	}
	if len(t.Problems) == 0 {
		t.ask(ctx, c, warned)
	}
	return t
}

// ask has the API server and its admission look at a claim.
func (t *tried) ask(ctx context.Context, c client.Client, warned *warnings) {
	asked := t.claim.DeepCopy()
	asked.ResourceVersion, asked.UID, asked.ManagedFields = "", "", nil
	err := c.Create(ctx, asked, client.DryRunAll, client.FieldOwner(access.FieldManager))
	t.Admission.Warnings = warned.take()
	switch {
	case err == nil:
		t.Admission.Answer = allowed
		t.claim = asked // with what the API server and its webhooks made of it
		t.claim.Status = v1alpha1.ServerClaimStatus{}
		return
	case apierrors.IsAlreadyExists(err):
		t.Admission.Answer = exists
		t.Admission.Message = fmt.Sprintf("there is a claim of that name; metalaw explain claim %s -n %s says how it stands",
			t.claim.Name, t.claim.Namespace)
		return
	}
	words := access.Explain(err, "create", access.ServerClaims).Error()
	t.Admission.Message = strings.TrimPrefix(words, "denied: ")
	t.Admission.Answer = denied
	if access.LacksRight(err) {
		t.Admission.Answer = unasked
	}
}

func (t *tried) title() string {
	if t.Name == "" {
		return "A document without a name"
	}
	return "Claim " + t.Namespace + "/" + t.Name
}

// unsound says what a claim would need before servers are looked for; empty where that is nothing.
func (t *tried) unsound() string {
	switch {
	case len(t.Problems) > 0:
		return "a claim that can be read"
	case t.Admission.Answer == denied:
		return "admission, which refuses it"
	case t.Admission.Answer == exists:
		return "another name"
	case v1alpha1.Ignored(t.claim):
		return leftAlone
	default:
		return ""
	}
}

// group are the claims that get servers together with this one, itself among them: those of its gang. One that names its server, which
// is written for it already, asks for nothing together with others.
func (t *tried) group(all []*tried) []*tried {
	own := policies.GangOf(t.claim)
	if own == nil || t.claim.Spec.ServerRef != nil {
		return []*tried{t}
	}
	return slices.DeleteFunc(slices.Clone(all), func(o *tried) bool {
		gang := policies.GangOf(o.claim)
		return gang == nil || gang.Name != own.Name || o.claim.Namespace != t.claim.Namespace || o.unsound() != "" || o.claim.Spec.ServerRef != nil
	})
}

func (r *attempt) serve(ctx context.Context, w *world, one *tried, all []*tried) error {
	if unsound := one.unsound(); unsound != "" {
		one.WaitsFor, one.Binds = unsound, ptr.To(false)
		return nil
	}
	if one.done || w.blind() {
		return nil
	}
	if s := w.written(one.claim); s != nil { // it comes back
		one.becomes(w.comesBack(s))
		return nil
	}
	if misnames := w.misnames(one.claim); misnames != "" {
		one.WaitsFor, one.Binds = misnames, ptr.To(false)
		return nil
	}
	group, some := one.group(all), []*claims.Claim{}
	for _, t := range group {
		t.done = true
		some = append(some, w.claimOf(t.claim))
	}
	if one.claim.Spec.ServerRef == nil && policies.GangOf(one.claim) != nil { // members that are stored already take part
		some = append(some, slices.DeleteFunc(w.gang(one.claim), func(c *claims.Claim) bool { return w.objects[c] == one.claim })...)
	}
	outcomes, err := w.serve(ctx, some, r.all)
	if err != nil {
		return err
	}
	for i, t := range group {
		t.becomes(outcomes[i])
	}
	return nil
}

// comesBack is what would become of a claim for which a server is held: a former one of its name had it.
func (w *world) comesBack(s *v1alpha1.Server) outcome {
	if w.obstacle(s) != "" {
		return outcome{waitsFor: w.reservedWords(s)}
	}
	return outcome{server: solve.Verdict{Name: s.Name}, binds: true}
}

func (t *tried) becomes(o outcome) {
	t.assessment, t.WaitsFor = o.assessment, o.waitsFor
	if !o.unknown {
		t.Binds = ptr.To(o.binds)
	}
	if o.binds {
		t.Server, t.Score = o.server.Name, o.server.Score
	}
}

func (p *page) tried(r *result) {
	for i, t := range r.Claims {
		if i > 0 {
			p.Printf("\n")
		}
		verdict := p.Paint(terminal.Bad, "would wait", 0)
		switch {
		case t.Binds == nil:
			verdict = p.Paint(terminal.Wary, "unknown", 0)
		case *t.Binds:
			verdict = p.Paint(terminal.Good, "would be bound", 0) + " to " + t.Server
		case len(t.Problems) > 0 || t.Admission.Answer == denied || t.Admission.Answer == exists:
			verdict = p.Paint(terminal.Bad, "would not be stored", 0)
		}
		place := fmt.Sprintf("line %d", t.Line)
		if r.files > 1 {
			place += " of " + t.File
		}
		p.Printf("%s (%s): %s\n", terminal.Plain(t.title()), terminal.Plain(place), verdict)
		for _, problem := range t.Problems {
			p.Printf("  %s\n", terminal.Plain(problem))
		}
		p.Printf("\n")
		p.Field("Admission", strings.TrimSuffix(t.Admission.Answer+": "+t.Admission.Message, ": "))
		for _, warning := range t.Admission.Warnings {
			p.Field("Warning", warning)
		}
		p.Field("Waits for", t.WaitsFor)
		p.assessed(t.assessment, t.Server != "" && !r.all)
	}
	p.Notes(r.Notes)
}

// countQuotas refuses claims that admission lets pass one by one, and for which their namespaces have no room once those before them
// are there: a dry run stores nothing.
func (w *world) countQuotas(all []*tried) {
	before := map[string][]*v1alpha1.ServerClaim{}
	for _, t := range all {
		if t.Admission.Answer != allowed {
			continue
		}
		namespace := t.claim.Namespace
		if words := w.overQuota(t.claim, before[namespace]); words != "" {
			t.Admission.Answer, t.Admission.Message = denied, words
			continue
		}
		before[namespace] = append(before[namespace], t.claim)
	}
	if w.bundle != nil {
		return
	}
	because := "the policy in force is not known here"
	if w.unlisted != "" {
		because = "you may not list " + w.unlisted
	}
	for _, namespace := range slices.Sorted(maps.Keys(before)) {
		if n := len(before[namespace]); n > 1 {
			w.notes = append(w.notes, fmt.Sprintf("admission was asked about each claim by itself: whether a quota of namespace %s has room for "+
				"all %d is not known, because %s", namespace, n, because))
		}
	}
}

// overQuota says that the namespace of a claim has no room for it once some others are there; empty where it has.
func (w *world) overQuota(c *v1alpha1.ServerClaim, before []*v1alpha1.ServerClaim) string {
	limit, ok := w.quota().Limit(c.Namespace)
	if !ok || slices.ContainsFunc(w.servers, func(s v1alpha1.Server) bool { return policies.ComesBack(c, &s) }) {
		return ""
	}
	u := policies.ClaimUsage{Namespace: c.Namespace, Revision: w.bundle.Revision.Name, Used: len(before), Limit: limit}
	for i := range w.claims {
		if other := &w.claims[i]; other.Namespace == c.Namespace && policies.TakesServer(other) {
			u.Used++
		}
	}
	if len(before) > 0 {
		u.Among = fmt.Sprintf("%d of them come before it here", len(before))
	}
	u.Kept = slices.ContainsFunc(w.servers, func(s v1alpha1.Server) bool { return policies.HeldFor(&s, c) })
	if words := u.Refusal(); words != "" {
		return field.Forbidden(field.NewPath("metadata", "namespace"), words).Error()
	}
	return ""
}
