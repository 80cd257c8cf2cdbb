// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// dearest asks for as much as the limits allow, in a way that has every part of it compared with every server: what turns a server
// away comes last.
func dearest(c *v1alpha1.ServerClaim) {
	selector := &metav1.LabelSelector{}
	for i := range policies.MaxRequirements - 2 {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: fmt.Sprintf("%s/key%060d", strings.Repeat("x", 63), i), Operator: metav1.LabelSelectorOpDoesNotExist})
	}
	outside := metav1.LabelSelectorRequirement{Key: "owner", Operator: metav1.LabelSelectorOpNotIn}
	for i := range policies.MaxSelectorValues { // each as long as what the servers have
		outside.Values = append(outside.Values, fmt.Sprintf("t%04x", i))
	}
	selector.MatchExpressions = append(selector.MatchExpressions, outside, metav1.LabelSelectorRequirement{
		Key: v1alpha1.InventoryLabelPrefix + "cores", Operator: metav1.LabelSelectorOpDoesNotExist}) // of which some may not be known yet
	c.Spec.ServerSelector = selector
	for i := range policies.MaxTolerations {
		c.Spec.Tolerations = append(c.Spec.Tolerations, v1alpha1.Toleration{Key: fmt.Sprint("key", i), Operator: v1alpha1.TolerationOpExists})
	}
	c.Labels = map[string]string{"app": "a"}
	never := strings.Repeat("server.gpus<9&&", 26) + "server.gpus>8"
	placing("alternatives:" + strings.Repeat("\n- where: "+never, 8) + "\nspread: {key: rack, claims: {matchLabels: {app: a}}}")(c)
}

// 10,000 servers are looked at for it. The time is that of the thread, which other processes change little; the bound leaves room for
// a slow machine, and would not do for a look whose length a claim decides.
func TestTheDearestClaimIsReviewedLongBeforeTheAPIServerGivesUp(t *testing.T) {
	b := *withFiles(t, map[string]string{"admission_test.rego": "package metalaw.admission_test\n", "admission.rego": "package metalaw.admission\n" +
		`warn contains {"code": "seen", "message": "m"} if input.facts.satisfiable == false`})
	b.Settings.Claims.OnUnsatisfiable = bundle.UnsatisfiableWarn
	w := newWorld(t, &b)
	o := Options{Bundles: revisions{active: &b}, ManagerUser: manager}
	l := &claimRules{lookup: &lookup{cache: w.cached, reader: w.stored, bundles: o.Bundles, servers: whole{benchmarkFleet(10000)},
		unique: &uniqueness{now: time.Now}}, quotas: newQuotas(w.cached, time.Now), looks: newLooks(), longestLook: time.Minute} // which other processes do not use up
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w.hooks = map[string]admission.Handler{PathValidateServerClaim: validating(o, m, time.Now,
		rules[v1alpha1.ServerClaim]{kind: "ServerClaim", judge: l.judgeClaim, look: l.lookForClaim})}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime(t)
	got, warnings := w.ask(PathValidateServerClaim, user, admissionv1.Create, nil, claim(dearest))
	used := threadTime(t) - before
	t.Logf("%v of the processor", used)
	if used > longestLook {
		t.Errorf("it takes %v of the processor", used)
	}
	want := []string{"no server of the fleet, in whatever state, can satisfy the claim: 0 of 10000 servers: placement 10000; it stays Unbound until the fleet changes, or the claim's placement",
		"m [seen]"}
	if diff := cmp.Diff(want, warnings); got != "" || diff != "" {
		t.Error(got, diff)
	}
}
