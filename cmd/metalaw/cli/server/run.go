// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/mergepatch"
)

// atOnce is how many requests are in flight at a time.
const atOnce = 8

// run carries a request out: choose, plan, ask, store, follow, tell.
type run struct {
	request
	client client.WithWatch
	report *report
	// governing is what governs the servers, where the verb depends on it.
	governing governing
	// former are the refusals that were there before.
	former formerEvents
	// unreadable is why Events cannot be read, for want of a right; nil where they can be.
	unreadable error
}

func (r *run) do(ctx context.Context) error {
	servers, missing, err := r.choose(ctx)
	if err != nil {
		return err
	}
	claims, err := r.readHolders(ctx, r.client)
	if err != nil {
		return err
	}
	r.readGoverning(ctx, servers)
	plans := make([]result, len(servers))
	for i := range servers {
		plans[i] = r.planned(&servers[i], claims)
	}
	if err := r.idle(plans); err != nil {
		return err
	}
	if err := r.confirm(ctx, plans); err != nil {
		return err
	}
	r.report.begin(plans, missing)
	for _, m := range missing {
		r.report.add(m)
	}
	if r.follows() {
		r.rememberEvents(ctx)
	}
	asked := r.storeAll(ctx, servers, plans, claims)
	if r.follows() {
		r.follow(ctx, asked)
	}
	if r.verb.operation == v1alpha1.OperationUndoRelease && !r.report.output.Structured() {
		r.showClaims(servers)
	}
	return r.report.end()
}

// choose reads the servers that the request is about, by name. A name that does not exist is a result of its own.
func (r *run) choose(ctx context.Context) (found []v1alpha1.Server, missing []result, err error) {
	if len(r.names) == 0 {
		selector, err := labels.Parse(r.selector)
		if err != nil {
			return nil, nil, err
		}
		var list v1alpha1.ServerList
		if err := r.client.List(ctx, &list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return nil, nil, access.Explain(err, "list", access.Servers)
		}
		states := statesOf(list.Items)
		list.Items = slices.DeleteFunc(list.Items, func(s v1alpha1.Server) bool { return r.state != "" && string(s.Status.State) != r.state })
		if len(list.Items) == 0 {
			r.report.nothing()
			return nil, nil, fmt.Errorf("no server matches%s%s", r.choice(), states)
		}
		slices.SortFunc(list.Items, func(a, b v1alpha1.Server) int { return strings.Compare(a.Name, b.Name) })
		return list.Items, nil, nil
	}
	for _, name := range r.names {
		s := v1alpha1.Server{}
		switch err := r.client.Get(ctx, types.NamespacedName{Name: name}, &s); {
		case apierrors.IsNotFound(err):
			missing = append(missing, result{Name: name, Outcome: outcomeFailed, Message: "there is no server of this name"})
		case err != nil:
			return nil, nil, access.Explain(err, "get", access.Servers)
		default:
			found = append(found, s)
		}
	}
	return found, missing, nil
}

// statesOf says in which states servers are, for whoever asked for another one; nothing where there are none.
func statesOf(servers []v1alpha1.Server) string {
	if len(servers) == 0 {
		return ""
	}
	count := map[string]int{}
	for i := range servers {
		count[cmp.Or(string(servers[i].Status.State), "-")]++
	}
	var words []string
	for _, state := range slices.Sorted(maps.Keys(count)) {
		words = append(words, fmt.Sprintf("%d %s", count[state], state))
	}
	return "; without --state there are " + strings.Join(words, ", ")
}

func (r *run) choice() string {
	words := " --all"
	if r.selector != "" {
		words = " -l " + r.selector
	}
	if r.state != "" {
		words += " --state " + r.state
	}
	return words
}

// confirm shows what is about to be asked and wants a yes where somebody has to say it.
func (r *run) confirm(ctx context.Context, plans []result) error {
	affected := 0
	for i := range plans {
		if plans[i].Outcome == outcomeAsked || plans[i].Outcome == outcomeDone {
			affected++
		}
	}
	if affected == 0 || !r.asksFirst() {
		return nil
	}
	if !r.report.terminal.Asks {
		return usage.Errorf("%s of %s needs a confirmation, and no user is at this terminal to give it: add --yes, or look with --dry-run",
			r.verb.name, terminal.Count(affected, "server"))
	}
	what := r.verb.name
	if r.to != "" {
		what += " to " + r.to
	}
	if r.attests.disk != "" {
		what += " disk " + r.attests.disk + " as " + r.attests.method
	}
	question := fmt.Sprintf("%s: %s?", what, terminal.Count(affected, "server"))
	if r.override {
		question = "Safety rules that guard data may be set aside. " + question
	}
	return r.report.terminal.Consent(ctx, question, []string{"NAME", "STATE", "HOLDER", "WOULD BE", ""}, planRows(plans))
}

func planRows(plans []result) [][]string {
	return lists.Map(plans, func(p *result) []string {
		note := p.Message
		if p.Outcome == outcomeAsked {
			note = ""
		}
		return []string{p.Name, cmp.Or(p.State, "-"), cmp.Or(p.Holder, "-"), p.Outcome, note}
	})
}

// followed is a request that was stored and has not ended.
type followed struct {
	result result
	// before is the operation that was recorded when this one was asked for, stored the object as the API server has it.
	before string
	stored *v1alpha1.Server
	// takenAway is when it was seen first that the annotation is gone and nothing is recorded; zero where it is not so.
	takenAway time.Time
}

