// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/env"
	"github.com/metalaw/metalaw/test/pages"
)

// walk is a page whose commands run in the order of the page, in one shell.
type walk struct {
	page string
	// headings are the parts that are walked; none are all.
	headings []string
	// left are the lines that do not run here, each with its reason.
	left map[string]string
	// fails are the lines whose exit code 1 is an answer, each with its reason.
	fails map[string]string
	// before is done before a block, which is named by its first line. It may give names in place of those of the page.
	before map[string]func(ctx SpecContext, names map[string]string)
	// says is what a block prints, by its first line.
	says map[string]string
}

// blocksOf lists the blocks of a page under some headings, or all of them, and where the repository lies.
func blocksOf(page string, headings ...string) (root string, blocks []pages.Block) {
	GinkgoHelper()
	root, err := env.RepoRoot()
	Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(filepath.Join(root, page))
	Expect(err).NotTo(HaveOccurred())
	return root, slices.DeleteFunc(pages.Blocks(string(text)), func(b pages.Block) bool {
		return len(headings) > 0 && !slices.Contains(headings, b.Heading)
	})
}

// run runs the page's commands as an administrator, in a folder where the repository's config lies.
func (w walk) run(ctx SpecContext) {
	GinkgoHelper()
	root, blocks := blocksOf(w.page, w.headings...)
	named := map[string]string{}
	for line := range w.before {
		named[line] = ""
	}
	Expect(pages.Missing(blocks, w.left, w.fails, w.says, named)).To(BeEmpty(), "the page changed: change the spec with it")
	shell := newShell(ctx, root)
	names := map[string]string{}
	for _, b := range blocks {
		if prepare := w.before[b.First()]; prepare != nil {
			prepare(ctx, names)
		}
		By(fmt.Sprintf("%s:%d: %s", w.page, b.Line, b.First()))
		limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
		output, err := shell.run(limited, b.Script(w.left, w.fails, names))
		cancel()
		Expect(err).NotTo(HaveOccurred(), "%s:%d\n%s", w.page, b.Line, output)
		Expect(output).To(MatchRegexp(w.says[b.First()]), "%s:%d", w.page, b.Line)
	}
}

// shell is a reader's: what one block sets stands in the next.
type shell struct{ dir, kubeconfig string }

func newShell(ctx context.Context, root string) shell {
	GinkgoHelper()
	s := shell{dir: GinkgoT().TempDir()}
	var err error
	s.kubeconfig, err = controlPlane.KubeconfigFor(env.User{Name: "root", Groups: []string{"system:masters"}})
	Expect(err).NotTo(HaveOccurred())
	bin := filepath.Join(s.dir, "bin")
	Expect(os.MkdirAll(bin, 0o700)).To(Succeed())
	Expect(os.Symlink(filepath.Join(root, "config"), filepath.Join(s.dir, "config"))).To(Succeed())
	Expect(os.Symlink(controlPlane.Kubectl(), filepath.Join(bin, "kubectl"))).To(Succeed())
	// A reader answers yes where the program asks; without a terminal it asks for the flag.
	wrapper := "#!/bin/bash\ncase \"$1 $2\" in server\\ retry|server\\ cordon|server\\ attest|server\\ declare-clean) set -- \"$@\" --yes;; esac\n" +
		"exec " + program(ctx) + " \"$@\"\n"
	Expect(os.WriteFile(filepath.Join(bin, "metalaw"), []byte(wrapper), 0o700)).To(Succeed())
	return s
}

// run runs a script, and keeps its variables for the next one.
func (s shell) run(ctx context.Context, script string) (string, error) {
	const variables = "variables"
	whole := "set -eo allexport\n[ -f " + variables + " ] && . ./" + variables + "\n" + script + "\nexport -p >" + variables + "\n"
	command := exec.CommandContext(ctx, "bash", "-c", whole)
	command.Dir = s.dir
	command.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "PATH="+filepath.Join(s.dir, "bin")+":"+os.Getenv("PATH"))
	output, err := command.CombinedOutput()
	return string(output), err
}

