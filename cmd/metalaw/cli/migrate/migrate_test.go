// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
)

// left is a server as metal-operator v0.7 leaves it: with a state, its finalizer and no lifecycle.
func left(name string, state v1alpha1.ServerState, power v1alpha1.PowerState, change ...func(*v1alpha1.Server)) v1alpha1.Server {
	s := v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Finalizers: []string{v1alpha1.FinalizerServer}}}
	s.Spec.SystemUUID = "uuid-" + name
	s.Status.State, s.Status.PowerState = state, power
	for _, c := range change {
		c(&s)
	}
	return s
}

func holds(claim string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: claim}
	}
}

func ignored(value string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, value)
	}
}

// ours is a server that a manager has taken over.
func ours(marks ...string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 4, Marks: marks} }
}

func says(condition, reason, message string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: reason, Message: message})
	}
}

func claimFor(name, server string, phase v1alpha1.Phase) *v1alpha1.ServerClaim {
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
	c.Spec.Power, c.Spec.ServerRef = v1alpha1.PowerOn, &corev1.LocalObjectReference{Name: server}
	c.Status.Phase = phase
	return c
}

func inventory(server string, custody policyv1alpha1.Custody) *policyv1alpha1.ServerInventory {
	inv := &policyv1alpha1.ServerInventory{Custody: &custody}
	inv.Name, inv.Spec.SystemUUID = "uuid-"+server, "uuid-"+server
	return inv
}

// fleetOf is a fleet under the default bundle.
func fleetOf(t *testing.T, servers []v1alpha1.Server, others ...client.Object) *fleet {
	t.Helper()
	f := &fleet{now: time.Now(), servers: servers, claims: map[types.NamespacedName]*v1alpha1.ServerClaim{},
		inventories: map[string]*policyv1alpha1.ServerInventory{}, ours: true}
	for _, o := range others {
		switch o := o.(type) {
		case *v1alpha1.ServerClaim:
			f.claims[client.ObjectKeyFromObject(o)] = o
		case *policyv1alpha1.ServerInventory:
			f.inventories[o.Name] = o
		case *v1alpha1.BMC:
			f.bmcs = append(f.bmcs, *o)
		}
	}
	if err := f.readPolicy(t.Context(), nil, "default"); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestThePlanSaysOfEachServerWhatThePageOfTheMigrationSays(t *testing.T) {
	lost := []string{"Dirty: its status was lost: its inventory has no record that it is clean"}
	for name, c := range map[string]struct {
		server v1alpha1.Server
		others []client.Object
		want   planned
	}{
		"free and off": {left("a", "Available", "Off"), nil,
			planned{"a", "Available", "Off", "Available", []string{}, "stays", "Inspected, clean and free to claim."}},
		"free and running": {left("a", "Available", "On"), nil,
			planned{"a", "Available", "On", "Initial", []string{"Stranger"}, "FoundRunning to Observing",
				"Found running and not ours; nothing is touched, also after a power cycle of its own, until somebody consents."}},
		"held by its claim": {left("a", "Reserved", "On", holds("web")), []client.Object{claimFor("web", "a", "Bound")},
			planned{"a", "Reserved", "On", "Reserved", []string{"Dirty", "Managed"}, "stays, BootAsClaimed, PowerAsClaimed",
				"Dirty: it names a claim; Managed: a machine in state Reserved was booted by its operator; Bound to a claim, which owns power and boot; powered off once released."}},
		"held by a claim that is gone": {left("a", "Reserved", "On", holds("web")), nil,
			planned{"a", "Reserved", "On", "Reserved", []string{"Dirty", "Managed"}, "stays",
				"Dirty: it names a claim; Managed: a machine in state Reserved was booted by its operator; ClaimMissing: its claim does not exist or does not name it; Bound to a claim, which owns power and boot; powered off once released."}},
		"free, with data that its inventory knows": {left("a", "Available", "Off"), []client.Object{inventory("a", policyv1alpha1.Custody{Marks: []string{"Dirty"}})},
			planned{"a", "Available", "Off", "Initial", []string{"Dirty"}, "DataUnreleased to Error",
				"Dirty: its inventory says so; Its disks may hold a claim's data, and no release of it is recorded. Bring the claim back, or release it, which powers it off and erases it, and then retry."}},
		"pruned, without a record": {left("a", "Available", "Off"), []client.Object{inventory("a", policyv1alpha1.Custody{})},
			planned{"a", "Available", "Off", "Initial", []string{"Dirty"}, "DataUnreleased to Error",
				lost[0] + "; Its disks may hold a claim's data, and no release of it is recorded. Bring the claim back, or release it, which powers it off and erases it, and then retry."}},
		"in a state that nobody knows": {left("a", "Tainted", "Off"), nil,
			planned{"a", "Tainted", "Off", "", []string{"Dirty"}, "halted", `the policy defines no state "Tainted" and does not migrate it`}},
		"to be left alone": {left("a", "Available", "On", ignored("ignore-reconciliation")), nil,
			planned{"a", "Available", "On", "Available", []string{}, "", "annotation metal.ironcore.dev/operation has it left alone"}},
		"without a state, and off": {left("a", "", "Off"), nil,
			planned{"a", "", "Off", "Discovery", []string{}, "stays, BootProbe, PowerOn", "Booting the probe image and waiting for its report."}},
		"taken over already": {left("a", "Available", "Off", ours()), nil,
			planned{"a", "Available", "Off", "Available", []string{}, "stays", "it has a lifecycle already; Inspected, clean and free to claim."}},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.server.DeepCopy()
			f := fleetOf(t, []v1alpha1.Server{c.server}, c.others...)
			if diff := cmp.Diff([]planned{c.want}, f.plan()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(*before, f.servers[0]); diff != "" {
				t.Errorf("the server is changed (-want +got)\n%s", diff)
			}
		})
	}
}

