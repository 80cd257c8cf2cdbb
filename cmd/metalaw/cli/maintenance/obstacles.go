// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/controllers/maintenance"
	"github.com/metalaw/metalaw/controllers/maintenance/grant"
)

// obstacle is one thing that a maintenance waits for.
type obstacle struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Servers are those that fill a limit.
	Servers []string `json:"servers,omitempty"`
}

func obstacleOf(o *grant.Obstacle) obstacle { return obstacle{o.Reason, o.Message, o.Servers} }

func (o *obstacle) words() string { return o.Reason + ": " + o.Message }

// short is the reason, with the first servers that fill a limit.
func (o *obstacle) short() string {
	const most = 3
	switch n := len(o.Servers); {
	case n == 0:
		return o.Reason
	case n > most:
		return fmt.Sprintf("%s (%s and %d more)", o.Reason, strings.Join(o.Servers[:most], ", "), n-most)
	default:
		return o.Reason + " (" + strings.Join(o.Servers, ", ") + ")"
	}
}

// readAll reads all servers, claims and maintenances. With an error it returns the resource that could not be listed.
func readAll(ctx context.Context, c client.Reader, o *maintenance.Objects) (resource string, err error) {
	var servers v1alpha1.ServerList
	var claims v1alpha1.ServerClaimList
	var maintenances v1alpha1.ServerMaintenanceList
	for _, one := range []struct {
		list     client.ObjectList
		resource string
	}{{&servers, access.Servers}, {&claims, access.ServerClaims}, {&maintenances, access.Maintenances}} {
		if err := c.List(ctx, one.list); err != nil {
			return one.resource, err
		}
	}
	o.Servers, o.Claims, o.Maintenances = servers.Items, claims.Items, maintenances.Items
	return "", nil
}

// readControl reads the FleetControl; nil where there is none, or where the reader may not see it, which a note says.
func readControl(ctx context.Context, c client.Reader, notes *[]string) (*policyv1alpha1.FleetControl, error) {
	control := &policyv1alpha1.FleetControl{}
	switch err := c.Get(ctx, types.NamespacedName{Name: policyv1alpha1.FleetControlName}, control); {
	case err == nil:
		return control, nil
	case apierrors.IsNotFound(err):
		return nil, nil
	default:
		return nil, access.Missing(notes, err, "get", access.FleetControls,
			"freezes and budgets are not known, because you cannot see them")
	}
}

// readObstacles finds out everything that a maintenance waits for, as the scheduler would. It takes all servers, claims
// and maintenances: limits count them.
func readObstacles(
	ctx context.Context, c client.Reader, o maintenance.Objects, of scene, notes *[]string,
) ([]obstacle, error) {
	resource, err := readAll(ctx, c, &o)
	if err != nil {
		return nil, access.Missing(notes, err, "list", resource,
			"what else is in the way, and which servers fill a limit, is not known to you")
	}
	if o.Control, err = readControl(ctx, c, notes); err != nil {
		return nil, err
	}
	grants := grant.Decide(o.Snapshot(refusal, func(*v1alpha1.ServerMaintenance) bool { return true }))
	g := lists.Find(grants, func(g *grant.Grant) bool { return g.UID == of.UID })
	if g == nil {
		return nil, nil
	}
	return lists.Map(g.Obstacles, obstacleOf), nil
}
