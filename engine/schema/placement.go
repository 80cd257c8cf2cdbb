// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/placement"
)

// placementOf is the schema of the document in the annotation policy.metalaw.dev/placement of a ServerClaim. What its fields mean
// is said where the parser's fields are.
func placementOf(*engine.Vocabulary) object {
	docs := map[string]string{}
	for _, f := range placement.Fields() {
		docs[f.Name] = f.Doc
	}
	described := func(field string, s object) object {
		s = maps.Clone(s)
		s["description"] = docs[field]
		return s
	}
	condition := object{"type": "string", "minLength": 1}
	some := func(of object, most int) object {
		return object{"type": "array", "items": of, "minItems": 1, "maxItems": most}
	}
	s := fields(object{
		"where": described("where", condition),
		"alternatives": described("alternatives", some(fields(object{
			"selector": described("alternatives[].selector", selector()), "where": described("alternatives[].where", condition),
		}), placement.MaxAlternatives)),
		"preferred": described("preferred", some(fields(object{
			"weight": count(docs["preferred[].weight"], -placement.MaxWeight, placement.MaxWeight),
			"where":  described("preferred[].where", condition),
		}, "weight", "where"), placement.MaxPreferred)),
		"spread": described("spread", fields(object{
			"key":     described("spread.key", condition),
			"maxSkew": count(docs["spread.maxSkew"], 1, placement.MaxSkew),
			"claims":  described("spread.claims", selector()),
		}, "key")),
		"gang": described("gang", fields(object{
			"name": object{"type": "string", "pattern": `^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`, "description": docs["gang.name"]},
			"size": count(docs["gang.size"], 2, placement.MaxGang),
		}, "name", "size")),
	})
	s["minProperties"] = 1
	return s
}

// selector is a label selector as Kubernetes has it.
func selector() object {
	expression := fields(object{"key": text("the key of a label"),
		"operator": words("how values are compared", "In", "NotIn", "Exists", "DoesNotExist"),
		"values":   list(object{"type": "string"})}, "key", "operator")
	return fields(object{"matchLabels": mapping(object{"type": "string"}), "matchExpressions": list(expression)})
}
