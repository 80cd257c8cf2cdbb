// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/policies"
)

// maxReason is the longest reason that status.operation takes, in characters.
const maxReason = 1024

// request is what a command line asks of some servers.
type request struct {
	verb verb
	// names, selector and all say which servers; exactly one of them.
	names    []string
	selector string
	all      bool
	// state narrows selector and all; empty for any.
	state  string
	reason string
	// to and override belong to force.
	to       string
	override bool
	attests  attestation

	dryRun, yes, wait bool
	timeout           time.Duration
	// timed says that the timeout was given.
	timed bool
}

// attestation is which disk a user answers for, and what became of it; empty for other verbs.
type attestation struct{ disk, method string }

func (r *request) check() error {
	ways := 0
	chosen := r.selector != ""
	if r.selector = strings.TrimSpace(r.selector); chosen && r.selector == "" {
		return usage.Errorf("-l is empty and would choose every server; say --all for that")
	}
	for _, given := range []bool{len(r.names) > 0, chosen, r.all} {
		if given {
			ways++
		}
	}
	switch attests := r.verb.operation == v1alpha1.OperationAttestDisk; {
	case attests && len(r.names) != 1:
		return usage.Errorf("name one server: the one that has, or had, the disk")
	case ways == 0:
		return usage.Errorf("name servers, or choose them with -l, or say --all")
	case ways > 1:
		return usage.Errorf("names, -l and --all exclude each other")
	case r.state != "" && len(r.names) > 0:
		return usage.Errorf("--state narrows -l and --all; servers that are named are asked in whatever state they are")
	}
	if selector, err := labels.Parse(r.selector); err != nil {
		return usage.Errorf("-l: %v", err)
	} else if chosen && selector.Empty() {
		return usage.Errorf("-l %q chooses every server; say --all for that", r.selector)
	}
	if err := r.bareNames(); err != nil {
		return err
	}
	slices.Sort(r.names)
	r.names = slices.Compact(r.names)
	return r.checkRest()
}

// checkRest says what is wrong with what does not choose servers.
func (r *request) checkRest() error {
	switch {
	case strings.TrimSpace(r.reason) == "":
		return usage.Errorf("--reason is required: an operator who finds the server later wants to know why")
	case utf8.RuneCountInString(r.reason) > maxReason:
		return usage.Errorf("--reason has %d characters; the API takes %d", utf8.RuneCountInString(r.reason), maxReason)
	case r.verb.operation == v1alpha1.OperationForce && r.to == "":
		return usage.Errorf("--to is required: the state that the server is forced into")
	case r.verb.operation == v1alpha1.OperationAttestDisk && strings.TrimSpace(r.attests.disk) == "":
		return usage.Errorf("--disk is required: the serial number, WWID or name of the disk")
	case r.verb.operation == v1alpha1.OperationAttestDisk && !slices.Contains(methods, r.attests.method):
		return usage.Errorf("--method is %q; write %s", r.attests.method, strings.Join(methods, " or "))
	case r.wait && r.timeout <= 0:
		return usage.Errorf("--timeout must be more than 0")
	case r.timed && !r.wait:
		return usage.Errorf("--timeout is how long --wait waits, and --wait is not asked for")
	}
	return nil
}

// bareNames takes the kind off names that kubectl get -o name has printed.
func (r *request) bareNames() error {
	for i, given := range r.names {
		kind, name, has := strings.Cut(given, "/")
		if !has {
			continue
		}
		kind, _, _ = strings.Cut(kind, ".")
		if (kind != "server" && kind != "servers") || name == "" || strings.Contains(name, "/") {
			return usage.Errorf("%q is the name of no server; write NAME, or server/NAME", given)
		}
		r.names[i] = name
	}
	return nil
}

// asksFirst says that somebody has to confirm the plan: it was made by a selector, or goes past the rules.
func (r *request) asksFirst() bool {
	answers := r.verb.operation == v1alpha1.OperationSanitize || r.verb.operation == v1alpha1.OperationAttestDisk ||
		r.verb.operation == v1alpha1.OperationProve
	return !r.yes && !r.dryRun && (len(r.names) == 0 || r.verb.pastRules() || answers)
}

// follows says that the outcome is what the manager makes of the request, not that the request is stored.
func (r *request) follows() bool { return r.wait && !r.dryRun && r.verb.operation != "" }

func (r *request) write(s *v1alpha1.Server) {
	if r.verb.operation == "" {
		s.Spec.Unclaimable = r.verb.unclaimable
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.UnclaimableReasonAnnotation, r.reason)
		return
	}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, r.verb.operation)
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationReasonAnnotation, r.reason)
	// What an earlier request left behind must not become part of this one; who asks is for admission to write.
	delete(s.Annotations, v1alpha1.OperationByAnnotation)
	delete(s.Annotations, v1alpha1.ForceToAnnotation)
	delete(s.Annotations, v1alpha1.ForceOverrideAnnotation)
	delete(s.Annotations, v1alpha1.AttestDiskAnnotation)
	delete(s.Annotations, v1alpha1.AttestMethodAnnotation)
	if r.verb.operation == v1alpha1.OperationAttestDisk {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.AttestDiskAnnotation, r.attests.disk)
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.AttestMethodAnnotation, r.attests.method)
	}
	if r.verb.operation == v1alpha1.OperationForce {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ForceToAnnotation, r.to)
		if r.override {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ForceOverrideAnnotation, "true")
		}
	}
}

