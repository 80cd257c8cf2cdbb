// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
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

// run runs the page's commands as an administrator, in a folder where the repository's config lies.
func (w walk) run(ctx SpecContext) {
	GinkgoHelper()
	root, err := env.RepoRoot()
	Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(filepath.Join(root, w.page))
	Expect(err).NotTo(HaveOccurred())
	blocks := slices.DeleteFunc(pages.Blocks(string(text)), func(b pages.Block) bool {
		return len(w.headings) > 0 && !slices.Contains(w.headings, b.Heading)
	})
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
	Expect(os.WriteFile(filepath.Join(bin, "metalaw"), []byte(wrapper), 0o700)).To(Succeed()) //nolint:gosec // It is a program.
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
})
