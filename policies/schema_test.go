// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"encoding/json"
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"
	"sigs.k8s.io/yaml"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/schema"
)

// fits says whether a YAML file fits the JSON schema of a topic, and what does not.
func fits(t *testing.T, topic string, file []byte) (bool, any) {
	t.Helper()
	var document any
	if err := yaml.Unmarshal(file, &document); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(schema.Of(topic, Vocabulary()))
	if err != nil {
		t.Fatal(err)
	}
	results, err := rego.New(rego.Query(`x := json.match_schema(input.document, input.schema)`),
		rego.Input(map[string]any{"document": document, "schema": string(text)})).Eval(t.Context())
	if err != nil || len(results) != 1 {
		t.Fatal(err, results)
	}
	answer, ok := results[0].Bindings["x"].([]any)
	if !ok || len(answer) != 2 {
		t.Fatal(results)
	}
	fit, _ := answer[0].(bool)
	return fit, answer[1]
}

var topicOf = map[string]string{"bundle": bundle.BundleFile, "lifecycle": bundle.LifecycleFile, "scenarios": bundle.ScenariosFile,
	"macprefixes": bundle.MACPrefixesFile}

func TestTheShippedFilesFitTheirSchemas(t *testing.T) {
	for _, name := range ShippedNames() {
		files, err := Shipped(name)
		if err != nil {
			t.Fatal(err)
		}
		for topic, file := range topicOf {
			if ok, why := fits(t, topic, files[file]); !ok {
				t.Errorf("%s of %s does not fit the schema: %v", file, name, why)
			}
		}
	}
}

func TestWhatTheParserReadsFitsTheSchema(t *testing.T) {
	for topic, file := range map[string]string{
		"bundle": "name: x\nversion: 1.0.0\nsettings:\n  claims:\n    priority: {max: 500, namespaces: {ci: -5}, ageing: 10m}\n" +
			"    onUnsatisfiable: Deny\n    quota: {default: 20, namespaces: {ci: 100}}\n" +
			"  maintenance:\n    windows: [{name: nights, matchLabels: {zone: a}, opens: \"0 22 * * 1-5\", lasts: 8h, zone: Europe/Berlin, least: 30m}]\n" +
			"    limits: [{name: racks, per: rack, most: 1}, {name: fleet, most: 2%}]\n    waves: [{name: canary, pause: 1h}]\n" +
			"    checks: {pre: [{name: healthy, must: server.health == \"OK\", within: 10m}]}\n    stop: {failed: 3}\n",
		"placement": "where: server.cores >= 32\nalternatives:\n- selector: {matchLabels: {rack: r1}, matchExpressions: [{key: size, operator: In, values: [m]}]}\n" +
			"- {}\npreferred:\n- {weight: -5, where: server.memoryGiB > 64}\nspread: {key: rack, claims: {matchLabels: {app: web}}}\n" +
			"gang: {name: db, size: 3}\n",
	} {
		if ok, why := fits(t, topic, []byte(file)); !ok {
			t.Errorf("the schema of %s refuses\n%s: %v", topic, file, why)
		}
		if topic != "placement" {
			continue
		}
		if _, found := placement.Parse(topic, file); found.HasErrors() {
			t.Error(found)
		}
	}
}

func TestASchemaRefusesWhatTheParserRefuses(t *testing.T) {
	for topic, file := range map[string]string{
		"bundle":      "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: x\nversion: 1.0.0\nsetings: {}\n",
		"lifecycle":   "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Lifecycle\ninitial: A\nstates: {A: {ensure: [PowerOf]}}\n",
		"scenarios":   "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Scenarios\nscenarios: [{name: x, state: A, given: {bmc.power: Of}, expect: {stays: true}}]\n",
		"macprefixes": "macPrefixes: [{macPrefix: 001122, manufacturer: x}]\n",
		"manifest":    "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Manifest\nfiles: [{name: x, configMap: y, digest: z}]\n",
		"placement":   "where: server.cores >= 32\nspread: {maxSkew: 2}\n",
	} {
		if ok, _ := fits(t, topic, []byte(file)); ok {
			t.Errorf("the schema of %s accepts\n%s", topic, file)
		}
	}
}
