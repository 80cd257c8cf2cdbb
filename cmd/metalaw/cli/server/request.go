// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
)

// maxReason is the longest reason that status.operation takes, in characters.
const maxReason = 1024

// request is what a command line asks of some servers.
type request struct {
	verb verb
	// names, selector and all say which servers; exactly one of them.
	names    []string
	selector string
	all      bool
	// state narrows selector and all; empty for any.
	state  string
	reason string
	// to and override belong to force.
	to       string
	override bool

	dryRun, yes, wait bool
	timeout           time.Duration
	// timed says that the timeout was given.
	timed bool
}

func (r *request) check() error {
	ways := 0
	chosen := r.selector != ""
	if r.selector = strings.TrimSpace(r.selector); chosen && r.selector == "" {
		return usage.Errorf("-l is empty and would choose every server; say --all for that")
	}
	for _, given := range []bool{len(r.names) > 0, chosen, r.all} {
		if given {
			ways++
		}
	}
	switch {
	case ways == 0:
		return usage.Errorf("name servers, or choose them with -l, or say --all")
	case ways > 1:
		return usage.Errorf("names, -l and --all exclude each other")
	case r.state != "" && len(r.names) > 0:
		return usage.Errorf("--state narrows -l and --all; servers that are named are asked in whatever state they are")
	}
	if selector, err := labels.Parse(r.selector); err != nil {
		return usage.Errorf("-l: %v", err)
	} else if chosen && selector.Empty() {
		return usage.Errorf("-l %q chooses every server; say --all for that", r.selector)
	}
	if err := r.bareNames(); err != nil {
		return err
	}
	slices.Sort(r.names)
	r.names = slices.Compact(r.names)
	return r.checkRest()
}

// checkRest says what is wrong with what does not choose servers.
func (r *request) checkRest() error {
	switch {
	case strings.TrimSpace(r.reason) == "":
		return usage.Errorf("--reason is required: whoever finds the server later wants to know why")
	case utf8.RuneCountInString(r.reason) > maxReason:
		return usage.Errorf("--reason has %d characters; the API takes %d", utf8.RuneCountInString(r.reason), maxReason)
	case r.verb.operation == v1alpha1.OperationForce && r.to == "":
		return usage.Errorf("--to is required: the state that the server is forced into")
	case r.wait && r.timeout <= 0:
		return usage.Errorf("--timeout must be more than 0")
	case r.timed && !r.wait:
		return usage.Errorf("--timeout is how long --wait waits, and --wait is not asked for")
	}
	return nil
}

// bareNames takes the kind off names that kubectl get -o name has printed.
func (r *request) bareNames() error {
	for i, given := range r.names {
		kind, name, has := strings.Cut(given, "/")
		if !has {
			continue
		}
		kind, _, _ = strings.Cut(kind, ".")
		if (kind != "server" && kind != "servers") || name == "" || strings.Contains(name, "/") {
			return usage.Errorf("%q is the name of no server; write NAME, or server/NAME", given)
		}
		r.names[i] = name
	}
	return nil
}

// asksFirst says that somebody has to confirm the plan: it was made by a selector, or goes past the rules.
func (r *request) asksFirst() bool {
	return !r.yes && !r.dryRun && (len(r.names) == 0 || r.verb.pastRules())
}

// follows says that the outcome is what the manager makes of the request, not that the request is stored.
func (r *request) follows() bool { return r.wait && !r.dryRun && r.verb.operation != "" }

func (r *request) write(s *v1alpha1.Server) {
	if r.verb.operation == "" {
		s.Spec.Unclaimable = r.verb.unclaimable
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.UnclaimableReasonAnnotation, r.reason)
		return
	}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, r.verb.operation)
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationReasonAnnotation, r.reason)
	// What an earlier request left behind must not become part of this one; who asks is for admission to write.
	delete(s.Annotations, v1alpha1.OperationByAnnotation)
	delete(s.Annotations, v1alpha1.ForceToAnnotation)
	delete(s.Annotations, v1alpha1.ForceOverrideAnnotation)
	if r.verb.operation == v1alpha1.OperationForce {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ForceToAnnotation, r.to)
		if r.override {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ForceOverrideAnnotation, "true")
		}
	}
}
