// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/controllers/maintenance"
	"github.com/metalaw/metalaw/controllers/maintenance/grant"
)

// planRequest is what the command line of plan asks for.
type planRequest struct {
	scope
	paths   []string
	horizon string
	length  time.Duration
}

// plan is when maintenances would be granted.
type plan struct {
	// Revision is the policy in force.
	Revision string `json:"revision"`
	// Until is the end of the horizon.
	Until        time.Time `json:"until"`
	Maintenances []planned `json:"maintenances"`
	Notes        []string  `json:"notes"`

	now time.Time
}

// planned is when one maintenance would be granted.
type planned struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Server    string `json:"server"`
	// File says that a file names it, stored or not.
	File bool `json:"file,omitempty"`
	// At is when it would be granted, and Ends when it would end; nil where that is not within the horizon.
	At   *time.Time `json:"at,omitempty"`
	Ends *time.Time `json:"ends,omitempty"`
	// Window and Wave are those under which it would be granted. Asks says that the holder of a claim would be asked or told first.
	Window string `json:"window,omitempty"`
	Wave   string `json:"wave,omitempty"`
	Asks   bool   `json:"asks,omitempty"`
	// Reason and Message say why it would not be granted; empty where it would.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Obstacles are everything in the way: now, or at the end of the horizon where it would not be granted.
	Obstacles []obstacle `json:"obstacles,omitempty"`
}

// reasonAdmission is the reason of a maintenance that admission refuses. No condition has it.
const reasonAdmission = "RefusedByAdmission"

func planCommand(flags *access.Flags) *cobra.Command {
	r := &planRequest{}
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "plan [-f FILE|-]... [-n NAMESPACE] [--horizon DURATION]",
		Short: "Say which maintenance would get its server when, and store nothing",
		Long: "Reads ServerMaintenances from files and those that are stored. It plays the grants of the policy in force forward, as the " +
			"manager would decide them with --maintenance=on. It takes these things for granted:\n\n" +
			"* Each maintenance lasts as long as it is expected to.\n" +
			"* The holder of a claim approves as soon as the manager asks.\n" +
			"* Freezes stand, and nothing else happens.\n" +
			"* A maintenance with " + v1alpha1.PlanOnlyAnnotation + " is granted like the others.\n\n" +
			"If you may create maintenances, it asks the API server and its admission about those of the files by a dry run.\n\n" +
			"Exit codes: 0 all would be granted within the horizon: those of the files, or else those stored. 1 one would not, or the " +
			"cluster could not be read. 2 the command line or the files make no sense.",
		Example: "  # What waits now\n  {{.}} maintenance plan\n\n" +
			"  # What a rollout would come to\n  {{.}} maintenance plan -f bios-2.9.yaml --horizon 30d",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := usage.NoArgs(cmd, args); err != nil {
				return err
			}
			return r.check()
		},
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, _ []string) error {
			namespace, err := r.in(flags)
			if err != nil {
				return err
			}
			docs, err := readFiles(ctx, t.In, r.paths, namespace)
			if err != nil {
				return err
			}
			p, err := r.plan(ctx, c, docs, t.Now)
			if err != nil {
				return err
			}
			output.Show(t, p, func() { p.text(t) })
			if !p.complete(len(docs.all) > 0) {
				return terminal.ErrIncomplete
			}
			return nil
		}),
	}
	r.register(cmd, false)
	f := cmd.Flags()
	f.StringArrayVarP(&r.paths, "filename", "f", nil, "file with ServerMaintenances, or - for standard input; may be repeated")
	f.StringVar(&r.horizon, "horizon", "14d", "how far to look, such as 36h or 14d")
	output.Register(cmd)
	// The error is about a flag that does not exist.
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	return cmd
}

// maxHorizon bounds how far a plan looks.
const maxHorizon = 366 * 24 * time.Hour

func (r *planRequest) check() error {
	days, isDays := strings.CutSuffix(r.horizon, "d")
	var err error
	if isDays {
		var n int
		n, err = strconv.Atoi(days)
		r.length = time.Duration(n) * 24 * time.Hour
	} else {
		r.length, err = time.ParseDuration(r.horizon)
	}
	if err != nil || r.length <= 0 || r.length > maxHorizon {
		return usage.Errorf("--horizon is %q; write a duration such as 36h or 14d, of at most 366d", r.horizon)
	}
	for i, path := range r.paths {
		if slices.Contains(r.paths[:i], path) {
			return usage.Errorf("-f %s is given twice; name each file once", path)
		}
	}
	return nil
}

