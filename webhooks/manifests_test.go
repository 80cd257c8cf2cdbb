// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"os"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/metalaw/metalaw/policies/index"
)

// hook is what both kinds of configuration say of one.
type hook struct {
	Name          string                                       `json:"name"`
	FailurePolicy admissionregistrationv1.FailurePolicyType    `json:"failurePolicy"`
	ClientConfig  admissionregistrationv1.WebhookClientConfig  `json:"clientConfig"`
	Conditions    []admissionregistrationv1.MatchCondition     `json:"matchConditions"`
	Timeout       int32                                        `json:"timeoutSeconds"`
	Rules         []admissionregistrationv1.RuleWithOperations `json:"rules"`
}

func shippedHooks(t *testing.T) []hook {
	t.Helper()
	var all []hook
	for _, file := range []string{"validating", "mutating"} {
		text, err := os.ReadFile("../config/webhook/" + file + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var configuration struct {
			Webhooks []hook `json:"webhooks"`
		}
		if err := yaml.Unmarshal(text, &configuration); err != nil {
			t.Fatal(err)
		}
		all = append(all, configuration.Webhooks...)
	}
	return all
}

func TestTheFailurePolicyOfEachHookIsDocumentedWithItsReason(t *testing.T) {
	text, err := os.ReadFile("../docs/admission.md")
	if err != nil {
		t.Fatal(err)
	}
	documented, shipped := map[string]string{}, map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `([a-z.-]+\\.metalaw\\.dev)` \\| (\\w+) \\| (\\S.*) \\|$")
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = m[2]
	}
	for _, h := range shippedHooks(t) {
		shipped[h.Name] = string(h.FailurePolicy)
	}
	if diff := cmp.Diff(shipped, documented); diff != "" {
		t.Error(diff)
	}
}

func TestEachHookHasAHandlerAndEachHandlerAHook(t *testing.T) {
	w := newWorld(t, defaults(t))
	served, err := handlers(Options{Bundles: revisions{active: defaults(t)}, Client: w.cached, Reader: w.stored, Fleet: whole{index.New()},
		ManagerUser: manager, Registry: prometheus.NewRegistry()}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	for _, h := range shippedHooks(t) {
		path := *h.ClientConfig.Service.Path
		asked[path] = true
		if served[path] == nil {
			t.Errorf("%s asks at %s, where nobody answers", h.Name, path)
		}
	}
	for path := range served {
		if !asked[path] {
			t.Errorf("no hook asks at %s", path)
		}
	}
}

// Who asks must get to know what took so long, instead of that a webhook did not answer.
func TestAHookThatChecksABundleAnswersBeforeItsTimeIsUp(t *testing.T) {
	endless := holds("lifecycle.yaml", "endless")
	for _, h := range shippedHooks(t) {
		if h.FailurePolicy != admissionregistrationv1.Fail {
			continue // it is asked about what is not checked: parts, and other namespaces
		}
		path := *h.ClientConfig.Service.Path
		var object client.Object
		switch path {
		case PathValidateBundle, PathMutateBundle:
			object = bundleHead(staged("active"), endless)
		case PathValidateRevision:
			object = revisionOf(t, bundleHead(endless))
		default:
			continue
		}
		t.Run(h.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, a := bundleWorld(t)
				a.takes = time.Hour
				began := time.Now()
				w.ask(path, user, admissionv1.Create, nil, object, activates)
				took := time.Since(began)
				if at := time.Duration(h.Timeout) * time.Second; a.times != 1 || took == 0 || took > at-inTransit {
					t.Errorf("%d bundles were checked, in %s; the API server waits for %s", a.times, took, at)
				}
			})
		})
	}
}

// inTransit is the time that is left for a request to arrive and for its answer to get back.
const inTransit = time.Second

// A hook that fails closed must not be asked about whatever is written: only about what it has a say in.
func TestAHookThatFailsClosedSaysWhatItIsAskedAbout(t *testing.T) {
	for _, h := range shippedHooks(t) {
		if h.FailurePolicy == admissionregistrationv1.Fail && len(h.Conditions) == 0 && h.Name != "bundle.mutate.metalaw.dev" {
			t.Errorf("%s has no match condition", h.Name)
		}
	}
}
