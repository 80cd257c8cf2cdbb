// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/internal/counted/stepped"
	"github.com/metalaw/metalaw/policies"
)

// faster is how many seconds a manager of these specs counts in one, so that five minutes pass in a quarter of one.
const faster = 20

// lead starts a manager that knows a grace, with a wall clock that is ahead, and returns its counted time.
func lead(ctx context.Context, ahead time.Duration) *counted.Clock {
	GinkgoHelper()
	return leadAt(ctx, faster, ahead)
}

// leadAt starts one that counts so many seconds in one.
func leadAt(ctx context.Context, pace, ahead time.Duration) *counted.Clock {
	GinkgoHelper()
	start := time.Now()
	clock := counted.NewClock(start, func() time.Duration { return time.Since(start) * pace }) //nolint:durationcheck // a factor
	theWorld.options = func(o *controllers.Options) {
		o.NoReleaseGrace, o.Counted = false, clock
		o.Now = func() time.Time { return stepped.Wall(time.Now(), ahead) }
	}
	theWorld.startManager(ctx)
	theWorld.options = nil
	return clock
}

var _ = Describe("A release whose manager's clock steps", Serial, func() {
	const year = 365 * 24 * time.Hour
	DescribeTable("waits for its grace, no less and no year",
		func(ctx SpecContext, claim string, first, second time.Duration) {
			m := claimed(ctx, claim)
			theWorld.stopManager()
			lead(ctx, first)
			DeferCleanup(func(ctx SpecContext) {
				theWorld.stopManager()
				theWorld.startManager(ctx)
			})
			deleteClaim(ctx, claim)
			var released counted.Time
			Eventually(func() counted.Time {
				released = counted.Parse(getServer(ctx, serverOf(m)).Annotations[v1alpha1.ReleasedCountedAnnotation])
				return released
			}).ShouldNot(BeZero())
			wiping := theWorld.begunToErase(m, m.Drives()[0].Name)

			By("starting another manager, whose clock shows another time")
			theWorld.stopManager()
			clock := lead(ctx, second)
			Eventually(func(g Gomega) {
				s := getServer(ctx, serverOf(m))
				age, _ := clock.Now().Since(released)
				if s.Status.State != v1alpha1.StateReserved || wiping() {
					if age < 5*time.Minute {
						StopTrying("the grace was cut short").Attach("after", age).Now()
					}
					return
				}
				g.Expect(age).To(BeNumerically(">", 5*time.Minute), "it waits")
				g.Expect(s.Status.State).NotTo(Equal(v1alpha1.StateReserved), "it waits beyond its grace")
			}).WithTimeout(2 * time.Minute).Should(Succeed())

			By("having it erased by a manager whose clock is right")
			theWorld.stopManager()
			theWorld.startManager(ctx)
			Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
			Expect(m.Drives()[0].Erased()).To(BeTrue())
			_, recorded := policies.ReleaseEffective(getServer(ctx, serverOf(m)), 0)
			Expect(recorded).To(BeFalse(), "the record goes with the holder")
		},
		Entry("by an hour forward", "steps-forward", time.Duration(0), time.Hour),
		Entry("by an hour back", "steps-back", time.Duration(0), -time.Hour),
		Entry("by a year back, to the right time", "steps-a-year", year, time.Duration(0)),
	)
})
