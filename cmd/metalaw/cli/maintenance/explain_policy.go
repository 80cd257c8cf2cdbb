// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/claim"
	"github.com/metalaw/metalaw/controllers/maintenance"
	"github.com/metalaw/metalaw/controllers/maintenance/grant"
	setting "github.com/metalaw/metalaw/engine/maintenance"
	"github.com/metalaw/metalaw/internal/rights"
	"github.com/metalaw/metalaw/internal/stored"
)

func isController(o *metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller }

// inForce is what the revision in force says of maintenances, and its name; nil where that is not known, which a note says.
func inForce(ctx context.Context, c client.Reader, notes *[]string) (*setting.Policy, string, error) {
	var revisions policyv1alpha1.PolicyRevisionList
	if err := c.List(ctx, &revisions); err != nil {
		return nil, "", access.Missing(notes, err, "list", access.Revisions, "the policy in force and its windows are not known to you")
	}
	for i := range revisions.Items {
		r := &revisions.Items[i]
		if !meta.IsStatusConditionTrue(r.Status.Conditions, policyv1alpha1.ConditionActive) {
			continue
		}
		b, err := claim.Compile(r)
		if err != nil {
			*notes = append(*notes, err.Error()+"; its windows and limits are not known")
			return nil, r.Name, nil //nolint:nilerr // The note says it; the rest is shown.
		}
		return b.Settings.Maintenance, r.Name, nil
	}
	*notes = append(*notes, "no policy is in force, and no maintenance is granted; metalaw policy history shows the revisions")
	return nil, "", nil
}

// readWindow asks the policy in force: its windows, and then everything else.
func (e *explanation) readWindow(ctx context.Context, c client.Reader, of scene, now time.Time) error {
	if of.server == nil || !waits(of.ServerMaintenance) {
		return nil
	}
	policy, revision, err := inForce(ctx, c, &e.Notes)
	if policy == nil || err != nil {
		return err
	}
	o := maintenance.Objects{Now: now, Setting: policy, Servers: []v1alpha1.Server{*of.server},
		Maintenances: []v1alpha1.ServerMaintenance{*of.ServerMaintenance}}
	if of.claim != nil {
		o.Claims = []v1alpha1.ServerClaim{*of.claim}
	}
	e.Window = windowOf(&o, revision)
	e.Obstacles, err = readObstacles(ctx, c, maintenance.Objects{Now: now, Setting: policy}, of, &e.Notes)
	return err
}

// windowOf is what the windows say to the one maintenance of some objects.
func windowOf(o *maintenance.Objects, revision string) *window {
	snapshot := o.Snapshot(func(*v1alpha1.ServerMaintenance) grant.Answer { return grant.Answer{} },
		func(*v1alpha1.ServerMaintenance) bool { return true })
	if len(snapshot.Maintenances) == 0 {
		return nil
	}
	m := &snapshot.Maintenances[0]
	facts := snapshot.Servers[m.Server].Facts
	facts.Maintenance = setting.MaintenanceFacts{Labels: m.Labels, Annotations: m.Annotations, Priority: m.Priority,
		Policy: string(policyOf(&o.Maintenances[0]))}
	takes := o.Setting.Takes(m.Expected)
	is := o.Setting.Window(&facts, o.Now, takes)
	w := &window{Revision: revision, Name: is.Name, Open: is.Open, Never: is.Never, Expected: takes.String(),
		Closes: moment(is.Closes), Opens: moment(is.Opens)}
	if is.Err != nil {
		w.Problem = is.Err.Error()
	}
	return w
}

// moment is a time that may be none.
func moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

// readRights says who made the maintenance, and which rights that takes.
func (e *explanation) readRights(ctx context.Context, c client.Reader, of scene) error {
	if maker, err := rights.ParseMaker(of.Annotations[v1alpha1.MakerAnnotation]); err == nil {
		e.Maker = maker.Username
	}
	if of.server == nil {
		return nil // they depend on who holds the server
	}
	dirty := true
	inventory, err := stored.Inventory(ctx, c, of.server.Spec.SystemUUID)
	switch {
	case apierrors.IsForbidden(err): // what is not known may be data
	case err != nil:
		return err
	default:
		dirty = rights.Dirty(of.server, inventory)
	}
	for _, needed := range rights.Needed(of.ServerMaintenance, of.server, of.claim, dirty) {
		e.Rights = append(e.Rights, right{Verb: needed.Verb, Role: needed.Role()})
	}
	return nil
}
