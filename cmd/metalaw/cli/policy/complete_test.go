// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
)

func TestAShellCompletesNames(t *testing.T) {
	inForce := at("fleet-1-aaaa", "da", "fleet-1", "Active", "Active", "InForce", "2", "")
	other := headAt("active")
	other.Name, other.Labels = "unlabelled", nil
	api, _ := admitting(t, true, nil, headAt("shadow"), other, &inForce,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "fleet-2", Labels: headAt("").Labels}})
	namespace := "ns"
	for name, c := range map[string]struct {
		names func() ([]string, error)
		want  []string
	}{
		"of bundles":   {func() ([]string, error) { return headNames(&namespace)(t.Context(), api) }, []string{"fleet-1\tshadow"}},
		"of revisions": {func() ([]string, error) { return revisionNames(t.Context(), api) }, []string{"fleet-1-aaaa\tActive"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.names()
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
	if diff := cmp.Diff([]string{"fleet-1"}, access.Beginning([]string{"fleet-1", "other"}, "fl", nil)); diff != "" {
		t.Error(diff)
	}
}

func TestTheVerbsThatTakeNamesCompleteThem(t *testing.T) {
	group := Command("metalaw")
	find := func(verb string) *cobra.Command {
		cmd, _, err := group.Find([]string{verb})
		if err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	if find("promote").ValidArgsFunction == nil {
		t.Error("promote completes no names")
	}
	for verb, flag := range map[string]string{"rollback": "to", "render": "revision"} {
		if _, completes := find(verb).GetFlagCompletionFunc(flag); !completes {
			t.Errorf("%s --%s completes no names", verb, flag)
		}
	}
}
