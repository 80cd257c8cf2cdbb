// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/controllers/maintenance"
	"github.com/metalaw/metalaw/internal/running"
)

// managerState is what the Deployment and the Leases say.
type managerState struct {
	// Absent says that there is no Deployment.
	Absent        bool
	Wanted, Ready int32
	Image         string
	RegistryURL   string
	// Maintenance is the flag --maintenance; empty if it is not known.
	Maintenance string
	// CredentialUse is the flag --credential-use; empty if it is not given, or not known.
	CredentialUse string
	// ObserveOnly is the flag --observe-only of the manager that leads.
	ObserveOnly bool
	// Leader is who holds the lease, and Renewed when it was renewed last; zero where there is none.
	Leader  string
	Renewed time.Time
	// LeaseFor is how long the lease lasts.
	LeaseFor time.Duration
}

// leads says that a manager leads now.
func (m *managerState) leads(now time.Time) bool {
	return m.Leader != "" && now.Sub(m.Renewed) <= 2*m.LeaseFor
}

func checkManager(v view) finding {
	const check = "manager"
	if v.managerErr != nil {
		return unread(check, v.managerErr)
	}
	m, leads := v.manager, v.manager.leads(v.now)
	if words, verdict := m.unready(leads, v.admission.Refused); words != "" {
		remedy := managerLogs
		if m.Absent {
			remedy = "install it: docs/install.md"
		}
		return finding{check, verdict, words, remedy}
	}
	switch {
	case !leads:
		return finding{check, Failed, "no replica leads, so no server is reconciled", managerLogs}
	case m.ObserveOnly:
		return finding{check, Warned, m.Leader + " leads with --observe-only: nothing is done to any machine, and " +
			"no claim is bound",
			"when that is no longer meant, run the manager without the flag"}
	case m.Absent:
		return finding{check, Passed, m.Leader + " leads; it runs outside the cluster, because there is no " +
			"Deployment " + deployment, ""}
	case m.Ready < m.Wanted:
		return finding{check, Warned, fmt.Sprintf("%d of %d replicas are ready", m.Ready, m.Wanted), managerLogs}
	}
	return finding{check, Passed, fmt.Sprintf("%d replicas of %s are ready; %s leads", m.Ready, m.Image, m.Leader), ""}
}

// managerLogs is where the manager says what is wrong.
const managerLogs = "see kubectl logs -n metalaw-system deployment/metalaw-manager"

// unready says what is wrong with a Deployment that is missing or has no ready replica, by whether a manager leads and
// whether admission answers; empty if nothing is.
func (m *managerState) unready(leads, admits bool) (string, Verdict) {
	switch {
	case m.Absent && !leads && !admits:
		return "there is no Deployment " + deployment + " in namespace " + namespace + ", and no manager leads", Failed
	case m.Absent || m.Ready > 0:
		return "", Passed
	case leads:
		return fmt.Sprintf("no replica of the Deployment is ready, and %s leads: the manager runs elsewhere",
			m.Leader), Warned
	case admits:
		return "no replica of the Deployment is ready, and admission answers: the manager runs elsewhere", Warned
	}
	return fmt.Sprintf("none of %d replicas of %s is ready", m.Wanted, m.Image), Failed
}

// manager reads the Deployment, and the Leases: what the managers that run say of their flags goes before the
// Deployment.
func (r reader) manager(ctx context.Context, now time.Time) (managerState, error) {
	var d appsv1.Deployment
	err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: deployment}, &d)
	if client.IgnoreNotFound(err) != nil {
		return managerState{}, err
	}
	state := deployed(&d)
	state.Absent = apierrors.IsNotFound(err)
	var leases coordinationv1.LeaseList
	if err := r.List(ctx, &leases, client.InNamespace(namespace)); err != nil {
		return managerState{}, err
	}
	state.hear(leases.Items, now)
	return state, nil
}

// deployed is what the Deployment says of the manager.
func deployed(d *appsv1.Deployment) managerState {
	state := managerState{Wanted: 1, Ready: d.Status.ReadyReplicas}
	if d.Spec.Replicas != nil {
		state.Wanted = *d.Spec.Replicas
	}
	for i := range d.Spec.Template.Spec.Containers {
		c := &d.Spec.Template.Spec.Containers[i]
		if c.Name != "manager" {
			continue
		}
		state.Image, state.Maintenance = c.Image, string(maintenance.Off)
		for _, argument := range c.Args {
			if url, is := strings.CutPrefix(argument, "--registry-url="); is {
				state.RegistryURL = url
			}
			if mode, is := strings.CutPrefix(argument, "--maintenance="); is {
				state.Maintenance = mode
			}
			if mode, is := strings.CutPrefix(argument, "--credential-use="); is {
				state.CredentialUse = mode
			}
		}
	}
	return state
}

// hear takes in what the Leases say: which manager leads, and its flags. Without a leader election, the heartbeat tells
// that one leads.
func (m *managerState) hear(leases []coordinationv1.Lease, now time.Time) {
	state := running.Of(leases, now)
	for i := range leases {
		l := &leases[i]
		if l.Name == lease && l.Spec.HolderIdentity != nil && l.Spec.RenewTime != nil &&
			l.Spec.LeaseDurationSeconds != nil {
			m.Leader, m.Renewed = *l.Spec.HolderIdentity, l.Spec.RenewTime.Time
			m.LeaseFor = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
		}
	}
	flags := state.Flags()
	if state.Leading && m.Leader == "" {
		m.Leader, m.Renewed, m.LeaseFor = cmp.Or(state.Leader(), "a manager"), *state.BeatAt, time.Minute
	}
	if flags == nil {
		return
	}
	m.ObserveOnly = flags.ObserveOnly
	m.Maintenance = cmp.Or(flags.Maintenance, string(maintenance.Off))
	m.CredentialUse = cmp.Or(flags.CredentialUse, m.CredentialUse)
	m.RegistryURL = cmp.Or(flags.RegistryURL, m.RegistryURL)
}
