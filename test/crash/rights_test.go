// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// right is a verb and a resource with its group: "patch servers.metal.ironcore.dev/status".
type right string

func rightOf(verb, group, resource, subresource string) right {
	if group != "" {
		resource += "." + group
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	return right(verb + " " + resource)
}

// rare are rights that a full run does not use, and what they are for.
var rare = map[right]string{
	"use bmcsecrets.metal.ironcore.dev":                 "a manager whose account the webhooks do not know by name makes a BMC",
	"patch events":                                      "an event that repeats is counted",
	"create events.events.k8s.io":                       former,
	"patch events.events.k8s.io":                        former,
	"delete leases.coordination.k8s.io":                 "a manager that ends in order takes its own away, and the leader that of one that was killed long ago",
	"get secrets":                                       "the Secret of a boot that another process of the manager made",
	"get configmaps":                                    "admission reads a bundle's head and parts past the cache, and the run's has no parts",
	"patch policyrevisions.policy.metalaw.dev":          "a promotion of a revision that is stored already",
	"delete policyrevisions.policy.metalaw.dev":         "revisions that nothing uses any more, of which the run has none",
	"get sanitizationrecords.policy.metalaw.dev":        "a manager that died between the record of a wipe and the end of the wipe left one",
	"patch serverreadinessrules.metal.ironcore.dev":     "the finalizer of a readiness rule, of which the run has none",
	"create fleetcontrols.policy.metalaw.dev":           freezing,
	"patch fleetcontrols.policy.metalaw.dev":            freezing,
	"create configmaps":                                 granting,
	"update configmaps":                                 granting,
	"get servermaintenances.metal.ironcore.dev":         granting,
	"patch servermaintenances.metal.ironcore.dev":       granting,
	"update bmcs.metal.ironcore.dev/finalizers":         enforcement,
	"update endpoints.metal.ironcore.dev/finalizers":    enforcement,
	"update serverclaims.metal.ironcore.dev/finalizers": enforcement,
	"update servers.metal.ironcore.dev/finalizers":      enforcement,

	"update servermaintenances.metal.ironcore.dev/finalizers": enforcement,
}

const former = "a manager of the former version, which tells under these rights until an upgrade has replaced it"

const granting = "a manager with --maintenance=on, which that of the run has not; test/story kills one at each of these writes"

const freezing = "a restored store, after which the manager freezes the fleet; test/restored restores one"

const enforcement = "clusters with the admission plugin OwnerReferencesPermissionEnforcement ask for it of whoever makes an owned object"

// unused lists the rights that were neither used nor are known to be rare. An informer's first objects come by its watch
// where the API server can stream them, and by a list from an older one.
func unused(granted, used map[right]bool) []right {
	var all []right
	for r := range granted {
		watch := right("watch " + strings.TrimPrefix(string(r), "list "))
		if !used[r] && rare[r] == "" && !(strings.HasPrefix(string(r), "list ") && used[watch]) {
			all = append(all, r)
		}
	}
	slices.Sort(all)
	return all
}

// managerRights are those that the shipped roles give the manager.
func managerRights(ctx context.Context, admin client.Client) map[right]bool {
	GinkgoHelper()
	wide, own := &rbacv1.ClusterRole{}, &rbacv1.Role{}
	Expect(admin.Get(ctx, types.NamespacedName{Name: "metalaw-manager"}, wide)).To(Succeed())
	Expect(admin.Get(ctx, types.NamespacedName{Namespace: managerNamespace, Name: "metalaw-manager"}, own)).To(Succeed())
	granted := map[right]bool{}
	for _, rule := range append(wide.Rules, own.Rules...) {
		Expect(rule.NonResourceURLs).To(BeEmpty())
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				resource, subresource, _ := strings.Cut(name, "/")
				for _, verb := range rule.Verbs {
					Expect([]string{verb, group, name}).NotTo(ContainElement("*"))
					granted[rightOf(verb, group, resource, subresource)] = true
				}
			}
		}
	}
	return granted
}

// usedRights reads an audit log: what was done, and what RBAC refused.
func usedRights(path string) (used map[right]bool, refused []right) {
	GinkgoHelper()
	file, err := os.Open(path)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	used = map[right]bool{}
	lines := bufio.NewReader(file)
	for {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // what follows the last line end is still being written
			break
		}
		Expect(err).NotTo(HaveOccurred())
		var line struct {
			Verb      string `json:"verb"`
			ObjectRef *struct {
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
				APIGroup    string `json:"apiGroup"`
			} `json:"objectRef"`
			Annotations map[string]string `json:"annotations"`
		}
		Expect(json.Unmarshal(text, &line)).To(Succeed())
		if line.ObjectRef == nil {
			continue // discovery of the API
		}
		r := rightOf(line.Verb, line.ObjectRef.APIGroup, line.ObjectRef.Resource, line.ObjectRef.Subresource)
		if line.Annotations["authorization.k8s.io/decision"] == "forbid" {
			refused = append(refused, r)
		}
		used[r] = true
	}
	Expect(used).NotTo(BeEmpty())
	return used, refused
}
