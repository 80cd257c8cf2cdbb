// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"reflect"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/internal/regonative"
	"github.com/metalaw/metalaw/engine/internal/regosandbox"
)

// subject is what rules are evaluated on natively.
type subject struct {
	claim     *Claim
	candidate *Candidate
	fleet     *Fleet
}

type (
	field = regonative.Field
	value = regonative.Value
)

// The scopes of fields are the first keys that lead to them.
const (
	ofClaim     = "claim"
	ofCandidate = "candidate"
	ofFleet     = "fleet"
)

// fields are all parts of the input, by their keys joined with dots.
var fields = func() map[string]*field {
	all := map[string]*field{}
	addFields(all, reflect.TypeFor[Input](), nil, nil)
	return all
}()

// addFields adds the leaves of a struct that is found by keys and path.
func addFields(all map[string]*field, of reflect.Type, keys []string, path []int) {
	for i := range of.NumField() {
		part := of.Field(i)
		keys, path := append(slices.Clone(keys), part.Tag.Get("json")), append(slices.Clone(path), i)
		if part.Type.Kind() == reflect.Struct {
			addFields(all, part.Type, keys, path)
			continue
		}
		isText := part.Type.Kind() == reflect.String
		all[strings.Join(keys, ".")] = &field{Keys: keys, Always: true, Varies: keys[0] == ofCandidate,
			Text: isText, Plain: isText || part.Type.Kind() == reflect.Int64,
			Get: func(in any) (value, bool) { return in.(*subject).read(keys[0], path[1:]), true }}
	}
}

// read is the value of a leaf.
func (s *subject) read(scope string, path []int) value {
	var root reflect.Value
	switch scope {
	case ofClaim:
		root = reflect.ValueOf(s.claim)
	case ofCandidate:
		root = reflect.ValueOf(s.candidate)
	case ofFleet:
		root = reflect.ValueOf(s.fleet)
	}
	leaf := root.Elem().FieldByIndex(path)
	switch leaf.Kind() {
	case reflect.String:
		return regonative.Text(leaf.String())
	case reflect.Int64:
		return regonative.Int(leaf.Int())
	}
	switch whole := leaf.Interface().(type) {
	case map[string]string:
		return regonative.Texts(whole)
	case map[string]int64:
		return regonative.Counts(whole)
	default:
		return regonative.Of(regosandbox.Value(whole).Value)
	}
}

// source finds the field that a rule names, or one key of a field that is an object.
func source(keys []string) *field {
	for n := min(len(keys), 3); n > 0; n-- {
		found := fields[strings.Join(keys[:n], ".")]
		if found == nil {
			continue
		}
		if n == len(keys) || found.Plain {
			return found
		}
		key, whole := regonative.Text(keys[n]), found.Get
		return &field{Keys: slices.Clone(keys[:n+1]), Varies: found.Varies, Get: func(in any) (value, bool) {
			v, ok := whole(in)
			if !ok {
				return v, false
			}
			return v.At(key)
		}}
	}
	return nil
}
