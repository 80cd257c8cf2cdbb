// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/denied"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/internal/bmctrust"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/stored"
	"github.com/metalaw/metalaw/internal/tracking"
	"github.com/metalaw/metalaw/macprefixes"
	"github.com/metalaw/metalaw/redfish"
)

// Apply implements loop.Scope.
func (v *scope) Apply(ctx context.Context, decided verdict) loop.Outcome {
	var outcome loop.Outcome
	if decided.ensure {
		if outcome.Progress = v.ensureBMC(ctx); outcome.Progress.Phase != loop.Done {
			outcome.Effect = EffectEnsureBMC
		}
	}
	v.record(decided, outcome)
	return outcome
}

func (v *scope) ensureBMC(ctx context.Context) loop.Progress {
	controllerutil.AddFinalizer(v.endpoint, v1alpha1.FinalizerEndpoint) // only an endpoint that may have a BMC is kept for it
	if v.facts.bmc != "" {
		v.prober.forget(v.endpoint.Name)
		return loop.Holds()
	}
	if made, err := v.madeBefore(ctx); made || err != nil {
		return progressOf(err)
	}
	secret, err := v.readSecret(ctx)
	if err != nil {
		return loop.Broken(err)
	}
	q, err := v.question(ctx, secret)
	if unusable := (*access.Error)(nil); errors.As(err, &unusable) {
		return loop.Failing(unusable.Reason, unusable.Message, 0)
	}
	if err != nil {
		return loop.Broken(err)
	}
	refusal := ""
	if secret == nil {
		c, err := v.candidates(ctx)
		if err != nil {
			return loop.Broken(err)
		}
		if len(c.accounts) == 0 {
			return loop.Failing(v1alpha1.ReasonNoCredentials, fmt.Sprintf(
				"%s gives no account to log in with; create the BMCSecret %s with the keys username and password", c.source, v.endpoint.Name), 0)
		}
		refusal = v.refusal(c)
		if rests := v.rests(refusal); rests > 0 {
			return loop.Failing(v1alpha1.ReasonCredentialsRefused, refusal, rests)
		}
		q.candidates = c.accounts
	}
	return v.act(ctx, v.prober.ask(v.endpoint.Name, proberKey(v.endpoint), q), refusal)
}

// madeBefore looks past the cache where the status says that the BMC was made: the cache may not have it yet, and a
// device is not asked again for that.
func (v *scope) madeBefore(ctx context.Context) (bool, error) {
	if !meta.IsStatusConditionTrue(v.endpoint.Status.Conditions, v1alpha1.ConditionReady) {
		return false, nil
	}
	bmc, err := stored.One[v1alpha1.BMC](ctx, v.Reader, "", v.endpoint.Name)
	return bmc != nil, err
}

func progressOf(err error) loop.Progress {
	if err != nil {
		return loop.Broken(err)
	}
	return loop.Holds()
}

func (v *scope) act(ctx context.Context, a answer, refusal string) loop.Progress {
	switch a.outcome {
	case accepted:
		if err := v.create(ctx, a.credentials, a.pin); err != nil {
			return denied.Write(err, v1alpha1.ReasonBMCRefused, "the BMC or the BMCSecret "+v.endpoint.Name)
		}
		v.prober.forget(v.endpoint.Name)
		return loop.Holds()
	case refused:
		v.refusedAt = a.next.Add(-coolDown)
		return loop.Failing(v1alpha1.ReasonCredentialsRefused, refusal, a.next.Sub(v.now()))
	case failed:
		return loop.Failing(trouble(a.err), v.troubleMessage(a.err), max(a.next.Sub(v.now()), 1))
	default:
		return loop.Waiting(reasonAsking, "the device was asked what it is", 0)
	}
}

// trouble is the reason of a device that gave no usable answer.
func trouble(err error) string {
	reason := redfish.Reason(err)
	if reason == v1alpha1.ReasonUnknownError {
		return v1alpha1.ReasonNotRedfish
	}
	return reason
}

// troubleMessage is the same while the cause is.
func (v *scope) troubleMessage(err error) string {
	cause, _ := access.Describe(err)
	where := v.reach()
	return fmt.Sprintf("no usable Redfish service at %s://%s, which is asked again: %s", where.Scheme,
		net.JoinHostPort(where.Address, strconv.Itoa(where.Port)), cause)
}

func (v *scope) reach() redfish.Endpoint {
	row := v.facts.row
	return access.Reach(v.endpoint.Spec.IP, v1alpha1.ProtocolScheme(row.Scheme), row.Port, v.settings, v.CABundle)
}

// readSecret reads the BMCSecret of the endpoint's name; nil where there is none.
func (v *scope) readSecret(ctx context.Context) (*v1alpha1.BMCSecret, error) {
	secret, err := stored.One[v1alpha1.BMCSecret](ctx, v.Client, "", v.endpoint.Name)
	return secret, wrapped(err, "get BMCSecret %s", v.endpoint.Name)
}

// question gathers how the device is asked. A device is known where its certificate was pinned before, where the BMCSecret was
// made from it, and where Servers name the BMC that would be made.
func (v *scope) question(ctx context.Context, secret *v1alpha1.BMCSecret) (question, error) {
	var servers v1alpha1.ServerList
	if err := v.Client.List(ctx, &servers, client.MatchingFields{fieldindex.ServerByBMC: v.endpoint.Name}); err != nil {
		return question{}, fmt.Errorf("list the Servers of BMC %s: %w", v.endpoint.Name, err)
	}
	_, pinned := v.endpoint.Annotations[v1alpha1.CertificatePinnedAnnotation]
	made := secret != nil && secret.Annotations[v1alpha1.FactoryCredentialsAnnotation] != ""
	reached, err := access.Trust(v.reach(), nil, secret)
	return question{endpoint: reached, confirm: secret != nil, contact: access.FirstContact{
		Settings: v.settings, IP: v.endpoint.Spec.IP, Trust: bmctrust.Named(nil, secret),
		Known: pinned || made || len(servers.Items) > 0,
	}}, err
}

