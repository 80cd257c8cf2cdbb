// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/maintenances"
)

// maintenance asks for server s1 from namespace team, by jane.
func maintenance(change ...func(*v1alpha1.ServerMaintenance)) *v1alpha1.ServerMaintenance {
	m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "m"},
		Spec: v1alpha1.ServerMaintenanceSpec{ServerRef: corev1.LocalObjectReference{Name: "s1"}}}
	noting(v1alpha1.MakerAnnotation, `{"username":"jane"}`)(m)
	for _, c := range change {
		c(m)
	}
	return m
}

func noting(name, value string) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, name, value) }
}

// madeBy says who made it, of which groups.
func madeBy(user string, groups ...string) func(*v1alpha1.ServerMaintenance) {
	text := `{"username":"` + user + `"}`
	if len(groups) > 0 {
		text = `{"username":"` + user + `","groups":["` + strings.Join(groups, `","`) + `"]}`
	}
	return noting(v1alpha1.MakerAnnotation, text)
}

func ofServer(name string) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) { m.Spec.ServerRef.Name = name }
}

func enforced(m *v1alpha1.ServerMaintenance) {
	m.Spec.Policy = v1alpha1.ServerMaintenancePolicyEnforced
}

func holderAsked(m *v1alpha1.ServerMaintenance) {
	m.Status.Asked = &v1alpha1.MaintenanceAsked{ClaimUID: "c"}
}

func powered(power v1alpha1.Power) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) { m.Spec.ServerPower = power }
}

func bootsOn(server string) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) {
		m.Spec.ServerBootConfigurationTemplate = &v1alpha1.ServerBootConfigurationTemplate{Name: "t",
			Spec: v1alpha1.ServerBootConfigurationSpec{ServerRef: corev1.LocalObjectReference{Name: server}}}
	}
}

func inMaintenance(m *v1alpha1.ServerMaintenance) {
	m.Status.State = v1alpha1.ServerMaintenanceStateInMaintenance
}

func handedOver(m *v1alpha1.ServerMaintenance) {
	m.Status.State, m.Status.GrantedAt = v1alpha1.ServerMaintenanceStateFailed, &metav1.Time{Time: time.Unix(1, 0)}
}

// claimed is a server with the claim that holds it, in a namespace.
func claimed(namespace string) []client.Object {
	held := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db", UID: "u"}}
	return []client.Object{server(heldBy(namespace, "db"), annotated(v1alpha1.ClaimUIDAnnotation, "u")), held}
}

const (
	noMaintain = `spec.serverRef: Forbidden: user "jane" lacks the verb maintain on servers.metal.ironcore.dev "s1", which ClusterRole metalaw-maintainer gives; ` +
		`a server that a claim in namespace "team" holds takes none`
	noEnforce = `spec.policy: Forbidden: user "jane" lacks the verb enforce on servers.metal.ironcore.dev "s1", which ClusterRole metalaw-maintenance-enforcer gives; ` +
		`policy OwnerApproval takes none`
	noBoot = `spec.serverBootConfigurationTemplate: Forbidden: user "jane" lacks the verb boot-maintenance on servers.metal.ironcore.dev "s1", ` +
		`which ClusterRole metalaw-maintenance-booter gives; what it boots could read the data on the server's disks`
)

