// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A doctor that can make no check", func() {
	It("exits 2 where nothing answers, and says so once", func(ctx SpecContext) {
		got := viewer.says(ctx, "doctor", "--server=https://127.0.0.1:1")
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(HavePrefix("metalaw: cannot reach the API server: "))
		Expect(got.out).To(BeEmpty())
	}, SpecTimeout(time.Minute))

	It("exits 2 for a user without rights, and names the remedy of each check", func(ctx SpecContext) {
		got := nobody.says(ctx, "doctor")
		Expect(got.code).To(Equal(2), got.out)
		Expect(got.out).To(ContainSubstring("run it with the rights of ClusterRole cluster-admin, or read this by hand"))
	}, SpecTimeout(time.Minute))
})