// create makes the BMCSecret first, so that a BMC never names one that is not there. What exists is left as it is: a
// secret may have been rotated since.
func (v *scope) create(ctx context.Context, c redfish.Credentials, pin string) error {
	if c != (redfish.Credentials{}) {
		data := map[string][]byte{v1alpha1.BMCSecretUsernameKey: []byte(c.Username), v1alpha1.BMCSecretPasswordKey: []byte(c.Password)}
		if pin != "" {
			data[v1alpha1.BMCSecretFingerprintKey] = []byte(pin) // a BMC that is made anew goes on with it
		}
		secret := &v1alpha1.BMCSecret{
			ObjectMeta: metav1.ObjectMeta{Name: v.endpoint.Name,
				Annotations: map[string]string{v1alpha1.FactoryCredentialsAnnotation: seal(v.endpoint.UID, data)}},
			Data: data,
		}
		if err := v.Client.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create BMCSecret %s: %w", secret.Name, err)
		}
	}
	bmc := newBMC(v.endpoint, v.facts.row)
	if pin != "" {
		bmc.Spec.Trust = &v1alpha1.BMCTrust{CertificateSHA256: pin}
		at := v.now().UTC().Format(time.RFC3339)
		bmc.Annotations = map[string]string{v1alpha1.CertificatePinnedAnnotation: at}
		// The Endpoint outlives the BMC, and with it what says that another certificate is not the first.
		metav1.SetMetaDataAnnotation(&v.endpoint.ObjectMeta, v1alpha1.CertificatePinnedAnnotation, at)
	}
	if err := controllerutil.SetControllerReference(v.endpoint, bmc, v.Client.Scheme()); err != nil {
		return fmt.Errorf("BMC %s: %w", bmc.Name, err)
	}
	if err := v.Client.Create(ctx, bmc); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create BMC %s: %w", bmc.Name, err)
	}
	return nil
}

// newBMC bears the Endpoint's labels from the beginning, so that one that is made again has them too. They are the BMC's own
// from then on.
func newBMC(e *v1alpha1.Endpoint, row macprefixes.Row) *v1alpha1.BMC {
	bmc := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: e.Name, Labels: tracking.Without(e.Labels),
		Finalizers: []string{v1alpha1.FinalizerBMC}}}
	bmc.Spec.EndpointRef = &corev1.LocalObjectReference{Name: e.Name}
	bmc.Spec.BMCSecretRef.Name = e.Name
	bmc.Spec.Protocol = v1alpha1.Protocol{
		Name: v1alpha1.ProtocolName(row.Protocol), Port: row.Port, Scheme: v1alpha1.ProtocolScheme(row.Scheme),
	}
	if c := row.Console; c != nil {
		bmc.Spec.ConsoleProtocol = &v1alpha1.ConsoleProtocol{Name: v1alpha1.ConsoleProtocolName(c.Type), Port: c.Port}
	}
	return bmc
}

// proberKey names the device to the pool of clients; a BMC's own key is its UID.
func proberKey(e *v1alpha1.Endpoint) string { return "endpoint/" + string(e.UID) }

// Finalize implements loop.Scope: the BMC made from the endpoint goes, and a BMCSecret that holds nothing but the factory
// account; its Servers stay. A BMC that somebody made by hand stays as well, and so does a secret that somebody changed.
func (v *scope) Finalize(ctx context.Context) loop.Progress {
	v.prober.forget(v.endpoint.Name)
	bmcs, err := v.ownBMCs(ctx)
	if err != nil {
		return loop.Broken(err)
	}
	var problems []error
	for _, bmc := range bmcs {
		if !bmc.DeletionTimestamp.IsZero() {
			continue
		}
		err := v.Client.Delete(ctx, bmc, client.Preconditions{UID: &bmc.UID})
		problems = append(problems, client.IgnoreNotFound(err))
	}
	if err := errors.Join(problems...); err != nil {
		return loop.Broken(fmt.Errorf("delete the BMC of Endpoint %s: %w", v.endpoint.Name, err))
	}
	if len(bmcs) > 0 {
		return loop.Waiting("DeletingBMC", fmt.Sprintf("BMC %s is being deleted", bmcs[0].Name), 0)
	}
	return progressOf(v.dropSecret(ctx))
}

// ownBMCs lists the BMCs that were made from the endpoint. The one of its name is read uncached, because it may have
// been made a moment ago.
func (v *scope) ownBMCs(ctx context.Context) ([]*v1alpha1.BMC, error) {
	var list v1alpha1.BMCList
	if err := v.Client.List(ctx, &list, client.MatchingFields{fieldindex.BMCByEndpoint: v.endpoint.Name}); err != nil {
		return nil, fmt.Errorf("list the BMCs of Endpoint %s: %w", v.endpoint.Name, err)
	}
	var own []*v1alpha1.BMC
	for i := range list.Items {
		if bmc := &list.Items[i]; bmc.Name != v.endpoint.Name && metav1.IsControlledBy(bmc, v.endpoint) {
			own = append(own, bmc)
		}
	}
	named, err := stored.One[v1alpha1.BMC](ctx, v.Reader, "", v.endpoint.Name)
	if err != nil {
		return nil, fmt.Errorf("get BMC %s: %w", v.endpoint.Name, err)
	}
	if named != nil && metav1.IsControlledBy(named, v.endpoint) {
		own = append(own, named)
	}
	return own, nil
}
