// SPDX-License-Identifier: Apache-2.0

// Package crd checks the generated CustomResourceDefinitions with the code of the API server that will serve them. It is
// a module of its own so that the CEL library is the one that this version of Kubernetes uses.
package crd

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

func TestTheAPIServerAcceptsEveryDefinition(t *testing.T) {
	for kind, d := range load(t) {
		t.Run(kind, func(t *testing.T) {
			for _, err := range crdvalidation.ValidateCustomResourceDefinition(context.Background(), d.crd) {
				t.Error(err)
			}
			for _, err := range schema.ValidateStructural(nil, d.structural) {
				t.Error(err)
			}
		})
	}
}

func TestNoDefinitionIsAppliedWithAWarning(t *testing.T) {
	for kind, d := range load(t) {
		t.Run(kind, func(t *testing.T) {
			var s spec.Schema
			if err := validation.ConvertJSONSchemaProps(d.props().OpenAPIV3Schema, &s); err != nil {
				t.Fatal(err)
			}
			formats := validation.GetUnrecognizedFormats(&s, environment.DefaultCompatibilityVersion())
			if len(formats) > 0 {
				t.Errorf("the API server warns of unrecognized formats %q", formats)
			}
			if path := setOfObjects(d.props().OpenAPIV3Schema, ""); path != "" {
				t.Errorf("the API server warns of a list of type set that holds objects at %s", path)
			}
		})
	}
}

// setOfObjects finds a list of type set whose items are not scalars.
func setOfObjects(p *apiextensions.JSONSchemaProps, path string) string {
	if p.XListType != nil && *p.XListType == "set" && p.Items.Schema.Type == "object" {
		return path
	}
	for name, child := range p.Properties {
		if found := setOfObjects(&child, path+"."+name); found != "" {
			return found
		}
	}
	if p.Items != nil && p.Items.Schema != nil {
		return setOfObjects(p.Items.Schema, path+"[]")
	}
	return ""
}

