// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// BenchmarkPermit asks for power-ons in a fleet of which a tenth was just switched on, under a breaker, a budget for each
// rack of 20, one for the fleet, and one for another action.
func BenchmarkPermit(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}
			control.Spec.Breaker = &policyv1alpha1.Breaker{MaxPercent: 20}
			control.Spec.Budgets = []policyv1alpha1.Budget{
				{Name: "rack", Action: "PowerOn", Max: ptr.To[int32](2), Per: zone},
				{Name: "fleet", Action: "PowerOn", Max: ptr.To(int32(n)), Selector: &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: zone, Operator: metav1.LabelSelectorOpExists}}}},
				{Name: "wipe", Action: "Wipe", Max: ptr.To[int32](5)},
			}
			g := &Gate{Client: stored{control: control}, Reader: stored{control: control}, Now: func() time.Time { return noon }}
			var servers []*v1alpha1.Server
			for i := range n {
				s := newServer(fmt.Sprint("s", i), fmt.Sprint("rack-", i/20))
				if i%10 == 0 {
					asked("On", time.Minute)(s)
				}
				g.counters.see(s)
				servers = append(servers, s)
			}
			b.ResetTimer()
			for i := range b.N {
				if _, err := g.Permit(b.Context(), servers[i%n], PowerOn); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// stored reads one FleetControl from memory, as a cache does.
type stored struct {
	client.Client
	control *policyv1alpha1.FleetControl
}

func (s stored) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if c, ok := o.(*policyv1alpha1.FleetControl); ok {
		s.control.DeepCopyInto(c)
	}
	return nil
}