// Outcomes of a request to one server.
const (
	// outcomeAsked: the request is stored; the manager has not ended it yet.
	outcomeAsked = "asked"
	// outcomeDone: what was asked for is done.
	outcomeDone = "done"
	// outcomeUnchanged: the server is as asked already.
	outcomeUnchanged = "unchanged"
	// outcomeRefused: nothing was changed; the message says why.
	outcomeRefused = "refused"
	// outcomeFailed: it could not be stored, or the manager could not do it.
	outcomeFailed = "failed"
	// outcomeTimedOut: the request is stored and had not ended when the wait was over.
	outcomeTimedOut = "timed-out"
)

// result is the outcome for one server, and what was known of it when it was asked.
type result struct {
	Name    string `json:"name"`
	State   string `json:"state,omitempty"`
	Holder  string `json:"holder,omitempty"`
	Outcome string `json:"outcome"`
	Message string `json:"message,omitempty"`
	// idle says that it was refused because nothing is to be retried.
	idle bool
	// Operation is what the manager recorded, where that was waited for.
	Operation *v1alpha1.OperationStatus `json:"operation,omitempty"`
}

// complete says that nothing is left to complain about.
func (r *result) complete() bool {
	return r.Outcome == outcomeAsked || r.Outcome == outcomeDone || r.Outcome == outcomeUnchanged
}

// plan is what the request would come to on a server as it is: asked, unchanged or refused, with the reason.
func (r *request) plan(s *v1alpha1.Server, claims holders) result {
	p := result{Name: s.Name, State: string(s.Status.State), Holder: holder(s), Outcome: outcomeAsked}
	refuse := func(format string, args ...any) result {
		p.Outcome, p.Message = outcomeRefused, fmt.Sprintf(format, args...)
		return p
	}
	if r.verb.operation == "" {
		p.Outcome, p.Message = outcomeDone, r.verb.done
		if s.Spec.Unclaimable == r.verb.unclaimable {
			p.Outcome = outcomeUnchanged
		}
		return p
	}
	if standing := s.Annotations[v1alpha1.OperationAnnotation]; standing != "" {
		return refuse("operation %s is asked for already%s; %s", standing, standingBy(s), standingRemedy(s.Name, standing))
	}
	if bmc := s.Annotations[v1alpha1.HeldByBMCAnnotation]; bmc != "" {
		return refuse("BMC %s asks to leave its Servers alone; the server is left alone until that is taken away: kubectl annotate bmc %s %s-",
			bmc, bmc, v1alpha1.OperationAnnotation)
	}
	if op := s.Status.Operation; op != nil && op.Name == r.verb.operation &&
		(op.State == v1alpha1.OperationPending || op.State == v1alpha1.OperationInProgress) {
		return refuse("%s is under way already (%s)%s", op.Name, op.State, byWords(op.By, op.Reason))
	}
	if why := r.refusedBeforehand(s, claims); why != "" {
		return refuse("%s", why)
	}
	if r.verb.operation == v1alpha1.OperationForce && r.to == p.State {
		return refuse("it is in %s already", r.to)
	}
	if already := r.decommissioned(s); already != "" {
		p.Outcome, p.Message = outcomeUnchanged, already
		return p
	}
	p.Message = r.words(&p) + r.consequence(s)
	return p
}

// refusedBeforehand says why the manager would refuse the request; empty where that is not known.
func (r *request) refusedBeforehand(s *v1alpha1.Server, claims holders) string {
	switch r.verb.operation {
	case v1alpha1.OperationRelease:
		if claim := claims.of(s); claim != nil {
			return fmt.Sprintf("claim %s/%s exists; delete it instead: kubectl delete serverclaim -n %s %s",
				claim.Namespace, claim.Name, claim.Namespace, claim.Name)
		}
	case v1alpha1.OperationSanitize:
		if ref := s.Spec.ServerClaimRef; ref != nil {
			return fmt.Sprintf("it names the claim %s/%s; delete the claim, which has it erased", ref.Namespace, ref.Name)
		}
	case v1alpha1.OperationDeclareClean:
		return policies.MayNotDeclareClean(s, nil)
	}
	return ""
}

func (r *request) words(p *result) string {
	words := r.verb.name
	if r.to != "" {
		words += " to " + r.to
	}
	if r.attests.disk != "" {
		words += " disk " + r.attests.disk + " as " + r.attests.method
	}
	words += "; it was in " + cmp.Or(p.State, "-")
	if p.Holder != "" {
		words += ", held by " + p.Holder
	}
	return words
}

