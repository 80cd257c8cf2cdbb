// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/redfish/emulator"
)

const (
	tenants    = "default"
	roundLabel = "test.metalaw.dev/round"
	// stepLimit is the time for one step, with the manager killed again and again.
	stepLimit = 5 * time.Minute
)

// story is the whole way of one machine.
type story struct {
	*world
	m    *emulator.Machine
	name string
	// server is the name of the Server that stands for the machine.
	server string
}

// tell lives through one story, from a new Endpoint to the end of its Server.
func (w *world) tell(ctx context.Context) {
	GinkgoHelper()
	s := &story{world: w, m: w.machine()}
	s.name = s.m.Name()
	By(s.name + " is onboarded")
	s.onboard(ctx)
	By(s.name + " gets one of two claims")
	winner, loser := s.compete(ctx)
	By(s.name + " follows its claim")
	s.follow(ctx, winner)
	By(s.name + " is restarted on request")
	s.operate(ctx, &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: s.server}})
	By(s.name + " is released and wiped, and goes to the other claim")
	s.release(ctx, winner)
	s.runs(ctx, loser, 1)
	By(s.name + " is restarted on its claim's request")
	s.operate(ctx, s.claim(loser))
	By(s.name + " is retained, and wiped once its reference is cleared")
	s.retain(ctx, loser)
	By(s.name + " is taken out of the fleet")
	s.remove(ctx)
}

func (s *story) onboard(ctx context.Context) {
	GinkgoHelper()
	s.do(ctx, func() error { // the shipped bundles know no emulated BMC
		cm, err := testkit.EmulatorConfigMap(managerNamespace)
		if err != nil {
			return err
		}
		return s.admin.Create(ctx, cm)
	})
	s.do(ctx, func() error {
		return s.admin.Create(ctx, &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: s.name},
			Spec: v1alpha1.EndpointSpec{MACAddress: s.m.BMCMAC(), IP: s.m.Address()}})
	})
	s.reach(ctx, "its Server", func() error {
		var list v1alpha1.ServerList
		if err := s.admin.List(ctx, &list); err != nil {
			return err
		}
		for i := range list.Items {
			if list.Items[i].Spec.SystemUUID == s.m.Identity().UUID {
				s.server = list.Items[i].Name
				return nil
			}
		}
		return errors.New("there is no Server")
	})
	s.stands(ctx, v1alpha1.StateAvailable)
	s.ledger.change(s.m, func(p *permit) { p.probe = false })
}

// compete lets two claims ask for the one server.
func (s *story) compete(ctx context.Context) (winner, loser string) {
	GinkgoHelper()
	names := []string{"a-" + s.name, "b-" + s.name}
	s.ledger.change(s.m, func(p *permit) { p.claims[names[0]], p.claims[names[1]] = true, true })
	for _, name := range names {
		claim := s.claim(name)
		claim.Spec = v1alpha1.ServerClaimSpec{Power: v1alpha1.PowerOn, Image: image(name, 1),
			ServerSelector: &metav1.LabelSelector{MatchLabels: map[string]string{roundLabel: s.name}}}
		s.do(ctx, func() error { return s.admin.Create(ctx, claim.DeepCopy()) })
	}
	s.patch(ctx, &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: s.server}}, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, roundLabel, s.name))
	s.reach(ctx, "a claim", func() error {
		winner, loser = "", ""
		for _, name := range names {
			claim := s.claim(name)
			if err := s.admin.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
				return err
			}
			if claim.Status.Phase == v1alpha1.PhaseBound {
				winner += name
			} else {
				loser += name
			}
		}
		if winner == "" {
			return errors.New("neither claim is bound")
		}
		return nil
	})
	Expect(names).To(ContainElement(winner), "one server was given to both claims")
	s.runs(ctx, winner, 1)
	return winner, loser
}