// storeAll asks the servers, several at a time; it reports those that need no waiting for, by name, and returns the rest.
func (r *run) storeAll(ctx context.Context, servers []v1alpha1.Server, plans []result, claims holders) []followed {
	var group sync.WaitGroup
	tokens := make(chan struct{}, atOnce)
	all := make([]followed, len(servers))
	for i := range servers {
		tokens <- struct{}{}
		group.Go(func() {
			defer func() { <-tokens }()
			all[i] = r.store(ctx, &servers[i], plans[i], claims)
		})
	}
	group.Wait()
	var open []followed
	for i := range all {
		if all[i].result.Outcome == outcomeAsked && r.follows() {
			open = append(open, all[i])
			continue
		}
		r.report.add(all[i].result)
	}
	return open
}

// attempts is how often a change is tried that somebody else's write came before.
const attempts = 5

// store writes the request to one server. What came in between is looked at anew: a server that is in another state now,
// or held by somebody else, is not what was shown and is left alone.
func (r *run) store(ctx context.Context, s *v1alpha1.Server, p result, claims holders) followed {
	for range attempts {
		if p.Outcome != outcomeAsked && p.Outcome != outcomeDone {
			return followed{result: p}
		}
		changed := s.DeepCopy()
		r.write(changed)
		options := []client.PatchOption{client.FieldOwner(access.FieldManager)}
		if r.dryRun {
			options = append(options, client.DryRunAll)
		}
		err := r.client.Patch(ctx, changed, mergepatch.Locked(s), options...)
		if err == nil {
			return followed{result: p, before: ptr.Deref(s.Status.Operation, v1alpha1.OperationStatus{}).ID, stored: changed}
		}
		if !apierrors.IsConflict(err) {
			return followed{result: r.failed(p, err)}
		}
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
			p.Outcome, p.Message = outcomeFailed, access.Explain(err, "get", access.Servers).Error()
			return followed{result: p}
		}
		if selector, err := labels.Parse(r.selector); err != nil || !selector.Matches(labels.Set(s.Labels)) {
			p.Outcome, p.Message = outcomeRefused, fmt.Sprintf("-l %s does not match it any more; look at it again", r.selector)
			return followed{result: p}
		}
		now := r.planned(s, claims)
		if now.State != p.State || now.Holder != p.Holder {
			p.Outcome = outcomeRefused
			p.Message = fmt.Sprintf("it was in %s, held by %s, and is in %s, held by %s, now; look at it again",
				cmp.Or(p.State, "-"), cmp.Or(p.Holder, "-"), cmp.Or(now.State, "-"), cmp.Or(now.Holder, "-"))
			return followed{result: p}
		}
		p = now
	}
	p.Outcome, p.Message = outcomeFailed, "others keep changing it; try again"
	return followed{result: p}
}

func (r *run) failed(p result, err error) result {
	verb := "patch"
	if r.verb.pastRules() && (!apierrors.IsForbidden(err) || strings.Contains(err.Error(), "admission webhook")) {
		verb = access.VerbForce
	}
	p.Outcome, p.Message = outcomeFailed, access.Explain(err, verb, access.Servers).Error()
	return p
}

// report tells the outcomes: in text as they come, one line each; as JSON or YAML all at the end, by name.
type report struct {
	terminal *terminal.Terminal
	output   terminal.Output
	dryRun   bool
	verb     string

	width   int
	results []result
}

type document struct {
	Verb   string `json:"verb"`
	DryRun bool   `json:"dryRun,omitempty"`
	// Complete is the exit code in a word: nothing was refused, failed or timed out.
	Complete bool     `json:"complete"`
	Servers  []result `json:"servers"`
}

func (r *report) begin(groups ...[]result) {
	for _, list := range groups {
		for i := range list {
			r.width = max(r.width, len(list[i].Name))
		}
	}
}

func (r *report) add(o result) {
	r.results = append(r.results, o)
	if r.output.Structured() {
		return
	}
	message := o.Message
	if r.dryRun && o.complete() {
		message = strings.TrimSpace(message + " (dry run: nothing was stored)")
	}
	if r.verb == v1alpha1.OperationUndoRelease { // Out is for the claims
		r.terminal.Notef("%-*s  %-*s  %s", r.width, o.Name, outcomeWidth, o.Outcome, terminal.Plain(message))
		return
	}
	r.terminal.Printf("%-*s  %s  %s\n", r.width, o.Name, r.terminal.Paint(colours[o.Outcome], o.Outcome, outcomeWidth), terminal.Plain(message))
}

// nothing is the report for other programs where no server was chosen: whoever reads it gets a document all the same.
func (r *report) nothing() { r.write(document{Verb: r.verb, DryRun: r.dryRun, Servers: []result{}}) }

func (r *report) write(d document) { r.output.Show(r.terminal, d, func() {}) }

// end closes the report; the error says that not everything was done.
func (r *report) end() error {
	d := document{Verb: r.verb, DryRun: r.dryRun, Complete: true, Servers: r.results}
	for i := range r.results {
		d.Complete = d.Complete && r.results[i].complete()
	}
	slices.SortFunc(d.Servers, func(a, b result) int { return strings.Compare(a.Name, b.Name) })
	r.write(d)
	if !d.Complete {
		return terminal.ErrIncomplete
	}
	return nil
}

// outcomeWidth is that of the longest outcome.
const outcomeWidth = len(outcomeUnchanged)

var colours = map[string]terminal.Colour{
	outcomeAsked: terminal.Good, outcomeDone: terminal.Good, outcomeUnchanged: terminal.Good,
	outcomeRefused: terminal.Wary, outcomeTimedOut: terminal.Wary, outcomeFailed: terminal.Bad,
}