// decommissioned says that a server goes out of service already, or that it does not, where that is all that was asked for.
func (r *request) decommissioned(s *v1alpha1.Server) string {
	reason, asked := s.Annotations[v1alpha1.DecommissionAnnotation]
	rests := s.Status.State == v1alpha1.StateDecommissioned
	switch {
	case r.verb.operation == v1alpha1.OperationDecommission && rests:
		return "it is Decommissioned already" + byWords("", reason)
	case r.verb.operation == v1alpha1.OperationDecommission && asked:
		return "it goes out of service already" + byWords("", reason) + "; metalaw explain server " + s.Name + " shows how far it is"
	case r.verb.operation == v1alpha1.OperationRecommission && !rests && !asked:
		return "it is in service, and no decommission stands"
	}
	return ""
}

// consequence says what follows from a verb that ends, or takes up, the service of a server.
func (r *request) consequence(s *v1alpha1.Server) string {
	dirty := s.Status.Lifecycle != nil && slices.Contains(s.Status.Lifecycle.Marks, v1alpha1.MarkDirty)
	switch {
	case r.verb.operation == v1alpha1.OperationRecommission && s.Status.State == v1alpha1.StateDecommissioned:
		return fmt.Sprintf("; it goes to Initial; claims may have it after metalaw server uncordon %s --reason ...", s.Name)
	case r.verb.operation == v1alpha1.OperationRecommission:
		return fmt.Sprintf("; it stays in service; claims may have it after metalaw server uncordon %s --reason ...", s.Name)
	case r.verb.operation != v1alpha1.OperationDecommission:
		return ""
	}
	next := "it is switched off and stays off"
	switch ref := s.Spec.ServerClaimRef; {
	case ref != nil:
		next = fmt.Sprintf("once claim %s/%s is deleted, its disks are erased and it stays off", ref.Namespace, ref.Name)
	case dirty:
		next = "its disks are erased, then it stays off"
	}
	return fmt.Sprintf("; it takes no new claim; %s; metalaw explain server %s shows how far it is", next, s.Name)
}

// holder says in a word who holds a server, or may have data on it.
func holder(s *v1alpha1.Server) string {
	switch {
	case s.Spec.ServerClaimRef != nil:
		return s.Spec.ServerClaimRef.Namespace + "/" + s.Spec.ServerClaimRef.Name
	case s.Annotations[v1alpha1.ClaimUIDAnnotation] != "":
		return "claim " + s.Annotations[v1alpha1.ClaimUIDAnnotation]
	case s.Status.Lifecycle != nil && slices.Contains(s.Status.Lifecycle.Marks, v1alpha1.MarkDirty):
		return "unknown"
	default:
		return ""
	}
}

// standingBy says who asked for the operation that stands: as admission recorded it, or the program that wrote it.
func standingBy(s *v1alpha1.Server) string {
	by := s.Annotations[v1alpha1.OperationByAnnotation]
	for _, m := range s.ManagedFields {
		if by == "" && m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), `"f:`+v1alpha1.OperationAnnotation+`"`) {
			by = "field manager " + m.Manager
		}
	}
	return byWords(by, s.Annotations[v1alpha1.OperationReasonAnnotation])
}

func byWords(by, reason string) string {
	words := ""
	if by != "" {
		words = " by " + by
	}
	if reason != "" {
		words += fmt.Sprintf(" (%q)", reason)
	}
	return words
}

func standingRemedy(name, operation string) string {
	if v1alpha1.IsIgnore(operation) {
		return "the server is left alone until that is taken away: kubectl annotate server " + name + " " + v1alpha1.OperationAnnotation + "-"
	}
	return "wait until the manager has taken it in"
}

// holders are the claims that exist; none where they may not be read, which leaves the question to the manager.
type holders []v1alpha1.ServerClaim

// readHolders lists the claims where a request depends on them.
func (r *request) readHolders(ctx context.Context, c client.Reader) (holders, error) {
	if r.verb.operation != v1alpha1.OperationRelease {
		return nil, nil
	}
	var claims v1alpha1.ServerClaimList
	err := c.List(ctx, &claims)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return claims.Items, access.Explain(err, "list", access.ServerClaims)
}

// of is the claim that holds a server: the one whose UID the server remembers; where it remembers none, the one that names
// the server and that the server names. Nil where none is known.
func (h holders) of(s *v1alpha1.Server) *v1alpha1.ServerClaim {
	uid, ref := s.Annotations[v1alpha1.ClaimUIDAnnotation], s.Spec.ServerClaimRef
	return lists.Find(h, func(c *v1alpha1.ServerClaim) bool {
		names := c.Spec.ServerRef != nil && c.Spec.ServerRef.Name == s.Name
		named := ref != nil && ref.Namespace == c.Namespace && ref.Name == c.Name
		return uid == "" && names && named || uid != "" && uid == string(c.UID) && (names || named)
	})
}
