// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/running"
)

func TestARemedyFitsWhatFailed(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for name, c := range map[string]struct {
		err     error
		verdict Verdict
		remedy  string
	}{
		"an object is missing":            {apierrors.NewNotFound(secrets, "s"), Failed, "install it: docs/install.md"},
		"a resource is missing":           {apierrors.NewNotFound(secrets, ""), Failed, "apply the CRDs: kubectl apply --server-side -k config/crd"},
		"a kind is missing":               {&meta.NoKindMatchError{}, Failed, "apply the CRDs: kubectl apply --server-side -k config/crd"},
		"a right is missing":              {forbidden, Unknown, "run it with the rights of ClusterRole cluster-admin, or read this by hand"},
		"the user is not known":           {apierrors.NewUnauthorized("no"), Unknown, "see the user of your kubeconfig context, or name another with --context"},
		"the API server does not answer":  {&url.Error{Err: errors.New("refused")}, Unknown, "see that the API server answers, and --kubeconfig and --context"},
		"the API server takes too long":   {context.DeadlineExceeded, Unknown, "see that the API server answers, and --kubeconfig and --context"},
		"the answer cannot be understood": {errors.New("unexpected end"), Unknown, "see to what the error says, and run it again"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unread("rights", c.err); got.Verdict != c.verdict || got.Remedy != c.remedy {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestTheExitCodeOfTheFindings(t *testing.T) {
	of := func(all ...Verdict) (found []finding) {
		for _, v := range all {
			found = append(found, finding{Check: "c", Verdict: v, Message: "m", Remedy: "r"})
		}
		return found
	}
	for name, c := range map[string]struct {
		found []finding
		want  int
	}{
		"all passed":                        {of(Passed, Passed), 0},
		"a warning":                         {of(Passed, Warned), 0},
		"not everything may be read":        {of(Passed, Unknown), 0},
		"one failed":                        {of(Passed, Unknown, Failed), 1},
		"none could be made":                {of(Unknown, Unknown), 2},
		"none could be made, and one fails": {of(Unknown, Failed), 1},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := show(&terminal.Terminal{Out: &out, Err: &out}, c.found, terminal.OutputAs(terminal.Text))
			if got := usage.ExitCode(err); got != c.want || !bytes.Contains(out.Bytes(), []byte("m. Remedy: r")) {
				t.Errorf("exit code %d, output:\n%s", got, out.String())
			}
		})
	}
}

func TestAnAPIServerThatDoesNotAnswerIsToldOnce(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"it does not answer": {&url.Error{Op: "Get", URL: "https://x", Err: errors.New("connection refused")}, 2},
		"it refuses":         {forbidden, 0},
		"it answers":         {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := reader{raw: func(context.Context, string) ([]byte, error) { return nil, c.err }}
			if got := usage.ExitCode(r.answers(t.Context())); got != c.want {
				t.Errorf("exit code %d, want %d", got, c.want)
			}
		})
	}
}

func TestTheManagerThatRunsTellsItsFlags(t *testing.T) {
	at := func(name, holder string, seconds int32) coordinationv1.Lease {
		l := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
		l.Spec.HolderIdentity, l.Spec.RenewTime = &holder, &metav1.MicroTime{Time: noon.Add(-time.Second)}
		l.Spec.LeaseDurationSeconds = ptr.To(seconds)
		return l
	}
	replica := at("metalaw-replica-a", "a", 90)
	replica.Labels = map[string]string{policyv1alpha1.ReplicaLabel: "true"}
	replica.Annotations = map[string]string{policyv1alpha1.FlagsAnnotation: running.Flags{ObserveOnly: true, Maintenance: "plan", RegistryURL: "https://r"}.Text()}
	m := managerState{Maintenance: "off", RegistryURL: "https://deployed"}
	m.hear([]coordinationv1.Lease{at(running.HeartbeatLease, "x", 0), replica}, noon)
	if !m.ObserveOnly || m.Maintenance != "plan" || m.RegistryURL != "https://r" || m.Leader != "a" || !m.leads(noon) {
		t.Errorf("got %+v", m)
	}
	former := managerState{Maintenance: "off", RegistryURL: "https://deployed"}
	former.hear([]coordinationv1.Lease{at(lease, "b_1", 15), at(running.HeartbeatLease, "x", 0)}, noon)
	if former.Maintenance != "off" || former.RegistryURL != "https://deployed" || former.Leader != "b_1" {
		t.Errorf("of a build that does not tell: %+v", former)
	}
}

