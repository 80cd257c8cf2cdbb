// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// shown is what `kubectl get -o wide` shows of an object, by column, as the API server renders it.
func shown(t *testing.T, d *definition, body map[string]any) map[string]string {
	t.Helper()
	columns := d.crd.Spec.AdditionalPrinterColumns
	if len(columns) == 0 {
		columns = d.crd.Spec.Versions[0].AdditionalPrinterColumns
	}
	var external []apiextensionsv1.CustomResourceColumnDefinition
	for _, c := range columns {
		external = append(external, apiextensionsv1.CustomResourceColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format,
			Priority: c.Priority, JSONPath: c.JSONPath})
	}
	convertor, err := tableconvertor.New(external)
	if err != nil {
		t.Fatal(err)
	}
	table, err := convertor.ConvertToTable(t.Context(), &unstructured.Unstructured{Object: body}, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string]string{}
	for i, c := range table.ColumnDefinitions {
		if value := table.Rows[0].Cells[i]; value != nil && c.Name != "Name" && c.Name != "Age" {
			cells[c.Name] = fmt.Sprint(value)
		}
	}
	return cells
}

const maintenance = `
apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerMaintenance
metadata:
  name: m
  namespace: fleet
  annotations: {%s}
spec:
  serverRef: {name: s1}
`

func TestTheColumnsOfAMaintenanceShow(t *testing.T) {
	const present, older = "metal.ironcore.dev/maintenance-reason", "metal.ironcore.dev/reason"
	for name, c := range map[string]struct {
		annotations, spec string
		want              map[string]string
	}{
		"the server and the default priority": {"", "",
			map[string]string{"Server": "s1", "Priority": "0"}},
		"the reason under the name that clients write": {present + ": a fan", "",
			map[string]string{"Server": "s1", "Priority": "0", "Reason": "a fan"}},
		"the reason under the name that the released columns read": {older + ": a disk", "",
			map[string]string{"Server": "s1", "Priority": "0", "Reason": "a disk"}},
		"of two reasons the one under the name that clients write": {older + ": a disk, " + present + ": a fan", "",
			map[string]string{"Server": "s1", "Priority": "0", "Reason": "a fan"}},
		"the boot configuration, the policy and a priority that is given": {"",
			"  policy: Enforced\n  priority: 7\n  serverBootConfigurationTemplate: {name: rescue, spec: {serverRef: {name: s1}}}\n",
			map[string]string{"Server": "s1", "Priority": "7", "Policy": "Enforced", "BootConfiguration": "rescue"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := load(t)["ServerMaintenance"]
			stored, unknown, complaints := d.admit(object(t, fmt.Sprintf(maintenance, c.annotations)+c.spec), nil)
			if len(unknown)+len(complaints) > 0 {
				t.Fatal(unknown, complaints)
			}
			if diff := cmp.Diff(c.want, shown(t, d, stored)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWideColumnsHaveThePriorityThatKubectlKnows(t *testing.T) {
	for kind, d := range load(t) {
		for _, c := range append(d.crd.Spec.AdditionalPrinterColumns, d.crd.Spec.Versions[0].AdditionalPrinterColumns...) {
			if c.Priority != 0 && c.Priority != 1 {
				t.Errorf("%s: column %s has priority %d", kind, c.Name, c.Priority)
			}
		}
	}
}
