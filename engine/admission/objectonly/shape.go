// SPDX-License-Identifier: Apache-2.0

package objectonly

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

type kind int

const (
	anything kind = iota
	null
	text
	number
	truth
	list
	set
	object
)

// shape is what is known of a value before there is one. Functions and comparisons of Rego and CEL agree on some kinds of values alone.
type shape struct {
	kind kind
	// of are the elements of a list or a set, and the values of an object with keys of any name; nil where there are none.
	of *shape
	// fields are the keys that an object can have.
	fields map[string]*shape
	// open objects are not the same in CEL as in Rego, and can be asked for a field alone: metalaw takes managedFields out.
	open bool
}

func listOf(elements *shape) *shape { return &shape{kind: list, of: elements} }

var (
	aText   = &shape{kind: text}
	aNumber = &shape{kind: number}
	aTruth  = &shape{kind: truth}
	texts   = &shape{kind: object, of: aText}
	aName   = &shape{kind: object, fields: map[string]*shape{"name": aText}}
)

// schemas are the shapes of the kinds of objects whose rules are translated. The API server holds an object to its schema before it
// asks about it.
var schemas = map[string]*shape{
	"ServerClaim": {kind: object, open: true, fields: map[string]*shape{
		"apiVersion": aText, "kind": aText, "metadata": metadata,
		"spec": {kind: object, fields: map[string]*shape{
			"image": aText, "power": aText, "ignitionSecretRef": aName, "userDataRef": aName, "serverRef": aName,
			"serverSelector": {kind: object, fields: map[string]*shape{
				"matchLabels": texts,
				"matchExpressions": listOf(&shape{kind: object, fields: map[string]*shape{
					"key": aText, "operator": aText, "values": listOf(aText)}}),
			}},
			"tolerations": listOf(&shape{kind: object, fields: map[string]*shape{"effect": aText, "key": aText, "operator": aText, "value": aText}}),
		}},
		"status": {kind: object, fields: map[string]*shape{
			"conditions": listOf(&shape{kind: object, fields: map[string]*shape{"lastTransitionTime": aText, "message": aText,
				"observedGeneration": aNumber, "reason": aText, "status": aText, "type": aText}}),
			"observedGeneration": aNumber, "phase": aText,
		}},
	}},
}

var metadata = &shape{kind: object, open: true, fields: map[string]*shape{
	"name": aText, "generateName": aText, "namespace": aText, "uid": aText, "resourceVersion": aText, "generation": aNumber,
	"creationTimestamp": aText, "deletionTimestamp": aText, "deletionGracePeriodSeconds": aNumber,
	"labels": texts, "annotations": texts, "finalizers": listOf(aText),
	"ownerReferences": listOf(&shape{kind: object, fields: map[string]*shape{"apiVersion": aText, "kind": aText, "name": aText, "uid": aText,
		"controller": aTruth, "blockOwnerDeletion": aTruth}}),
}}

// shapeOf is the shape of a constant.
func shapeOf(v ast.Value) *shape {
	switch v := v.(type) {
	case ast.Null:
		return &shape{kind: null}
	case ast.Boolean:
		return aTruth
	case ast.Number:
		return aNumber
	case ast.String:
		return aText
	case *ast.Array:
		s := listOf(nil)
		v.Foreach(func(one *ast.Term) { s.of = either(s.of, shapeOf(one.Value)) })
		return s
	case ast.Set:
		s := &shape{kind: set}
		v.Foreach(func(one *ast.Term) { s.of = either(s.of, shapeOf(one.Value)) })
		return s
	case ast.Object:
		s := &shape{kind: object, fields: map[string]*shape{}}
		v.Foreach(func(key, value *ast.Term) {
			if name, ok := key.Value.(ast.String); ok {
				s.fields[string(name)] = shapeOf(value.Value)
			} else {
				s.open = true // CEL knows fewer kinds of keys
			}
		})
		return s
	}
	return &shape{}
}

// either is the shape of what has one of two shapes; nil is that of what there is none of.
func either(a, b *shape) *shape {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.kind != b.kind:
		return &shape{}
	}
	s := &shape{kind: a.kind, open: a.open || b.open}
	if a.kind != object {
		s.of = either(a.of, b.of)
		return s
	}
	if a.of != nil || b.of != nil {
		s.of = either(a.values(), b.values())
		return s
	}
	s.fields = map[string]*shape{}
	for _, fields := range []map[string]*shape{a.fields, b.fields} {
		for name, field := range fields {
			s.fields[name] = either(s.fields[name], field)
		}
	}
	return s
}

// values is the shape of all values of an object; nil where there are none.
func (s *shape) values() *shape {
	all := s.of
	for _, field := range s.fields {
		all = either(all, field)
	}
	return all
}

// any says that a shape, or one of its parts, is as asked.
func (s *shape) any(asked func(*shape) bool) bool {
	if s == nil {
		return false
	}
	if asked(s) || s.of.any(asked) {
		return true
	}
	for _, field := range s.fields {
		if field.any(asked) {
			return true
		}
	}
	return false
}

// vague says that a value may be, or hold, values of several kinds.
func (s *shape) vague() bool { return s.any(func(s *shape) bool { return s.kind == anything }) }

// alike says that a value is in CEL the value that it is in Rego. There are no sets in CEL: a list stands for one.
func (s *shape) alike() bool {
	return !s.any(func(s *shape) bool { return s.kind == anything || s.kind == set || s.open })
}

// ofOneKind says that values can be equal.
func ofOneKind(a, b *shape) bool {
	if a.kind == b.kind && either(a, b).vague() {
		fail("it compares what holds values of several kinds")
	}
	return a.kind == b.kind
}
