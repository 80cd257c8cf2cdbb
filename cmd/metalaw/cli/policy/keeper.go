// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// keeper is a program that keeps an object as it is in a repository; an edit by hand would be undone. It is known by a mark, which
// stays when the program goes: verb is what kubectl takes to remove it, and key its name.
type keeper struct {
	program, object, verb, key string
}

// keeperOf finds out whether Argo CD, Flux or Helm manages an object, by the marks that they document:
// https://argo-cd.readthedocs.io/en/stable/user-guide/resource_tracking/, https://fluxcd.io/flux/components/kustomize/kustomizations/
// and https://fluxcd.io/flux/components/helm/helmreleases/. Argo CD leaves no mark of its own where it tracks by the usual label, as its
// releases before 3.0 do: that counts where Argo CD wrote the object. Alone its writing says nothing, as it is remembered for good.
func keeperOf(o client.Object) (keeper, bool) {
	for _, mark := range []struct {
		program, verb, key string
		in                 map[string]string
		counts             bool
	}{
		{"Argo CD", "annotate", "argocd.argoproj.io/tracking-id", o.GetAnnotations(), true},
		{"Argo CD", "label", "argocd.argoproj.io/instance", o.GetLabels(), true},
		{"Flux", "label", "kustomize.toolkit.fluxcd.io/name", o.GetLabels(), true},
		{"Flux", "label", "helm.toolkit.fluxcd.io/name", o.GetLabels(), true},
		{"Helm", "annotate", "meta.helm.sh/release-name", o.GetAnnotations(), true},
		{"Argo CD", "label", "app.kubernetes.io/instance", o.GetLabels(), slices.ContainsFunc(o.GetManagedFields(), byArgoCD)},
	} {
		if value := mark.in[mark.key]; value != "" && mark.counts {
			name, _, _ := strings.Cut(value, ":")
			return keeper{mark.program, name, mark.verb, mark.key}, true
		}
	}
	return keeper{}, false
}

// byArgoCD knows the names under which Argo CD writes.
func byArgoCD(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == "argocd-controller" || entry.Manager == "argocd-application-controller"
}

// tell says who keeps a head, the change for its repository, and how to go on where the keeper is gone.
func (k keeper) tell(t *terminal.Terminal, head *corev1.ConfigMap, to change) error {
	t.Notef("ConfigMap %s is kept by %s (%s), which would undo a change made here. %s",
		head.Name, k.program, terminal.Plain(k.object), to.advice(head))
	t.Printf("%s", to.forGit(head))
	t.Notef("Where %s does not keep it any more, take its mark away, and ask again: `kubectl %s configmap %s -n %s %s-`",
		k.program, k.verb, head.Name, head.Namespace, k.key)
	return terminal.ErrIncomplete
}
