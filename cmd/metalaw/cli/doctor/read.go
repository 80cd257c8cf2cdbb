// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/config/crd"
	"github.com/metalaw/metalaw/config/rbac"
	"github.com/metalaw/metalaw/controllers/maintenance"
)

// Names of what config/default installs.
const (
	namespace  = "metalaw-system"
	deployment = "metalaw-manager"
	lease      = "metalaw-leader"
	secret     = "metalaw-webhook-certs"
	account    = "metalaw-manager"
	validating = "metalaw-validating"
)

// reader reads a cluster. raw gets a path that is no object.
type reader struct {
	client.Client
	raw func(ctx context.Context, path string) ([]byte, error)
}

// read makes every reading; one that fails leaves its error.
func (r reader) read(ctx context.Context, now time.Time) view {
	v := view{now: now}
	v.definitions, v.definitionsErr = r.definitions(ctx)
	v.manager, v.managerErr = r.manager(ctx, now)
	v.rights, v.rightsErr = r.rights(ctx)
	v.certificate, v.certificateErr = r.certificate(ctx)
	v.admission = r.admission(ctx)
	var boots metalv1alpha1.ServerBootConfigurationList
	v.bootsErr = r.List(ctx, &boots)
	v.boots = boots.Items
	var bmcs metalv1alpha1.BMCList
	v.bmcsErr = r.List(ctx, &bmcs)
	v.bmcs = bmcs.Items
	v.encryption, v.encryptionErr = r.encryption(ctx)
	v.credentialUse, v.credentialUseErr = r.credentialUse(ctx)
	v.maintenance, v.maintenanceErr = r.maintenances(ctx)
	v.protections, v.protectionsErr = r.protections(ctx, v.maintenance.servers)
	v.identities, v.identitiesErr = r.identities(ctx)
	var revisions policyv1alpha1.PolicyRevisionList
	v.revisionsErr = r.List(ctx, &revisions)
	v.revisions = revisions.Items
	return v
}

// maintenances reads what there is of maintenances, and since when a manager may grant them.
func (r reader) maintenances(ctx context.Context) (maintenanceState, error) {
	var maintenances metalv1alpha1.ServerMaintenanceList
	var servers metalv1alpha1.ServerList
	var claims metalv1alpha1.ServerClaimList
	for _, all := range []client.ObjectList{&maintenances, &servers, &claims} {
		if err := r.List(ctx, all); err != nil {
			return maintenanceState{}, err
		}
	}
	state := maintenanceState{maintenances: maintenances.Items, servers: servers.Items, claims: claims.Items}
	var consent corev1.ConfigMap
	err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: maintenance.ConsentConfigMap}, &consent)
	if client.IgnoreNotFound(err) != nil {
		return maintenanceState{}, err
	}
	if text := consent.Data[maintenance.ConsentKey]; text != "" {
		if state.Consented, err = time.Parse(time.RFC3339, text); err != nil {
			return maintenanceState{}, fmt.Errorf("ConfigMap %s/%s, key %s: %w", namespace, maintenance.ConsentConfigMap, maintenance.ConsentKey, err)
		}
	}
	return state, nil
}

