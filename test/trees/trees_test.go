// SPDX-License-Identifier: Apache-2.0

package trees

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/drives"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// treesVariable names a folder of captured trees. They hold serial numbers and MAC addresses of real machines, so they are
// not part of this repository.
const treesVariable = "METALAW_REDFISH_TREES"

func TestMain(m *testing.M) {
	flag.Parse()
	// The trees wait for machines and seldom for a processor, so all of them run at once.
	if err := flag.Set("test.parallel", fmt.Sprint(len(outcomes))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestCapturedTreesGoTheWholeWay(t *testing.T) {
	folder := os.Getenv(treesVariable)
	if folder == "" {
		t.Skipf("%s is not set: set it to a folder with captured Redfish trees (*.tar.gz) to take them through the operator", treesVariable)
	}
	w := newWorld(t)
	t.Run("each", func(t *testing.T) {
		for _, o := range outcomes {
			t.Run(o.name(), func(t *testing.T) {
				t.Parallel()
				w.take(t, folder, o)
			})
		}
	})
}

// name is that of the BMC.
func (o outcome) name() string {
	if o.assigned {
		return o.tree + "-assigned"
	}
	return o.tree
}

// annotations assign each system the UUID that its machine reads of itself, as the administrator does.
func (o outcome) annotations(machines []*emulator.Machine) map[string]string {
	if !o.assigned {
		return nil
	}
	var text strings.Builder
	for _, m := range machines {
		fmt.Fprintf(&text, "%s: {uuid: %s, serial: %q, mac: %q}\n", m.SystemURI(), m.InBandUUID(), m.Identity().SerialNumber, m.NICs()[0].MACAddress)
	}
	return map[string]string{v1alpha1.SystemUUIDsAnnotation: text.String()}
}

// take goes the whole way with each host of a tree, and at last restarts the BMC.
func (w *world) take(t *testing.T, folder string, o outcome) {
	tree, err := emulator.ReadTree(filepath.Join(folder, o.tree+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if shown := tree.Firmware(); shown != o.firmware && (shown != "" || o.firmware != "not shown") {
		t.Errorf("the tree shows firmware %q", shown)
	}
	machines := w.fleet.AddTree(emulator.MachineSpec{Name: o.name(), Tree: tree, Power: emulator.PowerOff})
	if len(machines) != len(o.hosts) {
		t.Fatalf("the tree shows %d hosts", len(machines))
	}
	w.announce(t, machines[0], o.annotations(machines))
	for n, m := range machines {
		t.Logf("%s behind %s: the tree does not show, and the emulator invents: %s", o.hosts[n].id, o.name(), strings.Join(m.Invented(), "; "))
		tt := &traveller{world: w, WithT: NewWithT(t), ctx: t.Context(), host: o.hosts[n], machine: m, bmc: o.name(),
			server: fmt.Sprintf("%s-system-%d", o.name(), n)}
		tt.SetDefaultEventuallyTimeout(time.Minute)
		tt.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
		tt.travel()
		if n == len(machines)-1 {
			tt.restart(machines[0], o.restart)
		}
	}
}

// traveller is one host on its way.
type traveller struct {
	*world
	*WithT
	ctx         context.Context
	host        host
	machine     *emulator.Machine
	bmc, server string
}

func (tt *traveller) travel() {
	if end := tt.host.stops; end != nil {
		tt.stop(end)
		return
	}
	tt.Expect(tt.machine.SystemURI()).To(HaveSuffix("/" + tt.host.id))
	tt.Eventually(tt.state).Should(Equal("Available/Off"))
	for _, d := range tt.machine.Drives() {
		tt.Expect(d.Erasures()).To(BeZero(), "the inspection erases nothing")
	}

	tt.listsItsDrives()
	if tt.host.unproven {
		tt.prove()
	}
	tt.Eventually(tt.condition).WithArguments("Server", v1alpha1.ConditionIdentityUnproven).Should(BeEmpty())

	claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: tt.server}}
	claim.Spec.Power, claim.Spec.Image, claim.Spec.ServerRef = v1alpha1.PowerOn, "os:1", &corev1.LocalObjectReference{Name: tt.server}
	tt.Expect(tt.admin.Create(tt.ctx, claim)).To(Succeed())
	tt.Eventually(tt.claimed).Should(Equal("Ready True/Running"))
	tt.Expect(tt.state()).To(Equal("Reserved/On"))
	tt.Eventually(func() string {
		boot, _ := tt.machine.Running()
		return boot.Target
	}).Should(Equal(tt.host.boots))
	for _, d := range tt.machine.Drives() {
		tt.Eventually(d.Contents).ShouldNot(BeEmpty(), "the claim's operating system writes to drive %s", d.Name)
	}

	tt.Expect(tt.admin.Delete(tt.ctx, claim)).To(Succeed())
	tt.Eventually(tt.claimed).Should(Equal("NotFound"))
	tt.Eventually(tt.state).Should(Equal("Available/Off"))
	for _, d := range tt.machine.Drives() {
		tt.Expect(d.Erased()).To(BeTrue(), "drive %s", d.Name)
	}
	var rules []string
	for _, move := range tt.read().Status.Lifecycle.History {
		rules = append(rules, move.Rule)
	}
	tt.Expect(rules).To(Equal([]string{"ProbeDue", "ProbeReported", "Claimed", "ClaimEnded", "Wiped"}))
	tt.Expect(tt.overridden()).To(Equal([]string{tt.host.override}))
}

// listsItsDrives expects the list of the BMC to be stored, and each drive of it to be seen by the agent.
func (tt *traveller) listsItsDrives() {
	inventory := &policyv1alpha1.ServerInventory{}
	read := func() policyv1alpha1.BMCStorageState {
		tt.Expect(tt.admin.Get(tt.ctx, types.NamespacedName{Name: tt.read().Spec.SystemUUID}, inventory)).To(Succeed())
		if inventory.BMCStorage == nil {
			return ""
		}
		return inventory.BMCStorage.State
	}
	if tt.host.lists == 0 {
		tt.Eventually(read).Should(Equal(policyv1alpha1.BMCStorageNotOffered))
		return
	}
	tt.Eventually(read).Should(Equal(policyv1alpha1.BMCStorageListed), "%+v", inventory.BMCStorage)
	tt.Expect(inventory.BMCStorage.Drives).To(HaveLen(tt.host.lists))
	var seen []drives.Seen
	for _, d := range inventory.Report.Data.Storage {
		seen = append(seen, drives.Seen{Serial: d.Serial, WWID: d.WWID, Name: d.Name})
	}
	hidden, covered := drives.Unseen(inventory.BMCStorage, seen)
	tt.Expect(append(hidden, covered...)).To(BeEmpty())
	hidden, _ = drives.Unseen(inventory.BMCStorage, append(seen[1:], drives.Seen{Name: "sdz", Serial: "a stick"}))
	tt.Expect(hidden).To(HaveLen(1), "as many disks as drives hide none")
}

// prove has a person answer for a machine that its BMC does not prove.
func (tt *traveller) prove() {
	tt.Eventually(tt.condition).WithArguments("Server", v1alpha1.ConditionIdentityUnproven).Should(HavePrefix(v1alpha1.ReasonMachineUnproven + ": "))
	s := tt.read()
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationProve)
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationReasonAnnotation, "rack label")
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationByAnnotation, "admin")
	tt.Expect(tt.admin.Update(tt.ctx, s)).To(Succeed())
	tt.Eventually(func() string {
		if op := tt.read().Status.Operation; op != nil {
			return op.Name + " " + string(op.State)
		}
		return ""
	}).Should(Equal("prove Succeeded"))
}

