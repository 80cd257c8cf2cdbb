// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/maintenance"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/freeze"
)

// ExplainCommand is `metalaw explain server`.
func ExplainCommand(flags *access.Flags) *cobra.Command {
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "server NAME",
		Short: "Say why a server is in its state, what holds it, and what would lead out",
		Long: "Shows what is stored of a server: its state, the rule that led there, the next deadline and the condition that says what " +
			"holds it. It shows the maintenance that holds the server, those that wait for it, and a decommission. It shows the " +
			"operation, the power request, the revision that governs the server, marks and retries. It also shows freezes, budgets and " +
			"the last moves.\n\n" +
			"It shows each rule that leads out of the state, with the names that the rule asks for and their values. The command does " +
			"not ask the BMC: a rule may depend on what the BMC says, and then it is told so.\n\n" +
			"It reads with your own rights. Where a right is missing, the command names it and goes on.\n\n" +
			"Exit codes: 0 explained. 1 the server or the cluster could not be read. 2 the command line makes no sense.",
		Example: "  {{.}} explain server node-1\n  {{.}} explain server node-1 -o json",
		Args:    usage.OneArg("name one server"),
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, args []string) error {
			e, err := explain(ctx, c, args[0], t.Now)
			if err != nil {
				return err
			}
			output.Show(t, e, func() { e.text(t) })
			return nil
		}),
		ValidArgsFunction: flags.Complete(1, serverNames),
	}
	output.Register(cmd)
	return cmd
}