func TestTheRightsThatAMaintenanceTakes(t *testing.T) {
	free := []client.Object{server()}
	for name, c := range map[string]struct {
		before, after *v1alpha1.ServerMaintenance
		stored        []client.Object
		groups        []string
		want          string
	}{
		"a server of one's own claim takes none":                 {after: maintenance(), stored: claimed("team")},
		"a free server takes maintain":                           {after: maintenance(), stored: free, want: noMaintain},
		"which a maintainer has":                                 {after: maintenance(), stored: free, groups: []string{"maintainers"}},
		"the server of another takes it":                         {after: maintenance(), stored: claimed("other"), want: noMaintain},
		"a server whose claim is gone takes it":                  {after: maintenance(), stored: claimed("team")[:1], want: noMaintain},
		"enforcing takes enforce":                                {after: maintenance(enforced), stored: claimed("team"), want: noEnforce},
		"which an enforcer has":                                  {after: maintenance(enforced), stored: claimed("team"), groups: []string{"enforcers"}},
		"but not on any server":                                  {after: maintenance(enforced), stored: free, groups: []string{"enforcers"}, want: noMaintain},
		"a boot beside data takes boot-maintenance":              {after: maintenance(bootsOn("s1")), stored: claimed("team"), want: noBoot},
		"which a booter has":                                     {after: maintenance(bootsOn("s1")), stored: claimed("team"), groups: []string{"booters"}},
		"a boot on a Dirty server takes it":                      {after: maintenance(bootsOn("s1")), stored: []client.Object{server(dirty)}, groups: []string{"maintainers"}, want: noBoot},
		"also where only its inventory remembers":                {after: maintenance(bootsOn("s1")), stored: []client.Object{server(), dirtyInventory()}, groups: []string{"maintainers"}, want: noBoot},
		"a boot on a free and clean server does not":             {after: maintenance(bootsOn("s1")), stored: free, groups: []string{"maintainers"}},
		"all that is missing is named":                           {after: maintenance(enforced, bootsOn("s1")), stored: claimed("other"), want: noMaintain + "\n" + noEnforce + "\n" + noBoot},
		"a change of the policy is asked about":                  {before: maintenance(), after: maintenance(enforced), stored: claimed("team"), want: noEnforce},
		"so is any change of what another made":                  {before: maintenance(madeBy("root")), after: maintenance(powered("Off")), stored: free, want: noMaintain},
		"and the adoption of an old one":                         {before: maintenance(), after: maintenance(noting(v1alpha1.AdoptAnnotation, "true")), stored: free, want: noMaintain},
		"another annotation is not":                              {before: maintenance(madeBy("root")), after: maintenance(madeBy("root"), noting(v1alpha1.AbortAnnotation, "the part is missing")), stored: free},
		"nor one that is stored":                                 {before: maintenance(enforced), after: maintenance(enforced, noting("example.com/a", "b")), stored: free},
		"who lacks a right for a server that is gone lacks that": {before: maintenance(), after: maintenance(powered("On")), want: noMaintain},
	} {
		t.Run(name, func(t *testing.T) {
			op := admissionv1.Create
			var before client.Object
			if c.before != nil {
				op, before = admissionv1.Update, c.before
			}
			made := c.after
			if len(c.groups) > 0 {
				madeBy("jane", c.groups...)(made)
			}
			got, _ := newWorld(t, defaults(t), c.stored...).ask(PathValidateMaintenance, user, op, before, made, of(c.groups...))
			if diff := cmp.Diff(denied(c.want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// denied is a refusal that is Forbidden; empty where nothing is refused.
func denied(causes string) string {
	if causes == "" {
		return ""
	}
	return "Forbidden\n" + causes
}

// answering has others answer what is asked about rights, and takes up what became of the cache.
func (w *world) answering(rights client.Writer) {
	w.t.Helper()
	hooks, err := handlers(Options{Bundles: revisions{active: defaults(w.t)}, Client: w.cached, Reader: w.stored, ManagerUser: manager,
		Registry: prometheus.NewRegistry(), Rights: rights}, w.clock)
	if err != nil {
		w.t.Fatal(err)
	}
	w.hooks = hooks
}

// The cloud controller makes its maintenance in the namespace of the claim, so that nobody is asked.
func TestTheCloudControllerNeedsNoRight(t *testing.T) {
	const ccm = "system:serviceaccount:kube-system:cloud-controller-manager"
	made := maintenance(madeBy(ccm, "system:serviceaccounts", "system:authenticated"), func(m *v1alpha1.ServerMaintenance) {
		m.Name, m.Labels = "db", map[string]string{"app.kubernetes.io/managed-by": "cloud-provider-metal"}
		m.Spec.Policy, m.Spec.Priority = v1alpha1.ServerMaintenancePolicyOwnerApproval, 100
	})
	w := newWorld(t, defaults(t), claimed("team")...)
	w.answering(noRights{})
	got, warnings := w.ask(PathValidateMaintenance, ccm, admissionv1.Create, nil, made, of("system:serviceaccounts", "system:authenticated"))
	if got != "" || warnings != nil {
		t.Error(got, warnings)
	}
}

func TestAnAPIServerThatDoesNotSayWhoMayWhatDeniesNobody(t *testing.T) {
	w := newWorld(t, defaults(t), server())
	w.answering(noRights{})
	if got, _ := w.ask(PathValidateMaintenance, user, admissionv1.Create, nil, maintenance()); got != `whether user "jane" may maintain servers cannot be told: `+errDown.Error() {
		t.Error(got)
	}
}

// What a cache that lags would refuse is asked past it.
func TestAClaimThatTheCacheDoesNotShowYetCounts(t *testing.T) {
	w := newWorld(t, defaults(t), claimed("team")...)
	w.cached = store(t, server())
	w.answering(reviewer{})
	if got, _ := w.ask(PathValidateMaintenance, user, admissionv1.Create, nil, maintenance()); got != "" {
		t.Error(got)
	}
}

func TestMaintenance(t *testing.T) {
	long := strings.Repeat("x", 1025)
	const kept = `metadata.annotations[policy.metalaw.dev/maker]: Forbidden: admission writes who made the maintenance; leave it out`
	duration := func(value string) string {
		return `metadata.annotations[policy.metalaw.dev/expected-duration]: Invalid value: "` + value + `": write a duration from 1m to 720h, such as 45m or 1h30m`
	}
	saying := func(name, value string) *v1alpha1.ServerMaintenance {
		return maintenance(noting("policy.metalaw.dev/"+name, value))
	}
	other := append(claimed("team"), server(serverNamed("s2"), standingFor(otherUUID)))
	const moved = `spec.serverRef: Forbidden: the maintenance has server "s1"; make another maintenance for "s2", ` +
		`or set annotation metal.ironcore.dev/operation: allow-in-progress-update`
	const booted = `spec.serverBootConfigurationTemplate: Forbidden: the maintenance has its server, which was handed over for it with or without a boot; ` +
		`delete it and make another`
	allowing := func(operation string) func(*v1alpha1.ServerMaintenance) {
		return noting(v1alpha1.OperationAnnotation, operation)
	}
	for name, c := range map[string]struct {
		before, after *v1alpha1.ServerMaintenance
		who           string
		groups        []string
		want          string
		warnings      []string
	}{
		"who made it cannot be made up":           {after: maintenance(madeBy("root")), want: "Forbidden\n" + kept},
		"nor left out":                            {after: maintenance(func(m *v1alpha1.ServerMaintenance) { m.Annotations = nil }), want: "Forbidden\n" + kept},
		"nor changed":                             {before: maintenance(), after: maintenance(madeBy("root")), want: "Forbidden\n" + kept},
		"the manager changes what it likes":       {before: maintenance(), after: maintenance(madeBy("root"), powered("Off"), func(m *v1alpha1.ServerMaintenance) { m.Finalizers = []string{"a"} }), who: manager},
		"a template for the same server passes":   {after: maintenance(bootsOn("s1")), groups: []string{"booters"}},
		"a template for another server does not":  {after: maintenance(bootsOn("s2")), groups: []string{"booters"}, want: "Invalid\n" + `spec.serverBootConfigurationTemplate.spec.serverRef.name: Invalid value: "s2": it has to be the server of the maintenance; write "s1"`},
		"a stored one does not keep the rest":     {before: maintenance(bootsOn("s2")), after: maintenance(bootsOn("s2"), noting("a", "b"))},
		"the server may change while it waits":    {before: maintenance(), after: maintenance(ofServer("s2")), groups: []string{"wheel"}},
		"and not once it is handed over":          {before: maintenance(inMaintenance), after: maintenance(ofServer("s2")), groups: []string{"wheel"}, want: "Forbidden\n" + moved},
		"nor after it failed":                     {before: maintenance(handedOver), after: maintenance(ofServer("s2")), groups: []string{"wheel"}, want: "Forbidden\n" + moved},
		"unless a user allows an update":          {before: maintenance(inMaintenance), after: maintenance(ofServer("s2"), allowing("allow-in-progress-update")), groups: []string{"wheel"}},
		"or a deletion":                           {before: maintenance(inMaintenance), after: maintenance(ofServer("s2"), allowing("allow-in-progress-delete")), groups: []string{"wheel"}},
		"no boot is added once it is handed over": {before: maintenance(inMaintenance, enforced), after: maintenance(enforced, bootsOn("s1")), groups: []string{"wheel"}, want: "Forbidden\n" + booted},
		"nor is that allowed":                     {before: maintenance(inMaintenance), after: maintenance(bootsOn("s1"), allowing("allow-in-progress-update")), groups: []string{"wheel"}, want: "Forbidden\n" + booted},
		"nor taken away":                          {before: maintenance(bootsOn("s1"), handedOver), after: maintenance(), groups: []string{"wheel"}, want: "Forbidden\n" + booted},
		"while it waits it may":                   {before: maintenance(), after: maintenance(bootsOn("s1")), groups: []string{"wheel"}},
		"it is not enforced once its holder was asked": {before: maintenance(holderAsked), after: maintenance(holderAsked, enforced), groups: []string{"wheel"},
			want: "Forbidden\nspec.policy: Forbidden: the holder was asked for approval, and was given no notice; delete the maintenance and make an enforced one"},
		"before that it may":                         {before: maintenance(), after: maintenance(enforced), groups: []string{"wheel"}},
		"its power may change at any time":           {before: maintenance(inMaintenance), after: maintenance(powered("Off"))},
		"a duration passes":                          {after: saying("expected-duration", "1h30m")},
		"a month is the longest":                     {after: saying("expected-duration", "720h")},
		"more is refused":                            {after: saying("expected-duration", "721h"), want: "Invalid\n" + duration("721h")},
		"so is less than a minute":                   {after: saying("expected-duration", "59s"), want: "Invalid\n" + duration("59s")},
		"and what is no duration":                    {after: saying("expected-duration", "2 days"), want: "Invalid\n" + duration("2 days")},
		"a stored one does not keep a change away":   {before: saying("expected-duration", "2 days"), after: maintenance(noting("policy.metalaw.dev/expected-duration", "2 days"), powered("On"))},
		"it is stopped with a reason":                {before: maintenance(), after: saying("abort", "the part is missing")},
		"and not without one":                        {before: maintenance(), after: saying("abort", " "), want: "Invalid\nmetadata.annotations[policy.metalaw.dev/abort]: Required value: say why it is to stop; the maintenance keeps it"},
		"nor with a book":                            {before: maintenance(), after: saying("abort", long), want: "Invalid\nmetadata.annotations[policy.metalaw.dev/abort]: Too long: may not be longer than 1024 characters"},
		"the power is not cut without a reason":      {before: maintenance(), after: saying("force-off-reason", ""), want: "Invalid\nmetadata.annotations[policy.metalaw.dev/force-off-reason]: Required value: say why the power may be cut; a tool may be writing firmware"},
		"to plan only is yes or no":                  {before: maintenance(), after: saying("plan-only", "yes"), want: "Invalid\n" + `metadata.annotations[policy.metalaw.dev/plan-only]: Unsupported value: "yes": supported values: "true", "false"`},
		"so is to adopt":                             {before: maintenance(), after: saying("adopt", "1"), want: "Invalid\n" + `metadata.annotations[policy.metalaw.dev/adopt]: Unsupported value: "1": supported values: "true", "false"`},
		"a misspelt annotation is warned about":      {after: saying("plan-omly", "true"), warnings: []string{"metadata.annotations[policy.metalaw.dev/plan-omly]: nothing reads this annotation of a ServerMaintenance; did you mean policy.metalaw.dev/plan-only?"}},
		"a server that is not there is warned about": {after: maintenance(ofServer("s3")), groups: []string{"wheel"}, warnings: []string{`spec.serverRef: there is no Server "s3"; the maintenance waits until there is`}},
		"so is a name that no server can have":       {after: maintenance(ofServer("../s")), groups: []string{"wheel"}, warnings: []string{`spec.serverRef: there is no Server "../s"; the maintenance waits until there is`}},
		"a maker that is too large is refused": {after: maintenance(), groups: slices.Repeat([]string{"g"}, 65),
			want: `Forbidden
metadata.annotations[policy.metalaw.dev/maker]: Forbidden: user "jane" is in 65 groups, and at most 64 can be kept; the rights could not be asked for again ` +
				`when the server is handed over. Make the maintenance as a user, or as a service account, of whom authentication says less`},
	} {
		t.Run(name, func(t *testing.T) {
			op := admissionv1.Create
			var before client.Object
			if c.before != nil {
				op, before = admissionv1.Update, c.before
			}
			if c.who == "" {
				c.who = user
			}
			if len(c.groups) > 0 {
				madeBy("jane", c.groups...)(c.after)
			}
			got, warnings := newWorld(t, defaults(t), other...).ask(PathValidateMaintenance, c.who, op, before, c.after, of(c.groups...))
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if diff := cmp.Diff(c.warnings, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestADeletionOfAMaintenanceIsNeverRefused(t *testing.T) {
	for _, h := range shippedHooks(t) {
		for _, rule := range h.Rules {
			if slices.Contains(rule.Resources, "servermaintenances") && slices.Contains(rule.Operations, admissionregistrationv1.Delete) {
				t.Errorf("%s is asked", h.Name)
			}
		}
	}
	if got, _ := newWorld(t, defaults(t)).ask(PathValidateMaintenance, user, admissionv1.Delete, maintenance(inMaintenance), nil); got != "" {
		t.Error(got)
	}
}

// Whoever writes an annotation of maintenances into the API writes it into the list as well, or admission calls it misspelt.
func TestEveryAnnotationOfMaintenancesIsKnown(t *testing.T) {
	text, err := os.ReadFile("../api/v1alpha1/names.go")
	if err != nil {
		t.Fatal(err)
	}
	constant := regexp.MustCompile(`((?:\t//.*\n)+)\t\w+Annotation = "(policy\.metalaw\.dev/[a-z-]+)"`)
	for _, m := range constant.FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[1], "on a ServerMaintenance") && !slices.Contains(maintenances.Annotations, m[2]) {
			t.Errorf("%s is not known", m[2])
		}
	}
}