// stop expects the way to end where the outcome says so.
func (tt *traveller) stop(end *stop) {
	tt.Eventually(func() string { return tt.condition(end.kind, end.condition) }).Should(And(HavePrefix(end.reason+": "), containAll(end.words)))
	tt.Expect(tt.state()).To(Equal(end.state))
	tt.Expect(tt.machine.Boots()).To(BeZero())
	tt.Expect(tt.overridden()).To(BeEmpty())
}

// restart asks for a restart of the BMC, and expects it at one manager or at none.
func (tt *traveller) restart(first *emulator.Machine, want restart) {
	bmc := &v1alpha1.BMC{}
	tt.Eventually(func() error {
		if err := tt.admin.Get(tt.ctx, types.NamespacedName{Name: tt.bmc}, bmc); err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&bmc.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationGracefulRestartBMC)
		return tt.admin.Update(tt.ctx, bmc)
	}).Should(Succeed())
	tt.Eventually(func() string { return tt.condition("BMC", v1alpha1.ConditionReset) }).Should(HavePrefix(want.reason + ": "))
	asked := ""
	for _, write := range tt.fleet.Writes(emulator.Filter{Machine: first.Name(), Method: "POST"}) {
		if manager, isReset := strings.CutSuffix(write.Path, "/Actions/Manager.Reset"); isReset {
			asked += manager
		}
	}
	tt.Expect(asked).To(Equal(want.at))
}

// overridden lists where boot overrides of this host were accepted, each place once.
func (tt *traveller) overridden() []string {
	var places []string
	for _, write := range tt.fleet.Writes(emulator.Filter{Machine: tt.machine.Name(), Method: "PATCH"}) {
		if write.Status < 300 && strings.Contains(write.Body, "BootSourceOverride") && !slices.Contains(places, write.Path) {
			places = append(places, write.Path)
		}
	}
	return places
}

func (tt *traveller) read() *v1alpha1.Server {
	s := &v1alpha1.Server{}
	tt.Expect(tt.admin.Get(tt.ctx, types.NamespacedName{Name: tt.server}, s)).To(Succeed())
	return s
}

// state is "state/power" of the Server; empty where there is none.
func (tt *traveller) state() string {
	s := &v1alpha1.Server{}
	if err := tt.admin.Get(tt.ctx, types.NamespacedName{Name: tt.server}, s); err != nil {
		return ""
	}
	return fmt.Sprintf("%s/%s", s.Status.State, s.Status.PowerState)
}

// claimed is what the claim's condition Ready says, or why it cannot be read.
func (tt *traveller) claimed() string {
	c := &v1alpha1.ServerClaim{}
	if err := tt.admin.Get(tt.ctx, types.NamespacedName{Namespace: tenants, Name: tt.server}, c); err != nil {
		return string(apierrors.ReasonForError(err))
	}
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return ""
	}
	return fmt.Sprintf("Ready %s/%s", ready.Status, ready.Reason)
}

// condition is "reason: message" of a condition of the BMC or the Server; empty where there is none.
func (tt *traveller) condition(kind, name string) string {
	var all []metav1.Condition
	switch kind {
	case "BMC":
		b := &v1alpha1.BMC{}
		if tt.admin.Get(tt.ctx, types.NamespacedName{Name: tt.bmc}, b) == nil {
			all = b.Status.Conditions
		}
	case "Server":
		s := &v1alpha1.Server{}
		if tt.admin.Get(tt.ctx, types.NamespacedName{Name: tt.server}, s) == nil {
			all = s.Status.Conditions
		}
	}
	c := meta.FindStatusCondition(all, name)
	if c == nil {
		return ""
	}
	return c.Reason + ": " + c.Message
}

func containAll(words []string) OmegaMatcher {
	var each []OmegaMatcher
	for _, word := range words {
		each = append(each, ContainSubstring(word))
	}
	return And(each...)
}