func TestAManagerThatIsMissingOrOnlyObserves(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*view)
		verdict Verdict
		message string
	}{
		"no Deployment and no leader": {func(v *view) { v.manager, v.admission = managerState{Absent: true}, admission{} }, Failed,
			"there is no Deployment metalaw-manager in namespace metalaw-system, and no manager leads"},
		"no Deployment, and it runs elsewhere": {func(v *view) { v.manager.Absent, v.manager.Ready = true, 0 }, Passed,
			"pod-a leads; it runs outside the cluster, because there is no Deployment metalaw-manager"},
		"it only observes": {func(v *view) { v.manager.ObserveOnly = true }, Warned,
			"pod-a leads with --observe-only: nothing is done to any machine, and no claim is bound"},
	} {
		t.Run(name, func(t *testing.T) {
			v := healthy(t)
			c.change(&v)
			if got := checkManager(v); got.Verdict != c.verdict || got.Message != c.message {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestTheAgeOfWhatTheBootServiceSaid(t *testing.T) {
	boot := func(name string, state metalv1alpha1.ServerBootConfigurationState, asked, answered time.Duration) metalv1alpha1.ServerBootConfiguration {
		b := metalv1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "t", Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-48 * time.Hour))}}
		b.ManagedFields = []metav1.ManagedFieldsEntry{{Time: ptr.To(metav1.NewTime(noon.Add(-asked)))}}
		b.Status.State = state
		b.Status.Conditions = []metav1.Condition{{Type: metalv1alpha1.ConditionSpecHandedOver, Status: "True", LastTransitionTime: metav1.NewTime(noon)}}
		if answered > 0 {
			b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{Type: metalv1alpha1.ConditionImageValidation,
				Status: "True", LastTransitionTime: metav1.NewTime(noon.Add(-answered))})
		}
		return b
	}
	const ready, pending = metalv1alpha1.ServerBootConfigurationStateReady, metalv1alpha1.ServerBootConfigurationStatePending
	for name, c := range map[string]struct {
		boots   []metalv1alpha1.ServerBootConfiguration
		verdict Verdict
		message string
	}{
		"it answered lately": {[]metalv1alpha1.ServerBootConfiguration{boot("a", ready, time.Hour, time.Minute)}, Passed,
			"1 of 1 boot configurations are Ready; the boot service last answered 1m0s ago"},
		"an old configuration was changed just now": {[]metalv1alpha1.ServerBootConfiguration{boot("a", pending, time.Minute, time.Hour)}, Passed,
			"0 of 1 boot configurations are Ready; the boot service last answered 1h0m0s ago"},
		"it died, although some are Ready": {[]metalv1alpha1.ServerBootConfiguration{boot("a", ready, 4*time.Hour, 3*time.Hour),
			boot("b", pending, time.Hour, 0)}, Failed, "the boot service has not answered for 3h0m0s; 1 wait: t/b"},
		"it answers others": {[]metalv1alpha1.ServerBootConfiguration{boot("a", ready, 4*time.Hour, time.Minute),
			boot("b", pending, time.Hour, 0)}, Warned, "1 of 2 boot configurations wait for more than 5m0s: t/b"},
		"it writes no conditions": {[]metalv1alpha1.ServerBootConfiguration{boot("a", ready, time.Hour, 0), boot("b", pending, time.Hour, 0)}, Warned,
			"1 of 2 boot configurations wait for more than 5m0s: t/b"},
		"there is none": {[]metalv1alpha1.ServerBootConfiguration{boot("b", pending, time.Hour, 0)}, Failed, "no boot service has answered; 1 wait: t/b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := checkBootService(view{now: noon, boots: c.boots}); got.Verdict != c.verdict || got.Message != c.message {
				t.Errorf("got %+v", got)
			}
		})
	}
}
