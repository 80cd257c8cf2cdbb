// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/policies"
)

// bundleName is the bundle that governs: the default one that knows emulated BMCs, with other limits of maintenance. Of a few machines,
// more are down than the shipped limits allow.
const bundleName = "model"

// limits are replaced in the default bundle.
var limits = [][2]string{
	{"name: default\n", "name: " + bundleName + "\n"},
	{"enforcedNotice: 15m", "enforcedNotice: 1s"},
	{"{name: fleet, most: 2%}", "{name: fleet, most: 100%}"},
	{"{name: racks, per: rack, most: 1}", "{name: racks, per: rack, most: 100%}"},
	{"{name: namespaces, per: claim.namespace, most: 1}", "{name: namespaces, per: claim.namespace, most: 100%}"},
}

// govern puts the bundle in force, and waits until it is.
func (w *world) govern(ctx context.Context) error {
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		return err
	}
	testkit.KnowEmulator(files)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: "bundle-" + bundleName, Labels: map[string]string{
		policyv1alpha1.BundleLabel: bundleName, policyv1alpha1.StageLabel: policyv1alpha1.LabelActive}}, Data: map[string]string{}}
	for file, data := range files {
		cm.Data[file] = string(data)
	}
	for _, l := range limits {
		if strings.Count(cm.Data["bundle.yaml"], l[0]) != 1 {
			return fmt.Errorf("the default bundle does not say %q once", l[0])
		}
		cm.Data["bundle.yaml"] = strings.Replace(cm.Data["bundle.yaml"], l[0], l[1], 1)
	}
	if err := w.admin.Create(ctx, cm); err != nil {
		return err
	}
	for {
		var all policyv1alpha1.PolicyRevisionList
		if err := w.admin.List(ctx, &all); err != nil {
			return err
		}
		for i := range all.Items {
			r := &all.Items[i]
			if strings.HasPrefix(r.Name, bundleName+"-") && meta.IsStatusConditionTrue(r.Status.Conditions, policyv1alpha1.ConditionActive) {
				return nil
			}
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return fmt.Errorf("the bundle is not in force: %w", context.Cause(ctx))
		}
	}
}
