// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// admitting is an API whose admission records activations or does not, and which stops as told before one change of many. Each
// change is remembered as the stage that it sets.
func admitting(t *testing.T, records bool, before func(change int) error, objects ...client.Object) (client.Client, *[]string) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, policyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	stages := &[]string{}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, to client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if before != nil {
				if err := before(len(*stages)); err != nil {
					return err
				}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := to.Patch(ctx, o, p, opts...); err != nil {
				return err
			}
			stage := o.GetLabels()[policyv1alpha1.StageLabel]
			*stages = append(*stages, stage)
			if cm, is := o.(*corev1.ConfigMap); is && records && stage == policyv1alpha1.LabelActive {
				metav1.SetMetaDataAnnotation(&cm.ObjectMeta, policyv1alpha1.ActivatedByAnnotation, fmt.Sprint("jane ", len(*stages)))
				return to.Update(ctx, cm)
			}
			return nil
		},
	}).Build(), stages
}

func headAt(stage string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fleet-1", Annotations: map[string]string{
		policyv1alpha1.ActivatedByAnnotation: "jane 0"}, Labels: map[string]string{policyv1alpha1.BundleLabel: "fleet", policyv1alpha1.StageLabel: stage}}}
}

func TestACanaryThatCannotBeAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		ask  change
		want string
	}{
		"of nobody":          {change{}, "whom does the canary govern? Give --servers, --percent, or both"},
		"of all by selector": {change{servers: " "}, `--servers=" " selects every server; for all take --stage active, and for a share of all --percent alone`},
		"of more than all":   {change{percent: 101}, "--percent=101: write 1 to 100"},
		"of a selector that nobody holds": {change{servers: "rack in (" + strings.Repeat("r1,", 1500) + "r1)"}, `--servers="rack in (` + strings.Repeat("r1,", 18) + `r...": ` +
			"the selector has 4512 characters, and 4096 are the most; give the servers a label of their own to select by, or take --percent"},
	} {
		t.Run(name, func(t *testing.T) {
			c.ask.stage = policyv1alpha1.LabelCanary
			if err := c.ask.check(policyv1alpha1.Stages()); err == nil || err.Error() != c.want {
				t.Error(err)
			}
		})
	}
}