// follow switches the machine off, changes its image, and switches it on.
func (s *story) follow(ctx context.Context, claim string) {
	GinkgoHelper()
	s.patch(ctx, s.claim(claim), `{"spec":{"power":"Off"}}`)
	s.reach(ctx, "off", s.isOff)
	s.patch(ctx, s.claim(claim), fmt.Sprintf(`{"spec":{"image":%q}}`, image(claim, 2)))
	s.patch(ctx, s.claim(claim), `{"spec":{"power":"On"}}`)
	s.runs(ctx, claim, 2)
}

// operate asks for a restart by annotation and waits until that has ended, well or not.
func (s *story) operate(ctx context.Context, object client.Object) {
	GinkgoHelper()
	s.ledger.change(s.m, func(p *permit) { p.restarts++ })
	before := ""
	if op := s.get(ctx).Status.Operation; op != nil {
		before = op.ID
	}
	asks := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.OperationAnnotation, v1alpha1.OperationHardRestartServer)
	s.do(ctx, func() error {
		err := s.admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(asks)))
		if mayBeStored(err) { // and carried out before it is asked for again
			s.ledger.change(s.m, func(p *permit) { p.restarts++ })
		}
		return err
	})
	s.reach(ctx, "the end of the operation", func() error {
		if err := s.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		op := s.get(ctx).Status.Operation
		if object.GetAnnotations()[v1alpha1.OperationAnnotation] != "" || op == nil || op.ID == before || op.FinishedAt == nil {
			return fmt.Errorf("the operation is %+v, the annotations %v", op, object.GetAnnotations())
		}
		return nil
	})
	s.reach(ctx, "running again", func() error {
		if _, up := s.m.Running(); !up {
			return errors.New("nothing runs")
		}
		return nil
	})
}

func (s *story) release(ctx context.Context, claim string) {
	GinkgoHelper()
	s.ledger.change(s.m, func(p *permit) {
		p.wipe = true
		delete(p.claims, claim)
	})
	s.do(ctx, func() error { return client.IgnoreNotFound(s.admin.Delete(ctx, s.claim(claim))) })
	s.reach(ctx, "the claim's end", func() error { return s.missing(ctx, s.claim(claim)) })
	s.reach(ctx, "an erased machine", func() error {
		for _, d := range s.m.Drives() {
			if d.Erasures() == 0 {
				return errors.New("the disk holds " + d.Contents())
			}
		}
		return nil
	})
}

func (s *story) retain(ctx context.Context, claim string) {
	GinkgoHelper()
	server := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: s.server}}
	s.patch(ctx, server, `{"spec":{"reclaimPolicy":"Retain"}}`)
	s.ledger.change(s.m, func(p *permit) { delete(p.claims, claim) })
	s.do(ctx, func() error { return client.IgnoreNotFound(s.admin.Delete(ctx, s.claim(claim))) })
	s.stands(ctx, v1alpha1.StateReleased)
	for _, d := range s.m.Drives() {
		Expect(d.Contents()).To(ContainSubstring(claim), "what was to be kept")
	}
	s.ledger.change(s.m, func(p *permit) { p.wipe = true })
	s.patch(ctx, server, `{"spec":{"serverClaimRef":null}}`)
	s.stands(ctx, v1alpha1.StateAvailable)
	for _, d := range s.m.Drives() {
		Expect(d.Contents()).To(BeEmpty())
	}
	s.ledger.change(s.m, func(p *permit) { p.wipe = false })
}

// remove deletes what stands for the machine. The BMC goes with its Endpoint, or by hand.
func (s *story) remove(ctx context.Context) {
	GinkgoHelper()
	bmc := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: s.get(ctx).Spec.BMCRef.Name}}
	for _, object := range []client.Object{&v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: s.name}}, bmc,
		&v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: s.server}}} {
		s.do(ctx, func() error { return client.IgnoreNotFound(s.admin.Delete(ctx, object)) })
		s.reach(ctx, fmt.Sprintf("the end of %T %s", object, object.GetName()), func() error { return s.missing(ctx, object) })
	}
	Expect(s.m.Power()).To(Equal(emulator.PowerOff))
}

