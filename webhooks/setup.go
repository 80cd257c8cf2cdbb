// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies/index"
	"github.com/metalaw/metalaw/webhooks/bundles"
	"github.com/metalaw/metalaw/webhooks/credentials"
	"github.com/metalaw/metalaw/webhooks/maintenances"
	"github.com/metalaw/metalaw/webhooks/review"
)

// The paths at which the webhooks answer; config/webhook names them.
const (
	PathValidateServerClaim  = "/validate/serverclaim"
	PathValidateEndpoint     = "/validate/endpoint"
	PathValidateBMC          = "/validate/bmc"
	PathValidateBMCSecret    = "/validate/bmcsecret"
	PathValidateBoot         = "/validate/serverbootconfiguration"
	PathValidateServer       = "/validate/server"
	PathValidateFleetControl = "/validate/fleetcontrol"
	PathValidateInventory    = "/validate/serverinventory"
	PathValidateMaintenance  = "/validate/servermaintenance"
	PathValidateReadiness    = "/validate/serverreadinessrule"
	PathValidateConsent      = "/validate/consent"
	PathValidateBundle       = "/validate/bundle"
	PathValidateRevision     = "/validate/policyrevision"
	PathMutateServerClaim    = "/mutate/serverclaim"
	PathMutateEndpoint       = "/mutate/endpoint"
	PathMutateServer         = "/mutate/server"
	PathMutateMaintenance    = "/mutate/servermaintenance"
	PathMutateBundle         = "/mutate/bundle"
)

// serviceAccount is the name of the manager's service account in the shipped manifests.
const serviceAccount = "metalaw-manager"

// Fleet is the fleet as a process knows it. controllers/scheduler/feed has one.
type Fleet interface {
	// Index is the fleet as it is known.
	Index() *index.Index
	// HasSynced says whether the index is whole. Before that nothing can be said of what is not there.
	HasSynced() bool
}

// Options is what the webhooks need.
type Options struct {
	Bundles review.Bundles
	// Fleet is the index of the servers that this process keeps.
	Fleet Fleet
	// Client reads the cache, with the indexes of api/fieldindex. Default: the manager's client.
	Client client.Reader
	// Reader reads past the cache. Default: the manager's API reader.
	Reader client.Reader
	// Rights takes SubjectAccessReviews. Default: the manager's client.
	Rights client.Writer
	// Writer notes on a Server who ends its claim. Default: the manager's client.
	Writer client.Writer
	// ManagerUser is the user whose writes are the manager's own, compared exactly. Default: the service account
	// metalaw-manager of Namespace.
	ManagerUser string
	// Namespace is the manager's, the only one in which a ConfigMap can be a bundle.
	Namespace string
	// NoReleaseGrace says that releases take effect at once, whatever releaseGrace of a bundle says.
	NoReleaseGrace bool
	// HoldsMaintenances says that the manager grants maintenances, and holds each until its server was handed back. Admission then writes
	// the finalizer that the manager takes away.
	HoldsMaintenances bool
	// CredentialUse says what admission does with a user who decides where a password goes and lacks the right. Default: Warn.
	CredentialUse credentials.Mode
	// BMCAuthority says that the manager trusts BMCs by an authority of its own.
	BMCAuthority bool
	// Accept checks a bundle that is to be stored. Default: policies.Accept.
	Accept bundles.Acceptor
	// Ready is closed when the serving certificate is in place; see AddRotator. Nil: it is in place already.
	Ready <-chan struct{}
	// Registry takes the metrics. Default: the one that the manager serves. Sharing one among several managers is fine.
	Registry prometheus.Registerer
}

// Setup registers the webhooks on the manager's webhook server as soon as the certificate is in place, and a readiness
// check named webhooks that fails until then. They answer on every replica. It must be called once, before the manager
// starts. What it returns is that check.
func Setup(mgr ctrl.Manager, o Options) (serves healthz.Checker, err error) {
	if o.Bundles == nil || o.Fleet == nil || o.Namespace == "" {
		return nil, errors.New("webhooks need Bundles, Fleet and Namespace")
	}
	if o.Client == nil {
		o.Client = mgr.GetClient()
	}
	if o.Reader == nil {
		o.Reader = mgr.GetAPIReader()
	}
	if o.Rights == nil {
		o.Rights = mgr.GetClient()
	}
	if o.Writer == nil {
		o.Writer = mgr.GetClient()
	}
	if o.ManagerUser == "" {
		o.ManagerUser = "system:serviceaccount:" + o.Namespace + ":" + serviceAccount
	}
	if o.Registry == nil {
		o.Registry = ctrlmetrics.Registry
	}
	o.CredentialUse = cmp.Or(o.CredentialUse, credentials.Warn)
	hooks, err := handlers(o, time.Now)
	if err != nil {
		return nil, err
	}
	s := &serving{mgr: mgr, hooks: hooks, ready: o.Ready}
	if err := mgr.AddReadyzCheck("webhooks", s.check); err != nil {
		return nil, err
	}
	if o.Ready == nil {
		s.register()
		return s.check, nil
	}
	return s.check, mgr.Add(s)
}

