// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/revision"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// variants counts the variants of this process. Specs in any order share one control plane, and there a version that is taken
// by other content is refused for good.
var variants atomic.Int32

// variant is the default bundle with another lifecycle, under a version of its own: each pair of texts is replaced.
func variant(replace ...string) *bundle.Bundle {
	GinkgoHelper()
	return variantOf("lifecycle.yaml", replace...)
}

// variantOf is the default bundle with another text in one of its files.
func variantOf(file string, replace ...string) *bundle.Bundle {
	GinkgoHelper()
	files := shippedFiles()
	text := string(files[file])
	for i := 0; i < len(replace); i += 2 {
		Expect(strings.Count(text, replace[i])).To(Equal(1), replace[i])
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	files[file] = []byte(text)
	testkit.Rename(files, "", fmt.Sprintf("2.%d.0", variants.Add(1)))
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	Expect(err).NotTo(HaveOccurred())
	Expect(found.Err()).NotTo(HaveOccurred())
	return b
}

// refused is the version that managers which start from now on refuse.
var refused atomic.Value

// believing accepts variants of the default bundle for what they compile to, so that specs have policies that no test would
// have passed; of anything else it asks the whole.
func believing(accept revision.AcceptFunc) revision.AcceptFunc {
	return func(ctx context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error) {
		text := string(files["bundle.yaml"])
		if version, ok := refused.Load().(string); ok && version != "" && strings.Contains(text, "version: "+version) {
			return nil, diag.List{{Severity: diag.Error, File: "bundle.yaml", Message: "not for this engine"}}, nil
		}
		if strings.Contains(text, "version: 2.") {
			return bundle.Compile(files, policies.Vocabulary())
		}
		return accept(ctx, files, fill)
	}
}

// shippedFiles are those of the default bundle, with what the world sets: an emulated fleet has more servers down than the limits of
// maintenance allow by default, and the holder of a claim is told of an enforced maintenance sooner.
func shippedFiles() bundle.Files {
	GinkgoHelper()
	files, err := policies.Shipped(policies.DefaultBundle)
	Expect(err).NotTo(HaveOccurred())
	text := string(files["bundle.yaml"])
	limits := regexp.MustCompile(`(?m)^    limits:\n(    - .*\n)+`)
	Expect(limits.FindAllString(text, -1)).To(HaveLen(1))
	Expect(strings.Count(text, "enforcedNotice: 15m\n")).To(Equal(1))
	text = limits.ReplaceAllString(text, "    limits: []\n")
	files["bundle.yaml"] = []byte(strings.Replace(text, "enforcedNotice: 15m\n", "enforcedNotice: 2s\n", 1))
	return files
}

// shipped is the default bundle as the world has it.
func shipped() *bundle.Bundle {
	GinkgoHelper()
	b, found, err := bundle.Compile(shippedFiles(), policies.Vocabulary())
	Expect(err).NotTo(HaveOccurred())
	Expect(found.Err()).NotTo(HaveOccurred())
	return b
}

// govern promotes a bundle for one spec; afterwards the default one is in force again.
func govern(ctx context.Context, b *bundle.Bundle) {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) {
		rollOut(ctx, shipped(), policyv1alpha1.LabelActive)
		Eventually(inForce(ctx, shipped())).Should(BeTrue())
		Expect(admin.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(managerNamespace), client.MatchingLabels{"spec": "takeover"})).To(Succeed())
	})
	rollOut(ctx, b, policyv1alpha1.LabelActive)
	Eventually(inForce(ctx, b)).Should(BeTrue(), func() string { return "its ConfigMap is told " + told(ctx, headOf(b)) })
}

// headOf is the name of the ConfigMap that holds a bundle.
func headOf(b *bundle.Bundle) string { return "takeover-" + b.Version }

// told is what the events of a ConfigMap say.
func told(ctx context.Context, name string) string {
	GinkgoHelper()
	var list eventsv1.EventList
	Expect(admin.List(ctx, &list, client.InNamespace(managerNamespace))).To(Succeed())
	var all []string
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.Kind == "ConfigMap" && e.Regarding.Name == name {
			all = append(all, e.Reason+": "+e.Note)
		}
	}
	return strings.Join(all, "; ")
}

// rollOut applies a bundle under a stage, as a change of its label.
func rollOut(ctx context.Context, b *bundle.Bundle, stage string) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: headOf(b),
		Labels: map[string]string{"spec": "takeover", policyv1alpha1.BundleLabel: b.Name, policyv1alpha1.StageLabel: stage}}, Data: map[string]string{}}
	for file, data := range b.Files {
		cm.Data[file] = string(data)
	}
	Expect(client.IgnoreNotFound(admin.Delete(ctx, cm.DeepCopy()))).To(Succeed())
	Eventually(func() policyv1alpha1.LabelledStage { return getRevision(ctx, b).Status.LabelledStage }).
		ShouldNot(Equal(policyv1alpha1.LabelledActive), "the label that it had is forgotten")
	create(ctx, cm)
}

// getRevision is the revision of a bundle; an empty one where there is none.
func getRevision(ctx context.Context, b *bundle.Bundle) *policyv1alpha1.PolicyRevision {
	GinkgoHelper()
	r := &policyv1alpha1.PolicyRevision{}
	Expect(client.IgnoreNotFound(admin.Get(ctx, types.NamespacedName{Name: b.Revision.Name}, r))).To(Succeed())
	return r
}

func inForce(ctx context.Context, b *bundle.Bundle) func() bool {
	return func() bool {
		return meta.IsStatusConditionTrue(getRevision(ctx, b).Status.Conditions, policyv1alpha1.ConditionActive)
	}
}

// moves are the last moves of a server: "Rule State".
func moves(s *v1alpha1.Server) []string {
	var all []string
	for _, m := range s.Status.Lifecycle.History {
		all = append(all, m.Rule+" "+string(m.To))
	}
	return all
}

// haltMessage is what the condition PolicyHalted of a server says.
func haltMessage(s *v1alpha1.Server) string {
	if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionPolicyHalted); c != nil {
		return c.Message
	}
	return ""
}

// gate keeps what is booted on a machine from beginning until it is opened.
type gate struct {
	emulator.Guest
	open chan struct{}
}

// PoweredOn implements emulator.Guest.
func (g gate) PoweredOn(ctx context.Context, m *emulator.Machine, boot emulator.BootSelection) {
	select {
	case <-g.open:
		g.Guest.PoweredOn(ctx, m, boot)
	case <-ctx.Done():
	}
}

// waitForShadows is how long differences of a shadow may take to show: they are stored every half minute.
const waitForShadows = 2 * time.Minute