func TestTheCheckHoldsAFleetAgainstStepFive(t *testing.T) {
	enabled := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Status: v1alpha1.BMCStatus{State: v1alpha1.BMCStateEnabled}}
	pending := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Status: v1alpha1.BMCStatus{State: "Pending"}}
	was := []v1alpha1.Server{left("a", "Reserved", "On", holds("web")), left("b", "Available", "Off")}
	for name, c := range map[string]struct {
		before  []v1alpha1.Server
		servers []v1alpha1.Server
		others  []client.Object
		known   []string
		want    []finding
	}{
		"one as it should be": {was, []v1alpha1.Server{left("a", "Reserved", "On", holds("web"), ours("Dirty")), left("b", "Available", "Off", ours())},
			[]client.Object{claimFor("web", "a", "Bound"), enabled}, nil, []finding{}},
		"no server": {nil, nil, nil, nil, []finding{{"cluster", "-", "there is no server; is this the right cluster (--context)?", false}}},
		"one that no manager has seen": {nil, []v1alpha1.Server{left("a", "Available", "Off")}, nil, nil,
			[]finding{{"server", "a", "no manager has taken it over yet: status.lifecycle is empty", false}}},
		"one that left Reserved": {was, []v1alpha1.Server{left("a", "Error", "On", holds("web"), ours())}, []client.Object{claimFor("web", "a", "Bound")}, nil,
			[]finding{{"server", "a", `it was Reserved, and is in "Error"`, false}, {"server", "a", `the claim shop/web holds it, and it is in "Error", not Reserved`, false}}},
		"one that is gone": {was, []v1alpha1.Server{left("b", "Available", "Off", ours())}, nil, nil,
			[]finding{{"server", "a", "it was Reserved, and does not exist any more", false}}},
		"one that names another claim": {was, []v1alpha1.Server{left("a", "Reserved", "On", holds("other"), ours())}, nil, nil,
			[]finding{{"server", "a", "it named the claim shop/web, and does not any more", false}}},
		"a claim that is not Bound": {nil, []v1alpha1.Server{left("a", "Reserved", "On", holds("web"), ours())}, []client.Object{claimFor("web", "a", "Unbound")}, nil,
			[]finding{{"serverclaim", "shop/web", "it names server a and is not Bound", false}}},
		"a claim whose server is gone": {nil, []v1alpha1.Server{left("b", "Available", "Off", ours())}, []client.Object{claimFor("web", "a", "Bound")}, nil,
			[]finding{{"serverclaim", "shop/web", "it names server a, which does not exist", false}}},
		"a BMC that is not Enabled": {nil, []v1alpha1.Server{left("b", "Available", "Off", ours())}, []client.Object{pending}, nil,
			[]finding{{"bmc", "b", `its state is "Pending", not Enabled; see its conditions`, false}}},
		"conditions, of which one is known": {nil, []v1alpha1.Server{
			left("a", "Reserved", "On", holds("web"), ours(), says("ClaimMissing", "ClaimNotFound", "it is gone")),
			left("b", "Available", "Off", ours(), says("PolicyHalted", "UnknownState", "no state"))}, nil, []string{"a"},
			[]finding{{"server", "a", "ClaimMissing (ClaimNotFound): it is gone", true}, {"server", "b", "PolicyHalted (UnknownState): no state", false}}},
	} {
		t.Run(name, func(t *testing.T) {
			v := fleetOf(t, c.servers, c.others...).check(c.before)
			v.know(c.known)
			if diff := cmp.Diff(c.want, v.Findings); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// cluster is an API server that holds objects; without ours it serves no kind of our own group, as before step 3.
func cluster(t *testing.T, withOurs bool, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	none := func(kind string) error {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: policyv1alpha1.GroupVersion.Group, Kind: kind}}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			switch list.(type) {
			case *policyv1alpha1.ServerInventoryList:
				if !withOurs {
					return none("ServerInventory")
				}
			case *policyv1alpha1.PolicyRevisionList:
				if !withOurs {
					return none("PolicyRevision")
				}
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
}

func TestThePlanNamesBMCsWhoseCertificateNothingTrusts(t *testing.T) {
	with := func(scheme v1alpha1.ProtocolScheme, trust *v1alpha1.BMCTrust) (b v1alpha1.BMC) {
		b.Spec.Protocol.Scheme, b.Spec.Trust = scheme, trust
		return b
	}
	f := &fleet{bmcs: []v1alpha1.BMC{with("https", nil), with("https", &v1alpha1.BMCTrust{CertificateSHA256: "ab"}), with("http", nil)},
		bundle: &bundle.Bundle{Manifest: bundle.Manifest{Settings: bundle.Settings{BMCTLS: "verify"}}}}
	want := []string{"the manager verifies the certificates of BMCs (bmc.tls: verify), and 1 of 3 BMCs name none in spec.trust. " +
		"It does not reach a BMC whose certificate neither --bmc-ca-file nor its BMCSecret trusts"}
	if diff := cmp.Diff(want, f.notes()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	f.bundle.Settings.BMCTLS = "insecure"
	if got := f.notes(); got != nil {
		t.Errorf("notes %q where nothing is verified", got)
	}
}

func TestThePlanListsBMCsWithoutAScheme(t *testing.T) {
	f := &fleet{bundle: &bundle.Bundle{Manifest: bundle.Manifest{Settings: bundle.Settings{BMCTLS: "insecure"}}}}
	add := func(name string, scheme v1alpha1.ProtocolScheme) {
		b := v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: name}}
		b.Spec.Protocol.Scheme = scheme
		f.bmcs = append(f.bmcs, b)
	}
	add("c", "")
	add("a", "http")
	add("b", "")
	want := []string{"the manager asks a BMC without spec.protocol.scheme over https. Set http in step 3 for each of these that speaks " +
		"plain HTTP (2 of 3): b, c"}
	if diff := cmp.Diff(want, f.notes()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for i := range 21 {
		add(fmt.Sprintf("m%02d", i), "")
	}
	if got := f.notes()[0]; !strings.HasSuffix(got, "m17 and 3 more, which -o json lists") || len(f.withoutScheme()) != 23 {
		t.Errorf("got %q, of %d", got, len(f.withoutScheme()))
	}
}

func TestThePlanReadsAClusterThatServesNothingOfOurs(t *testing.T) {
	server := left("a", "Available", "Off")
	var out bytes.Buffer
	terminal := &terminal.Terminal{In: strings.NewReader(""), Out: &out, Err: io.Discard}
	if err := plan(t.Context(), cluster(t, false, &server), terminal, &options{}); err != nil {
		t.Fatal(err)
	}
	want := `NAME   STATE       POWER   BECOMES     MARKS   NEXT    WHY
a      Available   Off     Available   -       stays   Inspected, clean and free to claim.
1 server, judged by the shipped bundle default; nothing was written
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAVerdictWithFindingsEndsTheCommandWithAnError(t *testing.T) {
	for name, c := range map[string]struct {
		verdict verdict
		known   []string
		err     error
		out     string
	}{
		"none": {verdict{}, nil, nil, "all is fine\n"},
		"one":  {verdict{Findings: []finding{{"server", "a", "bad", false}}}, nil, terminal.ErrIncomplete, "KIND     NAME      FINDING\nserver   a         bad\nno: 1 finding to see to first\n"},
		"one that is known": {verdict{Findings: []finding{{"server", "a", "bad", false}}}, []string{"a"}, nil,
			"KIND     NAME           FINDING\nserver   a      known   bad\nall is fine\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			c.verdict.know(c.known)
			err := c.verdict.show(&terminal.Terminal{Out: &out, Err: io.Discard}, terminal.OutputAs(terminal.Text), "all is fine")
			if !errors.Is(err, c.err) {
				t.Errorf("it ends with %v", err)
			}
			if diff := cmp.Diff(c.out, out.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

const backup = `apiVersion: v1
kind: List
items:
- {apiVersion: metal.ironcore.dev/v1alpha1, kind: BMC, metadata: {name: b}, spec: {protocol: {port: 8000}}}
- {apiVersion: metal.ironcore.dev/v1alpha1, kind: Server, metadata: {name: a}, status: {state: Reserved}}
`

func TestTheServersOfABackupAreFoundAmongOtherKinds(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		names []string
		fails bool
	}{
		"a list of several kinds":  {backup, []string{"a"}, false},
		"a list without a server":  {"kind: List\nitems: []\n", nil, true},
		"what is no YAML":          {"{", nil, true},
		"a server that is no such": {"items: [{kind: Server, spec: 3}]", nil, true},
		"nothing":                  {"", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			servers, err := serversOf([]byte(c.text))
			var names []string
			for _, s := range servers {
				names = append(names, s.Name)
			}
			if diff := cmp.Diff(c.names, names); diff != "" || (err != nil) != c.fails {
				t.Errorf("error %v (-want +got)\n%s", err, diff)
			}
		})
	}
}

// FuzzServersOf holds that no backup makes it panic, and that it never says of one without servers that it has some.
func FuzzServersOf(f *testing.F) {
	f.Add([]byte(backup))
	f.Add([]byte("items: [null, 3, {kind: Server}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if servers, err := serversOf(text); (err == nil) != (len(servers) > 0) {
			t.Errorf("%d servers, %v", len(servers), err)
		}
	})
}
