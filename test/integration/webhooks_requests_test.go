// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/test/env"
)

var _ = Describe("Admission of what people ask for", Serial, Ordered, func() {
	const uuid = "78777777-7742-3448-3784-82334782000"
	unreadable := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "rack", Operator: "Like"}}}
	var d *door
	// operator and forcer have the shipped roles of their names, and no other right.
	var operator, forcer client.Client
	var made []client.Object
	as := func(ctx context.Context, name string, roles ...string) client.Client {
		GinkgoHelper()
		for _, role := range roles {
			binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "adm-" + name + "-" + role},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}}
			Expect(admin.Create(ctx, binding)).To(Succeed())
			made = append(made, binding)
		}
		rights, err := controlPlane.ConfigFor(env.User{Name: name})
		Expect(err).NotTo(HaveOccurred())
		c, err := client.New(rights, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		return c
	}
	stored := func(ctx context.Context, name, uuid string) *v1alpha1.Server {
		GinkgoHelper()
		s := machine(name, uuid)
		Expect(d.user.Create(ctx, s)).To(Succeed())
		made = append(made, s)
		return s
	}
	// annotated changes annotations as a user; an empty value takes one away.
	annotated := func(ctx context.Context, c client.Client, s *v1alpha1.Server, pairs ...string) error {
		before, after := s.DeepCopy(), s.DeepCopy()
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i+1] == "" {
				delete(after.Annotations, pairs[i])
			} else {
				metav1.SetMetaDataAnnotation(&after.ObjectMeta, pairs[i], pairs[i+1])
			}
		}
		err := c.Patch(ctx, after, client.MergeFrom(before))
		if err == nil {
			after.DeepCopyInto(s)
		}
		return err
	}
	at := func(name string) string { return "metadata.annotations[" + name + "]" }

	BeforeAll(func(ctx SpecContext) {
		control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
		control.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "slip", Level: policyv1alpha1.FreezeDestructive, Selector: unreadable}}
		Expect(admin.Create(ctx, control)).To(Succeed(), "nobody looks yet")
		made = append(made, control)
		d = openDoor(ctx, givenFiles(ctx))
		operator = as(ctx, "olga", "metalaw-fleet-operator")
		forcer = as(ctx, "fred", "metalaw-fleet-operator", "metalaw-server-forcer")
		s := stored(ctx, "adm-asks", uuid+"0")
		Eventually(func(g Gomega) { // the API server's authorizer learns of roles a moment later
			for _, c := range []client.Client{operator, forcer} {
				g.Expect(c.Get(ctx, client.ObjectKeyFromObject(s), &v1alpha1.Server{})).To(Succeed())
			}
			force := s.DeepCopy()
			metav1.SetMetaDataAnnotation(&force.ObjectMeta, v1alpha1.ForceToAnnotation, "Error")
			g.Expect(forcer.Patch(ctx, force, client.MergeFrom(s), client.DryRunAll)).To(Succeed())
		}).Should(Succeed())
	})
	AfterAll(func(ctx SpecContext) {
		d.stop()
		Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed())
		for _, o := range made {
			Expect(client.IgnoreNotFound(admin.Delete(ctx, o))).To(Succeed())
		}
	})

	It("records who asks for an operation, whatever is written", func(ctx SpecContext) {
		s := stored(ctx, "adm-by", uuid+"1")
		Expect(annotated(ctx, operator, s, v1alpha1.OperationAnnotation, "park", v1alpha1.OperationByAnnotation, "root")).To(Succeed())
		Expect(s.Annotations).To(HaveKeyWithValue(v1alpha1.OperationByAnnotation, "olga"))
		Expect(annotated(ctx, operator, s, v1alpha1.OperationByAnnotation, "root")).
			To(refusal(at(v1alpha1.OperationByAnnotation), "keep it as it is stored"))
		Expect(annotated(ctx, operator, s, v1alpha1.OperationByAnnotation, "")).
			To(refusal(at(v1alpha1.OperationByAnnotation), "keep it as it is stored"))
		Expect(annotated(ctx, forcer, s, v1alpha1.OperationReasonAnnotation, "another reason")).To(Succeed())
		Expect(s.Annotations).To(HaveKeyWithValue(v1alpha1.OperationByAnnotation, "fred"))
		Expect(annotated(ctx, operator, s, v1alpha1.OperationReasonAnnotation, strings.Repeat("x", 1025))).
			To(refusal(at(v1alpha1.OperationReasonAnnotation), "may not be longer than 1024 characters"))
		Expect(annotated(ctx, operator, s, v1alpha1.OperationAnnotation, "")).To(Succeed())
		Expect(s.Annotations).To(BeEmpty(), "a request that is withdrawn leaves nothing to the next one")

		Expect(annotated(ctx, operator, s, v1alpha1.OperationAnnotation, "ignore")).To(Succeed())
		Expect(s.Annotations).To(HaveKeyWithValue(v1alpha1.OperationByAnnotation, "olga"))
		Expect(annotated(ctx, operator, s, v1alpha1.OperationAnnotation, "")).To(Succeed())
		Expect(s.Annotations).To(BeEmpty())
		Expect(annotated(ctx, d.manager, s, v1alpha1.OperationAnnotation, "power-cycle-server")).To(Succeed())
		Expect(s.Annotations).NotTo(HaveKey(v1alpha1.OperationByAnnotation), "what the manager hands on is asked for elsewhere")

		created := machine("adm-by-created", uuid+"2", func(s *v1alpha1.Server) {
			s.Annotations = map[string]string{v1alpha1.OperationAnnotation: "park", v1alpha1.OperationByAnnotation: "root"}
		})
		Expect(operator.Create(ctx, created)).To(Succeed())
		made = append(made, created)
		Expect(created.Annotations).To(HaveKeyWithValue(v1alpha1.OperationByAnnotation, "olga"))
	})

	It("lets a server be forced by those who may, and to a state that there is", func(ctx SpecContext) {
		s := stored(ctx, "adm-force", uuid+"3")
		force := []string{v1alpha1.OperationAnnotation, "force", v1alpha1.ForceToAnnotation, "Error"}
		Expect(annotated(ctx, operator, s, force...)).To(refusal(at(v1alpha1.OperationAnnotation),
			`user "olga" may not force servers: that takes the verb force on servers.metal.ironcore.dev, which ClusterRole metalaw-server-forcer gives`))
		Expect(annotated(ctx, operator, s, v1alpha1.ForceOverrideAnnotation, "true")).To(refusal(at(v1alpha1.OperationAnnotation), "may not force"))
		Expect(annotated(ctx, forcer, s, v1alpha1.OperationAnnotation, "force")).
			To(refusal(at(v1alpha1.ForceToAnnotation), "say to which state the server is forced"))
		Expect(annotated(ctx, forcer, s, v1alpha1.OperationAnnotation, "force", v1alpha1.ForceToAnnotation, "Nowhere")).
			To(refusal(at(v1alpha1.ForceToAnnotation), `Unsupported value: "Nowhere": supported values: "Available", "Cleanup", `))
		Expect(annotated(ctx, forcer, s, force...)).To(Succeed())
		Expect(s.Annotations).To(HaveKeyWithValue(v1alpha1.OperationByAnnotation, "fred"))
		Expect(annotated(ctx, operator, s, v1alpha1.ForceToAnnotation, "Available")).To(refusal(at(v1alpha1.OperationAnnotation), "may not force"))
		Expect(annotated(ctx, operator, s, v1alpha1.OperationAnnotation, "")).To(Succeed(), "anybody may withdraw it")
	})

	It("lets UUIDs be assigned to systems by those who may, where nothing else of the BMC changes", func(ctx SpecContext) {
		assigner := as(ctx, "uma", "metalaw-fleet-operator", "metalaw-uuid-assigner")
		b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "adm-assigns"}}
		b.Spec.Access = &v1alpha1.InlineEndpoint{IP: "10.9.9.9"}
		b.Spec.BMCSecretRef.Name = "none"
		b.Spec.Protocol = v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish}
		Expect(operator.Create(ctx, b)).To(Succeed())
		made = append(made, b)
		assign := func(c client.Client, value string) error {
			after := b.DeepCopy()
			metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.SystemUUIDsAnnotation, value)
			return c.Patch(ctx, after, client.MergeFrom(b))
		}
		const right = "/redfish/v1/Systems/Node0: {uuid: 0a000000-0000-4000-8000-00000000000a, serial: S}"
		Expect(assign(operator, right)).To(refusal(at(v1alpha1.SystemUUIDsAnnotation),
			`user "olga" may not assign UUIDs to systems: that takes the verb assign-uuid on bmcs.metal.ironcore.dev`))
		Eventually(func() error { return assign(assigner, right) }).Should(Succeed())
		Expect(assign(assigner, "Node0")).To(refusal(at(v1alpha1.SystemUUIDsAnnotation), "it is no YAML object"))
	})

	It("lets the manager, and nobody else, move a server where it was forced to", func(ctx SpecContext) {
		s := stored(ctx, "adm-forced", uuid+"4")
		moved := func(c client.Client, to v1alpha1.ServerState, change func(*v1alpha1.ServerStatus)) error {
			before, after := s.DeepCopy(), s.DeepCopy()
			after.Status.State = to
			after.Status.Lifecycle = &v1alpha1.LifecycleStatus{Rule: v1alpha1.RuleForced, Entry: 2, EnteredAt: metav1.NowMicro()}
			after.Status.Operation = &v1alpha1.OperationStatus{ID: "1", Name: v1alpha1.OperationForce, To: to,
				State: v1alpha1.OperationSucceeded, StartedAt: metav1.NowMicro()}
			change(&after.Status)
			err := c.Status().Patch(ctx, after, client.MergeFrom(before))
			if err == nil {
				after.DeepCopyInto(s)
			}
			return err
		}
		as := func(*v1alpha1.ServerStatus) {}
		Expect(moved(d.manager, v1alpha1.StateReserved, as)).To(Succeed())
		Expect(moved(d.user, v1alpha1.StateAvailable, func(s *v1alpha1.ServerStatus) { s.Lifecycle.Entry = 3 })).
			To(refusal("status.lifecycle", "only the manager writes it"))
		Expect(moved(d.manager, "Nowhere", as)).To(refusal("status.state", "has no rule that leads from Reserved to it"))
		Expect(moved(d.manager, v1alpha1.StateAvailable, func(s *v1alpha1.ServerStatus) { s.Lifecycle.Rule = "Claimed" })).
			To(refusal("status.state", "has no rule that leads from Reserved to it"))
		Expect(moved(d.manager, v1alpha1.StateAvailable, func(s *v1alpha1.ServerStatus) { s.Lifecycle.Marks = []string{v1alpha1.MarkDirty} })).
			To(refusal("status.state", "never offered before it was wiped"))
		Expect(moved(d.manager, v1alpha1.StateAvailable, as)).To(Succeed())
	})

	It("refuses a second server for one machine in the other byte order", func(ctx SpecContext) {
		stored(ctx, "adm-order", "01020304-0506-0708-3784-823347820000")
		Expect(d.user.Create(ctx, machine("adm-order-2", "04030201-0605-0807-3784-823347820000"))).
			To(refusal("spec.systemUUID", `Server "adm-order" `))
	})

	It("takes the sample of a FleetControl", func(ctx SpecContext) {
		text, err := os.ReadFile("../../config/samples/fleetcontrol.yaml")
		Expect(err).NotTo(HaveOccurred())
		var sample policyv1alpha1.FleetControl
		Expect(yaml.UnmarshalStrict(text, &sample)).To(Succeed())
		control := &policyv1alpha1.FleetControl{}
		Expect(operator.Get(ctx, client.ObjectKeyFromObject(&sample), control)).To(Succeed())
		control.Spec = sample.Spec
		Expect(operator.Update(ctx, control, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed())
	})

	It("says what is wrong with a FleetControl, and stands in nobody's way", func(ctx SpecContext) {
		changed := func(change func(*policyv1alpha1.FleetControlSpec)) error {
			c := &policyv1alpha1.FleetControl{}
			Expect(operator.Get(ctx, client.ObjectKey{Name: policyv1alpha1.FleetControlName}, c)).To(Succeed())
			change(&c.Spec)
			return operator.Update(ctx, c)
		}
		frozen := func(change func(*policyv1alpha1.Freeze)) func(*policyv1alpha1.FleetControlSpec) {
			return func(s *policyv1alpha1.FleetControlSpec) {
				f := policyv1alpha1.Freeze{Name: "new", Level: policyv1alpha1.FreezeAll}
				change(&f)
				s.Freezes = append(s.Freezes, f)
			}
		}
		Expect(changed(frozen(func(f *policyv1alpha1.Freeze) { f.Until = &metav1.Time{Time: time.Now().Add(-time.Minute)} }))).
			To(refusal("spec.freezes[1].until", "it is over"))
		Expect(changed(frozen(func(f *policyv1alpha1.Freeze) { f.Selector = unreadable }))).
			To(refusal("spec.freezes[1].selector.matchExpressions[0].operator", "not a valid selector operator"))
		Expect(changed(func(s *policyv1alpha1.FleetControlSpec) {
			s.Budgets = []policyv1alpha1.Budget{{Name: "b", Action: policyv1alpha1.ActionWipe, Max: ptr.To[int32](1), Per: "a/b/c"}}
		})).To(refusal("spec.budgets[0].per", "it is no key of a label"))
		Expect(changed(frozen(func(*policyv1alpha1.Freeze) {}))).To(Succeed(), "beside a selector that is stored and cannot be read")
	})

	It("tells who deletes a server what was said of its machine, which outlives it", func(ctx SpecContext) {
		s := stored(ctx, "adm-said", uuid+"9")
		d.told.take()
		Expect(d.user.Delete(ctx, s.DeepCopy(), client.DryRunAll)).To(Succeed())
		Expect(d.told.take()).To(BeEmpty(), "nothing was said")
		said := s.DeepCopy()
		said.Spec.Unclaimable = true
		Expect(d.user.Update(ctx, said)).To(Succeed())
		Expect(d.user.Delete(ctx, said.DeepCopy(), client.DryRunAll)).To(Succeed())
		Expect(d.told.take()).To(ConsistOf(ContainSubstring("metalaw server uncordon, or kubectl delete serverinventory " + s.Spec.SystemUUID)))
	})

	It("keeps a FleetControl whose deletion would lift a freeze or close the breaker, whoever installs anew", func(ctx SpecContext) {
		control := &policyv1alpha1.FleetControl{}
		Expect(d.user.Get(ctx, client.ObjectKey{Name: policyv1alpha1.FleetControlName}, control)).To(Succeed())
		Expect(d.user.Delete(ctx, control.DeepCopy())).To(refusal("spec.freezes[0]", "metalaw unfreeze --name slip"))
		control.Spec.Freezes, control.Spec.Breaker = nil, &policyv1alpha1.Breaker{MaxPercent: 50}
		Expect(d.user.Update(ctx, control)).To(Succeed())
		Expect(d.user.Delete(ctx, control.DeepCopy(), client.DryRunAll)).To(Succeed(), "nothing is held")
		tripped := control.DeepCopy()
		tripped.Status.Trip = &policyv1alpha1.BreakerTrip{At: metav1.NowMicro(), Servers: 3, Of: 4}
		Expect(d.user.Status().Update(ctx, tripped)).To(Succeed())
		Expect(d.user.Delete(ctx, tripped.DeepCopy())).To(refusal("status.trip", "metalaw unfreeze --breaker"))
		tripped.Spec.Breaker.AcknowledgedAt = &metav1.MicroTime{Time: time.Now().Add(time.Minute)}
		Expect(d.user.Update(ctx, tripped)).To(Succeed())
	})

	// The last one: it takes the webhooks down.
	It("lets the fleet be frozen and servers be left alone while the manager is dead, and nothing be forced", func(ctx SpecContext) {
		s := stored(ctx, "adm-dead", uuid+"5")
		Expect(annotated(ctx, operator, s, v1alpha1.OperationAnnotation, "park")).To(Succeed())
		d.stop()
		Expect(annotated(ctx, operator, s, v1alpha1.OperationAnnotation, "")).To(Succeed(), "a request is withdrawn")
		Expect(annotated(ctx, operator, s, v1alpha1.OperationAnnotation, "ignore")).To(Succeed())
		Expect(annotated(ctx, operator, s, v1alpha1.OperationAnnotation, "ignore-for-audit")).To(Succeed(), "whatever follows ignore")
		control := &policyv1alpha1.FleetControl{}
		Expect(operator.Get(ctx, client.ObjectKey{Name: policyv1alpha1.FleetControlName}, control)).To(Succeed())
		control.Spec.Freezes = append(control.Spec.Freezes, policyv1alpha1.Freeze{Name: "all", Level: policyv1alpha1.FreezeAll})
		Expect(operator.Update(ctx, control)).To(Succeed())

		closed := MatchError(ContainSubstring("failed calling webhook"))
		Expect(d.user.Delete(ctx, control.DeepCopy())).To(closed, "the freeze outlives the manager")
		control.Spec.Freezes = nil
		Expect(d.user.Update(ctx, control)).To(Succeed())
		Expect(d.user.Delete(ctx, control.DeepCopy(), client.DryRunAll)).To(Succeed(), "a trip that was acknowledged holds nothing")
		Expect(annotated(ctx, forcer, s, v1alpha1.OperationAnnotation, "force", v1alpha1.ForceToAnnotation, "Error")).To(closed)
		Expect(annotated(ctx, operator, s, v1alpha1.OperationAnnotation, "park")).To(closed)
		Expect(annotated(ctx, operator, s, v1alpha1.OperationByAnnotation, "root")).To(closed)
	})
})