func TestALabelThatIsActiveAlreadyChangesTwice(t *testing.T) {
	seen := at("a", "da", "fleet-1", "Active", "Superseded", "Superseded", "1", "")
	noticed := at("a", "da", "fleet-1", "Draft", "Superseded", "Superseded", "1", "")
	for name, c := range map[string]struct {
		stage    string
		records  bool
		revision policyv1alpha1.PolicyRevision
		stages   []string
		says     string
	}{
		"once where it was not":                           {"shadow", true, seen, []string{"active"}, ""},
		"at once where admission records that":            {"active", true, seen, []string{"draft", "active"}, ""},
		"slowly where nobody records it":                  {"active", false, noticed, []string{"draft", "active", "draft", "active"}, ""},
		"not before the manager has noticed in that case": {"active", false, seen, []string{"draft", "active", "draft"}, "the manager has not noticed the change within 1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			head := headAt(c.stage)
			api, stages := admitting(t, c.records, nil, head, &c.revision)
			err := (&rollout{timeout: time.Millisecond}).label(t.Context(), api, head, change{stage: policyv1alpha1.LabelActive})
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Error(err)
			}
			if diff := cmp.Diff(c.stages, *stages); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAnInterruptedPromotionLeavesNoOtherLabel(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	head := headAt("active")
	api, stages := admitting(t, true, func(change int) error {
		if change == 1 {
			interrupt()
		}
		return nil
	}, head)
	if err := (&rollout{timeout: time.Minute}).label(ctx, api, head, change{stage: policyv1alpha1.LabelActive}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"draft", "active"}, *stages); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAPromotionInterruptedWhileTheManagerNoticesLeavesNoOtherLabel(t *testing.T) {
	for name, interrupts := range map[string]int{"as it begins": 2, "while it waits": -1} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			head := headAt("active")
			seen := at("a", "da", "fleet-1", "Active", "Superseded", "Superseded", "1", "")
			api, stages := admitting(t, false, func(change int) error {
				if change == interrupts {
					interrupt()
				}
				return nil
			}, head, &seen)
			waiting := interceptor.NewClient(api.(client.WithWatch), interceptor.Funcs{
				List: func(ctx context.Context, from client.WithWatch, all client.ObjectList, opts ...client.ListOption) error {
					interrupt()
					return from.List(ctx, all, opts...)
				},
			})
			err := (&rollout{timeout: time.Minute}).label(ctx, waiting, head, change{stage: policyv1alpha1.LabelActive})
			const want = "interrupted before the manager was seen to notice: ConfigMap fleet-1 is labelled active as before, and that may be no promotion; ask again: "
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"draft", "active", "draft", "active"}, *stages); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestALabelThatIsActiveAlreadyStaysWherePromotingIsRefused(t *testing.T) {
	const refuses = `admission webhook "configmap.policy.metalaw.dev" denied the request: servers are in state Attic`
	for name, c := range map[string]struct {
		answer string
		stages []string
		fails  bool
	}{
		"by admission": {refuses, []string{}, true},
		"not because nobody may create ConfigMaps": {`configmaps is forbidden: User "jane" cannot create resource "configmaps"`, []string{"draft", "active"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			head := headAt("active")
			api, stages := admitting(t, true, nil, head)
			refusing := interceptor.NewClient(api.(client.WithWatch), interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					if !slices.Contains(opts, client.CreateOption(client.DryRunAll)) || o.GetLabels()[policyv1alpha1.StageLabel] != "active" {
						t.Errorf("%+v is created", o)
					}
					return errors.New(c.answer)
				},
			})
			err := (&rollout{timeout: time.Minute}).label(t.Context(), refusing, head, change{stage: policyv1alpha1.LabelActive})
			if diff := cmp.Diff(c.stages, *stages); diff != "" || (err != nil) != c.fails {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}

func TestALabelThatCouldNotBeSetAgainIsTold(t *testing.T) {
	head := headAt("active")
	api, _ := admitting(t, true, func(change int) error {
		if change == 1 {
			return errors.New("connection refused")
		}
		return nil
	}, head)
	err := (&rollout{timeout: time.Minute}).label(t.Context(), api, head, change{stage: policyv1alpha1.LabelActive})
	const want = "ConfigMap fleet-1 was labelled active already, is labelled draft since a moment ago, and could not be labelled active again; ask again: "
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Error(err)
	}
}

func TestAPromotionTellsWhatItWaitsFor(t *testing.T) {
	const history = ". `metalaw policy history` tells how far it is\n"
	for name, c := range map[string]struct {
		becomes policyv1alpha1.PolicyRevision
		says    string
	}{
		"nothing where it is in force": {at("a", emptyDigest, "fleet-1", "Active", "Active", "InForce", "1", ""), "fleet-1: active\n"},
		"a manager that is slow": {at("a", emptyDigest, "fleet-1", "Active", "Draft", "AwaitingReplicas", "", "m-1 has not compiled it yet"),
			"fleet-1: active\nfleet-1: not in effect so far: revision a is Draft (AwaitingReplicas: m-1 has not compiled it yet)" + history},
		"a manager that refuses it": {refused(at("a", emptyDigest, "fleet-1", "Active", "Draft", "AwaitingReplicas", "", "m-1 refuses it: a scenario fails")),
			"fleet-1: active\nfleet-1: not in effect so far: revision a is Draft (AwaitingReplicas: m-1 refuses it: a scenario fails)" + history},
		"that nobody has looked yet": {at("b", "db", "fleet-0", "Active", "Active", "InForce", "1", ""),
			"fleet-1: active\nfleet-1: not in effect so far: the manager has made no PolicyRevision of it; is one running, and what do the Events of " +
				"ConfigMap fleet-1 say?" + history},
	} {
		t.Run(name, func(t *testing.T) {
			head := headAt("shadow")
			api, _ := admitting(t, true, nil, head)
			becomes := interceptor.NewClient(api.(client.WithWatch), interceptor.Funcs{
				Patch: func(ctx context.Context, to client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					if err := to.Create(ctx, &c.becomes); err != nil {
						return err
					}
					return to.Patch(ctx, o, p, opts...)
				},
			})
			term, out, _ := quiet()
			asks := &rollout{timeout: time.Minute, glance: 10 * time.Millisecond}
			err := asks.apply(t.Context(), term, becomes, head, change{stage: policyv1alpha1.LabelActive}, "")
			if diff := cmp.Diff(c.says, out.String()); err != nil || diff != "" {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}
