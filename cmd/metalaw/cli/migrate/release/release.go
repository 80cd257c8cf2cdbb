// SPDX-License-Identifier: Apache-2.0

// Package release knows by which words each release of metal-operator leaves an object alone.
package release

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Kind is a kind of object that metal-operator may be asked to leave alone, as kubectl names it.
type Kind string

// The kinds.
const (
	Server      Kind = "server"
	BMC         Kind = "bmc"
	ServerClaim Kind = "serverclaim"
	Endpoint    Kind = "endpoint"
)

// words are what a range of releases makes of OperationAnnotation.
type words struct {
	// first and last are the minor versions of v0 that the row is for; main is the branch instead.
	first, last int
	main        bool
	// word leaves an object of each kind alone, and more are further words for one kind.
	word string
	more map[Kind][]string
	// removes says that the release removes a word that it does not know from a Server.
	removes bool
	// unknown are states that the release does not have.
	unknown []v1alpha1.ServerState
	// source is where metal-operator's repository says so.
	source string
}

// onlyOurs are the states that no release has.
var onlyOurs = []v1alpha1.ServerState{v1alpha1.StateObserving, v1alpha1.StateCleanup, v1alpha1.StateDecommissioned}

// table has one row for each range of releases. A BMC's ignore-child is in no row: no release looks at the BMC of a Server
// for a word, and a BMC with that word alone is reconciled.
var table = []words{
	{first: 4, last: 6, word: "ignore-reconciliation",
		more:    map[Kind][]string{BMC: {"ignore-child-and-self-reconciliation"}},
		unknown: append(slices.Clone(onlyOurs), v1alpha1.StateParked),
		source: "v0.6.2: api/v1alpha1/constants.go (OperationAnnotationIgnore), internal/controller/helper.go " +
			"(shouldIgnoreReconciliation), internal/controller/server_controller.go (handleAnnotationOperations keeps an " +
			"unknown word)"},
	{first: 7, last: 7, word: "ignore", more: map[Kind][]string{BMC: {"ignore-child-and-self"}}, removes: true,
		unknown: onlyOurs,
		source: "v0.7.0: api/v1alpha1/constants.go (OperationAnnotationIgnore), internal/controller/helper.go " +
			"(shouldIgnoreReconciliation), internal/controller/server_controller.go (rejectUnsupportedOperation)"},
	{main: true, word: "ignore", removes: true, unknown: onlyOurs,
		source: "main: api/v1alpha1/constants.go, which has OperationAnnotationIgnore and no word for children any more"},
}

// Known are the versions that Parse takes, for messages.
const Known = "v0.4 to v0.7, or main"

// Release is one release of metal-operator.
type Release struct {
	words

	name string
}

// version is v0.N or v0.N.P, with or without the v.
var version = regexp.MustCompile(`^v?0\.(\d{1,3})(\.\d{1,3})?$`)

// Parse finds the release that a version names. A version without a row is an error: its words are not known.
func Parse(text string) (Release, error) {
	if text == "main" {
		return find(text, func(w *words) bool { return w.main })
	}
	match := version.FindStringSubmatch(text)
	if match == nil {
		return Release{}, fmt.Errorf("%q is no version of metal-operator; it is %s", text, Known)
	}
	minor, err := strconv.Atoi(match[1])
	if err != nil {
		return Release{}, err
	}
	return find("v"+strings.TrimPrefix(text, "v"), func(w *words) bool {
		return !w.main && w.first <= minor && minor <= w.last
	})
}

func find(name string, fits func(*words) bool) (Release, error) {
	for i := range table {
		if fits(&table[i]) {
			return Release{words: table[i], name: name}, nil
		}
	}
	return Release{}, fmt.Errorf("which words metal-operator %s honours is not known; known are %s", name, Known)
}

// Name is how the release is called, with its program.
func (r Release) Name() string { return "metal-operator " + r.name }

// Word is the value of OperationAnnotation by which the release leaves an object of each kind alone.
func (r Release) Word() string { return r.word }

// Honours says that a value of OperationAnnotation on an object of a kind makes the release leave that object alone.
func (r Release) Honours(kind Kind, value string) bool {
	return value == r.word || slices.Contains(r.more[kind], value)
}

// Wrong says what the release does with a value that it does not honour.
func (r Release) Wrong(kind Kind) string {
	if r.removes && kind == Server {
		return "removes the word and acts on it"
	}
	return "acts on it"
}

// Has says that the release has a state.
func (r Release) Has(state v1alpha1.ServerState) bool { return !slices.Contains(r.unknown, state) }