// runs waits until the claim is Ready and the machine runs its image.
func (s *story) runs(ctx context.Context, claim string, version int) {
	GinkgoHelper()
	s.reach(ctx, "run "+image(claim, version), func() error {
		c := s.claim(claim)
		if err := s.admin.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		if c.Status.Phase != v1alpha1.PhaseBound {
			return fmt.Errorf("the claim is %q: %v", c.Status.Phase, c.Status.Conditions)
		}
		if _, up := s.m.Running(); !up {
			return errors.New("nothing runs")
		}
		for _, d := range s.m.Drives() {
			if d.Contents() != "written by "+image(claim, version) {
				return fmt.Errorf("the disk holds %q", d.Contents())
			}
		}
		return nil
	})
}

// stands waits until the server is in a state, and off.
func (s *story) stands(ctx context.Context, state v1alpha1.ServerState) {
	GinkgoHelper()
	s.reach(ctx, string(state), func() error {
		server := &v1alpha1.Server{}
		if err := s.admin.Get(ctx, types.NamespacedName{Name: s.server}, server); err != nil {
			return err
		}
		if server.Status.State != state || server.Status.PowerState != v1alpha1.PowerStateOff {
			return fmt.Errorf("it is %s, power %s", server.Status.State, server.Status.PowerState)
		}
		return s.isOff()
	})
}

func (s *story) isOff() error {
	if power := s.m.Power(); power != emulator.PowerOff {
		return fmt.Errorf("power is %s", power)
	}
	return nil
}

func (s *story) missing(ctx context.Context, object client.Object) error {
	err := s.admin.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(errors.New("it is still there"), err)
}

func (s *story) get(ctx context.Context) *v1alpha1.Server {
	server := &v1alpha1.Server{}
	s.do(ctx, func() error { return s.admin.Get(ctx, types.NamespacedName{Name: s.server}, server) })
	return server
}

func (s *story) claim(name string) *v1alpha1.ServerClaim {
	return &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name}}
}

func image(claim string, version int) string { return fmt.Sprintf("os-%s:%d", claim, version) }

// patch changes an object as its user would.
func (s *story) patch(ctx context.Context, object client.Object, merge string) {
	GinkgoHelper()
	s.do(ctx, func() error {
		return s.admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(merge)))
	})
}

// mayBeStored says that a write failed without an answer that denies it: the API server, or etcd behind it, went away meanwhile. One
// that no webhook could be asked about is not stored.
func mayBeStored(err error) bool {
	switch {
	case err == nil, utilnet.IsConnectionRefused(err), apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return false
	}
	return !strings.Contains(err.Error(), "failed calling webhook")
}

// do repeats what fails while there is nobody to admit it.
func (s *story) do(ctx context.Context, what func() error) {
	GinkgoHelper()
	Eventually(func() error {
		if err := what(); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	}).WithContext(ctx).WithTimeout(stepLimit).WithPolling(100 * time.Millisecond).Should(Succeed())
}

// reach waits until the story has come to a point.
func (s *story) reach(ctx context.Context, what string, there func() error) {
	GinkgoHelper()
	Eventually(there).WithContext(ctx).WithTimeout(stepLimit).WithPolling(50*time.Millisecond).Should(Succeed(), func() string {
		return fmt.Sprintf("%s waits for: %s; kills so far %d; %s", s.name, what, s.killer.kills(), s.describe())
	})
}

// describe is everything that is known of the machine.
func (s *story) describe() string {
	server := &v1alpha1.Server{}
	text := ""
	if err := s.admin.Get(context.Background(), types.NamespacedName{Name: s.server}, server); err == nil {
		text = fmt.Sprintf("\nserver %s %s/%s\nlifecycle %+v\nconditions %v\n", server.Name, server.Status.State, server.Status.PowerState, server.Status.Lifecycle, server.Status.Conditions)
	}
	for _, w := range s.m.Writes() {
		text += fmt.Sprintf("%s %s %s %s %d power %s\n", w.Time.Format("15:04:05.000"), w.Method, w.Path, w.Body, w.Status, w.Power)
	}
	s.ledger.change(s.m, func(p *permit) {
		for _, b := range p.boots {
			text += b + "\n"
		}
	})
	return text
}