// racked is a machine whose server bears the rack of the pages, until the spec ends.
func racked(ctx SpecContext, m string) {
	GinkgoHelper()
	changeServer(ctx, m, func(s *v1alpha1.Server) { metav1.SetMetaDataLabel(&s.ObjectMeta, "rack", "r1") })
	DeferCleanup(func(ctx SpecContext) {
		changeServer(ctx, m, func(s *v1alpha1.Server) { delete(s.Labels, "rack"); s.Spec.Unclaimable = false })
	})
}

var _ = Describe("The pages' commands", func() {
	It("lead through the first claim", func(ctx SpecContext) {
		name := ""
		walk{
			page: "docs/first-claim.md",
			left: map[string]string{
				"make demo":                              "the suite has a control plane and a fleet",
				"alias kubectl=bin/controlplane/kubectl": "kubectl is in the path",
				"kubectl delete server $server":          "admission refuses it, and the suite runs without admission",
				"kubectl get server $server --watch":     "it follows until Ctrl-C",
			},
			before: map[string]func(SpecContext, map[string]string){
				"kubectl get endpoints.metal.ironcore.dev,bmcs": func(ctx SpecContext, _ map[string]string) {
					ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "metal-demo"}}
					Expect(client.IgnoreAlreadyExists(admin.Create(ctx, ns))).To(Succeed())
					name = serverOf(theWorld.available(ctx))
					racked(ctx, name)
				},
				"uuid=$(kubectl get server $server -o jsonpath='{.spec.systemUUID}')": func(ctx SpecContext, _ map[string]string) {
					Eventually(state(ctx, name)).Should(Equal("Available/Off"))
				},
			},
			says: map[string]string{
				"server=$(kubectl get serverclaim first -n metal-demo -o jsonpath='{.spec.serverRef.name}')":        `Available -> Reserved  Claimed\n`,
				"kubectl annotate serverclaim first -n metal-demo metal.ironcore.dev/operation=hard-restart-server": `"Succeeded"`,
				"kubectl wait serverclaim dream -n metal-demo --for=jsonpath='{.status.conditions[?(@.type==\"Bound\")].reason}'=NoServers " +
					"--timeout=60s": `0 of \d+ servers match`,
				"uuid=$(kubectl get server $server -o jsonpath='{.spec.systemUUID}')": `(?s)"state":"Verified".*\n\["Managed"\]`,
			},
		}.run(ctx)
	})

	It("recover a server as the page of operations says", func(ctx SpecContext) {
		m := withFunction(ctx)
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(HavePrefix("Error/"))
		operateFor(ctx, name, v1alpha1.OperationSanitize, "bought used", v1alpha1.OperationByAnnotation, "admin")
		failed := func(ctx SpecContext) {
			Eventually(serverCondition(ctx, name, "Stalled")).Should(Equal("True/WipeFailed"))
		}
		failed(ctx)
		racked(ctx, name)
		lost := claimed(ctx, "lost")
		DeferCleanup(func(ctx SpecContext) {
			theWorld.options = nil
			theWorld.stopManager()
			theWorld.startManager(ctx)
		})
		const attest = "metalaw server attest rack1-07-system-0 --disk 0000:03:00.0 --method removed --reason 'an empty adapter'"
		walk{
			page: "docs/operations.md",
			headings: []string{"A stuck server: the ways out", "A claim that was deleted by mistake", "When something is stuck", "Error",
				"Storage that no disk shows", "A machine without disks"},
			left: map[string]string{attest: "admission tells who asks, and the suite runs without admission"},
			before: map[string]func(SpecContext, map[string]string){
				"metalaw server undo-release rack1-07-system-0 --reason 'deleted by mistake, INC-1210' > claim.yaml": func(
					ctx SpecContext, names map[string]string,
				) {
					theWorld.stopManager()
					theWorld.options = func(o *controllers.Options) { o.NoReleaseGrace = false }
					theWorld.startManager(ctx)
					deleteClaim(ctx, "lost")
					names["rack1-07-system-0"] = serverOf(lost)
				},
				"kubectl get server NAME -o jsonpath='{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{\"\\n\"}{end}'": func(
					ctx SpecContext, names map[string]string,
				) {
					Eventually(claimCondition(ctx, "lost", "Ready")).Should(Equal("True/Running"))
					maps.Copy(names, map[string]string{"NAME": name, "SYSTEM-UUID": m.Identity().UUID, "rack1-07-system-0": name})
					failed(ctx)
				},
				attest: func(ctx SpecContext, _ map[string]string) {
					failed(ctx)
					operateFor(ctx, name, v1alpha1.OperationAttestDisk, "an empty adapter", v1alpha1.AttestDiskAnnotation, "0000:03:00.0",
						v1alpha1.AttestMethodAnnotation, "removed", v1alpha1.OperationByAnnotation, "admin")
				},
			},
			says: map[string]string{
				"kubectl get server NAME -o jsonpath='{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{\"\\n\"}{end}'": `Stalled=True`,
			},
		}.run(ctx)
		Eventually(operated(ctx, name)).Should(Equal("attest-disk Succeeded"), func() string {
			s := getServer(ctx, name)
			return fmt.Sprintf("%s in entry %d, annotations %v, operation %+v, events %v", s.Status.State, s.Status.Lifecycle.Entry,
				s.Annotations, s.Status.Operation, eventReasons(ctx, name)())
		})
		operate(ctx, name, v1alpha1.OperationRetry)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		deleteClaim(ctx, "lost")
	})

	It("take a fleet over, and bring it back", func(ctx SpecContext) {
		theWorld.stopManager()
		m := left{state: v1alpha1.StateMaintenance, power: emulator.PowerOff}.leave(ctx, "left-walked")
		theWorld.startManager(ctx)
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Error/Off"))
		racked(ctx, name)
		control(ctx, thawed) // it ends with the spec, and the freeze of the page with it
		DeferCleanup(func(ctx SpecContext) {
			var all v1alpha1.ServerList
			Expect(admin.List(ctx, &all)).To(Succeed())
			for i := range all.Items {
				changeServer(ctx, all.Items[i].Name, func(s *v1alpha1.Server) {
					s.Spec.Taints = slices.DeleteFunc(s.Spec.Taints, func(t v1alpha1.Taint) bool { return t.Key == "unwiped" })
				})
			}
		})
		walk{
			page:     "docs/from-metal-operator.md",
			headings: []string{"Step by step", "Coming back"},
			left: map[string]string{
				"kubectl -n metal-operator-system scale deployment metal-operator-controller-manager --replicas=0": "no metal-operator runs here",
				"kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o name | grep metal":   "the suite runs without admission",
			},
			fails: map[string]string{
				"metalaw doctor":       "1 says that something is missing: nobody here has the right to use credentials",
				"metalaw fleet status": "1 says that a freeze holds servers back",
			},
			before: map[string]func(SpecContext, map[string]string){
				"kubectl label server NAME taken-over=yes": func(_ SpecContext, names map[string]string) { names["NAME"] = name },
				"metalaw server declare-clean -l rack=r1 --state Error --reason 'metal-operator gave no server of rack r1 to a claim, CHG-31' --dry-run": func(
					ctx SpecContext, _ map[string]string,
				) {
					Expect(command(ctx, "unfreeze", "--name", "take-over")).NotTo(BeEmpty())
				},
			},
		}.run(ctx)
		Eventually(operated(ctx, name)).Should(Equal("declare-clean Succeeded"))
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		s := &v1alpha1.Server{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: name}, s)).To(Succeed())
		Expect(strings.Join(slices.Sorted(maps.Keys(s.Labels)), " ")).To(ContainSubstring("taken-over"))
	})
})
