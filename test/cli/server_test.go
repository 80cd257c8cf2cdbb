// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// asks are the annotations of a request for the reason INC-1.
func asks(operation string, more ...string) map[string]string {
	all := map[string]string{"metal.ironcore.dev/operation": operation, "policy.metalaw.dev/operation-reason": "INC-1"}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

var _ = Describe("The verbs on servers", Ordered, func() {
	BeforeAll(func(ctx SpecContext) { Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed()) })

	DescribeTable("store what is asked, and why",
		func(ctx SpecContext, name, words string, args []string, want map[string]string) {
			newServer(ctx, name, nil, v1alpha1.StateError)
			got := operator.says(ctx, append([]string{"server", args[0], name, "--reason", "INC-1"}, args[1:]...)...)
			Expect(got).To(Equal(said{out: fmt.Sprintf("%s  asked      %s; it was in Error\n", name, words)}))
			s := getServer(ctx, name)
			Expect(s.Annotations).To(Equal(want))
			Expect(s.ManagedFields).To(ContainElement(HaveField("Manager", "metalaw-cli")))
		},
		Entry("retry", "v-retry", "retry", []string{"retry"}, asks("retry")),
		Entry("release", "v-release", "release", []string{"release"}, asks("release")),
		Entry("park", "v-park", "park", []string{"park"}, asks("park")),
		Entry("unpark", "v-unpark", "unpark", []string{"unpark"}, asks("unpark")),
		Entry("force", "v-force", "force to Available", []string{"force", "--to", "Available", "--yes", "--wait=false"},
			asks("force", "policy.metalaw.dev/force-to", "Available")),
		Entry("force past the safety rules", "v-override", "force to Available",
			[]string{"force", "--to", "Available", "--override-safety", "--yes", "--wait=false"},
			asks("force", "policy.metalaw.dev/force-to", "Available", "policy.metalaw.dev/force-override", "true")),
	)

	It("cordon and uncordon, and say when there is nothing to do", func(ctx SpecContext) {
		newServer(ctx, "cordoned", nil, "")
		for _, step := range []struct {
			verb, said  string
			unclaimable bool
		}{
			{"cordon", "cordoned  done       takes no new claim\n", true},
			{"cordon", "cordoned  unchanged  takes no new claim\n", true},
			{"uncordon", "cordoned  done       takes claims again\n", false},
		} {
			Expect(operator.says(ctx, "server", step.verb, "cordoned", "--reason", "rack moves")).To(Equal(said{out: step.said}))
			s := getServer(ctx, "cordoned")
			Expect(s.Spec.Unclaimable).To(Equal(step.unclaimable))
			Expect(s.Annotations).To(Equal(map[string]string{"policy.metalaw.dev/unclaimable-reason": "rack moves"}))
		}
	})

	It("never overwrite what somebody has asked for", func(ctx SpecContext) {
		newServer(ctx, "taken", nil, v1alpha1.StateError)
		Expect(operator.says(ctx, "server", "retry", "taken", "--reason", "INC-1").code).To(BeZero())
		Expect(operator.says(ctx, "server", "park", "taken", "--reason", "INC-2")).To(Equal(said{code: 1,
			out: "taken  refused    operation retry is asked for already by field manager metalaw-cli (\"INC-1\"); wait until the manager has taken it in\n"}))
		Expect(getServer(ctx, "taken").Annotations).To(Equal(asks("retry")))
	})

	It("do what they can for many, and count what they could not", func(ctx SpecContext) {
		for i := range 12 {
			newServer(ctx, fmt.Sprintf("many-%02d", i), map[string]string{"rack": "many"}, v1alpha1.StateError)
		}
		Expect(operator.says(ctx, "server", "park", "many-03", "--reason", "INC-1").code).To(BeZero())
		got := operator.says(ctx, "server", "retry", "-l", "rack=many", "--reason", "INC-1", "--yes", "-o", "json")
		Expect(got.code).To(Equal(1))
		var report struct {
			Verb     string
			Complete bool
			Servers  []struct{ Name, State, Outcome string }
		}
		Expect(json.Unmarshal([]byte(got.out), &report)).To(Succeed())
		Expect(report.Verb).To(Equal("retry"))
		Expect(report.Complete).To(BeFalse())
		Expect(report.Servers).To(HaveLen(12))
		for i, s := range report.Servers {
			want := "asked"
			if i == 3 {
				want = "refused"
			}
			Expect(s).To(And(HaveField("Name", fmt.Sprintf("many-%02d", i)), HaveField("Outcome", want), HaveField("State", "Error")))
		}
		Expect(getServer(ctx, "many-11").Annotations).To(Equal(asks("retry")))

		By("only in one state")
		newServer(ctx, "many-parked", map[string]string{"rack": "many"}, v1alpha1.StateParked)
		Expect(operator.says(ctx, "server", "unpark", "-l", "rack=many", "--state", "Parked", "--reason", "INC-1", "--yes")).To(Equal(said{
			out: "many-parked  asked      unpark; it was in Parked\n"}))
	})

	It("want a confirmation for many, and somebody to give it", func(ctx SpecContext) {
		for _, name := range []string{"asked-a", "asked-b"} {
			newServer(ctx, name, map[string]string{"rack": "asked"}, v1alpha1.StateError)
		}
		got := operator.says(ctx, "server", "retry", "-l", "rack=asked", "--reason", "INC-1")
		Expect(got).To(Equal(said{code: 2, err: "metalaw: retry of 2 servers needs a confirmation, and no user is at this terminal to give it: " +
			"add --yes, or look with --dry-run\n"}))

		By("a no")
		talk := operator.talks(ctx, "server", "retry", "-l", "rack=asked", "--reason", "INC-1")
		talk.awaits("NAME      STATE   HOLDER   WOULD BE")
		talk.awaits("retry: 2 servers? [y/N]")
		talk.answers("n")
		Expect(talk.ends()).To(Equal(1))
		Expect(talk.heard()).To(ContainSubstring("nothing was changed"))
		Expect(getServer(ctx, "asked-a").Annotations).To(BeEmpty())

		By("a yes, after one of them went on by itself")
		talk = operator.talks(ctx, "server", "retry", "-l", "rack=asked", "--reason", "INC-1")
		talk.awaits("retry: 2 servers? [y/N]")
		s := getServer(ctx, "asked-b")
		before := s.DeepCopy()
		s.Status.State = v1alpha1.StateReserved
		Expect(admin.Status().Patch(ctx, s, client.MergeFrom(before))).To(Succeed())
		talk.answers("y")
		Expect(talk.ends()).To(Equal(1))
		Expect(talk.heard()).To(ContainSubstring("asked-b  \x1b[33mrefused\x1b[0m    it was in Error, held by -, and is in Reserved, held by -, now; look at it again"))
		Expect(talk.heard()).To(ContainSubstring("asked-a  \x1b[32masked\x1b[0m      retry; it was in Error"))
		Expect(getServer(ctx, "asked-a").Annotations).To(Equal(asks("retry")))
		Expect(getServer(ctx, "asked-b").Annotations).To(BeEmpty())
	})

	It("say beforehand that a release waits for the claim's end", func(ctx SpecContext) {
		claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
		claim.Spec.Power, claim.Spec.Image = v1alpha1.PowerOff, "os"
		Expect(admin.Create(ctx, claim)).To(Succeed())
		s := newServer(ctx, "held", nil, v1alpha1.StateReserved)
		before := s.DeepCopy()
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "default", Name: "web"}
		s.Annotations = map[string]string{v1alpha1.ClaimUIDAnnotation: string(claim.UID)}
		Expect(admin.Patch(ctx, s, client.MergeFrom(before))).To(Succeed())
		Expect(operator.says(ctx, "server", "release", "held", "--reason", "INC-1")).To(Equal(said{code: 1,
			out: "held  refused    claim default/web exists; delete it instead: kubectl delete serverclaim -n default web\n"}))
		Expect(admin.Delete(ctx, claim)).To(Succeed())
		Expect(operator.says(ctx, "server", "release", "held", "--reason", "INC-1")).To(Equal(said{
			out: "held  asked      release; it was in Reserved, held by default/web\n"}))
	})

	It("store nothing in a dry run", func(ctx SpecContext) {
		newServer(ctx, "dry", map[string]string{"rack": "dry"}, v1alpha1.StateError)
		Expect(operator.says(ctx, "server", "retry", "-l", "rack=dry", "--reason", "INC-1", "--dry-run")).To(Equal(said{
			out: "dry  asked      retry; it was in Error (dry run: nothing was stored)\n"}))
		Expect(getServer(ctx, "dry").Annotations).To(BeEmpty())
		By("with the rights that the real run would take")
		Expect(viewer.says(ctx, "server", "retry", "-l", "rack=dry", "--reason", "INC-1", "--dry-run").code).To(Equal(1))
	})

	It("explain which right is missing", func(ctx SpecContext) {
		newServer(ctx, "guarded", nil, v1alpha1.StateError)
		got := viewer.says(ctx, "server", "retry", "guarded", "--reason", "INC-1")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(HavePrefix("guarded  failed     forbidden: User \"vera\" cannot patch resource \"servers\""))
		Expect(got.out).To(HaveSuffix("it takes the verb \"patch\" on servers.metal.ironcore.dev; the ClusterRole metalaw-fleet-operator has it\n"))
		got = nobody.says(ctx, "server", "retry", "--all", "--reason", "INC-1", "--yes")
		Expect(got.code).To(Equal(1))
		Expect(got.err).To(HaveSuffix("it takes the verb \"list\" on servers.metal.ironcore.dev; the ClusterRole metalaw-fleet-viewer has it\n"))
		Expect(getServer(ctx, "guarded").Annotations).To(BeEmpty())
	})

	It("tell a name that does not exist, and a selector that matches nothing", func(ctx SpecContext) {
		newServer(ctx, "present", nil, v1alpha1.StateError)
		got := operator.says(ctx, "server", "retry", "present", "absent", "--reason", "INC-1")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(And(ContainSubstring("absent   failed     there is no server of this name\n"), ContainSubstring("present  asked ")))
		Expect(operator.says(ctx, "server", "retry", "-l", "rack=none", "--reason", "INC-1")).To(Equal(said{code: 1,
			err: "metalaw: no server matches -l rack=none\n"}))
	})

	It("stop waiting when the time is over, and say how far it is", func(ctx SpecContext) {
		newServer(ctx, "unmanaged", nil, v1alpha1.StateError)
		Expect(operator.says(ctx, "server", "retry", "unmanaged", "--reason", "INC-1", "--wait", "--timeout", "1s")).To(Equal(said{code: 1,
			out: "unmanaged  timed-out  not taken in after 1s; does the manager run?\n"}))
	})

	It("complete names of servers, and run as a plugin of kubectl", func(ctx SpecContext) {
		newServer(ctx, "complete-a", nil, v1alpha1.StateError)
		newServer(ctx, "complete-b", nil, "")
		want := "complete-a\tError\ncomplete-b\t-\n:4\n"
		Expect(viewer.says(ctx, "__complete", "server", "retry", "complete-").out).To(Equal(want))
		Expect(viewer.says(ctx, "__complete", "server", "retry", "complete-a", "complete-").out).To(Equal("complete-b\t-\n:4\n"))
		Expect(viewer.says(ctx, "__complete", "server", "force", "--to", "Av").out).To(ContainSubstring("Available\n"))
		Expect(viewer.runs(ctx, controlPlane.Kubectl(), "__complete", "metalaw", "server", "retry", "complete-").out).To(Equal(want))
		Expect(operator.runs(ctx, controlPlane.Kubectl(), "metalaw", "server", "retry", "complete-a", "--reason", "INC-1")).To(Equal(said{
			out: "complete-a  asked      retry; it was in Error\n"}))
	})
})
