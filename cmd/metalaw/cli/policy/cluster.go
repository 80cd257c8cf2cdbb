// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/internal/mergepatch"
)

// defaultNamespace is the manager's in the shipped manifests.
const defaultNamespace = "metalaw-system"

// headsMeta lists the heads of bundles without what they hold.
func headsMeta(ctx context.Context, c client.Client, namespace string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := c.List(ctx, list, client.InNamespace(namespace), client.HasLabels{policyv1alpha1.BundleLabel}); err != nil {
		return nil, access.Explain(err, "list", access.ConfigMaps)
	}
	return list.Items, nil
}

// revisions lists the PolicyRevisions, the latest promotion first, and then those that never came into force, the
// youngest first.
func revisions(ctx context.Context, c client.Client) ([]policyv1alpha1.PolicyRevision, error) {
	var list policyv1alpha1.PolicyRevisionList
	if err := c.List(ctx, &list); err != nil {
		return nil, access.Explain(err, "list", access.Revisions)
	}
	slices.SortFunc(list.Items, func(a, b policyv1alpha1.PolicyRevision) int {
		if d := promotion(&b) - promotion(&a); d != 0 {
			return d
		}
		if d := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); d != 0 && promotion(&a) == 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list.Items, nil
}

// promotion is the number of the promotion by which a revision came into force; 0 where it never did.
func promotion(r *policyv1alpha1.PolicyRevision) int { return int(r.Promotion()) }

// change is what a verb does to the head of a bundle.
type change struct {
	stage     string
	servers   string
	percent   int
	keepScope bool
}

// governs says that the bundle is to govern servers.
func (c change) governs() bool {
	return c.stage == policyv1alpha1.LabelCanary || c.stage == policyv1alpha1.LabelActive
}

// again says that a head has the label active already, which does not make it a promotion: the label has to change.
func (c change) again(head *corev1.ConfigMap) bool {
	return c.stage == policyv1alpha1.LabelActive && head.Labels[policyv1alpha1.StageLabel] == c.stage
}

// advice says what to do with what forGit writes.
func (c change) advice(head *corev1.ConfigMap) string {
	if c.again(head) {
		return "It is labelled active already, and a label that does not change is no promotion: it takes two commits. Commit the first, " +
			"wait until the cluster has it, and then commit the second:"
	}
	return "Change it in the repository:"
}

// forGit is the change as somebody would write it in a repository, one document for each commit.
func (c change) forGit(head *corev1.ConfigMap) string {
	if c.again(head) {
		return change{stage: policyv1alpha1.LabelDraft}.document(head) + "---\n" + c.document(head)
	}
	return c.document(head)
}

func (c change) document(head *corev1.ConfigMap) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: %s\n  labels:\n    %s: %s\n",
		head.Name, head.Namespace, policyv1alpha1.StageLabel, c.stage)
	if scope := c.scope(); len(scope) > 0 {
		b.WriteString("  annotations:\n")
		for _, key := range []string{policyv1alpha1.CanaryServersAnnotation, policyv1alpha1.CanaryPercentAnnotation} {
			if scope[key] != "" {
				fmt.Fprintf(&b, "    %s: %q\n", key, scope[key])
			}
		}
	}
	return b.String()
}

// scope is the annotations that say whom a canary governs.
func (c change) scope() map[string]string {
	scope := map[string]string{}
	if c.servers != "" {
		scope[policyv1alpha1.CanaryServersAnnotation] = c.servers
	}
	if c.percent != 0 {
		scope[policyv1alpha1.CanaryPercentAnnotation] = strconv.Itoa(c.percent)
	}
	return scope
}

// patchStage stores a stage, and whom a canary governs.
func patchStage(ctx context.Context, c client.Client, head *corev1.ConfigMap, to change) error {
	before := head.DeepCopy()
	if head.Labels == nil {
		head.Labels = map[string]string{}
	}
	head.Labels[policyv1alpha1.StageLabel] = to.stage
	if !to.keepScope {
		delete(head.Annotations, policyv1alpha1.CanaryServersAnnotation)
		delete(head.Annotations, policyv1alpha1.CanaryPercentAnnotation)
		for key, value := range to.scope() {
			if head.Annotations == nil {
				head.Annotations = map[string]string{}
			}
			head.Annotations[key] = value
		}
	}
	err := c.Patch(ctx, head, mergepatch.Locked(before), client.FieldOwner(access.FieldManager))
	return access.Explain(err, "patch", access.ConfigMaps)
}

// findHead finds a head by the name of its ConfigMap.
func findHead(ctx context.Context, c client.Client, namespace, word string) (*corev1.ConfigMap, error) {
	head := &corev1.ConfigMap{}
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: word}, head)
	if err != nil {
		all, listErr := headsMeta(ctx, c, namespace)
		names := lists.Map(all, func(o *metav1.PartialObjectMetadata) string { return o.Name })
		if listErr == nil && len(all) == 0 && noNamespace(ctx, c, namespace) {
			return nil, fmt.Errorf("there is no namespace %s; name that of the manager with -n", namespace)
		}
		if listErr == nil && client.IgnoreNotFound(err) == nil {
			return nil, fmt.Errorf("there is no bundle %s in namespace %s; there are: %s", word, namespace, cmp.Or(strings.Join(names, ", "), "none"))
		}
		return nil, access.Explain(err, "get", access.ConfigMaps)
	}
	if of := head.Labels[policyv1alpha1.BundlePartLabel]; of != "" && head.Labels[policyv1alpha1.BundleLabel] == "" {
		return nil, fmt.Errorf("ConfigMap %s is a part of bundle %s: promote the ConfigMap whose manifest.yaml lists it", word, of)
	}
	if head.Labels[policyv1alpha1.BundleLabel] == "" {
		return nil, fmt.Errorf("ConfigMap %s is no bundle: it lacks the label %s", word, policyv1alpha1.BundleLabel)
	}
	return head, nil
}

// noNamespace says that there is no namespace of this name. Who may not ask is not told so.
func noNamespace(ctx context.Context, c client.Client, name string) bool {
	return apierrors.IsNotFound(c.Get(ctx, types.NamespacedName{Name: name}, &corev1.Namespace{}))
}
