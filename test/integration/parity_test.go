// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/corpus"
	"github.com/metalaw/metalaw/test/env"
)

// judged is a bundle, and what the command line makes of it.
type judged struct {
	name, version string
	files         bundle.Files
	accepted      bool
	// found is every finding, one in a line, but for those that are merely worth knowing.
	found []string
	// admission is the verdict of admission.
	admission string
}

// fits says that a ConfigMap can hold the bundle.
func (j *judged) fits() bool {
	size := 0
	for name, data := range j.files {
		size += len(name) + len(data)
	}
	return size < 1<<20
}

func (j *judged) head() *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: "parity-" + j.version, Labels: map[string]string{
		policyv1alpha1.BundleLabel: parityBundle, policyv1alpha1.StageLabel: policyv1alpha1.LabelShadow}}, Data: map[string]string{}}
	for name, data := range j.files {
		cm.Data[name] = string(data)
	}
	return cm
}

// stored is the revision that an engine would have made of the bundle which accepted everything.
func (j *judged) stored(fill bundle.Files) *policyv1alpha1.PolicyRevision {
	GinkgoHelper()
	whole := j.files.Filled(fill)
	content, err := whole.Pack()
	Expect(err).NotTo(HaveOccurred())
	return &policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: bundle.RevisionName(parityBundle, j.version, whole.Digest())},
		Spec: policyv1alpha1.PolicyRevisionSpec{Bundle: parityBundle, Version: j.version, Digest: whole.Digest(), Content: content}}
}

const parityBundle = "parity"

// verdict is an answer in the words in which all three are compared.
func verdict(accepted bool, found []string) string {
	found = slices.Clone(found)
	for i, line := range found {
		line = strings.Join(strings.Fields(line), " ")
		found[i] = line[:min(len(line), 240)] // the API server cuts warnings that are longer
	}
	slices.Sort(found)
	return fmt.Sprintf("accepted: %t\n%s\n", accepted, strings.Join(found, "\n"))
}

var (
	shippedName    = regexp.MustCompile(`(?m)^name: (default|compat-v0\.7|no-discovery)$`)
	shippedVersion = regexp.MustCompile(`(?m)^version: 1\.\d+\.0$`)
)

// parityCorpus is every broken bundle, every shipped one, and some that are the default with a change that is fine.
func parityCorpus() []*judged {
	GinkgoHelper()
	root, err := env.RepoRoot()
	Expect(err).NotTo(HaveOccurred())
	fill, err := policies.Shipped(policies.DefaultBundle)
	Expect(err).NotTo(HaveOccurred())
	archives, err := corpus.Read(filepath.Join(root, "policies", "testdata", "broken"))
	Expect(err).NotTo(HaveOccurred())
	var all []*judged
	add := func(name string, files bundle.Files) {
		j := &judged{name: name, version: fmt.Sprintf("0.0.%d", len(all)), files: maps.Clone(files)}
		head := shippedName.ReplaceAll(files[bundle.BundleFile], []byte("name: "+parityBundle))
		if len(head) > 0 {
			j.files[bundle.BundleFile] = shippedVersion.ReplaceAll(head, []byte("version: "+j.version))
		}
		all = append(all, j)
	}
	for _, a := range archives {
		files, _, err := a.Bundle(fill)
		Expect(err).NotTo(HaveOccurred())
		add(a.Name, files)
	}
	for _, name := range policies.ShippedNames() {
		files, err := policies.Shipped(name)
		Expect(err).NotTo(HaveOccurred())
		add("shipped "+name, files)
	}
	add("all but the name is the default's", bundle.Files{bundle.BundleFile: fill[bundle.BundleFile]})
	for name, edit := range map[string][3]string{
		"a larger budget":       {bundle.BundleFile, "maxErrors: 2", "maxErrors: 5"},
		"a wait before a wipe":  {bundle.BundleFile, "releaseGrace: 5m", "releaseGrace: 24h"},
		"a comment in the Rego": {bundle.SelectionFile, "package metalaw.selection\n", "# Ours.\npackage metalaw.selection\n"},
	} {
		files := maps.Clone(fill)
		Expect(strings.Count(string(files[edit[0]]), edit[1])).To(Equal(1), name)
		files[edit[0]] = bytes.Replace(files[edit[0]], []byte(edit[1]), []byte(edit[2]), 1)
		add(name, files)
	}
	return all
}

// verified asks the command line.
func (j *judged) verified(ctx context.Context) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	for name, data := range j.files {
		Expect(os.WriteFile(filepath.Join(dir, name), data, 0o600)).To(Succeed())
	}
	answer := metalaw(ctx, "", "", "policy", "verify", "-f", dir, "-o", "json")
	var report struct {
		Accepted bool
		Findings []diag.Diagnostic
	}
	Expect(json.Unmarshal([]byte(answer.out), &report)).To(Succeed(), "%s: %s", j.name, answer.err)
	Expect(answer.code).To(Equal(map[bool]int{true: 0, false: 1}[report.Accepted]), j.name)
	j.accepted = report.Accepted
	for _, d := range report.Findings {
		d.File = strings.TrimPrefix(d.File, dir+string(filepath.Separator))
		if d.Severity != diag.Info {
			j.found = append(j.found, d.String())
		}
	}
}

// admitted asks the API server, which asks the webhook.
func (j *judged) admitted(ctx context.Context, user client.Client, heard *told) string {
	GinkgoHelper()
	heard.take()
	err := user.Create(ctx, j.head(), client.DryRunAll)
	if err == nil {
		return verdict(true, heard.take())
	}
	status, ok := err.(apierrors.APIStatus)
	Expect(ok && status.Status().Details != nil).To(BeTrue(), "%s: %v", j.name, err)
	var lines []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == "BundleDiagnostic" {
			lines = append(lines, cause.Field+": "+cause.Message)
		}
	}
	return verdict(false, lines)
}

