// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"fmt"
	"slices"
)

// Selector is a label selector of the Kubernetes API in plain Go, so that the scheduler, the webhook and the command line
// share one meaning. All its parts must match; an empty one matches everything.
type Selector struct {
	MatchLabels      map[string]string
	MatchExpressions []Expression
}

// Expression is one requirement. Operator is In, NotIn, Exists or DoesNotExist.
type Expression struct {
	Key, Operator string
	Values        []string
}

// Matches: a nil Selector matches everything. As in Kubernetes, NotIn and DoesNotExist match where the label is absent.
// A selector that Validate refuses matches nothing, so that a mistake never widens what a claim may have.
func (s *Selector) Matches(labels map[string]string) bool {
	if s == nil {
		return true
	}
	for key, want := range s.MatchLabels {
		if have, ok := labels[key]; !ok || have != want {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		if e.validate() != nil || !e.matches(labels) {
			return false
		}
	}
	return true
}

// Canonical is the same text for selectors that ask for the same.
func (s *Selector) Canonical() string {
	if s == nil {
		return "-"
	}
	expressions := slices.Clone(s.MatchExpressions)
	slices.SortFunc(expressions, func(a, b Expression) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Values, b.Values))
	})
	return fmt.Sprintf("%q %q", s.MatchLabels, expressions) // fmt sorts the keys of a map
}

func (e Expression) matches(labels map[string]string) bool {
	value, present := labels[e.Key]
	switch e.Operator {
	case "In":
		return present && slices.Contains(e.Values, value)
	case "NotIn":
		return !present || !slices.Contains(e.Values, value)
	case "Exists":
		return present
	case "DoesNotExist":
		return !present
	}
	return false
}

// Validate says what keeps the selector from having a meaning, naming the part concerned as the API would. Keys and
// values are not held against the syntax of labels: a selector that no label can match is the admission policy's matter.
func (s *Selector) Validate() error {
	if s == nil {
		return nil
	}
	for key := range s.MatchLabels {
		if key == "" {
			return fmt.Errorf("matchLabels has an empty key; name the label that must match")
		}
	}
	for i, e := range s.MatchExpressions {
		if err := e.validate(); err != nil {
			return fmt.Errorf("matchExpressions[%d]: %w", i, err)
		}
	}
	return nil
}

func (e Expression) validate() error {
	switch {
	case e.Key == "":
		return fmt.Errorf("the key is empty; name the label that must match")
	case e.Operator == "In" || e.Operator == "NotIn":
		if len(e.Values) == 0 {
			return fmt.Errorf("operator %s needs at least one value", e.Operator)
		}
	case e.Operator == "Exists" || e.Operator == "DoesNotExist":
		if len(e.Values) > 0 {
			return fmt.Errorf("operator %s takes no values; use In or NotIn", e.Operator)
		}
	default:
		return fmt.Errorf("operator %q is not one of In, NotIn, Exists, DoesNotExist", e.Operator)
	}
	return nil
}
