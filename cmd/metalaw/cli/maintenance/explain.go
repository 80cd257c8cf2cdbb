// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/controllers/maintenance/hold"
)

// ExplainCommand is `metalaw explain maintenance`.
func ExplainCommand(flags *access.Flags) *cobra.Command {
	in := &scope{}
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "maintenance NAME [-n NAMESPACE]",
		Short: "Say what a maintenance asks for, why it waits, what is done, and what ends it",
		Long: "Shows what is stored of a ServerMaintenance. It shows what the maintenance asks for, and the condition " +
			"that says why it waits. It shows everything in its way, with the servers that fill a limit, and the " +
			"maintenances that hold its server or wait for it. It shows whether the holder of the server was asked and " +
			"has approved, who made the maintenance, and the rights that it takes. It shows the windows of the policy " +
			"in force, what is done while it holds the server, and what ends it.\n\n" +
			"It reads with your own rights. Where a right is missing, the command names it and goes on.\n\n" +
			"Exit codes: 0 explained. 1 the maintenance or the cluster could not be read. 2 the command line makes no sense.",
		Example: "  {{.}} explain maintenance bios-2.9-node-7 -n metalaw-system\n" +
			"  {{.}} explain maintenance bios-2.9-node-7 -n metalaw-system -o json",
		Args: usage.OneArg("name one maintenance"),
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, args []string) error {
			namespace, err := in.in(flags)
			if err != nil {
				return err
			}
			e, err := explain(ctx, c, types.NamespacedName{Namespace: namespace, Name: args[0]}, t.Now)
			if err != nil {
				return err
			}
			output.Show(t, e, func() { e.text(t) })
			return nil
		}),
		ValidArgsFunction: in.complete(flags),
	}
	in.register(cmd, false)
	output.Register(cmd)
	return cmd
}

// explanation is what is to be said of one maintenance.
type explanation struct {
	Entry
	Created time.Time `json:"created"`
	Asks    asks      `json:"asks"`
	// Granted, Served and Overdue are the conditions of those names; nil where there is none.
	Granted *said `json:"granted,omitempty"`
	Served  *said `json:"served,omitempty"`
	Overdue *said `json:"overdue,omitempty"`
	// Obstacles are everything that it waits for now; empty where it does not wait, or where that is not known.
	Obstacles []obstacle `json:"obstacles,omitempty"`
	// GrantedAt is when the server was handed over; nil where it was not.
	GrantedAt *time.Time `json:"grantedAt,omitempty"`
	// Machine is the server as it is stored; nil where it does not exist or cannot be seen.
	Machine *machine `json:"machine,omitempty"`
	// Holder is another maintenance that holds the server; nil where none does.
	Holder *Holder `json:"holder,omitempty"`
	// Others are the other maintenances that wait for the server.
	Others  []Entry  `json:"others"`
	Consent *consent `json:"consent,omitempty"`
	// Maker made the maintenance or changed it last; empty where admission did not record that.
	Maker  string  `json:"maker,omitempty"`
	Rights []right `json:"rights"`
	Window *window `json:"window,omitempty"`
	// Aborted and ForceOff are the reasons that abort stored; empty where it was not asked.
	Aborted  string `json:"aborted,omitempty"`
	ForceOff string `json:"forceOff,omitempty"`
	// Boot is the boot configuration of the maintenance; nil where it asks for none, or has none yet.
	Boot *boot `json:"boot,omitempty"`
	// Ends says what ends the maintenance, or what that waits for.
	Ends  string   `json:"ends"`
	Notes []string `json:"notes"`

	holds bool
}