// explanation is what is stored of one server, and what follows from it.
type explanation struct {
	Name  string `json:"name"`
	State string `json:"state,omitempty"`
	// Rule led to the state; empty where the server began in it.
	Rule  string     `json:"rule,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	Entry int64      `json:"entry,omitempty"`
	// Power is what the BMC said when the manager last stored it.
	Power string `json:"power,omitempty"`
	// Means and Says are the words of the policy about the state and the rule; empty where the revision could not be read.
	Means    string    `json:"means,omitempty"`
	Says     string    `json:"says,omitempty"`
	Deadline *deadline `json:"deadline,omitempty"`
	// Released is the release of the claim that held the server last; nil where none is recorded.
	Released *release `json:"released,omitempty"`
	// Maintenance is the one that spec.serverMaintenanceRef names, and MaintenanceWaiting those that wait for the server.
	Maintenance        *maintenance.Holder `json:"maintenance,omitempty"`
	MaintenanceWaiting []maintenance.Entry `json:"maintenanceWaiting,omitempty"`
	// Decommission is that the server goes out of service, or has gone; nil where it does not.
	Decommission *decommission `json:"decommission,omitempty"`
	// Faulty names the parts for which it is proposed to decommission the server; empty where none is at fault.
	Faulty string `json:"faulty,omitempty"`
	// HeldBy is the condition that says what holds the server; nil where nothing does.
	HeldBy *condition `json:"heldBy,omitempty"`
	// Conditions are the others that are not as they should be.
	Conditions []condition `json:"conditions"`
	// LeftAlone says that the annotation asks the manager to ignore the server; Deleted, when its deletion was asked for.
	LeftAlone bool       `json:"leftAlone,omitempty"`
	Deleted   *time.Time `json:"deletedAt,omitempty"`
	// Asked is the operation that the annotation asks for, and that the manager has not taken in yet.
	Asked     string                    `json:"asked,omitempty"`
	Operation *v1alpha1.OperationStatus `json:"operation,omitempty"`
	Request   *v1alpha1.PowerRequest    `json:"request,omitempty"`
	// Revision governs the server.
	Revision string                   `json:"revision,omitempty"`
	Marks    []string                 `json:"marks"`
	Retries  int32                    `json:"retries"`
	Freezes  []policyv1alpha1.Freeze  `json:"freezes"`
	Breaker  string                   `json:"breaker,omitempty"`
	Budgets  []budget                 `json:"budgets"`
	Rules    []wayOut                 `json:"rules"`
	History  []v1alpha1.LifecycleMove `json:"history"`
	// Notes say what could not be read, and what follows.
	Notes []string `json:"notes"`
}

type condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
}

// deadline is the next exit by time.
type deadline struct {
	Rule string `json:"rule"`
	To   string `json:"to"`
	// Counted is the time that counts so far, and Remaining what is left of it.
	Counted   metav1.Duration `json:"counted"`
	Remaining metav1.Duration `json:"remaining"`
	// At is when it is over; nil while time does not count, for the reason in Stopped.
	At      *time.Time `json:"at,omitempty"`
	Stopped string     `json:"stopped,omitempty"`
}

// budget is one budget that bounds what is done to the server.
type budget struct {
	Name   string                     `json:"name"`
	Action policyv1alpha1.FleetAction `json:"action"`
	// Per is the label that divides the budget, and Value the server's.
	Per   string `json:"per,omitempty"`
	Value string `json:"value,omitempty"`
	Max   int32  `json:"max"`
	// MaxPercent is the share of the servers that it covers; 0 where it has none. The larger of it and Max counts.
	MaxPercent int32 `json:"maxPercent,omitempty"`
	// Used is nil where the FleetControl does not name the budget as used up.
	Used *int32 `json:"used,omitempty"`
}

// fault is a condition that may hold a server, with the status that says so.
type fault struct {
	kind   string
	status metav1.ConditionStatus
}

// on is the condition where it holds a server; nil where it does not.
func (f fault) on(s *v1alpha1.Server) *metav1.Condition {
	if found := meta.FindStatusCondition(s.Status.Conditions, f.kind); found != nil && found.Status == f.status {
		return found
	}
	return nil
}

// holding are the conditions that may hold a server, the strongest first.
var holding = []fault{
	{v1alpha1.ConditionRestoredDoubt, metav1.ConditionTrue},
	{v1alpha1.ConditionPolicyHalted, metav1.ConditionTrue},
	{v1alpha1.ConditionIdentityMismatch, metav1.ConditionTrue},
	{v1alpha1.ConditionIdentityUnproven, metav1.ConditionTrue},
	{v1alpha1.ConditionWithheld, metav1.ConditionTrue},
	{v1alpha1.ConditionBMCReachable, metav1.ConditionFalse},
	{v1alpha1.ConditionMaintenanceWaits, metav1.ConditionTrue},
	{v1alpha1.ConditionClaimMissing, metav1.ConditionTrue},
	{v1alpha1.ConditionBootOverrideMissing, metav1.ConditionTrue},
	{v1alpha1.ConditionInterfacesUnknown, metav1.ConditionTrue},
	{v1alpha1.ConditionStalled, metav1.ConditionTrue},
	{v1alpha1.ConditionReconciling, metav1.ConditionTrue}, // its reason is the gate, before Ready, which says only that the server is on its way
	{v1alpha1.ConditionReady, metav1.ConditionFalse},
	{v1alpha1.ConditionHealthy, metav1.ConditionFalse},
	{v1alpha1.ConditionPolicyBehind, metav1.ConditionTrue},
}

// explain reads what there is to know about a server, with the reader's own rights.
func explain(ctx context.Context, c client.Reader, name string, now time.Time) (*explanation, error) {
	s := &v1alpha1.Server{}
	if err := c.Get(ctx, types.NamespacedName{Name: name}, s); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("there is no server %s", name)
		}
		return nil, access.Explain(err, "get", access.Servers)
	}
	e := storedOf(s)
	if err := e.readMaintenances(ctx, c, s); err != nil {
		return nil, err
	}
	if err := e.readFleet(ctx, c, s, now); err != nil {
		return nil, err
	}
	err := e.readRules(ctx, c, s, now)
	return e, err
}

func storedOf(s *v1alpha1.Server) *explanation {
	e := &explanation{Name: s.Name, State: string(s.Status.State), Power: string(s.Status.PowerState),
		LeftAlone: v1alpha1.Ignored(s), Operation: s.Status.Operation, Released: releaseOf(s), Decommission: decommissionOf(s), Faulty: faultOf(s),
		Conditions: []condition{}, Marks: []string{}, Freezes: []policyv1alpha1.Freeze{}, Budgets: []budget{}, Rules: []wayOut{},
		History: []v1alpha1.LifecycleMove{}, Notes: []string{}}
	for _, h := range holding {
		found := h.on(s)
		if found == nil {
			continue
		}
		one := condition{found.Type, string(found.Status), found.Reason, found.Message, found.LastTransitionTime.UTC()}
		if e.HeldBy == nil {
			e.HeldBy = &one
		} else {
			e.Conditions = append(e.Conditions, one)
		}
	}
	if !e.LeftAlone {
		e.Asked = s.Annotations[v1alpha1.OperationAnnotation]
	}
	if s.DeletionTimestamp != nil {
		at := s.DeletionTimestamp.UTC()
		e.Deleted = &at
	}
	if l := s.Status.Lifecycle; l != nil {
		at := l.EnteredAt.UTC()
		e.Rule, e.Since, e.Entry, e.Request, e.Revision, e.Retries = l.Rule, &at, l.Entry, l.Request, l.Revision, l.Retries
		e.Marks, e.History = append(e.Marks, l.Marks...), append(e.History, l.History...)
	}
	return e
}

// readFleet reads the freezes, the breaker and the budgets that concern a server.
func (e *explanation) readFleet(ctx context.Context, c client.Reader, s *v1alpha1.Server, now time.Time) error {
	control := &policyv1alpha1.FleetControl{}
	err := c.Get(ctx, types.NamespacedName{Name: policyv1alpha1.FleetControlName}, control)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return access.Missing(&e.Notes, err, "get", access.FleetControls, "you cannot see which freezes and budgets apply")
	}
	for i := range control.Spec.Freezes {
		f := &control.Spec.Freezes[i]
		if !freeze.Ended(f, now) && freeze.Selector(f.Selector).Matches(labels.Set(s.Labels)) {
			e.Freezes = append(e.Freezes, *f)
		}
	}
	if freeze.Tripped(control) {
		trip := control.Status.Trip
		e.Breaker = fmt.Sprintf("tripped at %s: %d of %d servers had entered the states that it watches",
			trip.At.UTC().Format(time.RFC3339), trip.Servers, trip.Of)
	}
	for i := range control.Spec.Budgets {
		if b := &control.Spec.Budgets[i]; freeze.Selector(b.Selector).Matches(labels.Set(s.Labels)) {
			e.Budgets = append(e.Budgets, budgetOf(b, control.Status.Usage, s))
		}
	}
	return nil
}

func budgetOf(b *policyv1alpha1.Budget, used []policyv1alpha1.BudgetUsage, s *v1alpha1.Server) budget {
	one := budget{Name: b.Name, Action: b.Action, Per: b.Per}
	if b.Per != "" {
		one.Value = s.Labels[b.Per]
	}
	if b.MaxPercent != nil {
		one.MaxPercent = *b.MaxPercent
	}
	if b.Max != nil {
		one.Max = *b.Max
	}
	if u := lists.Find(used, func(u *policyv1alpha1.BudgetUsage) bool { return u.Name == b.Name && u.Value == one.Value }); u != nil {
		one.Used = &u.Used
	}
	return one
}
