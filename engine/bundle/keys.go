// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// key is a key that a mapping may have, and read what takes its value.
type key struct {
	name string
	read func(*yamlpos.File, yamlpos.Field)
}

// readKeys reads a mapping that may have these keys and no others, and returns those that are given.
func readKeys(f *yamlpos.File, n *yaml.Node, what string, keys ...key) (given []string) {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	for _, field := range f.Fields(n, what, names...) {
		keys[slices.Index(names, field.Name)].read(f, field)
		given = append(given, field.Name)
	}
	return given
}

// mapping reads a mapping with its own keys.
func mapping(keys ...key) func(*yamlpos.File, yamlpos.Field) {
	return func(f *yamlpos.File, k yamlpos.Field) { readKeys(f, k.Value, k.Name, keys...) }
}

// truth reads true or false.
func truth(to *bool) func(*yamlpos.File, yamlpos.Field) {
	return func(f *yamlpos.File, k yamlpos.Field) { *to = f.Bool(k.Value, k.Name) }
}

// span reads a length of time.
func span(to *time.Duration, example string) func(*yamlpos.File, yamlpos.Field) {
	return func(f *yamlpos.File, k yamlpos.Field) {
		text := f.Text(k.Value, k.Name)
		d, err := time.ParseDuration(text)
		*to = 0
		switch {
		case err == nil && d >= 0:
			*to = d
		case f.Told(k.Value):
		case yamlpos.TooLong(text):
			f.Errorf(k.Value, "setting-duration", "", fmt.Sprintf("write a duration such as %s, of %s at most", example, yamlpos.Longest),
				"%s cannot be %q, which is out of range", k.Name, text)
		default:
			f.Errorf(k.Value, "setting-duration", "", "write a duration such as "+example, "%s cannot be %q, which is no duration", k.Name, text)
		}
	}
}

// whole reads a whole number within bounds.
func whole[N int | int64](to *N, least, most N) func(*yamlpos.File, yamlpos.Field) {
	return func(f *yamlpos.File, k yamlpos.Field) {
		text := f.Text(k.Value, k.Name)
		value, err := strconv.Atoi(text)
		*to = least
		switch {
		case f.Told(k.Value):
		case err != nil || k.Value.Style != 0 || N(value) < least || N(value) > most:
			f.Errorf(k.Value, "setting-number", "", fmt.Sprintf("write a whole number from %d to %d", least, most), "%s cannot be %q", k.Name, text)
		default:
			*to = N(value)
		}
	}
}

// only reads a field that can hold one word only.
func only(code, word string) func(*yamlpos.File, yamlpos.Field) {
	return func(f *yamlpos.File, k yamlpos.Field) { f.Only(k, code, word) }
}

// word reads one of some words. Another is taken for the first of them.
func word(to *string, words ...string) func(*yamlpos.File, yamlpos.Field) {
	return func(f *yamlpos.File, k yamlpos.Field) {
		if n := k.Value; n.Kind == yaml.ScalarNode && !slices.Contains(words, n.Value) {
			f.Errorf(n, "setting-word", "", "write "+strings.Join(words, " or "), "%s cannot be %q", k.Name, n.Value)
			*to = words[0]
			return
		}
		*to = f.Text(k.Value, k.Name)
	}
}

// byNamespace reads whole numbers within bounds by namespace. A name that no namespace can have is a warning: what it bounds is
// bounded otherwise.
//
//nolint:gocritic // the map is made where the key stands
func byNamespace[N int | int64](to *map[string]N, least, most N) func(*yamlpos.File, yamlpos.Field) {
	return func(f *yamlpos.File, k yamlpos.Field) {
		*to = map[string]N{}
		for _, ns := range f.Fields(k.Value, k.Name) {
			if !namespaceName.MatchString(ns.Name) {
				f.Warnf(ns.Key, "setting-namespace", "", "write the name of a namespace: lower-case letters, digits and dashes, at most 63; "+
					"patterns mean nothing here", "%q cannot be a namespace, so that this bounds no claims", ns.Name)
			}
			var bound N
			whole(&bound, least, most)(f, ns)
			(*to)[ns.Name] = bound
		}
	}
}