func TestEachKindHasTheNamesThatClientsKnow(t *testing.T) {
	type names struct {
		Resource, Scope string
		Short           []string
		Status          bool
		Columns, Wide   []string
		Selectable      []string
	}
	want := map[string]names{
		"Endpoint": {"endpoints.metal.ironcore.dev", "Cluster", []string{"mep"}, true,
			[]string{"MACAddress", "IP", "Age"}, []string{"Ready", "Reason"}, nil},
		"BMC": {"bmcs.metal.ironcore.dev", "Cluster", nil, true,
			[]string{"MACAddress", "IP", "Model", "State", "PowerState", "Age", "Ready", "Reason"},
			[]string{"SKU", "SerialNumber", "FirmwareVersion"}, nil},
		"BMCSecret": {"bmcsecrets.metal.ironcore.dev", "Cluster", []string{"bmcsec"}, true,
			[]string{"Age"}, nil, nil},
		"Server": {"servers.metal.ironcore.dev", "Cluster", []string{"srv"}, true,
			[]string{"SystemUUID", "Manufacturer", "Model", "Memory", "PowerState", "State", "Age", "Ready", "Claim", "Reason"},
			[]string{"SKU", "SerialNumber", "IndicatorLED", "Unclaimable", "Revision"},
			[]string{".spec.systemUUID", ".spec.bmcRef.name", ".spec.serverClaimRef.name", ".spec.serverClaimRef.namespace"}},
		"ServerClaim": {"serverclaims.metal.ironcore.dev", "Namespaced", []string{"scl"}, true,
			[]string{"Server", "Ignition", "Image", "Phase", "Age", "Ready", "Reason"}, nil,
			[]string{".spec.serverRef.name"}},
		"ServerBootConfiguration": {"serverbootconfigurations.metal.ironcore.dev", "Namespaced", []string{"sbc"}, true,
			[]string{"ServerRef", "Image", "IgnitionRef", "State", "Age"}, nil, []string{".spec.serverRef.name"}},
		"ServerMaintenance": {"servermaintenances.metal.ironcore.dev", "Namespaced", []string{"sm"}, true,
			[]string{"Server", "Policy", "BootConfiguration", "Reason", "State", "Priority", "Age"}, nil, nil},
		"ServerReadinessRule": {"serverreadinessrules.metal.ironcore.dev", "Cluster", nil, true,
			[]string{"Mode", "Taint", "Effect", "Conditions", "Age"}, []string{"Value"}, nil},
		"PolicyRevision": {"policyrevisions.policy.metalaw.dev", "Cluster", []string{"polrev"}, true,
			[]string{"Bundle", "Version", "Stage", "Active", "Servers", "Age"}, []string{"Reason", "ConfigMap", "Findings", "Differences", "Paused"}, nil},
		"FleetControl": {"fleetcontrols.policy.metalaw.dev", "Cluster", []string{"fctl"}, true,
			[]string{"Frozen", "Breaker", "Budgets", "Age"}, []string{"Message"}, nil},
		"SanitizationRecord": {"sanitizationrecords.policy.metalaw.dev", "Cluster", []string{"sanrec"}, false,
			[]string{"Server", "Result", "Serials", "Terms", "Age"}, nil, nil},
		"ServerInventory": {"serverinventories.policy.metalaw.dev", "Cluster", []string{"sinv"}, false,
			[]string{"UUID", "Server", "Reported", "Wiped", "Age"}, nil, nil},
	}
	got := map[string]names{}
	for kind, d := range load(t) {
		n := names{Resource: d.crd.Name, Scope: string(d.crd.Spec.Scope), Short: d.crd.Spec.Names.ShortNames}
		version := d.crd.Spec.Versions[0]
		subresources, columns, fields := d.crd.Spec.Subresources, d.crd.Spec.AdditionalPrinterColumns, d.crd.Spec.SelectableFields
		if subresources == nil {
			subresources = version.Subresources
		}
		n.Status = subresources != nil && subresources.Status != nil
		for _, c := range append(columns, version.AdditionalPrinterColumns...) {
			if c.Priority > 0 {
				n.Wide = append(n.Wide, c.Name)
			} else {
				n.Columns = append(n.Columns, c.Name)
			}
		}
		for _, f := range append(fields, version.SelectableFields...) {
			n.Selectable = append(n.Selectable, f.JSONPath)
		}
		got[kind] = n
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// upstream are the columns that clients of the API read by their place. A wide one ends with a plus.
var upstream = map[string][]string{
	"Endpoint":  {"MACAddress", "IP", "Age"},
	"BMC":       {"MACAddress", "IP", "Model", "SKU+", "SerialNumber+", "FirmwareVersion+", "State", "PowerState", "Age"},
	"BMCSecret": {"Age"},
	"Server": {"SystemUUID", "Manufacturer", "Model", "Memory", "SKU+", "SerialNumber+", "PowerState", "IndicatorLED+", "State",
		"Unclaimable+", "Age"},
	"ServerClaim":             {"Server", "Ignition", "Image", "Phase", "Age"},
	"ServerBootConfiguration": {"ServerRef", "Image", "IgnitionRef", "State", "Age"},
	"ServerMaintenance":       {"Server", "Policy", "BootConfiguration", "Reason", "State", "Priority", "Age"},
}

func TestOurColumnsFollowThoseOfUpstream(t *testing.T) {
	for kind, d := range load(t) {
		var got []string
		for _, c := range append(d.crd.Spec.AdditionalPrinterColumns, d.crd.Spec.Versions[0].AdditionalPrinterColumns...) {
			name := c.Name
			if c.Priority > 0 {
				name += "+"
			}
			got = append(got, name)
		}
		want := upstream[kind]
		if diff := cmp.Diff(want, got[:min(len(want), len(got))]); len(want) > 0 && diff != "" {
			t.Errorf("%s: - want, + got:\n%s", kind, diff)
		}
	}
}

func TestTheCategoryHasWhatAnOperatorLooksAt(t *testing.T) {
	// A BMCSecret holds a password, and there is an inventory and a record for each machine.
	apart := map[string]bool{"BMCSecret": true, "ServerInventory": true, "SanitizationRecord": true}
	for kind, d := range load(t) {
		if got := slices.Contains(d.crd.Spec.Names.Categories, "metal"); got == apart[kind] {
			t.Errorf("kubectl get metal shows %s: %v", kind, got)
		}
	}
}

func TestReferencesAreReplacedAsAWhole(t *testing.T) {
	defs := load(t)
	for _, path := range []string{
		"BMC.spec.endpointRef", "BMC.spec.bmcSecretRef",
		"Server.spec.bmcRef", "Server.spec.serverClaimRef", "Server.spec.bootConfigurationRef",
		"ServerClaim.spec.serverRef", "ServerClaim.spec.serverSelector", "ServerClaim.spec.ignitionSecretRef", "ServerClaim.spec.userDataRef",
		"ServerBootConfiguration.spec.serverRef", "ServerBootConfiguration.spec.ignitionSecretRef",
		"ServerMaintenance.spec.serverRef", "ServerReadinessRule.spec.serverSelector",
	} {
		t.Run(path, func(t *testing.T) {
			parts := strings.Split(path, ".")
			s := *defs[parts[0]].structural
			for _, part := range parts[1:] {
				s = s.Properties[part]
			}
			if s.XMapType == nil || *s.XMapType != "atomic" {
				t.Errorf("x-kubernetes-map-type is not atomic")
			}
			if s.Nullable {
				t.Errorf("nullable: a body with %s: null would then be kept as null and fail the CEL rules", parts[2])
			}
		})
	}
}

func TestTheKustomizationListsEveryDefinition(t *testing.T) {
	text, err := os.ReadFile("../../config/crd/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var listed, generated []string
	for _, r := range object(t, string(text))["resources"].([]any) {
		listed = append(listed, filepath.Base(r.(string)))
	}
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		generated = append(generated, filepath.Base(f))
	}
	slices.Sort(listed)
	if diff := cmp.Diff(generated, listed); diff != "" {
		t.Errorf("config/crd/kustomization.yaml and config/crd/bases differ:\n%s", diff)
	}
}
