// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Asks is the same text for claims that the policy cannot tell apart: for these Select returns the same, given the same
// candidates and the same fleet. Claims that differ only in what no rule reads, as their names mostly do, are alike.
func (p *Policy) Asks(claim Claim) string {
	var b strings.Builder
	for _, path := range p.module.Reads() {
		switch {
		case len(path) == 0:
			writeAsked(&b, nil, claim)
		case path[0] == "claim":
			writeAsked(&b, path[1:], claim)
		}
	}
	return b.String()
}

// FollowsFleet says whether counts or time can change what Select returns for the same claim and the same candidates.
func (p *Policy) FollowsFleet() bool {
	for _, path := range p.module.Reads() {
		if len(path) == 0 || path[0] == "fleet" {
			return true
		}
	}
	return false
}

// writeAsked writes what a path leads to. JSON sorts the keys of a map, and quotes what could look like a separator.
func writeAsked(b *strings.Builder, path []string, claim Claim) {
	value, found := lookUp(reflect.ValueOf(claim), path)
	text, err := json.Marshal(value)
	fmt.Fprintf(b, "%q %t %s %v;", path, found, text, err)
}

// lookUp follows the keys of a path through structs and maps; what leads further is read as a whole.
func lookUp(v reflect.Value, path []string) (value any, found bool) {
	for _, key := range path {
		switch v.Kind() {
		case reflect.Struct:
			v = v.FieldByIndex(fieldNamed(v.Type(), key))
		case reflect.Map:
			if v = v.MapIndex(reflect.ValueOf(key)); !v.IsValid() {
				return nil, false
			}
		default:
			return v.Interface(), true
		}
	}
	return v.Interface(), true
}

// fieldNamed finds a field by its name in Rego. Rules that name another one do not compile.
func fieldNamed(t reflect.Type, name string) []int {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("json") == name {
			return []int{i}
		}
	}
	return nil
}