// plan reads the cluster and plays the grants forward.
func (r *planRequest) plan(ctx context.Context, c client.Client, docs *documents, now time.Time) (*plan, error) {
	p := &plan{Until: now.Add(r.length).UTC(), Maintenances: []planned{}, Notes: []string{}, now: now}
	o, err := p.observe(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(docs.others) > 0 {
		p.Notes = append(p.Notes, "passed over, because they are no ServerMaintenances: "+strings.Join(docs.others, ", "))
	}
	for i := range docs.all {
		p.take(ctx, c, o, &docs.all[i])
	}
	snapshot := o.Snapshot(refusal, func(*v1alpha1.ServerMaintenance) bool { return true })
	for _, one := range grant.Plan(snapshot, r.length) {
		file := slices.ContainsFunc(docs.all, func(m v1alpha1.ServerMaintenance) bool {
			return m.Namespace == one.Maintenance.Namespace && m.Name == one.Maintenance.Name
		})
		p.Maintenances = append(p.Maintenances, plannedOf(&one, file))
	}
	slices.SortStableFunc(p.Maintenances, inOrder)
	return p, nil
}

// inOrder puts those that would be granted first, by time.
func inOrder(a, b planned) int {
	switch {
	case a.At == nil && b.At == nil:
		return 0
	case a.At == nil:
		return 1
	case b.At == nil:
		return -1
	}
	return a.At.Compare(*b.At)
}

// observe reads what grants depend on. A plan over a part of it would be wrong, so that a right that is missing ends it.
func (p *plan) observe(ctx context.Context, c client.Client) (*maintenance.Objects, error) {
	o := &maintenance.Objects{Now: p.now}
	if resource, err := readAll(ctx, c, o); err != nil {
		return nil, access.Explain(err, "list", resource)
	}
	var err error
	if o.Setting, p.Revision, err = inForce(ctx, c, &p.Notes); err != nil {
		return nil, err
	}
	if o.Setting == nil {
		return nil, errors.New(strings.Join(p.Notes, "; "))
	}
	o.Control, err = readControl(ctx, c, &p.Notes)
	return o, err
}

// take adds a maintenance of a file to the objects, or puts it in the place of a stored one. One that admission refuses is planned never.
func (p *plan) take(ctx context.Context, c client.Client, o *maintenance.Objects, m *v1alpha1.ServerMaintenance) {
	if stored := lists.Find(o.Maintenances, func(s *v1alpha1.ServerMaintenance) bool { return nameOf(s) == nameOf(m) }); stored != nil {
		stored.Spec, stored.Labels, stored.Annotations = m.Spec, m.Labels, m.Annotations
		return
	}
	if why := p.asksAdmission(ctx, c, m); why != "" {
		p.Maintenances = append(p.Maintenances, planned{Namespace: m.Namespace, Name: m.Name, Server: m.Spec.ServerRef.Name, File: true,
			Reason: reasonAdmission, Message: why})
		return
	}
	m.UID, m.CreationTimestamp, m.Status = types.UID("planned "+nameOf(m)), metav1.NewTime(p.now), v1alpha1.ServerMaintenanceStatus{}
	o.Maintenances = append(o.Maintenances, *m)
}

// asksAdmission says why the API server would not store a maintenance; empty where it would, or the reader may not ask.
func (p *plan) asksAdmission(ctx context.Context, c client.Client, m *v1alpha1.ServerMaintenance) string {
	asked := m.DeepCopy()
	asked.ResourceVersion, asked.UID, asked.ManagedFields = "", "", nil
	err := c.Create(ctx, asked, client.DryRunAll, client.FieldOwner(access.FieldManager))
	switch {
	case err == nil:
		return ""
	case access.LacksRight(err):
		note := "admission was not asked about the maintenances of the files (" + access.Explain(err, "create", access.Maintenances).Error() + ")"
		if !slices.Contains(p.Notes, note) {
			p.Notes = append(p.Notes, note)
		}
		return ""
	}
	return strings.TrimPrefix(access.Explain(err, "create", access.Maintenances).Error(), "denied: ")
}

// refusal is why a stored maintenance would not be granted whatever its server does. What the manager said of rights and adoption counts;
// one that no manager may grant yet would be older than the consent.
func refusal(m *v1alpha1.ServerMaintenance) grant.Answer {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionGranted)
	if c == nil {
		return grant.Answer{}
	}
	adopted := m.Annotations[v1alpha1.AdoptAnnotation] == "true"
	_, alone := m.Annotations[v1alpha1.PlanOnlyAnnotation]
	switch {
	case c.Reason == v1alpha1.ReasonNotPermitted:
		return grant.Answer{Reason: c.Reason, Message: c.Message}
	case adopted:
		return grant.Answer{}
	case c.Reason == v1alpha1.ReasonNotAdopted, c.Reason == v1alpha1.ReasonNothingGrants, c.Reason == v1alpha1.ReasonPlanOnly && !alone:
		return grant.Answer{Reason: v1alpha1.ReasonNotAdopted, Message: "It is older than the manager's consent to grant maintenances. Annotate it " +
			v1alpha1.AdoptAnnotation + "=true to have it granted."}
	}
	return grant.Answer{}
}

