// SPDX-License-Identifier: Apache-2.0

// Package cli holds the specs of the command line: the built program, called as a person calls it, against a real API server
// and with the rights that the shipped roles give.
package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/test/env"
)

var (
	controlPlane *env.Env
	// admin reads and writes as the administrator, past any cache.
	admin  client.Client
	scheme = runtime.NewScheme()
	// folder holds the program, and the same under the names by which kubectl calls it.
	folder string
	// kubeconfigs are the files of the people below, by name.
	kubeconfigs = map[string]string{}
)

// People, and the shipped roles that they have.
var (
	operator = person{"olga", []string{"metalaw-fleet-operator", "view"}}
	forcer   = person{"fred", []string{"metalaw-server-forcer", "view"}}
	viewer   = person{"vera", []string{"metalaw-fleet-viewer"}}
	tenant   = person{"tess", []string{"edit"}}
	nobody   = person{"nora", nil}
)

// person is somebody with a kubeconfig.
type person struct {
	name  string
	roles []string
}

func TestCommandLine(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Command line")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	log.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	folder = GinkgoT().TempDir()
	build(ctx)
	var err error
	controlPlane, err = env.Start(context.WithoutCancel(ctx), env.Options{Kustomize: []string{"config/default"}})
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.New(controlPlane.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	for _, p := range []person{operator, forcer, viewer, tenant, nobody} {
		kubeconfigs[p.name], err = controlPlane.KubeconfigFor(env.User{Name: p.name})
		Expect(err).NotTo(HaveOccurred())
		p.bind(ctx)
	}
}, NodeTimeout(8*time.Minute))

var _ = AfterSuite(func() {
	if controlPlane != nil {
		Expect(controlPlane.Stop()).To(Succeed())
	}
})

// build makes the program, and the names by which kubectl finds it.
func build(ctx context.Context) {
	GinkgoHelper()
	root, err := env.RepoRoot()
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(folder, "metalaw"), "./cmd/metalaw")
	cmd.Dir = root
	output, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	for _, name := range []string{"kubectl-metalaw", "kubectl_complete-metalaw"} {
		Expect(os.Symlink("metalaw", filepath.Join(folder, name))).To(Succeed())
	}
}

// bind gives a person their roles.
func (p person) bind(ctx context.Context) {
	GinkgoHelper()
	for _, role := range p.roles {
		Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: p.name + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: p.name}},
		})).To(Succeed())
	}
}

// said is what a call of the program came to.
type said struct {
	code     int
	out, err string
}

// says calls the program as a person, with nobody at the terminal.
func (p person) says(ctx context.Context, args ...string) said {
	GinkgoHelper()
	return p.runs(ctx, filepath.Join(folder, "metalaw"), args...)
}

func (p person) runs(ctx context.Context, program string, args ...string) said {
	GinkgoHelper()
	var out, problems bytes.Buffer
	cmd := p.command(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	code := 0
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		Expect(err).NotTo(HaveOccurred())
	}
	return said{code: code, out: out.String(), err: problems.String()}
}

func (p person) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfigs[p.name], "PATH="+folder+":"+filepath.Dir(controlPlane.Kubectl())+":"+os.Getenv("PATH"))
	return cmd
}

var made int

// newServer stores a Server with labels, in a state where one is given.
func newServer(ctx context.Context, name string, labels map[string]string, state v1alpha1.ServerState) *v1alpha1.Server {
	GinkgoHelper()
	made++
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	s.Spec.SystemUUID = fmt.Sprintf("cccccccc-0000-0000-0000-%012d", made)
	Expect(admin.Create(ctx, s)).To(Succeed())
	if state != "" {
		before := s.DeepCopy()
		s.Status.State = state
		Expect(admin.Status().Patch(ctx, s, client.MergeFrom(before))).To(Succeed())
	}
	return s
}

func getServer(ctx context.Context, name string) *v1alpha1.Server {
	GinkgoHelper()
	s := &v1alpha1.Server{}
	Expect(admin.Get(ctx, types.NamespacedName{Name: name}, s)).To(Succeed())
	return s
}