// definitions compares the CRDs of this program with those of the cluster.
func (r reader) definitions(ctx context.Context) ([]definition, error) {
	files, err := fs.Glob(crd.FS, "bases/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []definition
	for _, file := range files {
		text, err := crd.FS.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var ours map[string]any
		if err := yaml.Unmarshal(text, &ours); err != nil {
			return nil, err
		}
		wanted := unstructured.Unstructured{Object: ours}
		found := &unstructured.Unstructured{}
		found.SetAPIVersion("apiextensions.k8s.io/v1")
		found.SetKind("CustomResourceDefinition")
		d := definition{Name: wanted.GetName()}
		switch err := r.Get(ctx, client.ObjectKey{Name: d.Name}, found); {
		case apierrors.IsNotFound(err):
			d.Missing = true
		case err != nil:
			return nil, err
		default:
			d.Established = established(found)
			d.Differ = schemas(&wanted) != schemas(found)
		}
		all = append(all, d)
	}
	return all, nil
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
}

// schemas is the JSON of what a definition says of its versions, without what the API server adds.
func schemas(definition *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var parts []any
	for _, v := range versions {
		version, _ := v.(map[string]any)
		parts = append(parts, version["name"], version["schema"])
	}
	text, err := json.Marshal(parts)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// admission creates, as a dry run, a bundle that holds no bundle: our webhook refuses it.
func (r reader) admission(ctx context.Context) admission {
	err := r.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: "metalaw-doctor", Namespace: namespace,
			Labels: map[string]string{"policy.metalaw.dev/bundle": "metalaw-doctor", "policy.metalaw.dev/stage": "shadow"},
		},
		Data: map[string]string{"bundle.yaml": "this is no bundle"},
	}, client.DryRunAll)
	switch {
	case err == nil:
		return admission{Stored: true}
	case strings.Contains(err.Error(), "failed calling webhook"):
		return admission{Unreachable: true, Err: err}
	case strings.Contains(err.Error(), "metalaw.dev\" denied the request"):
		return admission{Refused: true}
	default:
		return admission{Err: err}
	}
}

// rights asks whether the manager's service account may do what the roles of this program's version give it.
func (r reader) rights(ctx context.Context) ([]right, error) {
	var asked []right
	for _, role := range []struct {
		text      []byte
		namespace string
	}{{rbac.ClusterRole, ""}, {rbac.Role, namespace}} {
		wanted, err := rightsOf(role.text)
		if err != nil {
			return nil, err
		}
		for _, w := range wanted {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:   "system:serviceaccount:" + namespace + ":" + account,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: w.Verb, Group: w.Group, Resource: w.Resource, Subresource: w.Subresource, Name: w.Name, Namespace: role.namespace,
				},
			}}
			if err := r.Create(ctx, review); err != nil {
				return nil, err
			}
			w.Allowed = review.Status.Allowed
			asked = append(asked, w)
		}
	}
	return asked, nil
}

// rightsOf lists what a role gives, one by one.
func rightsOf(text []byte) ([]right, error) {
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal(text, &role); err != nil {
		return nil, err
	}
	var all []right
	for _, rule := range role.Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				kind, sub, _ := strings.Cut(resource, "/")
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all = append(all, right{Verb: verb, Group: group, Resource: kind, Subresource: sub, Name: name})
					}
				}
			}
		}
	}
	return all, nil
}

// certificate reads what the manager serves with and what the API server trusts.
func (r reader) certificate(ctx context.Context) (certificateState, error) {
	var s corev1.Secret
	if err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: secret}, &s); err != nil {
		return certificateState{}, err
	}
	var hooks admissionregistrationv1.ValidatingWebhookConfiguration
	if err := r.Get(ctx, client.ObjectKey{Name: validating}, &hooks); err != nil {
		return certificateState{}, err
	}
	state := certificateState{Serving: s.Data["tls.crt"], Authority: s.Data["ca.crt"], Signs: len(s.Data["ca.key"]) > 0}
	if len(hooks.Webhooks) > 0 {
		state.Trusted = hooks.Webhooks[0].ClientConfig.CABundle
	}
	return state, nil
}

// encryption reads how the API server has transformed BMCSecrets, from its metric
// apiserver_storage_transformation_operations_total (k8s.io/apiserver, pkg/storage/value/metrics.go).
func (r reader) encryption(ctx context.Context) (encryptionState, error) {
	text, err := r.raw(ctx, "/metrics")
	if err != nil {
		return encryptionState{}, err
	}
	return transformations(text)
}

func transformations(text []byte) (encryptionState, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return encryptionState{}, fmt.Errorf("metrics: %w", err)
	}
	var state encryptionState
	for _, metric := range families["apiserver_storage_transformation_operations_total"].GetMetric() {
		labels := map[string]string{}
		for _, pair := range metric.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		ours, prefix := strings.HasPrefix(labels["resource"], "bmcsecrets"), labels["transformer_prefix"]
		if ours && labels["status"] == "OK" && !slices.Contains(state.Prefixes, prefix) {
			state.Prefixes = append(state.Prefixes, prefix)
		}
	}
	slices.Sort(state.Prefixes)
	return state, nil
}