// asks is what a maintenance asks for.
type asks struct {
	Power      string `json:"power,omitempty"`
	LocatorLED string `json:"locatorLED,omitempty"`
	Image      string `json:"image,omitempty"`
	Ignition   string `json:"ignition,omitempty"`
	Boots      bool   `json:"boots,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Expected   string `json:"expected,omitempty"`
	PlanOnly   bool   `json:"planOnly,omitempty"`
}

type said struct {
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
}

type machine struct {
	State string `json:"state,omitempty"`
	Power string `json:"power,omitempty"`
	LED   string `json:"led,omitempty"`
}

// consent is how the holder of the server stands to the maintenance.
type consent struct {
	// Claim holds the server, as namespace/name.
	Claim string `json:"claim"`
	// AskedAt is when its holder was asked; nil where that was not done. Former says that another claim was asked.
	AskedAt *time.Time `json:"askedAt,omitempty"`
	Former  bool       `json:"former,omitempty"`
	// Approval is what the claim bears, such as "label KEY=true"; empty where it bears none.
	Approval string `json:"approval,omitempty"`
	// Needed says that the claim bears the label by which the manager asks.
	Needed        bool `json:"needed"`
	DrainRequired bool `json:"drainRequired,omitempty"`
}

// right is a verb that the maker needs, and the shipped role that has it.
type right struct {
	Verb string `json:"verb"`
	Role string `json:"role,omitempty"`
}

// window is what the windows of the policy in force say.
type window struct {
	Revision string `json:"revision"`
	// Name is the window that is open, or opens next; empty where none covers the server.
	Name   string     `json:"name,omitempty"`
	Open   bool       `json:"open"`
	Closes *time.Time `json:"closes,omitempty"`
	Opens  *time.Time `json:"opens,omitempty"`
	// Never says that no window is ever long enough.
	Never    bool   `json:"never,omitempty"`
	Problem  string `json:"problem,omitempty"`
	Expected string `json:"expected"`
}

type boot struct {
	Name  string `json:"name"`
	State string `json:"state,omitempty"`
	// Foreign says that another object owns it, so that the manager never changes it.
	Foreign bool `json:"foreign,omitempty"`
}

// explain reads what there is to know about a maintenance, with the reader's own rights.
func explain(ctx context.Context, c client.Reader, key types.NamespacedName, now time.Time) (*explanation, error) {
	m, err := get(ctx, c, key)
	if err != nil {
		return nil, err
	}
	e := storedOf(m)
	s, err := getServer(ctx, c, m.Spec.ServerRef.Name, &e.Notes)
	if err != nil {
		return nil, err
	}
	claim, err := getClaim(ctx, c, s, &e.Notes)
	if err == nil && s == nil {
		claim, err = askedClaim(ctx, c, m, &e.Notes)
	}
	if err != nil {
		return nil, err
	}
	namespaces := []string{m.Namespace}
	if claim != nil {
		namespaces = append(namespaces, claim.Namespace)
	}
	missing := len(e.Notes)
	all, err := ofServer(ctx, c, m.Spec.ServerRef.Name, &e.Notes, namespaces...)
	if err != nil {
		return nil, err
	}
	e.onServer(m, s, all, len(e.Notes) == missing)
	e.Consent = consentOf(m, claim)
	of := scene{m, s, claim}
	if err := e.readRights(ctx, c, of); err != nil {
		return nil, err
	}
	if err := e.readBoot(ctx, c, m); err != nil {
		return nil, err
	}
	e.Ends = endOf(m, s)
	err = e.readWindow(ctx, c, of, now)
	return e, err
}

// scene is a maintenance with its server and the claim that holds the server; each of the two is nil where it is not known.
type scene struct {
	*v1alpha1.ServerMaintenance
	server *v1alpha1.Server
	claim  *v1alpha1.ServerClaim
}

// storedOf is what a maintenance says of itself.
func storedOf(m *v1alpha1.ServerMaintenance) *explanation {
	e := &explanation{Entry: entryOf(m), Created: m.CreationTimestamp.UTC(), Others: []Entry{}, Rights: []right{}, Notes: []string{},
		Aborted: m.Annotations[v1alpha1.AbortAnnotation], ForceOff: m.Annotations[v1alpha1.ForceOffReasonAnnotation]}
	e.Asks = asks{Power: string(m.Spec.ServerPower), LocatorLED: string(m.Spec.LocatorLED), Reason: reasonOf(m),
		Expected: m.Annotations[v1alpha1.ExpectedDurationAnnotation], PlanOnly: m.Annotations[v1alpha1.PlanOnlyAnnotation] == "true"}
	if template := m.Spec.ServerBootConfigurationTemplate; template != nil {
		e.Asks.Boots, e.Asks.Image = true, template.Spec.Image
		if template.Spec.IgnitionSecretRef != nil {
			e.Asks.Ignition = template.Spec.IgnitionSecretRef.Name
		}
	}
	e.Granted, e.Served, e.Overdue = saidBy(m, v1alpha1.ConditionGranted), saidBy(m, v1alpha1.ConditionServed), saidBy(m, v1alpha1.ConditionOverdue)
	if m.Status.GrantedAt != nil {
		e.GrantedAt = moment(m.Status.GrantedAt.Time)
	}
	return e
}

// reasonOf is why the maintenance is needed, under either name of the annotation.
func reasonOf(m *v1alpha1.ServerMaintenance) string {
	if reason := m.Annotations[v1alpha1.MaintenanceReasonAnnotation]; reason != "" {
		return reason
	}
	return m.Annotations[v1alpha1.MaintenanceReasonColumnAnnotation]
}

func saidBy(m *v1alpha1.ServerMaintenance, kind string) *said {
	c := meta.FindStatusCondition(m.Status.Conditions, kind)
	if c == nil {
		return nil
	}
	return &said{string(c.Status), c.Reason, c.Message, c.LastTransitionTime.UTC()}
}

// onServer takes in the server, and what other maintenances do with it.
func (e *explanation) onServer(m *v1alpha1.ServerMaintenance, s *v1alpha1.Server, all []v1alpha1.ServerMaintenance, complete bool) {
	if s == nil {
		return
	}
	e.Machine = &machine{State: string(s.Status.State), Power: string(s.Status.PowerState), LED: string(s.Status.IndicatorLED)}
	is := HoldOf(s, all, complete)
	e.holds = hold.Named(s, m)
	if !e.holds {
		e.Holder = is.Holder
	}
	e.Others = slices.DeleteFunc(is.Waiting, func(o Entry) bool { return o.Namespace == m.Namespace && o.Name == m.Name })
}

// consentOf is how the holder of a claim stands to a maintenance; nil where there is no claim.
func consentOf(m *v1alpha1.ServerMaintenance, claim *v1alpha1.ServerClaim) *consent {
	if claim == nil {
		return nil
	}
	c := &consent{Claim: claim.Namespace + "/" + claim.Name, Approval: hold.Approval(claim),
		Needed:        claim.Labels[v1alpha1.MaintenanceNeededLabel] == "true",
		DrainRequired: claim.Annotations[v1alpha1.DrainRequiredAnnotation] == "true"}
	switch {
	case wasAsked(m, claim):
		c.AskedAt = moment(m.Status.Asked.At.Time)
	case m.Status.Asked != nil:
		c.Former = true
	}
	return c
}

// readBoot reads the boot configuration that the manager made for the maintenance.
func (e *explanation) readBoot(ctx context.Context, c client.Reader, m *v1alpha1.ServerMaintenance) error {
	if !e.Asks.Boots {
		return nil
	}
	b := &v1alpha1.ServerBootConfiguration{}
	err := c.Get(ctx, client.ObjectKeyFromObject(m), b)
	if client.IgnoreNotFound(err) != nil {
		return access.Missing(&e.Notes, err, "get", bootConfigurations, "you cannot see the boot configuration of the maintenance")
	}
	if err == nil {
		own := lists.Find(b.OwnerReferences, isController)
		e.Boot = &boot{Name: b.Namespace + "/" + b.Name, State: string(b.Status.State), Foreign: own == nil || own.UID != m.UID}
	}
	return nil
}

// bootConfigurations is the resource, as RBAC names it.
const bootConfigurations = "serverbootconfigurations.metal.ironcore.dev"

// tellsCheck says that a check of the policy is to hold after the maintenance, and does not.
func tellsCheck(m *v1alpha1.ServerMaintenance) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionServed)
	return c != nil && c.Reason == v1alpha1.ReasonCheckFails
}

// endOf says what ends the maintenance, or what its end waits for.
func endOf(m *v1alpha1.ServerMaintenance, s *v1alpha1.Server) string {
	remove := "kubectl delete servermaintenance -n " + m.Namespace + " " + m.Name
	switch {
	case hasStopped(m, s):
		return "it was aborted and holds no server; its maker deletes it: " + remove
	case ends(m) && !hold.Named(s, m) && s != nil && tellsCheck(m):
		return "it is over and holds no server; the object goes once the check of the policy holds, or its time is over"
	case ends(m):
		return "it ends " + stopsAt(m, s, m.Annotations[v1alpha1.ForceOffReasonAnnotation] != "")
	case hold.Failed(m) && hold.Named(s, m):
		return "it failed and keeps its server until its maker deletes it: " + remove
	case hold.Named(s, m):
		return "its maker deletes it when the work is done: " + remove
	default:
		return "its maker deletes it: " + remove
	}
}