// Whoever reads a bundle says the same of it: whoever writes it can rely on what is said at the desk.
var _ = Describe("The command line, admission and the controller", Serial, Ordered, func() {
	var all []*judged
	var fill bundle.Files
	BeforeAll(func(ctx SpecContext) {
		var err error
		fill, err = policies.Shipped(policies.DefaultBundle)
		Expect(err).NotTo(HaveOccurred())
		all = parityCorpus()
		Expect(len(all)).To(BeNumerically(">", 100))
		d := openDoor(ctx, givenFiles(ctx))
		_, err = program()
		Expect(err).NotTo(HaveOccurred())
		var done sync.WaitGroup
		done.Go(func() {
			defer GinkgoRecover()
			for _, j := range all {
				j.verified(ctx)
			}
		})
		for _, j := range all {
			if j.fits() {
				j.admission = j.admitted(ctx, d.user, d.told)
			}
		}
		done.Wait()
		d.stop()
		Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed())
		accepted := slices.DeleteFunc(slices.Clone(all), func(j *judged) bool { return !j.accepted })
		Expect(len(accepted)).To(BeNumerically(">=", 7))
	})

	It("find the same at admission, with the same verdict", func() {
		var differences []string
		for _, j := range all {
			if diff := cmp.Diff(verdict(j.accepted, j.found), j.admission); j.fits() && diff != "" {
				differences = append(differences, j.name+" (-verify +admission)\n"+diff)
			}
		}
		Expect(strings.Join(differences, "\n")).To(BeEmpty())
	})

	It("find the same in a revision that another engine has stored, but for what only its author is asked for", func(ctx SpecContext) {
		DeferCleanup(removePolicies)
		names := map[string]*judged{}
		for _, j := range all {
			r := j.stored(fill)
			names[r.Name] = j
			Expect(admin.Create(ctx, r)).To(Succeed(), j.name)
		}
		newPolicyManager(ctx, nil).start(ctx)
		var list policyv1alpha1.PolicyRevisionList
		Eventually(func(g Gomega) {
			g.Expect(admin.List(ctx, &list)).To(Succeed())
			for i := range list.Items {
				g.Expect(list.Items[i].Status.Conditions).NotTo(BeEmpty())
			}
		}).WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(Succeed())
		var differences []string
		for i := range list.Items {
			r := &list.Items[i]
			j, ours := names[r.Name]
			if !ours {
				continue
			}
			delete(names, r.Name)
			want := slices.DeleteFunc(slices.Clone(j.found), askedOfAuthors.MatchString)
			accepted := !slices.ContainsFunc(want, isError)
			verified := meta.IsStatusConditionTrue(r.Status.Conditions, policyv1alpha1.ConditionVerified)
			if diff := cmp.Diff(verdict(accepted, want), verdict(verified, r.Status.Findings)); diff != "" {
				differences = append(differences, j.name+" (-verify +status)\n"+diff)
			}
		}
		Expect(strings.Join(differences, "\n")).To(BeEmpty())
		Expect(names).To(BeEmpty())
	})

	It("find the same in ConfigMaps that come past admission", func(ctx SpecContext) {
		DeferCleanup(removePolicies)
		// The manager accepts one ConfigMap after another: the last of them waits for all.
		some := slices.DeleteFunc(slices.Clone(all), func(j *judged) bool { return !j.fits() })
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))
		random.Shuffle(len(some), func(a, b int) { some[a], some[b] = some[b], some[a] })
		slices.SortStableFunc(some, func(a, b *judged) int { // a few that are accepted, and a dozen that are not
			return map[bool]int{true: 0, false: 1}[a.accepted] - map[bool]int{true: 0, false: 1}[b.accepted]
		})
		some = some[:min(len(some), 20)]
		for _, j := range some {
			Expect(admin.Create(ctx, j.head())).To(Succeed(), j.name)
		}
		newPolicyManager(ctx, nil).start(ctx)
		for _, j := range some {
			if j.accepted {
				Eventually(func(g Gomega) {
					r := revisionOf(ctx, j.version)
					g.Expect(meta.IsStatusConditionTrue(r.Status.Conditions, policyv1alpha1.ConditionVerified)).To(BeTrue())
					g.Expect(cmp.Diff(verdict(true, j.found), verdict(true, r.Status.Findings))).To(BeEmpty(), "%s (-verify +status)", j.name)
				}).WithTimeout(2 * time.Minute).Should(Succeed())
				continue
			}
			var first []string
			for _, line := range j.found {
				if isError(line) && len(first) < 3 {
					first = append(first, line)
				}
			}
			Eventually(func() string { return noteOn(ctx, j.head().Name) }).WithTimeout(2*time.Minute).Should(HavePrefix(shortened(strings.Join(first, "\n"), 900)), j.name)
		}
	})
})

// askedOfAuthors matches what a bundle is asked for when it is new: examples of every rule of its own.
var askedOfAuthors = regexp.MustCompile(`\[coverage-(rule|rego|rego-rule)\]$`)

func isError(line string) bool { return strings.Contains(line, ": error: ") }

// noteOn is the last warning about a ConfigMap.
func noteOn(ctx context.Context, name string) string {
	GinkgoHelper()
	var list eventsv1.EventList
	Expect(admin.List(ctx, &list, client.InNamespace(managerNamespace))).To(Succeed())
	note := ""
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.Name == name && e.Type == corev1.EventTypeWarning {
			note = e.Note
		}
	}
	return note
}

func shortened(text string, most int) string { return text[:min(len(text), most)] }
