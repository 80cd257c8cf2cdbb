// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Resources, as RBAC names them.
const (
	Servers       = "servers.metal.ironcore.dev"
	BMCs          = "bmcs.metal.ironcore.dev"
	ServerClaims  = "serverclaims.metal.ironcore.dev"
	Endpoints     = "endpoints.metal.ironcore.dev"
	FleetControls = "fleetcontrols.policy.metalaw.dev"
	Inventories   = "serverinventories.policy.metalaw.dev"
	Revisions     = "policyrevisions.policy.metalaw.dev"
	Maintenances  = "servermaintenances.metal.ironcore.dev"
	Leases        = "leases.coordination.k8s.io"
	Events        = "events"
	ConfigMaps    = "configmaps"
)

// VerbForce is the verb that operation force asks for, beside the right to patch.
const VerbForce = "force"

// explained is an API server's refusal in words that say what it takes.
type explained struct {
	text  string
	cause error
}

func (e explained) Error() string { return e.text }

func (e explained) Unwrap() error { return e.cause }

// Explain says what a failed request takes: the verb and resource that were missing and a shipped role that has them, or
// how to reach the API server at all.
func Explain(err error, verb, resource string) error {
	var unreached *url.Error
	switch {
	case err == nil || errors.As(err, new(explained)):
		return err
	case Denied(err):
		return explained{deniedWords(err, verb), err}
	case unanswered.MatchString(err.Error()):
		return explained{unansweredWords(err), err}
	case apierrors.IsForbidden(err) && !lacksRights.MatchString(err.Error()):
		return explained{subject(err), err}
	case apierrors.IsForbidden(err):
		return explained{fmt.Sprintf("%s; it takes the verb %q on %s%s", subject(err), verb, resource, roleWords(err, verb, resource)), err}
	case apierrors.IsUnauthorized(err):
		return explained{"the API server does not know you (401 Unauthorized); see the user of your kubeconfig context", err}
	case meta.IsNoMatchError(err):
		return explained{fmt.Sprintf("the API server does not serve %s; is this the right cluster (--context), and are metalaw's CRDs applied?",
			resource), err}
	case errors.As(err, &unreached):
		return explained{fmt.Sprintf("cannot reach the API server: %v; see --kubeconfig and --context", err), err}
	default:
		return err
	}
}

// lacksRights is what authorization says. Forbidden is also what admission says of a namespace that is being terminated, of a quota that
// is used up and the like, for which no right is missing.
var lacksRights = regexp.MustCompile(`\bcannot [a-z]+ (resource|path) "`)

// inNamespace is the end of what authorization says where a right in that namespace would do.
var inNamespace = regexp.MustCompile(`in the namespace "[^"]+"`)

// Denied says that admission refused a request, not RBAC.
func Denied(err error) bool {
	return err != nil && strings.Contains(err.Error(), "admission webhook ") && strings.Contains(err.Error(), "denied the request")
}

// LacksRight says that authorization refused a request, and not admission.
func LacksRight(err error) bool {
	return apierrors.IsForbidden(err) && !Denied(err) && lacksRights.MatchString(err.Error())
}

// unanswered is what the API server says of a webhook that it could not ask.
var unanswered = regexp.MustCompile(`failed calling webhook "([^"]+)": (.*)`)

// unansweredWords say who has to run before the request can be made.
func unansweredWords(err error) string {
	m := unanswered.FindStringSubmatch(err.Error())
	if !strings.HasSuffix(m[1], ".metalaw.dev") {
		return fmt.Sprintf("nothing was changed: the API server asks the webhook %s first, which is not metalaw's, and it does not answer: %s",
			m[1], m[2])
	}
	return fmt.Sprintf("nothing was changed: the API server asks the manager first (webhook %s), and the manager does not answer. See that one runs "+
		"(kubectl get pods -n metalaw-system) and that the API server reaches it, and ask again. It says: %s", m[1], m[2])
}

// deniedWords are what admission said, without the API server's preamble.
func deniedWords(err error, verb string) string {
	_, words, found := strings.Cut(err.Error(), "denied the request: ")
	if !found {
		words = err.Error()
	}
	// A request that makes no sense is no question of rights.
	aboutRights := strings.Contains(words, VerbForce) && !strings.Contains(words, "is invalid: ")
	if verb == VerbForce && aboutRights && !strings.Contains(words, roles[VerbForce]) {
		words += roleWords(err, VerbForce, Servers)
	}
	return "denied: " + words
}

// subject cuts the API server's words down to who may not do what.
func subject(err error) string {
	words := err.Error()
	if i := strings.Index(words, "is forbidden: "); i >= 0 {
		words = words[i+len("is forbidden: "):]
	}
	return "forbidden: " + words
}

// roles are the shipped ClusterRoles for the fleet by what they are needed for.
var roles = map[string]string{
	"read":    "metalaw-fleet-viewer",
	"write":   "metalaw-fleet-operator",
	VerbForce: "metalaw-server-forcer",
}

// roleWords name the least of the shipped roles that has a right; the refusal tells whether it is to be had in one namespace.
func roleWords(err error, verb, resource string) string {
	reads := verb == "get" || verb == "list" || verb == "watch"
	namespaced := inNamespace.MatchString(err.Error())
	kind := "write"
	switch {
	case resource == ConfigMaps:
		return "; the Role metalaw-policy-author in the manager's namespace has it (kubectl create rolebinding NAME -n metalaw-system " +
			"--role=metalaw-policy-author --user=USER)"
	case resource == Leases:
		return "; the Role metalaw-fleet-viewer in the manager's namespace has it (kubectl create rolebinding NAME " +
			"-n metalaw-system " +
			"--role=metalaw-fleet-viewer --user=USER)"
	case resource == Events:
		return "; the ClusterRole metalaw-fleet-viewer has it, and so has the cluster's own \"view\""
	case resource == ServerClaims && !reads:
		return "; the ClusterRole metalaw-claim-editor has it, and so has the cluster's own \"edit\"; a RoleBinding in the namespace will do"
	case (resource == ServerClaims || resource == Maintenances) && reads && namespaced:
		return "; the ClusterRole metalaw-claim-viewer has it, and so has the cluster's own \"view\"; a RoleBinding in the namespace will do"
	case verb == VerbForce:
		kind = VerbForce
	case reads:
		kind = "read"
	}
	return fmt.Sprintf("; the ClusterRole %s has it", roles[kind])
}

// Missing adds a note of what follows from a right that is missing; any other failure is returned.
func Missing(notes *[]string, err error, verb, resource, follows string) error {
	err = Explain(err, verb, resource)
	if !apierrors.IsForbidden(err) {
		return err
	}
	*notes = append(*notes, follows+" ("+err.Error()+")")
	return nil
}
