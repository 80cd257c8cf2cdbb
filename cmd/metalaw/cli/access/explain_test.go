// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestARefusalIsExplained(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "metal.ironcore.dev", Resource: "servers"}, "s",
		errors.New(`User "bob" cannot patch resource "servers" in API group "metal.ironcore.dev" at the cluster scope`))
	claims := schema.GroupResource{Group: "metal.ironcore.dev", Resource: "serverclaims"}
	tina := func(verb, scope string) error {
		return apierrors.NewForbidden(claims, "web", errors.New(
			`User "tina" cannot `+verb+` resource "serverclaims" in API group "metal.ironcore.dev" `+scope))
	}
	webhook := func(words string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: `admission webhook "server.validate.metalaw.dev" denied the request: ` + words}}
	}
	for name, c := range map[string]struct {
		err            error
		verb, resource string
		want           string
	}{
		"by RBAC, for a write": {forbidden, "patch", Servers,
			`forbidden: User "bob" cannot patch resource "servers" in API group "metal.ironcore.dev" at the cluster scope; it takes the verb "patch" on servers.metal.ironcore.dev; the ClusterRole metalaw-fleet-operator has it`},
		"by RBAC, for a read": {forbidden, "list", Servers,
			`forbidden: User "bob" cannot patch resource "servers" in API group "metal.ironcore.dev" at the cluster scope; it takes the verb "list" on servers.metal.ironcore.dev; the ClusterRole metalaw-fleet-viewer has it`},
		"by RBAC, for Events": {forbidden, "list", Events,
			`forbidden: User "bob" cannot patch resource "servers" in API group "metal.ironcore.dev" at the cluster scope; it takes the verb "list" on events; the ClusterRole metalaw-fleet-viewer has it, and so has the cluster's own "view"`},
		"by RBAC, for a bundle's ConfigMap": {forbidden, "get", ConfigMaps,
			`forbidden: User "bob" cannot patch resource "servers" in API group "metal.ironcore.dev" at the cluster scope; it takes the verb "get" on configmaps; ` +
				"the Role metalaw-policy-author in the manager's namespace has it (kubectl create rolebinding NAME -n metalaw-system --role=metalaw-policy-author --user=USER)"},
		"by RBAC, for a new claim": {tina("create", `in the namespace "team"`), "create", ServerClaims,
			`forbidden: User "tina" cannot create resource "serverclaims" in API group "metal.ironcore.dev" in the namespace "team"; it takes the verb "create" on serverclaims.metal.ironcore.dev; ` +
				`the ClusterRole metalaw-claim-editor has it, and so has the cluster's own "edit"; a RoleBinding in the namespace will do`},
		"by RBAC, for the claims of a namespace": {tina("list", `in the namespace "team"`), "list", ServerClaims,
			`forbidden: User "tina" cannot list resource "serverclaims" in API group "metal.ironcore.dev" in the namespace "team"; it takes the verb "list" on serverclaims.metal.ironcore.dev; ` +
				`the ClusterRole metalaw-claim-viewer has it, and so has the cluster's own "view"; a RoleBinding in the namespace will do`},
		"by RBAC, for the claims of all namespaces": {tina("list", "at the cluster scope"), "list", ServerClaims,
			`forbidden: User "tina" cannot list resource "serverclaims" in API group "metal.ironcore.dev" at the cluster scope; it takes the verb "list" on serverclaims.metal.ironcore.dev; ` +
				`the ClusterRole metalaw-fleet-viewer has it`},
		"by a namespace that goes": {apierrors.NewForbidden(claims, "web", errors.New("unable to create new content in namespace team because it is being terminated")), "create", ServerClaims,
			"forbidden: unable to create new content in namespace team because it is being terminated"},
		"by a quota that is used up": {apierrors.NewForbidden(claims, "web", errors.New("exceeded quota: claims, requested: 1, used: 2, limited: 2")), "create", ServerClaims,
			"forbidden: exceeded quota: claims, requested: 1, used: 2, limited: 2"},
		"by admission, in its own words":           {webhook("a claim holds it"), "patch", Servers, "denied: a claim holds it"},
		"by admission, about force, with the role": {webhook("bob may not force servers"), VerbForce, Servers, "denied: bob may not force servers; the ClusterRole metalaw-server-forcer has it"},
		"by admission, which has named the role":   {webhook("force takes metalaw-server-forcer"), VerbForce, Servers, "denied: force takes metalaw-server-forcer"},
		"by admission, about a force that makes no sense": {webhook("is invalid: force-to: Unsupported value"), VerbForce, Servers,
			"denied: is invalid: force-to: Unsupported value"},
		"by nobody behind the API server, because no manager runs": {apierrors.NewInternalError(errors.New(
			`failed calling webhook "policybundle.validate.metalaw.dev": failed to call webhook: Post "https://metalaw-webhook.metalaw-system.svc:443/x": connection refused`)), "patch", "configmaps",
			`nothing was changed: the API server asks the manager first (webhook policybundle.validate.metalaw.dev), and the manager does not answer. See that one runs ` +
				`(kubectl get pods -n metalaw-system) and that the API server reaches it, and ask again. ` +
				`It says: failed to call webhook: Post "https://metalaw-webhook.metalaw-system.svc:443/x": connection refused`},
		"by nobody behind the API server, of another product": {apierrors.NewInternalError(errors.New(`failed calling webhook "a.example.com": EOF`)), "patch", Servers,
			`nothing was changed: the API server asks the webhook a.example.com first, which is not metalaw's, and it does not answer: EOF`},
		"by a cluster without metalaw":                 {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Server"}}, "list", Servers, "the API server does not serve servers.metal.ironcore.dev; is this the right cluster (--context), and are metalaw's CRDs applied?"},
		"by an API server that does not know the user": {apierrors.NewUnauthorized("who"), "list", Servers, "the API server does not know you (401 Unauthorized); see the user of your kubeconfig context"},
		"by nobody, because nobody answers": {&url.Error{Op: "Get", URL: "https://x", Err: errors.New("connection refused")}, "list", Servers,
			`cannot reach the API server: Get "https://x": connection refused; see --kubeconfig and --context`},
	} {
		t.Run(name, func(t *testing.T) {
			got := Explain(c.err, c.verb, c.resource)
			if got.Error() != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if !errors.Is(got, c.err) {
				t.Error("the cause is lost")
			}
			if again := Explain(got, "get", "else"); again.Error() != c.want {
				t.Errorf("explained twice: %s", again)
			}
		})
	}
}