// handlers makes the handler of every path.
func handlers(o Options, now func() time.Time) (map[string]admission.Handler, error) {
	m, err := review.NewMetrics(o.Registry)
	if err != nil {
		return nil, err
	}
	if o.Accept == nil {
		o.Accept = bundles.Accept
	}
	l := &lookup{cache: o.Client, reader: o.Reader, bundles: o.Bundles, servers: o.Fleet, rights: o.Rights, writer: o.Writer, namespace: o.Namespace,
		unique: &uniqueness{reader: o.Reader, now: now, recent: map[string]admitted{}}}
	l.credentials = &credentials.Rules{Mode: o.CredentialUse, Cache: o.Client, Bundles: o.Bundles, Authority: o.BMCAuthority, May: l.may}
	claims := &claimRules{lookup: l, quotas: newQuotas(o.Client, now), looks: newLooks(), longestLook: longestLook, noReleaseGrace: o.NoReleaseGrace}
	bmcs, servers := &bmcRules{l}, &serverRules{l}
	wanted := &maintenances.Rules{Cache: o.Client, Reader: o.Reader, May: l.may, DataOf: l.dataOf}
	policies := &bundles.Rules{Cache: o.Client, Reader: o.Reader, Bundles: o.Bundles, Namespace: o.Namespace, May: l.may,
		Accepted: bundles.NewAcceptances(o.Accept)}
	return map[string]admission.Handler{
		PathValidateServerClaim: validating(o, m, now,
			review.Rules[v1alpha1.ServerClaim]{Kind: "ServerClaim", Judge: claims.judgeClaim, Look: claims.lookForClaim}),
		PathValidateEndpoint: validating(o, m, now, review.Rules[v1alpha1.Endpoint]{Kind: "Endpoint", Judge: l.judgeEndpoint}),
		PathValidateBMC:      validating(o, m, now, review.Rules[v1alpha1.BMC]{Kind: "BMC", Judge: bmcs.judgeBMC}),
		PathValidateBMCSecret: validating(o, m, now,
			review.Rules[v1alpha1.BMCSecret]{Kind: "BMCSecret", Judge: review.Pure(checkBMCSecret), Redact: redactBMCSecret}),
		PathValidateBoot: validating(o, m, now,
			review.Rules[v1alpha1.ServerBootConfiguration]{Kind: "ServerBootConfiguration"}), // the CRD says all of ours
		PathValidateServer: validating(o, m, now, review.Rules[v1alpha1.Server]{Kind: "Server", Judge: servers.judgeServer}),
		PathValidateMaintenance: validating(o, m, now,
			review.Rules[v1alpha1.ServerMaintenance]{Kind: "ServerMaintenance", Judge: wanted.Judge}),
		PathValidateReadiness: validating(o, m, now,
			review.Rules[v1alpha1.ServerReadinessRule]{Kind: "ServerReadinessRule", Judge: review.Pure(checkReadinessRule), Alone: true}),
		// A bundle whose rules fail must not keep anyone from freezing the fleet.
		PathValidateFleetControl: validating(o, m, now,
			review.Rules[policyv1alpha1.FleetControl]{Kind: "FleetControl", Judge: l.judgeFleetControl, Alone: true}),
		PathValidateInventory: validating(o, m, now,
			review.Rules[policyv1alpha1.ServerInventory]{Kind: "ServerInventory", Judge: review.Pure(checkInventory), Alone: true}),
		PathValidateConsent: validating(o, m, now, review.Rules[corev1.ConfigMap]{Kind: "ConfigMap", Judge: wanted.JudgeConsent, Alone: true}),
		// Bundles are what the rules would come from; they have no say in what is accepted.
		PathValidateBundle: validating(o, m, now, review.Rules[corev1.ConfigMap]{Kind: "ConfigMap", Judge: policies.JudgeBundle, Alone: true}),
		PathValidateRevision: validating(o, m, now,
			review.Rules[policyv1alpha1.PolicyRevision]{Kind: "PolicyRevision", Judge: policies.JudgeRevision, Alone: true}),
		PathMutateBundle:      review.Mutator(o.ManagerUser, policies.Mutate(now)),
		PathMutateServerClaim: review.Mutator(o.ManagerUser, finalizeClaim),
		PathMutateEndpoint:    review.Mutator(o.ManagerUser, l.normalizeEndpoint),
		PathMutateServer:      review.Mutator(o.ManagerUser, normalizeServer),
		PathMutateMaintenance: review.Mutator(o.ManagerUser, maintenances.Normalize(o.HoldsMaintenances)),
	}, nil
}

func validating[T any](o Options, m *review.Metrics, now func() time.Time, r review.Rules[T]) admission.Handler {
	return &review.Validator[T]{Rules: r, Bundles: o.Bundles, ManagerUser: o.ManagerUser, Metrics: m, Now: now}
}

// serving puts the handlers on the webhook server once there is a certificate: the server cannot start without one, and
// the manager starts it when it is first asked for.
type serving struct {
	mgr    ctrl.Manager
	hooks  map[string]admission.Handler
	ready  <-chan struct{}
	server atomic.Pointer[webhook.Server]
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (s *serving) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *serving) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-s.ready:
		s.register()
	}
	return nil
}

func (s *serving) register() {
	server := s.mgr.GetWebhookServer()
	for path, handler := range s.hooks {
		server.Register(path, &admission.Webhook{Handler: handler})
	}
	s.server.Store(&server)
}

// check is healthy while the server takes connections.
func (s *serving) check(req *http.Request) error {
	server := s.server.Load()
	if server == nil {
		return errors.New("the webhooks wait for their serving certificate")
	}
	return (*server).StartedChecker()(req)
}