func plannedOf(p *grant.Planned, file bool) planned {
	one := planned{Namespace: p.Maintenance.Namespace, Name: p.Maintenance.Name, Server: p.Server, File: file, At: moment(p.At), Ends: moment(p.Ends),
		Window: p.Window, Wave: p.Wave, Asks: p.Asks, Obstacles: lists.Map(p.Obstacles, obstacleOf)}
	if one.At == nil {
		one.Reason, one.Message = p.Reason, p.Message
	}
	return one
}

// complete says that all would be granted: those of the files alone where there are any.
func (p *plan) complete(files bool) bool {
	return !slices.ContainsFunc(p.Maintenances, func(one planned) bool { return one.At == nil && (one.File || !files) })
}

func (p *plan) text(t *terminal.Terminal) {
	if len(p.Maintenances) == 0 {
		t.Printf("no maintenance waits for a server\n")
		t.Notes(p.Notes)
		return
	}
	t.Table([]string{"WHEN", "UNTIL", "SERVER", "MAINTENANCE", "UNDER, OR WHY NOT"}, lists.Map(p.Maintenances, func(one *planned) []string {
		return []string{p.when(one.At), clock(one.Ends), one.Server, one.name(), one.words(p.now)}
	}))
	granted := len(p.Maintenances) - len(slices.DeleteFunc(slices.Clone(p.Maintenances), func(one planned) bool { return one.At != nil }))
	t.Printf("\n%d of %d would be granted until %s under policy %s\n", granted, len(p.Maintenances), clock(&p.Until), terminal.Plain(p.Revision))
	t.Notes(p.Notes)
}

func (one *planned) name() string {
	name := one.Namespace + "/" + one.Name
	if one.File {
		name += " (file)"
	}
	return name
}

// clock is a moment to the minute; - where there is none.
func clock(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.Format("2006-01-02 15:04Z")
}

func (p *plan) when(at *time.Time) string {
	switch {
	case at == nil:
		return "never"
	case !at.After(p.now):
		return "now"
	}
	return clock(at)
}

// words say under which window and wave it would be granted and what is in the way until then, or why it would not.
func (one *planned) words(now time.Time) string {
	if one.At == nil && len(one.Obstacles) > 1 {
		return strings.Join(lists.Map(one.Obstacles, (*obstacle).words), " ")
	}
	if one.At == nil {
		return cmp.Or(one.Reason, "unknown") + ": " + one.Message
	}
	var words []string
	if one.Window != "" {
		words = append(words, "window "+one.Window)
	}
	if one.Wave != "" {
		words = append(words, "wave "+one.Wave)
	}
	if one.Asks {
		words = append(words, "after the holder was asked")
	}
	if one.At.After(now) && len(one.Obstacles) > 0 {
		words = append(words, "now in the way: "+strings.Join(lists.Map(one.Obstacles, (*obstacle).short), ", "))
	}
	return cmp.Or(strings.Join(words, ", "), "-")
}
