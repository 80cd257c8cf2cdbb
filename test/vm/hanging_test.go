// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"io"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
	"github.com/metalaw/metalaw/redfish/emulator/vm"
)

var _ = Describe("A machine that freezes before it reports", Ordered, func() {
	var m machine

	BeforeAll(func(ctx SpecContext) {
		governed(ctx,
			"{rule: ProbeLost,        to: Error,     when: spent, after: 30m}", "{rule: ProbeLost,        to: Error,     when: spent, after: 40s}",
			"{rule: ProbeRetried,     to: Initial,   after: 30m, retry: true}", "{rule: ProbeRetried,     to: Initial,   after: 40s, retry: true}",
			"lifecycle.retries >= 3", "lifecycle.retries >= 1")
		// A slow disk keeps the agent from its report until the machine is frozen.
		disk, server := theWorld.broken("FROZEN", vm.Virtio, 16*mebibyte)
		server.SetFaults(vm.Faults{Delay: time.Second})
		m = theWorld.machine(ctx, []vm.Disk{disk})
		Eventually(m.Console).Should(ContainSubstring(phaseBeforeFreeze))
		Eventually(phase).WithArguments(ctx, m).Should(Equal("network"))
		Expect(m.Freeze()).To(Succeed())
	}, NodeTimeout(booted))

	It("is not described by another machine's report", func(ctx SpecContext) {
		config := ignitionOf(ctx, m)
		registry := "http://" + theWorld.registry
		forge := func(token, dmi string) error {
			client := &metalprobe.Client{BaseURL: registry, Token: token, HTTP: http.DefaultClient, AgentVersion: "forged"}
			return client.Register(ctx, m.Description().UUID, metalprobe.Data{SystemInfo: policyv1alpha1.SystemInfo{
				SystemInformation: policyv1alpha1.SystemInformation{UUID: dmi, SerialNumber: "FORGED"}}})
		}
		Expect(forge("", m.Description().UUID)).To(MatchError(metalprobe.IsRefused, "is refused without a token"))
		Expect(forge("guessed", m.Description().UUID)).To(MatchError(metalprobe.IsRefused, "is refused with a wrong token"))
		Expect(forge(config.Token, "4c4c4544-0042-4a10-8051-ffffffffffff")).To(MatchError(metalprobe.IsRefused, "is refused from another machine"))
		Expect(inventory(ctx, m).Report).To(BeNil())
		Expect(state(ctx, m)()).To(HavePrefix("Discovery/"))
	}, NodeTimeout(soon))

	It("is booted once more, and then is an error", func(ctx SpecContext) {
		Eventually(m.Boots).Should(Equal(2))
		Eventually(m.Console).Should(ContainSubstring(phaseBeforeFreeze))
		Eventually(phase).WithArguments(ctx, m).Should(Equal("network"))
		Expect(m.Freeze()).To(Succeed())
		Eventually(state(ctx, m)).Should(HavePrefix("Error/"))
		ready := meta.FindStatusCondition(getServer(ctx, m.server()).Status.Conditions, v1alpha1.ConditionReady)
		Expect(ready).To(HaveField("Message", ContainSubstring("The last phase heard was network")))
		Expect(inventory(ctx, m).Report).To(BeNil())
		theWorld.retire(m)
	}, NodeTimeout(2*booted))
})

// phase is what the machine's agent said last that it does.
func phase(ctx context.Context, m machine) string {
	told := inventory(ctx, m).Phase
	if told != nil && told.Entry == getServer(ctx, m.server()).Status.Lifecycle.Entry {
		return told.Name
	}
	return ""
}

// ignitionOf is what the machine's agent fetches.
func ignitionOf(ctx context.Context, m machine) metalprobe.Config {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, theWorld.providerURL+"/ignition/"+m.Description().UUID, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	config, err := metalprobe.ParseIgnition(text)
	Expect(err).NotTo(HaveOccurred())
	return config
}
