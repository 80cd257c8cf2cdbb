// SPDX-License-Identifier: Apache-2.0

// Package canary reads whom a canary governs: the annotations of a bundle's ConfigMap, and which servers they name.
package canary

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/uuids"
)

// Scope is whom a canary governs, as its annotations say.
type Scope struct {
	// Selector names servers by label; every server where it is empty.
	Selector string
	// Percent is the share of these; all of them where it is 0.
	Percent int32
}

// FaultKind is what is wrong with a scope.
type FaultKind int

const (
	// NoScope: neither annotation is there. That is a mistake, so that nobody puts a whole fleet under a canary by leaving
	// something out.
	NoScope FaultKind = iota + 1
	// NoSelector: the label selector cannot be read; Cause says why.
	NoSelector
	// SelectsAll: the label selector is empty, and would name every server.
	SelectsAll
	// TooLong: the label selector is longer than a PolicyRevision can hold; Cause says by how much.
	TooLong
	// NoShare: the share is no whole number from 1 to 100, written without a sign or leading zeros.
	NoShare
)

// shownOfLong is how much is shown of a selector that is too long.
const shownOfLong = 64

// Fault is one thing that is wrong with a scope, and the text that is.
type Fault struct {
	Kind  FaultKind
	Value string
	Cause error
}

// Annotation is where the fault is.
func (f Fault) Annotation() string {
	if f.Kind == NoShare {
		return policyv1alpha1.CanaryPercentAnnotation
	}
	return policyv1alpha1.CanaryServersAnnotation
}

// String says in words what is wrong, and what to write instead.
func (f Fault) String() string {
	const percent = policyv1alpha1.CanaryPercentAnnotation
	switch f.Kind {
	case NoScope:
		return "a canary says whom it governs: a label selector here, such as rack in (r1, r2), or a share in " + percent + ", or both"
	case NoSelector:
		return "it is no label selector, such as rack in (r1, r2): " + f.Cause.Error()
	case SelectsAll:
		return fmt.Sprintf("it selects every server; to govern all, label the bundle %s=%s, and for a share of all leave this annotation out "+
			"and write %s", policyv1alpha1.StageLabel, policyv1alpha1.LabelActive, percent)
	case TooLong:
		return f.Cause.Error() + "; give the servers a label of their own to select by, or write a share in " + percent
	case NoShare:
		return "it is no share; write a whole number from 1 to 100, without a sign"
	}
	return "the scope cannot be read"
}

// Parse reads the annotations of a bundle's ConfigMap. The scope counts only where there is no fault.
func Parse(annotations map[string]string) (Scope, []Fault) {
	selector, selects := annotations[policyv1alpha1.CanaryServersAnnotation]
	percent, shares := annotations[policyv1alpha1.CanaryPercentAnnotation]
	if !selects && !shares {
		return Scope{}, []Fault{{Kind: NoScope}}
	}
	s := Scope{Selector: selector}
	var faults []Fault
	if selects {
		switch parsed, err := labels.Parse(selector); {
		case err != nil:
			faults = append(faults, Fault{NoSelector, selector, err})
		case parsed.Empty():
			faults = append(faults, Fault{SelectsAll, selector, nil})
		case len(selector) > policyv1alpha1.MaxCanarySelector: // bytes are characters: whatever else is no selector
			faults = append(faults, Fault{TooLong, selector[:shownOfLong] + "...", fmt.Errorf("the selector has %d characters, and %d are the most",
				len(selector), policyv1alpha1.MaxCanarySelector)})
		}
	}
	if shares {
		n, err := strconv.ParseInt(percent, 10, 32)
		if err != nil || n < 1 || n > 100 || strconv.FormatInt(n, 10) != percent {
			faults = append(faults, Fault{NoShare, percent, err})
		}
		s.Percent = int32(n)
	}
	return s, faults
}

// String says the scope in words.
func (s Scope) String() string {
	switch {
	case s.Selector == "":
		return fmt.Sprintf("%d %% of all servers", s.Percent)
	case s.Percent == 0:
		return "servers with " + s.Selector
	}
	return fmt.Sprintf("%d %% of the servers with %s", s.Percent, s.Selector)
}

// Matcher decides who is in a scope. It is safe for concurrent use.
type Matcher struct {
	bundle   string
	selector labels.Selector
	percent  int32
}

// Matcher makes one for the canaries of a bundle. A selector that cannot be read matches nobody.
func (s Scope) Matcher(bundle string) Matcher {
	m := Matcher{bundle: bundle, selector: labels.Everything(), percent: s.Percent}
	if s.Selector != "" {
		var err error
		if m.selector, err = labels.Parse(s.Selector); err != nil {
			m.selector = labels.Nothing()
		}
	}
	return m
}

// Covers says whether a server is in the scope. The share is always the same servers, for every version of a bundle, and
// those of a smaller share are among those of a larger one.
func (m Matcher) Covers(serverLabels map[string]string, systemUUID string) bool {
	if !m.selector.Matches(labels.Set(serverLabels)) {
		return false
	}
	if m.percent == 0 || m.percent >= 100 {
		return true
	}
	spellings := uuids.Spellings(systemUUID)
	if len(spellings) == 0 {
		return false // without an identity it would be a matter of chance
	}
	sum := sha256.Sum256([]byte(m.bundle + "/" + slices.Min(spellings)))
	return binary.BigEndian.Uint64(sum[:8])%100 < uint64(m.percent)
}
